"""Partially adaptive strategies: fix the order beforehand, stop according to what is seen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import counted, such
from .._common.text import as_html
from .._kernels import orders
from .._kernels.episodes import Tally
from ..engine.evaluation import evaluate
from ..engine.plan import Plan
from ..engine.solution import Solution
from ..engine.solver import solve
from ..errors import InvalidForest, TooLarge
from ..forest.model import Forest
from ..policy.simulation import Simulation, run_episodes, stream_key, tabulate
from .copies import likely_part, parents_first, places, places_lost, ready_room
from .fixed_set import FixedSet
from .prefixes import OutOfWork, Prefixes

_ROUNDING = 1e-12  # differences of values, as a share of the range, that are only rounding
_MOST = 300  # boxes of a forest whose orders are searched
_MOST_ROOM = 2**29  # bytes that such a search may take
_LONGEST = 400  # boxes of an order that is evaluated exactly
_AHEAD = (1, 4, 16, 64)  # how far a simulated order looks ahead before it stops
_TRIAL = 5000  # episodes to choose among these


@dataclass(frozen=True, slots=True, eq=False)
class FixedOrder:
    """The best order found, to be followed until it is best to stop.

    Attributes
    ----------
    forest : Forest
        The forest of the problem, or a part of it, with all copies written out.
    order : tuple of int
        Numbers of the boxes in the order of opening; after the last one, stop.
    value : float
        What following it earns, or an estimate.
    error : float
        Standard error of the value; 0 unless it was simulated.
    bound : float
        No order earns more (less, when minimizing).
    exact : bool
        Whether this is the best order of all.
    """

    forest: Forest
    order: tuple[int, ...]
    value: float
    error: float
    bound: float
    exact: bool

    @property
    def boxes(self) -> tuple[str, ...]:
        """Names of the boxes in the order of opening."""
        return tuple(self.forest.name(v) for v in self.order)

    def __repr__(self) -> str:
        kind = "best of all" if self.exact else f"none earns more than {self.bound:.8g}"
        error = f", standard_error={self.error:.2g}" if self.error else ""
        boxes = counted(len(self.order), "box")
        return f"FixedOrder({boxes}, value={self.value:.8g}{error}, {kind})"

    _repr_html_ = as_html


def best_partially_adaptive(
    forest: Forest,
    *,
    limit: int = 100_000,
    episodes: int = 100_000,
    rng: np.random.Generator | int = 0,
    solution: Solution | None = None,
    fixed_set: FixedSet | None = None,
) -> FixedOrder:
    """The best order for opening boxes when only stopping may depend on what is seen.

    Orders are searched by branch and bound: no order with a given beginning earns more than that
    beginning followed by a free search. If the limit is reached first, the value is that of the
    best order found, and the bound says what could be missed. Where even one order is too large to
    be evaluated, boxes are opened in the order in which the optimal policy is most likely to open
    them, with a simple rule to stop, and the value is simulated.

    Parameters
    ----------
    forest : Forest
    limit : int
        Situations to look at, at most.
    episodes : int
        For the simulation.
    rng : Generator or int
        For the simulation.
    solution : Solution, optional
        The solution of the forest, if it is already known.
    fixed_set : FixedSet, optional
        A set to fall back on: opened as a whole, it is an order without stopping.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5})
    >>> chest = chest.add("B", cost=2, outcomes={0: 0.5, 20: 0.5}).build()
    >>> best_partially_adaptive(chest).boxes
    ('B', 'A')
    """
    forest.must_end("a fixed order")
    solved = solve(forest) if solution is None else solution
    full, whole = likely_part(forest, evaluate(solved).opened)
    if len(full) <= _MOST and _room(full) <= _MOST_ROOM:
        found = _search(solve(full, exact=True), limit)
    else:
        found = _simulated(solved if full is forest else solve(full), episodes, rng)
    sign = forest.sign
    if not whole:
        found = replace(found, bound=solved.value + sign * solved.gap, exact=False)
    if fixed_set is not None and sign * fixed_set.value > sign * found.value + _ROUNDING:
        return FixedOrder(
            fixed_set.forest, fixed_set.order, fixed_set.value, 0.0, found.bound, False
        )
    return found


def value_of_order(forest: Forest, order: Sequence[str | int]) -> float:
    """What opening boxes in this order earns, with optimal stopping; after the last one, stop.

    The forest must be without copies. Time can grow exponentially with the number of boxes whose
    children come much later, so an order of more than 400 boxes is refused.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> value_of_order(box, [0])
    4.0
    """
    forest.must_end("a fixed order")
    boxes = tuple(forest.box(b) for b in order)
    place = {v: i for i, v in enumerate(boxes)}
    up = [int(forest.parent[v]) for v in boxes]
    if forest.count.max() > 1:
        raise InvalidForest(
            "an order needs a forest without copies. Use weitzman.forest.expand first."
        )
    if len(place) < len(boxes):
        raise InvalidForest("an order must not name a box twice. Leave out the second.")
    lost = [v for i, v in enumerate(boxes) if up[i] >= 0 and place.get(up[i], i) >= i]
    if lost:
        raise InvalidForest(
            f"an order must name a box after its parent, but {forest.name(lost[0])!r} comes "
            f"without or before {forest.name(int(forest.parent[lost[0]]))!r} "
            f"({such(len(lost), 'box')})."
        )
    if len(boxes) > _LONGEST:
        raise TooLarge(
            f"an order of {len(boxes)} boxes takes too long to evaluate: there may be "
            f"{_LONGEST} at most. best_partially_adaptive simulates longer ones.",
            situations=float(len(boxes)),
        )
    if not boxes:
        return forest.prizes * forest.outside
    empty = places_lost(forest, np.isin(np.arange(len(forest)), boxes).astype(np.int64))
    named = forest.take(np.array(boxes), prizes=forest.prizes - empty)  # the others stay closed
    prefixes = Prefixes(solve(named, exact=True))
    value = prefixes.weights.read_back(prefixes.values(tuple(range(len(boxes))))[0])
    return float(forest.sign * value) + (empty * forest.outside if empty else 0.0)


def _room(forest: Forest) -> int:
    """Roughly how many bytes the search for an order takes: one column per reward and index."""
    states = forest.laws.shape[forest.law]
    return 8 * int(states.sum()) * int(states[:, 0].sum())


# -- search --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Branch:
    """Orders that begin with ``prefix``: none earns more than ``ceiling``."""

    ceiling: float
    prefix: tuple[int, ...]
    untried: list[int]
    longer: list[tuple[float, tuple[int, ...]]]


def _search(solution: Solution, limit: int) -> FixedOrder:
    """Depth first, best bound first; exact if the limit is not reached."""
    f = solution.forest
    boxes = Prefixes(solution, limit)
    search = _OrderSearch(boxes, Plan.of(f).class_of)
    with suppress(OutOfWork):
        search.run()
    bound = max([search.best, *(branch.ceiling for branch in search.stack)])
    exact = bound <= search.best + search.slack
    ends = f.sign * boxes.weights.read_back(np.array([search.best, bound]))
    value, limit_value = float(ends[0]), float(ends[0 if exact else 1])
    return FixedOrder(f, search.found, value, 0.0, limit_value, exact)


class _OrderSearch:
    def __init__(self, boxes: Prefixes, class_of: IntArray) -> None:
        self.boxes, self.class_of = boxes, class_of
        self.slack = _ROUNDING * float(np.ptp(boxes.grid[np.isfinite(boxes.grid)]))
        self.best, free = boxes.values(())
        self.found: tuple[int, ...] = ()
        self.stack: list[_Branch] = []
        self._push(free, ())

    def run(self) -> None:
        """Until no branch can hold a better order."""
        while self.stack:
            branch = self.stack[-1]
            if branch.ceiling <= self.best + self.slack:
                self.stack.pop()
            elif branch.untried:
                self._try(branch, branch.untried[-1])
                branch.untried.pop()
            else:
                self.stack.pop()
                for ceiling, prefix in sorted(branch.longer):
                    self._push(ceiling, prefix)

    def _try(self, branch: _Branch, v: int) -> None:
        prefix = (*branch.prefix, v)
        stop, free = self.boxes.values(prefix)
        if stop > self.best:
            self.best, self.found = stop, prefix
        if free >= branch.ceiling - self.slack:  # no other box does better here: follow this first
            self._push(free, prefix)
        elif free > self.best + self.slack:
            branch.longer.append((free, prefix))

    def _push(self, ceiling: float, prefix: tuple[int, ...]) -> None:
        """Equal boxes are opened in the order of their numbers, those of highest index first."""
        boxes, opened = self.boxes, set(prefix)
        ready = [v for v in boxes.order if v not in opened and _ready(boxes, v, opened)]
        first: dict[tuple[int, int], int] = {}
        for v in sorted(ready):
            first.setdefault((boxes.parent[v], int(self.class_of[v])), v)
        untried = sorted(first.values(), key=lambda v: (max(boxes.index[v]), -v))
        self.stack.append(_Branch(ceiling, prefix, untried, []))


def _ready(boxes: Prefixes, v: int, opened: set[int]) -> bool:
    return boxes.parent[v] < 0 or boxes.parent[v] in opened


# -- where no order can be evaluated exactly -----------------------------------------------------


def _simulated(solution: Solution, episodes: int, rng: np.random.Generator | int) -> FixedOrder:
    """Boxes by the probability that the optimal policy opens them, with the best simple stop."""
    generator = np.random.default_rng(rng)
    order = _likely_first(solution)
    trials = [(simulate_order(solution, order, a, _TRIAL, generator), a) for a in _AHEAD]
    sign = solution.forest.sign
    _, ahead = max(trials, key=lambda trial: sign * trial[0].value)
    played = simulate_order(solution, order, ahead, episodes, generator)
    return FixedOrder(
        solution.forest, tuple(order.tolist()), played.value, played.value_error, solution.value,
        False,
    )  # fmt: skip


def _likely_first(solution: Solution) -> IntArray:
    f = solution.forest
    opened, parent = evaluate(solution).opened.tolist(), f.parent.tolist()
    order = parents_first(solution.policy())
    for v in order:
        if parent[v] >= 0:
            opened[v] = min(opened[v], opened[parent[v]])  # rounding may say otherwise
    by = sorted(range(len(order)), key=lambda i: (-opened[order[i]], i))
    return np.array([order[i] for i in by if opened[order[i]] > 0], np.int64)


def simulate_order(
    solution: Solution,
    order: IntArray,
    ahead: int,
    episodes: int,
    rng: np.random.Generator | int,
) -> Simulation:
    """Follow an order while one of the next ``ahead`` boxes has an index above the best so far."""
    f, policy = solution.forest, solution.policy()
    tables = tabulate(policy)
    place = np.full(len(f), len(f))
    place[order] = np.arange(len(order))
    fixed = orders.Order(f.parent, order, place, ahead, policy.outside, stream_key(rng))

    where = places(f)

    def play(first: int, last: int, out: FloatArray, opened: IntArray) -> None:
        room = ready_room(f, where)
        orders.play_order(tables, fixed, where, first, last, Tally(out, opened), room)

    return run_episodes(play, f, episodes)
