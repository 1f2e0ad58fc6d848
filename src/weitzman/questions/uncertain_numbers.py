"""Numbers that are not known for sure: a tornado of ranges, two-way charts, scenarios, draws.

Ranges are :class:`~weitzman.files.Ranges`, as sheets have them, or a plain mapping: ``{("A",
"cost"): (1, 3)}``. Numbers are assumed to be independent of each other, and a search does not teach
what they are. The expected payoff of a policy is linear in each cost, reward and chance; so with
all but one of them uncertain, a policy earns on average what it earns with those at their means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arguments import check_counts
from .._common.arrays import FloatArray, error_of_mean
from .._common.numbers import about, counted
from .._common.sharing import Executor, check_executor, spread
from .._common.text import ResultTable
from ..engine.solver import solve
from ..errors import InvalidArgument, UnknownName
from ..files.ranges import Range, Ranges
from ..forest.model import FIELDS, Forest

_POINTS = 17  # equally likely values of a number, to find what knowing it is worth
_NOTHING = "nothing"

Given = Ranges | Mapping[Any, Any]
Progress = Callable[[int, int], None]
Found = tuple[float, str]  # a value, and the box to open first


def as_ranges(forest: Forest, given: Given) -> Ranges:
    """Ranges from a sheet, or from a mapping.

    Keys are (box, field) or (box, field, state), with a field "cost", "reward", "probability" or
    "duration"; values are (low, high), (low, base, high) or a distribution of SciPy. Without a
    base, the number in the forest is the base.

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
            (low, high), base = map(float, value), _number(forest, name, str(field), state)
        else:
            raise InvalidArgument(f"a range is (low, high) or (low, base, high), not {value!r}.")
        own = None if state is None else forest.states(name)[forest.state(name, state)]
        out.append(Range(name, str(field), base, low, high, None, own, law))
    return Ranges(out)


def _number(forest: Forest, box: str, field: str, state: Any) -> float:
    """The number that a range without a base is about."""
    found = {f.headings[0]: f for f in FIELDS if f.headings}.get(field)
    pool = None if found is None else getattr(forest, found.stored, None)
    if found is None or pool is None:
        raise InvalidArgument(f"box {box!r} has no {field}, but a range is about it.")
    v = forest.box(box)
    matrix = pool[int(getattr(forest, found.pointer)[v])]
    column = (
        matrix if state is None or matrix.shape[1] == 1 else matrix[:, [forest.state(v, state)]]
    )
    numbers = np.unique(column[np.isfinite(column)])
    if len(numbers) != 1:
        raise InvalidArgument(
            f"the {field} of box {box!r} is not one number. Give (low, base, high), or the state."
        )
    return float(numbers[0])


def _solved(data: tuple[Forest, Ranges, int | None], values: dict[int, float]) -> Found:
    """On a worker or here: the value and the first box with some numbers changed."""
    forest, ranges, threads = data
    found = solve(ranges.changed(forest, values) if values else forest, threads=threads)
    return found.value, found.first_box or _NOTHING


def _batch(
    forest: Forest, ranges: Ranges, changes: Sequence[dict[int, float]], threads: int | None,
    executor: Executor | None, progress: Progress | None,
) -> list[Found]:  # fmt: skip
    forest.must_end("a question about ranges")
    check_executor(executor)
    data = forest, ranges, threads if executor is None else 1
    return spread(executor, _solved, data, changes, progress)


def _which(ranges: Ranges, title: str | int) -> int:
    """A range by its number or its title."""
    titles = [r.title for r in ranges]
    if isinstance(title, int) and not isinstance(title, bool) and 0 <= title < len(titles):
        return title
    if title not in titles:
        raise UnknownName(f"no range is called {title!r}. There are: {', '.join(titles)}.")
    return titles.index(str(title))


# -- two numbers -----------------------------------------------------------------------------------


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
        The box to open first; "nothing" for none. Its regions are where the first choice changes.
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
        shares = (
            f"{name} ({about(100 * n / self.choice.size)}%)"
            for name, n in zip(names, many, strict=True)
        )
        return f"first choices: {', '.join(shares)}"


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
        As in :func:`~weitzman.questions.tornado`.

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
    found = _batch(forest, ranges, pairs, threads, executor, progress)
    values = np.array([v for v, _ in found]).reshape(steps, steps)
    choice = np.array([c for _, c in found]).reshape(steps, steps)
    return TwoWay(ranges[i], ranges[j], x, y, values, choice)


# -- scenarios -------------------------------------------------------------------------------------


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
        return {
            "scenario": list(self.names), "value": self.value.tolist(), "first": list(self.first),
        }  # fmt: skip


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
        As in :func:`~weitzman.questions.tornado`.

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
    found = _batch(forest, ranges, changes, threads, executor, progress)
    return Scenarios(tuple(cases), np.array([v for v, _ in found]), tuple(c for _, c in found))


# -- distributions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty(ResultTable):
    """What uncertain numbers do to the value and the first decision.

    Attributes
    ----------
    ranges : Ranges
    expected : float
        What the best policy earns on average while the numbers stay unknown: the value with all of
        them at their means.
    draws : (draws, numbers) array of float
    value : (draws,) array of float
        The value if the numbers of a draw were known.
    first : tuple of str
        The box to open first in each draw; "nothing" for none.
    knowing : float
        What knowing all numbers beforehand is worth (EVPI), an estimate.
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
        As in :func:`~weitzman.questions.tornado`: all solves are one batch.

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
    found = _batch(forest, ranges, changes, threads, executor, progress)
    values, sign = forest.sign * np.array([v for v, _ in found]), forest.sign
    expected, known = float(values[0]), values[2 : draws + 2]
    each = values[draws + 2 :].reshape(len(ranges), _POINTS).mean(axis=1)
    return Uncertainty(
        ranges, sign * expected, drawn, sign * known, tuple(c for _, c in found[2 : draws + 2]),
        float(known.mean() - values[1]), error_of_mean(known), np.maximum(each - expected, 0.0),
    )  # fmt: skip
