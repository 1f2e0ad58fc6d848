"""Play a policy many times and see what it earns, and how that varies.

What a box shows in an episode is drawn from a number that hashes seed, episode, box and copy, and
nothing else. So two policies that are played with one seed meet the same boxes (*common random
numbers*), and their difference varies less than each of them: see :func:`difference`.

Where few things can happen, all episodes go down the tree of situations together, in NumPy.
Elsewhere a compiled kernel plays them one after the other, with the same draws.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import FloatArray, IntArray, check_counts, error_of_mean, frozen, writable
from .._common.numbers import Amounts, counted, percent
from .._common.sharing import Executor, check_executor, spread
from .._common.text import ResultTable, as_html
from .._kernels import episodes as kernel
from ..chains.following import must_stop
from ..engine.evaluation import evaluate
from ..engine.indices import Policy
from ..engine.plan import Progress
from ..engine.solution import Solution, as_policy
from ..engine.weights import groups_of, takes_several
from ..errors import InvalidArgument
from ..forest.model import Forest
from .frontier import Id
from .payoff_laws import exact_payoffs
from .walk import Walk

_AMOUNTS = ("payoff", "reward", "spend")
_SAMPLES = ("payoff", "reward", "spend", "openings", "rounds", "time")
_QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One number per episode."""

    values: FloatArray

    @property
    def episodes(self) -> int:
        """How many there are."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The average."""
        return float(self.values.mean())

    @property
    def deviation(self) -> float:
        """The standard deviation; NaN with one episode."""
        return self.standard_error * math.sqrt(self.episodes)

    @property
    def standard_error(self) -> float:
        """The standard error of the mean."""
        with np.errstate(invalid="ignore"):  # without an outside option nothing may be found
            return error_of_mean(self.values)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the expectation, by the normal approximation."""
        half = two_sided(level) * self.standard_error
        return self.mean - half, self.mean + half

    def quantile(self, q: float | Sequence[float]) -> FloatArray:
        """The least value that a share ``q`` of the episodes, or more, does not exceed."""
        shares = np.asarray(q, np.float64)
        return np.asarray(np.quantile(self.values, shares, method="inverted_cdf"), np.float64)

    def certainty(self, tolerance: float, sign: float) -> tuple[float, float]:
        """The certainty equivalent, and its standard error.

        For the utility -exp(-z / tolerance) of a payoff z, the value times ``sign``.
        """
        z = sign * self.values
        low = float(z.min())
        utility = np.exp((low - z) / tolerance)
        mean, error = float(utility.mean()), error_of_mean(utility)
        return sign * (low - tolerance * math.log(mean)), tolerance * error / mean

    def __repr__(self) -> str:
        return f"Sample(mean={self.mean:.6g}, standard_error={self.standard_error:.2g})"


def two_sided(level: float) -> float:
    """How many standard errors to either side hold a share ``level`` of a normal law."""
    return NormalDist().inv_cdf((1 + level) / 2)


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(ResultTable):
    """What a policy came to in many episodes, in the user's sign.

    Attributes
    ----------
    forest : Forest
    workers : int
        Boxes opened at once.
    payoff, reward, spend : Sample
        The best reward found (least loss) or the outside option, the costs paid, and the reward
        less the spend (plus, when minimizing); discounted, where there is discounting.
    openings, rounds, time : Sample
        Boxes opened, rounds in which they were, and the time to the end (0 without discounting).
    loss_share : float
        Share of the episodes that ended worse than with the outside option and nothing opened.
    opened : (n,) array of float
        Average number of copies of each box that were opened.
    policy : Policy, optional
        Where one box is opened at a time and without a budget.
    """

    forest: Forest
    workers: int
    payoff: Sample
    reward: Sample
    spend: Sample
    openings: Sample
    rounds: Sample
    time: Sample
    loss_share: float
    opened: FloatArray
    policy: Policy | None = None

    @cached_property
    def exact_loss(self) -> float | None:
        """The probability of a loss, where all payoffs of the policy can be enumerated."""
        law = None if self.policy is None else exact_payoffs(self.policy)
        return None if law is None else _chance_of_loss(self.forest, *law)[1]

    @property
    def episodes(self) -> int:
        """How many episodes were played."""
        return self.payoff.episodes

    @cached_property
    def _value(self) -> tuple[float, float]:
        tolerance = self.forest.risk_tolerance
        if tolerance is None:
            return self.payoff.mean, self.payoff.standard_error
        return self.payoff.certainty(tolerance, self.forest.sign)

    @property
    def value(self) -> float:
        """What the episodes were worth: the mean payoff, or its certainty equivalent."""
        return self._value[0]

    @property
    def value_error(self) -> float:
        """The standard error of :attr:`value`."""
        return self._value[1]

    @property
    def loss(self) -> float:
        """The probability of ending worse than with nothing opened: exact, or else estimated."""
        return self.loss_share if self.exact_loss is None else self.exact_loss

    def loss_interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the probability of a loss (Wilson's); a point if exact."""
        if self.exact_loss is not None:
            return self.exact_loss, self.exact_loss
        share, z2 = self.loss_share, two_sided(level) ** 2 / self.episodes
        half = math.sqrt(z2 * share * (1 - share) + z2 * z2 / 4)
        low, high = ((share + z2 / 2 + way * half) / (1 + z2) for way in (-1, 1))
        return max(0.0, low), min(1.0, high)

    def columns(self) -> dict[str, Any]:
        """Payoff, reward, spend, openings, rounds (and time, if it counts) of each episode."""
        return {name: getattr(self, name).values for name in self._samples()}

    def _samples(self) -> tuple[str, ...]:
        return _SAMPLES if self.forest.factors is not None else _SAMPLES[:-1]

    def summary(self, level: float = 0.95) -> list[dict[str, Any]]:
        """For each quantity its mean, standard error, confidence interval and quantiles."""
        out = []
        for name in self._samples():
            x: Sample = getattr(self, name)
            low, high = x.interval(level)
            row = {"name": name, "mean": x.mean, "standard_error": x.standard_error}
            quantiles = {f"{100 * q:g}%": float(x.quantile(q)) for q in _QUANTILES}
            out.append(row | {"low": low, "high": high} | quantiles)
        return out

    def headline(self) -> str:
        """How many episodes there were, and how often they ended in a loss."""
        at_once = "one box at a time" if self.workers == 1 else f"{self.workers} boxes at once"
        low, high = self.loss_interval()
        sure = "" if self.exact_loss is not None else f" ({percent(low)} to {percent(high)})"
        return (
            f"{counted(self.episodes, 'episode')}, {at_once}; worse than opening nothing: "
            f"{percent(self.loss)}{sure}"
        )

    def cells(self, level: float = 0.95) -> list[list[str]]:
        """Means with confidence intervals, and quantiles."""
        z = two_sided(level)
        cells = [["", "mean", f"± ({100 * level:g}%)", *(f"{100 * q:g}%" for q in _QUANTILES)]]
        for row in self.summary(level):
            name, mean, error, _, _, *quantiles = row.values()
            say = self.forest.amounts if name in _AMOUNTS else Amounts()
            cells.append(
                [name, say(mean, z * error), say.margin(z * error), *(say(x) for x in quantiles)]
            )
        return cells

    def __repr__(self) -> str:
        return (
            f"Simulation({self.episodes} episodes, workers={self.workers}, "
            f"payoff={self.payoff.mean:.6g}, standard_error={self.payoff.standard_error:.2g})"
        )


