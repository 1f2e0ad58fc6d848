"""Opening boxes in no order at all."""

from __future__ import annotations

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._kernels import orders
from .._kernels.episodes import Game, Tally
from ..engine.solution import Solution
from ..engine.solver import solve
from ..forest.combining import expand
from ..policy.simulation import at_least_one, run_episodes, stream_key, tabulate
from ..policy.simulation_result import Simulation
from .copies import WRITE_OUT, places, ready_room


def random_order(
    solution: Solution,
    episodes: int,
    rng: np.random.Generator | int,
    *,
    budget: int | None = None,
    threads: int | None = None,
) -> Simulation:
    """Open one of the available boxes at random, each with the same probability.

    Parameters
    ----------
    solution : Solution
        Copies are written out: there may be 5000 boxes at most.
    episodes : int
    rng : Generator or int
    budget : int, optional
        Open this many boxes, whatever they show. Without it, boxes whose index does not exceed the
        best reward so far are left closed: only the order is random, not the stopping.
    threads : int, optional

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    >>> random_order(weitzman.solve(box), 1000, rng=1, budget=2).openings.mean
    2.0
    """
    at_least_one(budget=1 if budget is None else budget)
    f = expand(solution.forest, WRITE_OUT)
    policy = (solution if f is solution.forest else solve(f)).policy()
    tables, most = tabulate(policy), len(f) if budget is None else budget
    where = places(f)
    game = Game(len(policy.root), policy.outside, 1, most, budget is None, stream_key(rng))

    def play(first: int, last: int, out: FloatArray, opened: IntArray) -> None:
        room = ready_room(f, where)
        orders.play_random(tables, game, where, f.parent, (first, last), Tally(out, opened), room)

    return run_episodes(play, f, episodes, threads=threads)
