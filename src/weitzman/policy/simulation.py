"""Play a policy many times and see what it earns, and how that varies."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import FloatArray, IntArray, frozen
from .._kernels import episodes as kernel
from .._kernels.prize_episodes import collect
from ..chains.following import must_stop
from ..engine.indices import Policy
from ..engine.plan import Progress
from ..engine.solution import Solution, as_policy
from ..errors import InvalidArgument
from ..forest.model import Forest
from .sampling import Sample, merge
from .simulation_result import Simulation

Play = Callable[[int, int, FloatArray, IntArray], None]
"""Play episodes ``first`` to ``last - 1``: write what they came to, and count what was opened."""

_CHUNK = 4096  # episodes that a thread plays at a time, at most
_MOST_WORKERS = 10**6
_CHUNKS = 256  # and so many times at least, if there are as many episodes


def simulate(
    policy: Policy | Solution,
    episodes: int,
    rng: np.random.Generator | int = 0,
    *,
    workers: int = 1,
    budget: int | None = None,
    keep: int = 1_000_000,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Play a policy against randomly drawn boxes.

    States are drawn from the laws, and costs that depend on them are charged as drawn. Copies are
    not written out: an episode takes time by what is opened, not by the size of the forest.

    Parameters
    ----------
    policy : Policy or Solution
        An index policy; of a solution, the optimal one.
    episodes : int
    rng : Generator or int
        Where randomness comes from, or a seed; seed 0 by default, so that two calls
        agree. Two numbers are taken from it.
    workers : int
        Open so many boxes at once: in each round those of highest index above the best reward so
        far (fewer if there are fewer), then see all that they show. A round takes as long as its
        slowest box. The optimal policy is no
        longer optimal then: compare ``payoff`` and ``rounds`` with those of one worker.
    budget : int, optional
        Open exactly so many boxes, highest index first, whatever is found (fewer if there are
        fewer). Without it the policy stops when no index exceeds the best reward so far.
    keep : int
        Keep the numbers of so many episodes, for quantiles. Means and errors are over all.
    threads : int, optional
        All cores by default. The result does not depend on it, to the last bit.
    progress : callable, optional
        Called now and then with (episodes done, episodes in all).

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    >>> played = simulate(weitzman.solve(box), 100_000, rng=1)
    >>> round(played.openings.mean, 2)  # 1 + 1/2 + 1/4 on average
    1.75
    """
    rule = as_policy(policy, "simulate")
    at_least_one(workers=workers, budget=1 if budget is None else budget)
    if budget is not None:  # then boxes that can yield nothing are opened too, last of all
        rule = replace(rule, index=frozen(np.maximum(rule.index, -np.finfo(np.float64).max)))
    f, tables = rule.forest, tabulate(rule)
    if f.prizes > 1 and workers > 1:
        raise InvalidArgument(
            "with several prizes boxes are opened one at a time: a prize may close a tree that "
            "another worker is looking into. Leave `workers` out."
        )
    if budget is None:
        check_stops(rule)
    boxes = math.inf if f.endless.any() else f.boxes
    workers = min(workers, f.boxes, _MOST_WORKERS)  # each line is looked into by one at a time
    most = int(min(boxes if budget is None else budget, np.iinfo(np.int64).max))
    game = kernel.Game(len(rule.root), rule.outside, workers, most, budget is None, stream_key(rng))
    scratch: list[kernel.Lists] = []

    def play(first: int, last: int, out: FloatArray, opened: IntArray) -> None:
        heap = scratch.pop() if scratch else kernel.Lists(np.empty(64), np.empty((64, 6), np.int64))
        tally = kernel.Tally(out, opened)
        if f.prizes > 1:
            scratch.append(collect(tables, game, int(f.prizes), first, last, tally, heap))
        else:
            scratch.append(kernel.play(tables, game, first, last, tally, heap))

    return run_episodes(
        play, f, episodes, workers=workers, keep=keep, threads=threads, progress=progress
    )


def check_stops(policy: Policy) -> None:
    """Refuse a policy that may follow an endless line forever."""
    f = policy.forest
    for v in np.flatnonzero(f.endless).tolist():
        law, r = f.laws[int(f.law[v])], int(f.reward[v])
        at = int(policy.index_at[v])
        rewards = policy.rewards[f.rewards.start[r] : f.rewards.start[r + 1]]
        must_stop(law, rewards, policy.index[at : at + len(law)], policy.outside, f.name(v))


def at_least_one(**arguments: int) -> None:
    """Refuse numbers below 1."""
    for name, n in arguments.items():
        if n < 1:
            raise InvalidArgument(f"`{name}` must be at least 1, but it is {n}.")