Play = Callable[[int, int, FloatArray, IntArray], None]
"""Play episodes ``first`` to ``last - 1``: write what they came to, and count what was opened."""

_CHUNK = 4096  # episodes in a chunk, at most
_TOGETHER = 2**16  # the same where episodes continue together
_CHUNKS = 256  # and at least this many chunks, if there are as many episodes
_SHARES = 64  # of the chunks, for the workers of an executor; more where there are many
_MOST_SHARES = 1024
_MOST_WORKERS = 10**6
_SAME = 1e-12  # of the largest payoff: rounding makes none worse than another
_NODES = 20_000  # situations that all episodes may come to together: about a second
_DEEPEST = 300  # boxes opened in one episode, where all go together


def simulate(
    policy: Policy | Solution, episodes: int, rng: np.random.Generator | int = 0, *,
    workers: int = 1, budget: int | None = None, threads: int | None = None,
    executor: Executor | None = None, progress: Progress | None = None,
) -> Simulation:  # fmt: skip
    """Play a policy against randomly drawn boxes.

    States are drawn from the laws, and costs that depend on them are charged as drawn. Copies are
    not written out: an episode takes time by what is opened, not by the size of the forest.

    Parameters
    ----------
    policy : Policy or Solution
        An index policy; of a solution, the optimal one.
    episodes : int
        A million of them take 48 MB.
    rng : Generator or int
        Where randomness comes from, or a seed. Two numbers are taken from it.
    workers : int
        Boxes to open at once: in each round those with the highest indices above the best reward so
        far, then see all that they show. A round takes as long as its slowest box. The index
        policy is not optimal then: compare ``payoff`` and ``rounds`` with one worker.
    budget : int, optional
        Open exactly this many boxes, highest index first, whatever is found (fewer if there are
        fewer). By default the policy stops when no index exceeds the best reward so far.
    threads, executor : optional
        As for :func:`~weitzman.solve`. The result is bitwise identical without them.
    progress : callable, optional
        Called now and then with (episodes done, episodes in all).

    Returns
    -------
    Simulation
        Payoff, reward, spend and openings of all episodes.

    See Also
    --------
    weitzman.evaluate : Exact expectations.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    >>> played = simulate(weitzman.solve(box), 100_000, rng=1)
    >>> round(played.openings.mean, 2)  # 1 + 1/2 + 1/4 on average
    1.75
    """
    rule = as_policy(policy, "simulate")
    check_counts(workers=workers, budget=budget, episodes=episodes)
    if budget is not None:  # then boxes that can yield nothing are opened too, last of all
        rule = replace(rule, index=frozen(np.maximum(rule.index, -np.finfo(np.float64).max)))
    check_executor(executor)
    f = rule.forest
    if takes_several(f) and workers > 1:
        raise InvalidArgument(
            "with quotas or several prizes boxes are opened one at a time: a prize may close a "
            "tree that another worker is looking into. Leave `workers` out."
        )
    if budget is None:
        check_stops(rule)
    options: dict[str, Any] = {"workers": workers, "progress": progress}
    found, together = _played(rule, episodes, rng, budget, options, threads, executor)
    alone = together and min(workers, f.boxes) == 1 and budget is None
    return replace(found, policy=rule) if alone else found


