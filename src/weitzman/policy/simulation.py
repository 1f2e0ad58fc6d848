"""Play a policy many times and see what it earns, and how that varies."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import FloatArray, IntArray, frozen, writable
from .._common.sharing import Executor, check_executor, spread
from .._kernels import episodes as kernel
from .._kernels.prize_episodes import collect
from ..chains.following import must_stop
from ..engine.indices import Policy
from ..engine.plan import Progress
from ..engine.solution import Solution, as_policy
from ..errors import InvalidArgument
from ..forest.model import Forest
from .simulation_result import Sample, Simulation, merge

Play = Callable[[int, int, FloatArray, IntArray], None]
"""Play episodes ``first`` to ``last - 1``: write what they came to, and count what was opened."""

_CHUNK = 4096  # episodes that a thread plays at a time, at most
_MOST_WORKERS = 10**6
_SHARES = 64  # of the episodes, for the workers of an executor; more where there are many
_MOST_SHARES = 1024
_CHUNKS = 256  # and at least this many times, if there are as many episodes


def simulate(
    policy: Policy | Solution,
    episodes: int,
    rng: np.random.Generator | int = 0,
    *,
    workers: int = 1,
    budget: int | None = None,
    keep: int = 1_000_000,
    threads: int | None = None,
    executor: Executor | None = None,
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
        Boxes to open at once: in each round those of highest index above the best reward so far
        (fewer if there are fewer), then see all that they show. A round takes as long as its
        slowest box. The optimal policy is no longer optimal then: compare ``payoff`` and ``rounds``
        with those of one worker.
    budget : int, optional
        Open exactly this many boxes, highest index first, whatever is found (fewer if there are
        fewer). By default the policy stops when no index exceeds the best reward so far.
    keep : int
        Keep the numbers of this many episodes, for quantiles. Means and errors are over all
        episodes.
    threads : int, optional
        All cores by default. The result does not depend on it, to the last bit.
    executor : optional
        Workers to share the episodes, as for :func:`~weitzman.solve`. The result does not depend
        on it.
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
    check_executor(executor)
    f = rule.forest
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
    elsewhere = None if executor is None else Elsewhere(executor, rule, game)
    play = player(rule, game) if executor is None else None
    return run_episodes(
        play, f, episodes, workers=workers, keep=keep, threads=threads, elsewhere=elsewhere,
        progress=progress,
    )  # fmt: skip


def player(rule: Policy, game: kernel.Game) -> Play:
    """What plays episodes of a policy; threads may share it."""
    f, tables = rule.forest, tabulate(rule)
    scratch: list[kernel.Lists] = []

    def play(first: int, last: int, out: FloatArray, opened: IntArray) -> None:
        heap = scratch.pop() if scratch else kernel.Lists(np.empty(64), np.empty((64, 6), np.int64))
        tally = kernel.Tally(out, opened)
        if f.prizes > 1:
            scratch.append(collect(tables, game, int(f.prizes), first, last, tally, heap))
        else:
            scratch.append(kernel.play(tables, game, first, last, tally, heap))

    return play


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


class Layout(NamedTuple):
    """How episodes are cut into chunks: by their number alone, not by who plays them."""

    episodes: int
    keep: int
    chunk: int

    @classmethod
    def of(cls, episodes: int, keep: int) -> Layout:
        """A few hundred chunks, if there are enough episodes."""
        at_least_one(episodes=episodes, keep=keep)
        return cls(episodes, keep, max(1, min(_CHUNK, episodes // _CHUNKS)))

    @property
    def chunks(self) -> int:
        """How many there are."""
        return -(-self.episodes // self.chunk)

    def span(self, chunk: int) -> tuple[int, int]:
        """The first episode of a chunk, and the one after its last."""
        first = chunk * self.chunk
        return first, min(first + self.chunk, self.episodes)


class EpisodeShare(NamedTuple):
    """What some chunks came to: their numbers, moments and kept episodes, and the totals."""

    numbers: list[int]
    mean: list[FloatArray]
    square: list[FloatArray]
    kept: list[FloatArray]
    opened: IntArray
    worse: int


class Elsewhere(NamedTuple):
    """Episodes of a policy, played by the workers of an executor."""

    executor: Executor
    rule: Policy
    game: kernel.Game

    def play(self, layout: Layout, progress: Progress | None) -> list[EpisodeShare]:
        """Shares of all chunks."""
        shares = min(max(_SHARES, layout.chunks // _SHARES), _MOST_SHARES)
        cuts = np.unique(np.linspace(0, layout.chunks, shares + 1).astype(np.int64)).tolist()

        def tell(done: int, total: int) -> None:
            if progress is not None:
                progress(layout.episodes * done // total, layout.episodes)

        data = self.rule, self.game, layout
        return spread(self.executor, _play_share, data, list(pairwise(cuts)), tell)


def _play_share(data: tuple[Policy, kernel.Game, Layout], chunks: tuple[int, int]) -> EpisodeShare:
    """On a worker: play some chunks."""
    rule, game, layout = data
    game = game._replace(stream=writable(game.stream))
    return _played(player(rule, game), rule.forest, layout, range(*chunks), lambda _: None)


def run_episodes(
    play: Play | None,
    forest: Forest,
    episodes: int,
    *,
    workers: int = 1,
    keep: int = 1_000_000,
    threads: int | None = None,
    elsewhere: Elsewhere | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Share episodes out among threads, or elsewhere, and gather what they came to.

    The chunks depend on the number of episodes only, and are put together in their order.
    """
    layout = Layout.of(episodes, keep)
    if elsewhere is not None:
        return _gathered(forest, layout, workers, elsewhere.play(layout, progress))
    assert play is not None, "somebody plays"
    return _gathered(forest, layout, workers, _by_threads(play, forest, layout, threads, progress))


