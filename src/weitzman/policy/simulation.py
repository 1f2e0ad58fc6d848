"""Play a policy many times and see what it earns, and how that varies."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import FloatArray, IntArray, frozen, writable
from .._common.numbers import Amounts, counted, percent
from .._common.sharing import Executor, check_executor, spread
from .._common.text import cells_html
from .._common.text import columns as aligned
from .._kernels import episodes as kernel
from ..chains.following import must_stop
from ..engine.indices import Policy
from ..engine.plan import Progress
from ..engine.solution import Solution, as_policy
from ..engine.weights import groups_of
from ..errors import InvalidArgument
from ..forest.model import Forest

if TYPE_CHECKING:
    import pandas as pd

_AMOUNTS = ("payoff", "reward", "spend")
_SAMPLES = ("payoff", "reward", "spend", "openings", "rounds", "time")
_QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One number per episode.

    Attributes
    ----------
    values : array of float
        The value in each episode, or in the first episodes if only those were kept.
    episodes : int
        How many episodes there were; the mean is over all of them.
    mean : float
    deviation : float
        The standard deviation; NaN with one episode.
    """

    values: FloatArray
    episodes: int
    mean: float
    deviation: float

    @property
    def standard_error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / math.sqrt(self.episodes)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the expectation, by the normal approximation."""
        half = two_sided(level) * self.standard_error
        return self.mean - half, self.mean + half

    def quantile(self, q: float | Sequence[float]) -> FloatArray:
        """The least value that a share ``q`` of the kept episodes, or more, does not exceed."""
        shares = np.asarray(q, np.float64)
        return np.asarray(np.quantile(self.values, shares, method="inverted_cdf"), np.float64)

    def certainty(self, tolerance: float, sign: float) -> tuple[float, float]:
        """The certainty equivalent of the kept episodes, and its standard error.

        For the utility -exp(-z / tolerance) of a payoff z, the value times ``sign``.
        """
        z = sign * self.values
        low = float(z.min())
        utility = np.exp((low - z) / tolerance)
        mean, n = float(utility.mean()), len(z)
        error = float(utility.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        return sign * (low - tolerance * math.log(mean)), tolerance * error / mean

    def __repr__(self) -> str:
        return f"Sample(mean={self.mean:.6g}, standard_error={self.standard_error:.2g})"


def two_sided(level: float) -> float:
    """How many standard errors to either side hold a share ``level`` of a normal law."""
    return NormalDist().inv_cdf((1 + level) / 2)


def share_interval(share: float, n: int, level: float) -> tuple[float, float]:
    """Wilson's confidence interval for a probability, if a ``share`` of n trials succeeded."""
    z2 = two_sided(level) ** 2 / n
    center = share + z2 / 2
    half = math.sqrt(z2 * share * (1 - share) + z2 * z2 / 4)
    return max(0.0, (center - half) / (1 + z2)), min(1.0, (center + half) / (1 + z2))