def _played(
    rule: Policy, episodes: int, rng: np.random.Generator | int, budget: int | None,
    options: dict[str, Any], threads: int | None = None, executor: Executor | None = None,
) -> tuple[Simulation, bool]:  # fmt: skip
    """Episodes, and whether those in the same situation could continue together."""
    f = rule.forest
    boxes = math.inf if f.endless.any() else f.boxes
    workers = min(options.get("workers", 1), f.boxes, _MOST_WORKERS)  # one at a time in each line
    most = int(min(boxes if budget is None else budget, np.iinfo(np.int64).max))
    game = kernel.Game(len(rule.root), rule.outside, workers, most, budget is None, stream_key(rng))
    options = {**options, "workers": workers}
    try:
        play = _Together(rule, game)
        return run_episodes(play, f, episodes, chunk=_TOGETHER, **options), True
    except _TooWide:
        options |= {"threads": threads, "executor": executor}
        return run_episodes(_OneByOne(rule, game), f, episodes, **options), False


def difference(
    first: Policy | Solution, second: Policy | Solution, episodes: int = 20_000,
    rng: np.random.Generator | int = 0, *, threads: int | None = None,
) -> Sample:  # fmt: skip
    """How much more payoff one policy has than another, in the same episodes.

    Both meet the same boxes in every episode, so the differences vary little and few episodes
    suffice: the standard error is that of paired differences.

    Parameters
    ----------
    first, second : Policy or Solution
        Policies on one forest.
    episodes, rng, threads
        As for :func:`simulate`.

    Examples
    --------
    >>> import weitzman
    >>> boxes = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    >>> best = weitzman.solve(boxes)
    >>> lazy = weitzman.Policy.of(boxes, 6.0)
    >>> found = difference(best, lazy, 1000)
    >>> low, high = found.interval()
    >>> bool(low <= found.mean <= high)
    True
    """
    rules = as_policy(first, "difference"), as_policy(second, "difference")
    if rules[0].forest != rules[1].forest:
        raise InvalidArgument("policies that are compared must be policies on the same forest.")
    key = np.random.default_rng(rng).integers(0, 2**63)
    a, b = (simulate(rule, episodes, int(key), threads=threads) for rule in rules)
    return Sample(frozen(a.payoff.values - b.payoff.values))