def stream_key(rng: np.random.Generator | int) -> NDArray[np.uint64]:
    """Two random words, from which the streams of all episodes follow."""
    return np.random.default_rng(rng).integers(0, 2**64, 2, np.uint64)


def tabulate(policy: Policy) -> kernel.Tables:
    """A policy as the kernel reads it."""
    f = policy.forest
    boxes = np.empty((len(f), kernel.COLUMNS), np.int64)
    boxes[:, kernel.INDEX_AT] = policy.index_at
    boxes[:, kernel.LAW_AT] = f.laws.start[f.law]
    boxes[:, kernel.REWARD_AT] = f.rewards.start[f.reward]
    boxes[:, kernel.COST_AT] = f.costs.start[f.cost]
    rows, cols = f.costs.shape[f.cost].T
    boxes[:, kernel.COST_ROW] = np.where(rows > 1, cols, 0)
    boxes[:, kernel.COST_STEP] = cols > 1
    boxes[:, kernel.STATES] = f.rewards.shape[f.reward, 1]
    boxes[:, kernel.COUNT] = f.count
    factors = durations = np.empty(0)
    if f.factors is not None:
        boxes[:, kernel.FACTOR_AT] = f.factors.start[f.cost]
        rows, cols = f.factors.shape[f.cost].T
        boxes[:, kernel.FACTOR_ROW] = np.where(rows > 1, cols, 0)
        boxes[:, kernel.FACTOR_STEP] = cols > 1
        factors = f.factors.data
        durations = -np.log(factors) if f.durations is None else f.durations.data
    row, owner = f.laws.rows()
    return kernel.Tables(
        siblings=kernel.list_siblings(
            policy.root, policy.child_at, policy.child, policy.index, boxes
        ),
        boxes=boxes,
        index=policy.index,
        chances=kernel.cumulate(f.laws.data, row, f.laws.shape[owner, 1]),
        rewards=policy.rewards,
        costs=f.costs.data,
        factors=frozen(factors),
        durations=frozen(durations),
    )


def run_episodes(
    play: Play,
    forest: Forest,
    episodes: int,
    *,
    workers: int = 1,
    keep: int = 1_000_000,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Share episodes out among threads and gather what they came to.

    The chunks depend on the number of episodes only, and are put together in their order.
    """
    at_least_one(episodes=episodes, keep=keep)
    chunk = max(1, min(_CHUNK, episodes // _CHUNKS))
    first = np.arange(0, episodes, chunk)
    size = np.minimum(first + chunk, episodes) - first
    mean, square = np.empty((len(first), kernel.RECORDED)), np.empty((len(first), kernel.RECORDED))
    kept = np.empty((kernel.RECORDED, min(keep, episodes)))
    sign = forest.sign
    opened, worse, done = np.zeros(len(forest), np.int64), 0, 0
    todo, lock = iter(range(len(first))), Lock()

    def work() -> None:
        nonlocal worse, done
        out, mine, below = np.zeros((kernel.RECORDED, chunk)), np.zeros(len(forest), np.int64), 0
        while True:
            with lock:
                c = next(todo, None)
            if c is None:
                break
            a, n = int(first[c]), int(size[c])
            play(a, a + n, out, mine)
            kernel.moments(out, n, mean[c], square[c])
            nothing = sign * forest.outside * forest.prizes
            below += int(kernel.count_below(out[kernel.PAYOFF], n, nothing))
            part = kept[:, a : a + n]
            part[:] = out[:, : part.shape[1]]
            with lock:
                done += n
                if progress is not None:
                    progress(done, episodes)
        with lock:
            opened[:] += mine
            worse += below

    crew = min(threads or os.cpu_count() or 1, len(first))
    with ThreadPoolExecutor(crew) as pool:
        try:
            for end in [pool.submit(work) for _ in range(crew)]:
                end.result()
        finally:
            with lock:  # after an error or an interrupt, nobody begins another chunk
                todo = iter(range(0))
    center, deviation = merge(size, mean, square)
    signs = np.array([sign, sign, 1.0, 1.0, 1.0, 1.0])
    kept *= signs[:, None]
    kept.flags.writeable = False
    payoff, reward, spend, openings, rounds, time = (
        Sample(values, episodes, float(m), float(d))
        for values, m, d in zip(kept, signs * center, deviation, strict=True)
    )
    return Simulation(
        forest, workers, payoff, reward, spend, openings, rounds, time, worse / episodes,
        opened / episodes,
    )  # fmt: skip