def merge(size: IntArray, mean: FloatArray, square: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the whole from those of its parts.

    Parameters
    ----------
    size : (m,) array of int
        How many numbers each part has.
    mean, square : (m, r) arrays of float
        Mean of each part, and its sum of squares around that mean.
    """
    total = int(size.sum())
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # squares of 1e200: inf
        center = size @ mean / total
        spread = square.sum(axis=0) + size @ (mean - center) ** 2
        return center, np.sqrt(spread / (total - 1) if total > 1 else np.full_like(spread, np.nan))


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """What a policy came to in many episodes, in the user's sign.

    Attributes
    ----------
    forest : Forest
    workers : int
        Boxes opened at once.
    payoff : Sample
        Reward less spend (plus, when minimizing).
    reward : Sample
        The best reward found (least loss), or the outside option.
    spend : Sample
        Sum of the costs paid.
    openings : Sample
        Boxes opened.
    rounds : Sample
        Rounds in which boxes were opened, all of one round at once.
    time : Sample
        Time to the end, as in :class:`~weitzman.engine.Evaluation`; 0 without discounting. With it,
        payoff, reward and spend are discounted.
    loss : float
        Share of the episodes that ended worse than with the outside option and nothing opened.
    opened : (n,) array of float
        Average number of copies of each box that were opened.
    """

    forest: Forest
    workers: int
    payoff: Sample
    reward: Sample
    spend: Sample
    openings: Sample
    rounds: Sample
    time: Sample
    loss: float
    opened: FloatArray

    @property
    def episodes(self) -> int:
        """How many episodes were played."""
        return self.payoff.episodes

    @property
    def value(self) -> float:
        """What the episodes were worth: the mean payoff, or its certainty equivalent."""
        return self._value()[0]

    @property
    def value_error(self) -> float:
        """The standard error of :attr:`value`."""
        return self._value()[1]

    def _value(self) -> tuple[float, float]:
        tolerance = self.forest.risk_tolerance
        if tolerance is None:
            return self.payoff.mean, self.payoff.standard_error
        return self.payoff.certainty(tolerance, self.forest.sign)

    def loss_interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the probability of a loss (Wilson's)."""
        return share_interval(self.loss, self.episodes, level)

    def columns(self) -> dict[str, FloatArray]:
        """Payoff, reward, spend, openings, rounds (and time, if it counts) of the episodes kept."""
        return {name: getattr(self, name).values for name in self._samples()}

    def _samples(self) -> tuple[str, ...]:
        return _SAMPLES if self.forest.factors is not None else _SAMPLES[:-1]

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for every episode that was kept."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def summary(self, level: float = 0.95) -> list[dict[str, Any]]:
        """For each quantity its mean, standard error, confidence interval and quantiles."""
        out = []
        for name in self._samples():
            sample: Sample = getattr(self, name)
            low, high = sample.interval(level)
            row = {"name": name, "mean": sample.mean, "standard_error": sample.standard_error}
            quantiles = zip(_QUANTILES, sample.quantile(_QUANTILES).tolist(), strict=True)
            out.append(
                row | {"low": low, "high": high} | {f"{100 * q:g}%": x for q, x in quantiles}
            )
        return out

    def table(self, level: float = 0.95) -> str:
        """Means with confidence intervals, and quantiles, as text."""
        at_once = "one box at a time" if self.workers == 1 else f"{self.workers} boxes at once"
        low, high = self.loss_interval(level)
        return "\n".join(
            [
                f"{counted(self.episodes, 'episode')}, {at_once}",
                *aligned(self._cells(level), right=1),
                f"worse than opening nothing: {percent(self.loss)} of the episodes "
                f"({percent(low)} to {percent(high)})",
            ]
        )

    def _cells(self, level: float) -> list[list[str]]:
        z = two_sided(level)
        cells = [["", "mean", f"± ({100 * level:g}%)", *(f"{100 * q:g}%" for q in _QUANTILES)]]
        for row in self.summary(level):
            name, mean, error, _, _, *quantiles = row.values()
            say = self.forest.amounts if name in _AMOUNTS else Amounts()
            numbers = [
                say(mean, z * error),
                say.margin(z * error),
                *(say(x) for x in quantiles),
            ]
            cells.append([name, *numbers])
        return cells

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return (
            f"Simulation({self.episodes} episodes, workers={self.workers}, "
            f"payoff={self.payoff.mean:.6g}, standard_error={self.payoff.standard_error:.2g})"
        )

    def _repr_html_(self) -> str:
        played, worse = counted(self.episodes, "episode"), percent(self.loss)
        head = f"{played}, {worse} of them worse than opening nothing"
        return cells_html([head], self._cells(0.95))


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
    tables, f = tabulate(rule), rule.forest
    game = game._replace(prizes=int(f.prizes))
    if f.quotas:
        groups = groups_of(f)
        game = game._replace(group=groups.of, quota=groups.quota)
    scratch: list[kernel.Lists] = []

    def play(first: int, last: int, out: FloatArray, opened: IntArray) -> None:
        heap = scratch.pop() if scratch else kernel.room()
        scratch.append(kernel.play(tables, game, first, last, kernel.Tally(out, opened), heap))

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