class _OneByOne:
    """Plays episodes one after the other, compiled; threads may share it."""

    def __init__(self, rule: Policy, game: kernel.Game) -> None:
        groups = groups_of(rule.forest)
        game = game._replace(stream=writable(game.stream), prizes=int(rule.forest.prizes))
        if rule.forest.quotas:
            game = game._replace(group=groups.of, quota=groups.quota)
        self._rule, self._game = rule, game
        self._scratch: list[kernel.Lists] = []

    def __reduce__(self) -> Any:
        return type(self), (self._rule, self._game)

    _tables = cached_property(lambda self: tabulate(self._rule))

    def __call__(self, first: int, last: int, out: FloatArray, opened: IntArray) -> None:
        scratch, tally = self._scratch, kernel.Tally(out, opened)
        heap = scratch.pop() if scratch else kernel.room()
        scratch.append(kernel.play(self._tables, self._game, first, last, tally, heap))


class _TooWide(Exception):
    """Episodes come to too many different situations."""


class _Now(NamedTuple):  # how episodes stand: in all so far, then in this round
    worth: float = 1.0
    spent: float = 0.0
    time: float = 0.0
    rounds: int = 0
    factor: float = 1.0
    pause: float = 0.0


class _Together:
    """Plays all episodes at once: those in the same situation continue together."""

    def __init__(self, rule: Policy, game: kernel.Game) -> None:
        self._rule, self._game = rule, game

    def __call__(self, first: int, last: int, out: FloatArray, opened: IntArray) -> None:
        self._walk, self._out, self._opened, self._nodes = Walk(self._rule), out, opened, 0
        self._keys: dict[Id, np.uint64] = {}
        self._stream = episode_stream(self._game.stream, first, last)
        self._go_on(np.arange(last - first), [], _Now())

    def _go_on(self, at: IntArray, batch: list[Id], now: _Now) -> None:
        """Continue the episodes ``at``; boxes of the batch are being opened at the same time."""
        self._nodes += 1
        walk, f, game = self._walk, self._walk.forest, self._game
        if self._nodes > _NODES or len(walk.answers) > _DEEPEST:
            raise _TooWide
        if not batch:  # the boxes of the next round
            most = min(game.workers, game.budget - len(walk.answers))
            bar = walk.bar if game.stops else -np.inf
            ranked = islice(walk.frontier.best_first(), most)
            batch = [box for box, index in ranked if index > bar]
            if not batch and (prize := walk.next_prize()) is not None:
                with walk.supposing_taken(prize):
                    self._go_on(at, [], now)
                return
            if not batch:
                out, reward = self._out, walk.sign * walk.totals()[0] * now.worth
                out[kernel.PAYOFF, at], out[kernel.REWARD, at] = reward - now.spent, reward
                out[kernel.SPEND, at], out[kernel.OPENINGS, at] = now.spent, len(walk.answers)
                out[kernel.ROUNDS, at], out[kernel.TIME, at] = now.rounds, now.time
                return
            now = now._replace(rounds=now.rounds + 1, factor=1.0, pause=0.0)
        box, *batch = batch
        v, above = box[0], walk.state_above(box)
        law = f.laws[int(f.law[v])][above]
        chances = np.cumsum(law) / law.sum()
        chances[np.flatnonzero(law)[-1] :] = 2.0  # never a state of probability zero
        states = np.searchsorted(chances, uniform(self._stream[at] + self._key(box)), side="right")
        self._opened[v] += len(at)
        for y in np.unique(states).tolist():
            spent = now.spent + now.worth * walk.cost(v, above, y)
            factor, pause = now.factor, now.pause
            if f.factors is not None:
                own, took = walk.passes(box, y)
                factor, pause = min(factor, own), max(pause, took)
            later = now._replace(spent=spent, factor=factor, pause=pause)
            if not batch:
                later = later._replace(worth=now.worth * factor, time=now.time + pause)
            with walk.supposing(box, y):
                self._go_on(at[states == y], batch, later)

    def _key(self, box: Id) -> np.uint64:
        """The number of a box and its copy, from those of all boxes above it."""
        if box not in self._keys:
            f, above = self._walk.forest, self._walk.above(box)
            own = box[1][-1] - 1 if f.count[box[0]] > 1 else 0
            up = np.uint64(0) if above is None else self._key(above)
            self._keys[box] = box_draws(up, box[0], own)
        return self._keys[box]


