"""Many solves at once: studies, risk tolerances, and numbers that are not known for sure.

``two_way``, ``scenarios`` and ``uncertainty`` move the numbers of :class:`~weitzman.files.Ranges`,
as sheets have them, or of a plain mapping: ``{("A", "cost"): (1, 3)}``. Uncertain numbers are
assumed to be independent, and a search does not teach what they are. The expected payoff of a
policy is linear in each cost, reward and chance; so with all but one of them uncertain, a policy
earns on average what it earns with those at their means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, check_counts, error_of_mean
from .._common.numbers import about, counted
from .._common.sharing import Executor, check_executor, spread
from .._common.text import ResultTable, clean
from ..engine.solution import Solution
from ..engine.solver import solve
from ..errors import InvalidArgument, InvalidForest, UnknownName
from ..files.ranges import Range, Ranges, number_of
from ..forest.model import Forest

_BOLD, _CAREFUL = 20.0, 0.04  # tolerances, in units of the range of all payoffs
_HALVINGS = 40  # of an interval between two tolerances
_POINTS = 17  # equally likely values of a number, to find what knowing it is worth
_NOTHING = "nothing"
_SHARES = 64  # of the forests of a study, for the workers of an executor

Base = TypeVar("Base")
Piece = TypeVar("Piece")
Given = Ranges | Mapping[Any, Any]
Progress = Callable[[int, int], None]
Found = tuple[float, float, str | None]
"""A value, its gap, and the box to open first."""


def solve_each(
    base: Base, change: Callable[[Base, Piece], Forest], pieces: Sequence[Piece], *,
    threads: int | None, executor: Executor | None, progress: Progress | None = None,
) -> list[Found]:  # fmt: skip
    """Solve ``change(base, piece)`` for each piece; ``change`` can be pickled."""
    check_executor(executor)
    # small forests are sent by the dozen: sending one takes as long as solving it
    n, size = len(pieces), 1 if executor is None else max(1, len(pieces) // _SHARES)
    shares = [pieces[i : i + size] for i in range(0, n, size)]

    def tell(done: int, _: int) -> None:
        if progress is not None:
            progress(min(done * size, n), n)

    data = base, change, threads if executor is None else 1
    return [x for share in spread(executor, _solve_share, data, shares, tell) for x in share]


def _solve_share(data: tuple[Any, Any, int | None], pieces: Sequence[Any]) -> list[Found]:
    base, change, threads = data
    solved = [solve(change(base, piece), threads=threads) for piece in pieces]
    return [(s.value, s.gap, s.first_box) for s in solved]


@dataclass(frozen=True, slots=True, eq=False)
class SolvedMany(ResultTable):
    """What many forests are worth.

    Attributes
    ----------
    value, gap : (m,) array of float
        Of each forest, as in :class:`~weitzman.Solution`.
    first : tuple of str or None
        The box to open first; None for none.
    """

    value: FloatArray
    gap: FloatArray
    first: tuple[str | None, ...]

    def columns(self) -> dict[str, list[Any]]:
        """One entry for each forest."""
        return {"value": self.value.tolist(), "gap": self.gap.tolist(), "first": list(self.first)}


def solve_many(
    forests: Forest | Iterable[Forest], *, cost: ArrayLike | None = None,
    rewards: ArrayLike | None = None, law: ArrayLike | None = None, threads: int | None = None,
    executor: Executor | None = None, progress: Progress | None = None,
) -> SolvedMany:  # fmt: skip
    """Solve many forests: a list of them, or one shape with arrays of numbers.

    Parameters
    ----------
    forests : iterable of Forest, or Forest
        With arrays, the one forest whose numbers they replace.
    cost : (m, n) array, optional
        A cost for each of m cases and n boxes.
    rewards : (m, n, k) array, optional
        A reward for each case, box and state.
    law : (m, n, k, k) array, optional
        Probabilities for each case, box, state of its parent and own state; of a root, the first
        row counts.
    threads, executor : optional
        As in :func:`~weitzman.solve`. The result does not depend on them.
    progress : callable, optional
        Called with (forests done, forests in all).

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> weitzman.questions.solve_many(chest, cost=[[1.0], [2.0], [6.0]]).value.tolist()
    [4.0, 3.0, 0.0]
    """
    check_executor(executor)
    given = {"cost": (cost, 2), "rewards": (rewards, 3), "law": (law, 4)}
    arrays = {name: np.asarray(x, np.float64) for name, (x, _) in given.items() if x is not None}
    base = forests if isinstance(forests, Forest) else None
    if (base is None) == bool(arrays):
        raise InvalidArgument(
            "solve_many needs a list of forests, or one forest with arrays of numbers: `cost`, "
            "`rewards` or `law`."
        )
    for name, x in arrays.items():
        if x.ndim != given[name][1] or x.shape[1] != len(base or ()):
            raise InvalidArgument(
                f"`{name}` must have {given[name][1]} dimensions, the second of them for the "
                f"{len(base or ())} boxes, but its shape is {x.shape}."
            )
    many = {len(x) for x in arrays.values()}
    if len(many) > 1:
        raise InvalidArgument(f"all arrays must have the same number of cases, but got {many}.")
    cases: list[Any] = list(range(many.pop())) if isinstance(forests, Forest) else list(forests)
    if not cases:
        raise InvalidArgument("there must be at least one forest, but there is none.")
    for i, case in enumerate(cases):
        if base is None and not isinstance(case, Forest):
            raise InvalidArgument(f"case {i} must be a Forest, but it is a {type(case).__name__}.")
    change: Callable[[Any, Any], Forest] = _itself if base is None else partial(_given, arrays)
    how: dict[str, Any] = {"threads": threads, "executor": executor, "progress": progress}
    value, gap, first = zip(*solve_each(base, change, cases, **how), strict=True)
    return SolvedMany(np.array(value), np.array(gap), first)


def _itself(_: None, forest: Forest) -> Forest:
    return forest


def _given(arrays: dict[str, FloatArray], base: Forest, case: int) -> Forest:
    """The forest with the numbers of one case."""
    new: dict[str, Any] = {name: dict(enumerate(x[case])) for name, x in arrays.items()}
    for v in base.roots.tolist() if "law" in new else ():
        new["law"][v] = new["law"][v][0]
    return base.changed(**new)


@dataclass(frozen=True, slots=True, eq=False)
class RiskSweep(ResultTable):
    """The value and the first decision for many risk tolerances, the boldest first.

    Attributes
    ----------
    solution : Solution
        Without a risk tolerance: the expected payoff counts.
    tolerance, value : array of float
        Falling tolerances, and the certainty equivalent for each.
    first : tuple of str or None
        The box to open first for each tolerance; None for none.
    turns : array of float
        The tolerances at which the first decision changes, falling.
    """

    solution: Solution
    tolerance: FloatArray
    value: FloatArray
    first: tuple[str | None, ...]
    turns: FloatArray

    def columns(self) -> dict[str, list[Any]]:
        """One entry for each tolerance."""
        return {
            "tolerance": self.tolerance.tolist(),
            "value": self.value.tolist(),
            "first": list(self.first),
        }

    def decisions(self) -> list[tuple[float, float, str | None]]:
        """Each range of tolerances with one first decision: upper end, lower end, the box."""
        found = [(np.inf, 0.0, self.solution.first_box)]
        for turn in self.turns.tolist():
            high, _, box = found.pop()
            inside = np.flatnonzero(self.tolerance < turn)
            found += [(high, turn, box), (turn, 0.0, self.first[inside[0]])]
        return found

    def headline(self) -> str:
        """The value for a searcher who ignores risk."""
        return f"expected payoff alone: {self.solution.forest.amounts(self.solution.value)}"

    def cells(self) -> list[list[str]]:
        """The first decision in each range of tolerances."""
        say, found = self.solution.forest.amounts, [["risk tolerance", "open first"]]
        for high, low, first in self.decisions():
            reach = f"below {say(high)}" if low == 0 else f"{say(high)} to {say(low)}"
            if high == np.inf:
                reach = "any" if low == 0 else f"above {say(low)}"
            found.append([reach, first or _NOTHING])
        return found

    def table(self) -> str:
        """The decisions as text."""
        rows = self.cells()[1:]
        return "\n".join(clean(f"risk tolerance {x}: open {first} first") for x, first in rows)


def risk_sweep(
    forest: Forest, *, steps: int = 32, threads: int | None = None,
    executor: Executor | None = None, progress: Progress | None = None,
) -> RiskSweep:  # fmt: skip
    """Solve for many risk tolerances, from bold to careful.

    Tolerances lie evenly on a logarithmic scale, from 20 times the range of all payoffs to a 25th
    of it; below that, utilities leave few digits. The tolerances at which the first decision
    changes are found by halving.

    Parameters
    ----------
    forest : Forest
        Its own risk tolerance, if any, is ignored.
    steps : int
        Tolerances to solve for.
    threads, executor, progress
        As in :func:`solve_many`.

    Examples
    --------
    >>> import weitzman
    >>> boxes = weitzman.Builder().add("long shot", cost=1, outcomes={0: 0.9, 60: 0.1})
    >>> boxes = boxes.add("steady", cost=1, outcomes={5: 0.5, 6: 0.5})
    >>> sweep = weitzman.questions.risk_sweep(boxes.build())
    >>> [first for _, _, first in sweep.decisions()]
    ['long shot', 'steady']
    """
    check_counts(2, steps=steps)
    if not isinstance(forest, Forest):
        raise InvalidArgument(f"a risk sweep needs a Forest, but got a {type(forest).__name__}.")
    how: dict[str, Any] = {"threads": threads, "executor": executor}
    bold = replace(forest, risk_tolerance=None)
    tolerance = tolerances(bold, steps)
    found = solve_each(bold, _careful, tolerance.tolist(), progress=progress, **how)
    base = solve(bold, threads=threads)
    first = [box for _, _, box in found]
    before = [base.first_box, *first]
    turned = [i for i in range(steps) if before[i] != first[i]]
    high = np.array([tolerance[i - 1] if i else 2 * tolerance[0] for i in turned])
    low = tolerance[turned]
    for _ in range(_HALVINGS if turned else 0):  # all intervals at once
        middle = np.sqrt(high * low)
        boxes = [box for *_, box in solve_each(bold, _careful, middle.tolist(), **how)]
        same = np.array([box == before[i] for box, i in zip(boxes, turned, strict=True)])
        high, low = np.where(same, middle, high), np.where(same, low, middle)
    values = np.array([value for value, *_ in found])
    return RiskSweep(base, tolerance, values, tuple(first), np.sqrt(high * low))


def _careful(forest: Forest, tolerance: float) -> Forest:
    try:
        return replace(forest, risk_tolerance=tolerance)
    except InvalidForest as error:
        raise InvalidArgument(f"a risk sweep solves with a risk tolerance. But {error}") from error


def tolerances(f: Forest, steps: int) -> FloatArray:
    """Risk tolerances from bold to careful, by the range of all payoffs."""
    numbers = np.append(f.rewards.data, f.outside)
    numbers = numbers[np.isfinite(numbers)]
    span = float(np.ptp(numbers)) + float(f.costs.data.max()) if len(numbers) else 0.0
    return np.asarray(np.geomspace(_BOLD, _CAREFUL, steps) * (span or 1.0))


def as_ranges(forest: Forest, given: Given) -> Ranges:
    """Ranges from a sheet, or from a mapping.

    Keys are (box, field) or (box, field, state), with a field "cost", "reward", "probability" or
    "duration"; values are (low, high), (low, base, high) or a distribution of SciPy. The default
    base is the number in the forest.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5}).build()
    >>> [r.title for r in as_ranges(box, {("A", "cost"): (0.5, 3)})]
    ['cost of A']
    """
    if isinstance(given, Ranges):
        return given
    if not isinstance(given, Mapping):
        raise InvalidArgument(
            "ranges must be Ranges or a mapping {(box, field): (low, high)}, but got a "
            f"{type(given).__name__}."
        )
    out = []
    for key, value in given.items():
        if not isinstance(key, tuple) or len(key) not in (2, 3):
            raise InvalidArgument(
                f"a range is named (box, field) or (box, field, state), not {key!r}."
            )
        box, field, state = (*key, None)[:3]
        name = forest.name(forest.box(box))
        law = None if isinstance(value, Sequence) else value
        if law is not None:
            try:
                low, base, high = float(law.ppf(0.1)), float(law.mean()), float(law.ppf(0.9))
            except AttributeError:
                raise InvalidArgument(
                    f"a range is (low, high), (low, base, high) or a distribution, but that of "
                    f"{key!r} is {value!r}."
                ) from None
        elif len(value) == 3:
            low, base, high = map(float, value)
        elif len(value) == 2:
            (low, high), base = map(float, value), number_of(forest, name, str(field), None, state)
        else:
            raise InvalidArgument(f"a range is (low, high) or (low, base, high), not {value!r}.")
        own = None if state is None else forest.states(name)[forest.state(name, state)]
        out.append(Range(name, str(field), base, low, high, None, own, law))
    return Ranges(out)


def _batch(
    forest: Forest, ranges: Ranges, changes: Sequence[dict[int, float]], threads: int | None,
    executor: Executor | None, progress: Progress | None,
) -> tuple[FloatArray, tuple[str, ...]]:  # fmt: skip
    """The value and the first box with some numbers changed, for each change."""
    forest.must_end("a question about ranges")
    found = solve_each(
        forest, ranges.changed, changes, threads=threads, executor=executor, progress=progress
    )
    return np.array([x for x, *_ in found]), tuple(box or _NOTHING for *_, box in found)


def _which(ranges: Ranges, title: str | int) -> int:
    """A range by its number or its title."""
    titles = [r.title for r in ranges]
    if title in titles:
        return titles.index(str(title))
    if isinstance(title, int) and not isinstance(title, bool) and 0 <= title < len(titles):
        return title
    raise UnknownName(f"no range is called {title!r}. There are: {', '.join(titles)}.")


@dataclass(frozen=True, slots=True, eq=False)
class TwoWay(ResultTable):
    """The value and the first decision for two numbers at once.

    Attributes
    ----------
    first, second : Range
    x, y : array of float
        The values of the two numbers.
    value : (x, y) array of float
    choice : (x, y) array of str
        The box to open first; "nothing" for none.
    """

    first: Range
    second: Range
    x: FloatArray
    y: FloatArray
    value: FloatArray
    choice: np.ndarray

    def columns(self) -> dict[str, list[Any]]:
        """One entry for each pair of values."""
        x, y = np.meshgrid(self.x, self.y, indexing="ij")
        return {
            self.first.title: x.ravel().tolist(),
            self.second.title: y.ravel().tolist(),
            "value": self.value.ravel().tolist(),
            "first": self.choice.ravel().tolist(),
        }

    def headline(self) -> str:
        """Which first choices there are, and how often."""
        names, many = np.unique(self.choice, return_counts=True)
        shares = zip(names, 100 * many / self.choice.size, strict=True)
        return f"first choices: {', '.join(f'{name} ({about(x)}%)' for name, x in shares)}"


def two_way(
    forest: Forest, ranges: Given, first: str | int, second: str | int, *, steps: int = 21,
    threads: int | None = None, executor: Executor | None = None,
    progress: Progress | None = None,
) -> TwoWay:  # fmt: skip
    """Solve for all pairs of values of two numbers, each from low to high.

    Parameters
    ----------
    forest : Forest
    ranges : Ranges or mapping
        See :func:`as_ranges`.
    first, second : str or int
        Titles or numbers of two ranges.
    steps : int
        Values of each number.
    threads, executor, progress
        As in :func:`solve_many`.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5}).build()
    >>> ranges = {("A", "cost"): (0, 8), ("A", "reward", 10): (5, 15)}
    >>> found = weitzman.questions.two_way(box, ranges, 0, 1, steps=3)
    >>> found.choice.tolist()
    [['A', 'A', 'A'], ['nothing', 'A', 'A'], ['nothing', 'nothing', 'nothing']]
    """
    check_counts(2, steps=steps)
    ranges = as_ranges(forest, ranges)
    i, j = _which(ranges, first), _which(ranges, second)
    if i == j:
        raise InvalidArgument("a two-way chart needs two different numbers.")
    x, y = (np.linspace(ranges[k].low, ranges[k].high, steps) for k in (i, j))
    pairs = [{i: float(a), j: float(b)} for a in x for b in y]
    values, choice = _batch(forest, ranges, pairs, threads, executor, progress)
    shape = steps, steps
    return TwoWay(
        ranges[i], ranges[j], x, y, values.reshape(shape), np.array(choice).reshape(shape)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Scenarios(ResultTable):
    """The value and the first decision in each scenario.

    Attributes
    ----------
    names : tuple of str
    value : array of float
    first : tuple of str
        The box to open first; "nothing" for none.
    """

    names: tuple[str, ...]
    value: FloatArray
    first: tuple[str, ...]

    def headline(self) -> str:
        """How many scenarios there are, and whether they begin alike."""
        same = "the same box" if len(set(self.first)) == 1 else "different boxes"
        return f"{counted(len(self.names), 'scenario')}, which begin with {same}"

    def columns(self) -> dict[str, list[Any]]:
        """One entry for each scenario."""
        names, value = list(self.names), self.value.tolist()
        return {"scenario": names, "value": value, "first": list(self.first)}


def scenarios(
    forest: Forest, ranges: Given,
    cases: Mapping[str, Mapping[str | int, float | str]] | None = None,
    *, threads: int | None = None, executor: Executor | None = None,
    progress: Progress | None = None,
) -> Scenarios:  # fmt: skip
    """Solve with several numbers changed at once.

    Parameters
    ----------
    forest : Forest
    ranges : Ranges or mapping
        See :func:`as_ranges`.
    cases : mapping, optional
        For each scenario the numbers that it changes, by title: a number, or "low", "base" or
        "high". By default all numbers at their base, all low, and all high.
    threads, executor, progress
        As in :func:`solve_many`.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5}).build()
    >>> weitzman.questions.scenarios(box, {("A", "cost"): (0.5, 6)}).value.tolist()
    [4.0, 4.5, 0.0]
    """
    ranges = as_ranges(forest, ranges)
    if cases is None:
        cases = {end: {r.title: end for r in ranges} for end in ("base", "low", "high")}
    changes = []
    for numbers in cases.values():
        change: dict[int, float] = {}
        for title, x in numbers.items():
            i = _which(ranges, title)
            if isinstance(x, str) and x not in ("low", "base", "high"):
                raise InvalidArgument(
                    f"a scenario has numbers, or low, base or high, but for {title!r} {x!r}."
                )
            change[i] = float(getattr(ranges[i], x)) if isinstance(x, str) else float(x)
        changes.append(change)
    return Scenarios(tuple(cases), *_batch(forest, ranges, changes, threads, executor, progress))


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty(ResultTable):
    """What uncertain numbers do to the value and the first decision.

    Attributes
    ----------
    ranges : Ranges
    expected : float
        What the best policy earns while the numbers stay unknown: the value at their means.
    draws : (draws, numbers) array of float
    value : (draws,) array of float
        The value if the numbers of a draw were known.
    first : tuple of str
        The box to open first in each draw; "nothing" for none.
    knowing : float
        The expected value of perfect information about all numbers (EVPI), an estimate.
    error : float
        The standard error of the mean of ``value``, which bounds that of ``knowing`` roughly.
    partial : array of float
        What knowing each number alone is worth (EVPPI).
    """

    ranges: Ranges
    expected: float
    draws: FloatArray
    value: FloatArray
    first: tuple[str, ...]
    knowing: float
    error: float
    partial: FloatArray

    def shares(self) -> dict[str, float]:
        """How often each box is the best first choice, the most frequent first."""
        names, many = np.unique(np.array(self.first), return_counts=True)
        found = {str(x): float(n) / len(self.first) for x, n in zip(names, many, strict=True)}
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def columns(self) -> dict[str, list[Any]]:
        """One entry for each number: its ends, and what knowing it is worth."""
        return {
            "number": [r.title for r in self.ranges],
            "low": [r.low for r in self.ranges],
            "high": [r.high for r in self.ranges],
            "evppi": self.partial.tolist(),
        }

    def headline(self) -> str:
        """How often each first choice is the best, and what knowing everything is worth."""
        best = ", ".join(f"{box} {about(100 * x)}%" for box, x in self.shares().items())
        return f"best first choice: {best}\nknowing all numbers is worth {about(self.knowing)}"


def uncertainty(
    forest: Forest, ranges: Given, *, draws: int = 1000, rng: np.random.Generator | int = 0,
    threads: int | None = None, executor: Executor | None = None,
    progress: Progress | None = None,
) -> Uncertainty:  # fmt: skip
    """Draw uncertain numbers many times: how often each first choice is best, EVPI and EVPPI.

    Parameters
    ----------
    forest : Forest
        Without a risk tolerance.
    ranges : Ranges or mapping
        See :func:`as_ranges`. Numbers without a distribution are triangular.
    draws : int
    rng : Generator or int
    threads, executor, progress
        As in :func:`solve_many`: all solves are one batch.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.Builder().add("A", cost=4, outcomes={0: 0.5, 10: 0.5}).build()
    >>> found = weitzman.questions.uncertainty(box, {("A", "cost"): (1, 4, 8)}, draws=200)
    >>> sorted(found.shares()), found.knowing > 0
    (['A', 'nothing'], True)
    """
    check_counts(2, draws=draws)
    if forest.risk_tolerance is not None:
        raise InvalidArgument(
            "uncertain numbers are averaged, which does not go with a risk tolerance. Leave "
            "`risk_tolerance` out."
        )
    ranges = as_ranges(forest, ranges)
    if not len(ranges):
        raise InvalidArgument("there must be at least one range, but there is none.")
    drawn = ranges.draw(np.random.default_rng(rng), draws)
    points = (np.arange(_POINTS) + 0.5) / _POINTS  # the middles of equally likely parts
    levels = np.column_stack([r.quantile(points) for r in ranges])
    means = dict(enumerate(levels.mean(axis=0).tolist()))
    # measured from the mean of the same draws, knowing is never worth less than 0
    center = dict(enumerate(drawn.mean(axis=0).tolist()))
    changes = [means, center, *(dict(enumerate(row)) for row in drawn.tolist())]
    changes += [means | {i: float(x)} for i, column in enumerate(levels.T) for x in column]
    found, first = _batch(forest, ranges, changes, threads, executor, progress)
    values, sign = forest.sign * found, forest.sign
    expected, known = float(values[0]), values[2 : draws + 2]
    each = values[draws + 2 :].reshape(len(ranges), _POINTS).mean(axis=1)
    return Uncertainty(
        ranges, sign * expected, drawn, sign * known, first[2 : draws + 2],
        float(known.mean() - values[1]), error_of_mean(known), np.maximum(each - expected, 0.0),
    )  # fmt: skip