def _by_threads(
    play: Play, forest: Forest, layout: Layout, threads: int | None, progress: Progress | None
) -> list[EpisodeShare]:
    todo, lock, done = iter(range(layout.chunks)), Lock(), 0

    def numbers() -> Iterator[int]:
        while True:
            with lock:
                c = next(todo, None)
            if c is None:
                return
            yield c

    def tell(n: int) -> None:
        nonlocal done
        with lock:
            done += n
            if progress is not None:
                progress(done, layout.episodes)

    crew = min(threads or os.cpu_count() or 1, layout.chunks)
    with ThreadPoolExecutor(crew) as pool:
        try:
            ends = [
                pool.submit(_played, play, forest, layout, numbers(), tell) for _ in range(crew)
            ]
            return [end.result() for end in ends]
        finally:
            with lock:  # after an error or an interrupt, nobody begins another chunk
                todo = iter(range(0))


def _played(
    play: Play, forest: Forest, layout: Layout, numbers: Iterable[int], tell: Callable[[int], None]
) -> EpisodeShare:
    """Play chunks one after the other."""
    share = EpisodeShare([], [], [], [], np.zeros(len(forest), np.int64), 0)
    out, worse = np.zeros((kernel.RECORDED, layout.chunk)), 0
    nothing = forest.sign * forest.outside * forest.prizes
    for c in numbers:
        a, b = layout.span(c)
        mean, square = np.empty(kernel.RECORDED), np.empty(kernel.RECORDED)
        play(a, b, out, share.opened)
        kernel.moments(out, b - a, mean, square)
        worse += int(kernel.count_below(out[kernel.PAYOFF], b - a, nothing))
        share.numbers.append(c)
        share.mean.append(mean)
        share.square.append(square)
        share.kept.append(out[:, : max(0, min(b, layout.keep) - a)].copy())
        tell(b - a)
    return share._replace(worse=worse)


def _gathered(
    forest: Forest, layout: Layout, workers: int, shares: Sequence[EpisodeShare]
) -> Simulation:
    """All episodes, in their order."""
    mean, square = np.empty((2, layout.chunks, kernel.RECORDED))
    episodes = layout.episodes
    kept = np.empty((kernel.RECORDED, min(layout.keep, episodes)))
    for share in shares:
        for i, c in enumerate(share.numbers):
            mean[c], square[c] = share.mean[i], share.square[i]
            a, part = c * layout.chunk, share.kept[i]
            kept[:, a : a + part.shape[1]] = part
    first = np.arange(0, episodes, layout.chunk)
    size = np.minimum(first + layout.chunk, episodes) - first
    opened = sum((share.opened for share in shares), np.zeros(len(forest), np.int64))
    worse = sum(share.worse for share in shares)
    sign = forest.sign
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