def _scrambled(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The hash of SplitMix64 for each word; products wrap around."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def episode_stream(key: NDArray[np.uint64], first: int, last: int) -> NDArray[np.uint64]:
    """A word for each episode, from which all its draws follow."""
    return _scrambled(key[1] + _scrambled(key[0] ^ np.arange(first, last, dtype=np.uint64)))


def box_draws(above: np.uint64, box: int, copy: int = 0) -> np.uint64:
    """What distinguishes a copy of a box from all others, given that of its parent (0 for none)."""
    word = (int(above) + 0x9E3779B97F4A7C15 * (box + 1) + copy) % 2**64
    return np.uint64(_scrambled(np.array([word], np.uint64))[0])


def uniform(place: NDArray[np.uint64]) -> FloatArray:
    """Numbers from [0, 1): the stream of an episode plus what distinguishes a box."""
    return np.asarray((_scrambled(place) >> np.uint64(11)) * 2.0**-53)


def check_stops(policy: Policy) -> None:
    """Refuse a policy that may follow an endless line forever."""
    f = policy.forest
    for v in np.flatnonzero(f.endless).tolist():
        law, r = f.laws[int(f.law[v])], int(f.reward[v])
        at = int(policy.index_at[v])
        rewards = policy.rewards[f.rewards.start[r] : f.rewards.start[r + 1]]
        must_stop(law, rewards, policy.index[at : at + len(law)], policy.outside, f.name(v))


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
    boxes[:, kernel.STATES] = f.rewards.shape[f.reward, 1]
    boxes[:, kernel.COUNT] = f.count
    places = [(f.costs, (kernel.COST_AT, kernel.COST_ROW, kernel.COST_STEP))]
    factors = durations = np.empty(0)
    if f.factors is not None:
        columns = kernel.FACTOR_AT, kernel.FACTOR_ROW, kernel.FACTOR_STEP
        places.append((f.factors, columns))
        factors = f.factors.data
        durations = -np.log(factors) if f.durations is None else f.durations.data
    for pool, (start, row_step, step) in places:
        rows, cols = pool.shape[f.cost].T
        boxes[:, start], boxes[:, step] = pool.start[f.cost], cols > 1
        boxes[:, row_step] = np.where(rows > 1, cols, 0)
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


class _Chunks(NamedTuple):
    """How episodes are cut into chunks: by their number alone, not by who plays them."""

    play: Play
    forest: Forest
    episodes: int
    size: int

    def played(self, numbers: tuple[int, int]) -> tuple[FloatArray, IntArray]:
        """Play some chunks one after the other: what they came to, and the openings of all."""
        opened, found = np.zeros(len(self.forest), np.int64), list[FloatArray]()
        for a in range(numbers[0] * self.size, numbers[1] * self.size, self.size):
            b = min(a + self.size, self.episodes)
            found.append(np.zeros((kernel.RECORDED, b - a)))
            self.play(a, b, found[-1], opened)
        return np.concatenate(found, axis=1), opened


def run_episodes(
    play: Play, forest: Forest, episodes: int, *, workers: int = 1, threads: int | None = None,
    executor: Executor | None = None, progress: Progress | None = None, chunk: int | None = None,
) -> Simulation:  # fmt: skip
    """Share episodes out among threads, or an executor, and gather what they came to in order.

    With ``chunk``, chunks of this size are played here, one after the other.
    """
    check_counts(episodes=episodes)
    size = chunk or max(1, min(_CHUNK, episodes // _CHUNKS))
    chunks = _Chunks(play, forest, episodes, size)
    count = -(-episodes // size)
    pieces = min(max(_SHARES, count // _SHARES), _MOST_SHARES) if executor is not None else count
    cuts = list(pairwise(np.unique(np.linspace(0, count, pieces + 1).astype(np.int64)).tolist()))

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(episodes * done // total, episodes)

    if executor is not None or chunk is not None:
        shares = spread(executor, _Chunks.played, chunks, cuts, tell)
    else:
        with ThreadPoolExecutor(min(threads or os.cpu_count() or 1, count)) as pool:
            shares = spread(pool, _Chunks.played, chunks, cuts, tell)
    signs = np.array([forest.sign, forest.sign, 1.0, 1.0, 1.0, 1.0])
    out = np.concatenate([found for found, _ in shares], axis=1) * signs[:, None]
    opened = np.sum([count for _, count in shares], axis=0)
    nothing = forest.sign * forest.outside * forest.prizes
    worse = float((forest.sign * out[kernel.PAYOFF] < nothing).mean())
    payoff, reward, spend, openings, rounds, time = (Sample(frozen(values)) for values in out)
    return Simulation(
        forest, workers, payoff, reward, spend, openings, rounds, time, worse, opened / episodes
    )


@dataclass(frozen=True, slots=True, eq=False)
class PayoffLaw(ResultTable):
    """What a search earns in the end.

    Attributes
    ----------
    values, chances : (m,) array
        Ascending; discounted, where there is discounting.
    mean : float
        Exact, also if the law is simulated.
    outside : float
        What opening nothing earns.
    is_worse : (m,) array of bool
        Which values are worse than that.
    worse : float
        Their probability.
    how : str
        "exact", or how many searches were simulated.
    """

    values: FloatArray
    chances: FloatArray
    mean: float
    outside: float
    is_worse: NDArray[np.bool_]
    worse: float
    how: str

    def columns(self) -> dict[str, list[float]]:
        """The values and their chances."""
        return {"value": self.values.tolist(), "chance": self.chances.tolist()}

    def __repr__(self) -> str:
        return f"PayoffLaw({len(self.values)} values, mean={self.mean:.6g}, {self.how})"

    __str__ = __repr__
    _repr_html_ = as_html


def payoff_law(
    policy: Solution | Policy, *, episodes: int = 100_000, rng: np.random.Generator | int = 0
) -> PayoffLaw:
    """The law of the payoff: written out where the policy has few ends, else simulated.

    The paper's *payoff distribution*, of any index policy on any forest. With discounting, payoffs
    are discounted to the start; with several prizes, a payoff is their sum less all costs. ``how``
    of the result says whether it is simulated, with ``episodes`` and ``rng`` as in
    :func:`simulate`.

    Returns
    -------
    PayoffLaw
        Values and their probabilities; ``how`` is "exact" or "simulated".

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2)
    >>> law = payoff_law(weitzman.solve(chest))
    >>> law.values.tolist(), law.chances.tolist(), law.how
    ([-2.0, 8.0, 9.0], [0.25, 0.25, 0.5], 'exact')
    """
    rule = as_policy(policy, "payoff_law")
    f, exact = rule.forest, exact_payoffs(rule)
    if exact is None:
        check_stops(rule)
        played, exactly = _played(rule, episodes, rng, None, {})[0], evaluate(rule)
        values, chances = played.payoff.values, np.full(len(played.payoff.values), 1.0)
        how, mean = f"{episodes:,} simulated searches", exactly.reward - f.sign * exactly.spend
    else:
        values, chances = exact
        how, mean = "exact", float(values @ chances)
    values, place = np.unique(values, return_inverse=True)
    chances = np.bincount(place, weights=chances) / chances.sum()
    worse, chance = _chance_of_loss(f, values, chances)
    return PayoffLaw(values, chances, mean, f.prizes * f.outside, worse, chance, how)


def _chance_of_loss(
    f: Forest, values: FloatArray, chances: FloatArray
) -> tuple[NDArray[np.bool_], float]:
    """Which payoffs are worse than opening nothing, and how likely that is."""
    same = _SAME * float(np.abs(values).max())
    worse = f.sign * values < f.sign * f.prizes * f.outside - same
    return worse, float(chances[worse].sum())
