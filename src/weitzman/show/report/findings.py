"""All numbers of a report: computed once, drawn elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._common.arrays import FloatArray, IntArray
from ..._common.numbers import Amounts, about, percent
from ...engine.evaluation import Evaluation, evaluate
from ...engine.indices import Policy
from ...engine.plan import Progress
from ...engine.solution import Solution, mean_cost
from ...engine.solver import solve
from ...engine.what_if import BreakEven, break_even
from ...errors import InvalidArgument, InvalidForest
from ...forest.model import Forest
from ...policy.frontier import Box
from ...policy.payoff_laws import exact_payoffs, state_called
from ...policy.search import Search
from ...policy.simulation import PayoffLaw, payoff_law
from ...policy.walk import Opened, Walk
from ...policy.words import why
from ...questions import sweeps
from ...questions.budget import frontier
from ...questions.information import value_of_knowing
from ...questions.robustness import tornado, turning_points
from ...strategies.comparison import Comparison, compare
from ...strategies.thumb_rules import by_expected_value, everything

if TYPE_CHECKING:
    from ...files.ranges import Ranges
    from ...learn.run_model import RunModel

TOP, RUNS = 300, 20  # boxes that a report shows, and runs of a fitted model that may be started

_SHOWN = 4  # digits of amounts, counted from the spread of all amounts
_EPISODES = 20_000  # where exact evaluation is too large
_PLAYED = 2_000_000  # openings in all these episodes, about: seconds in plain Python
_POINTS = 400  # of a risk profile
_SETS = 300  # and orders to examine in a comparison
_PAIRS = 15  # values of each of two numbers
_DRAWN = 500  # times all uncertain numbers are drawn
_NUMBERS = {"cost": "cost", "reward": "reward", "probability": "chance", "duration": "duration"}
_DRAWS = 20  # models that the log might have led to
_LARGE = 2000  # boxes; in larger problems the second best start is left out
_EXAMINED, _EXAMINED_LARGE = 8, 3  # boxes whose costs are varied
_STEPS, _STEPS_LARGE = 32, 8  # from no cost to a cost at which the box is not opened
_BEYOND = 1.25  # the curve ends at this many times the highest cost that pays
_CHEAPEST_END = 2.0  # or at this many times the current cost, if that is more


class WhatIf(NamedTuple):
    """The value of the search if one box cost more or less, by exact solves."""

    box: int
    state: int  # of the parent, after which the box is opened most often (0 for a root)
    now: float  # what the box costs on average after that state
    break_even: BreakEven
    factor: list[float]  # by which the cost is multiplied
    value: list[float]
    first: list[str | None]  # the box to open first at each of these costs


class Profile(NamedTuple):
    """A risk profile: the chance of each payoff or less."""

    title: str
    x: FloatArray
    p: FloatArray
    mean: float


# of the ranges of a sheet: cases, two numbers at once, and random draws
Uncertain = tuple[sweeps.Scenarios, sweeps.TwoWay | None, sweeps.Uncertainty | None]


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The numbers of a report."""

    solution: Solution
    policy: Policy
    evaluation: Evaluation
    law: PayoffLaw
    profiles: tuple[Profile, ...]
    keep: IntArray  # the boxes that are shown
    what_if: tuple[WhatIf, ...]
    comparison: Comparison | str  # or why strategies cannot be compared
    runner_up: tuple[str, float] | None  # the second root, and the value of opening it first
    told: tuple[Opened, ...]  # what a search has seen so far
    taken: tuple[tuple[Box, float], ...]  # the prizes that it has taken
    pending: tuple[Box, ...]  # handed out but not answered
    advice: str | None  # what to do next
    now: float  # what stopping gives
    expected: float  # what the search will have earned in the end
    between: tuple[float, float] | None  # nine in ten models from the same log give such a value
    answers: dict[str, Any]  # for the script of the page
    uncertain: Uncertain | None  # None without ranges

    @property
    def exact(self) -> bool:
        """Whether the law of the payoff was computed and not simulated."""
        return self.law.how == "exact"

    @property
    def amounts(self) -> Amounts:
        """How amounts of the problem are written: in a report nobody reads six digits."""
        return self.forest.amounts._replace(digits=_SHOWN)

    @property
    def quantiles(self) -> tuple[float, float]:
        """Nine in ten payoffs lie between these."""
        at = np.searchsorted(np.cumsum(self.law.chances), [0.05, 0.95 - 1e-12])
        low, high = self.law.values[np.minimum(at, len(self.law.values) - 1)].tolist()
        return low, high

    @property
    def forest(self) -> Forest:
        """The problem."""
        return self.solution.forest

    def say(self, x: float, error: float = 0.0) -> str:
        """An amount of the problem as people read it, with its unit."""
        return self.amounts.typeset(x, error)


def content(
    source: Forest | Solution | Search | RunModel, *, limit: int = TOP, runs: int = RUNS,
    ranges: Ranges | None = None, progress: Progress | None = None,
) -> Content:  # fmt: skip
    """Compute all numbers of a report on a problem, a fitted model or a search under way."""
    between = None
    if not isinstance(source, Forest | Solution | Search):
        source, between = _searched_runs(source, runs)
    search = source if isinstance(source, Search) else None
    problem = source.policy.forest if isinstance(source, Search) else source
    solution = problem if isinstance(problem, Solution) else solve(problem)
    policy = solution.policy() if search is None else search.policy
    told, taken = ((), ()) if search is None else (tuple(search.history), tuple(search.taken))
    # no box counts as handed out: such a box may still be the one to open
    walk = Walk.along(policy, told)
    if walk.hands is not None:
        for box, reward in taken:
            walk.hands.take((box.number, box.copy), reward)
    found = evaluate(solution)
    episodes = int(min(_EPISODES, max(_PLAYED / max(found.openings, 1.0), 200.0)))
    law = payoff_law(policy, episodes=episodes)
    found_answers, uncertain = answers(solution, found), None
    if ranges and found_answers["swings"] is not None:
        uncertain = _uncertain(solution, ranges, found_answers["swings"])
    what_if, spend = [], np.array(found.columns()["spend"])
    most = _EXAMINED if too_large(found.forest) is None else _EXAMINED_LARGE
    examined = [int(v) for v in np.argsort(-spend, kind="stable")[:most] if spend[v] > 0]
    for i, v in enumerate(examined):
        if progress is not None:
            progress(i, 2 * len(examined))
        what_if.append(_what_if(solution, found, v))
    return Content(
        solution=solution, policy=policy, evaluation=found, law=law,
        profiles=profiles_of(solution, law),
        keep=important(policy, found, limit, told),
        what_if=tuple(what_if), comparison=_comparison(solution, progress),
        runner_up=_runner_up(solution), told=told, taken=taken,
        pending=() if search is None else tuple(search.pending),
        advice=why(walk) if told else None,
        now=solution.forest.outside if search is None else search.payoff,
        expected=walk.worth() if told else solution.value,
        between=between, answers=found_answers, uncertain=uncertain,
    )  # fmt: skip


def stated(solution: Solution, ranges: Ranges, swings: Found) -> sweeps.Scenarios:
    """A tornado in which numbers with a range move from end to end; the others, by a share."""
    f, ends = solution.forest, range(len(ranges))
    moved = sweeps.scenarios(f, ranges, {f"{i} {e}": {i: e} for i in ends for e in ("low", "high")})
    stated = {(r.box, _NUMBERS[r.field]) for r in ranges}
    rows = [row for row in swings["rows"] if (row["box"], row["number"]) not in stated]
    best, say = solution.first_box, f.amounts.typeset
    for i, r in enumerate(ranges):
        (low, high), firsts = (x[2 * i : 2 * i + 2] for x in (moved.value.tolist(), moved.first))
        text = percent if r.field == "probability" else say if r.field != "duration" else about
        first = [None if x == "nothing" else x for x in firsts]
        rows.append({
            "box": r.box, "number": _NUMBERS[r.field], "low": low, "high": high,
            "title": f"{r.title}, {text(r.low)} to {text(r.high)}",
            "firstLow": first[0], "firstHigh": first[1], "turns": any(x != best for x in first),
            "turnsAt": None, "lookedAt": False,
        })  # fmt: skip
    swings["rows"] = sorted(rows, key=lambda row: -abs(row["high"] - row["low"]))[:_ROWS]
    swings["stated"] = True
    return moved


def _uncertain(solution: Solution, ranges: Ranges, swings: Found) -> Uncertain:
    """What ranges do, in cases, for two numbers at once, and in random draws."""
    f, moved = solution.forest, stated(solution, ranges, swings)
    width = np.abs(moved.value[1::2] - moved.value[::2])
    widest = np.argsort(-width, kind="stable")[:2].tolist()
    pair = sweeps.two_way(f, ranges, *widest, steps=_PAIRS) if len(widest) == 2 else None
    drawn = None if f.risk_tolerance is not None else sweeps.uncertainty(f, ranges, draws=_DRAWN)
    return sweeps.scenarios(f, ranges), pair, drawn


def _searched_runs(model: object, runs: int) -> tuple[Forest, tuple[float, float] | None]:
    """New runs of a fitted model, and where the log puts their value nine times in ten."""
    from ...learn.diagnosis import bootstrap  # other reports do not need what learns from logs
    from ...learn.resemblance import ResemblanceModel
    from ...learn.run_model import RunModel

    if not isinstance(model, RunModel):
        raise InvalidArgument(
            f"a report needs a forest, a solution, a search or a fitted model, but got a "
            f"{type(model).__name__}."
        )
    steps = tuple(f"run to step {step}" for step in model.rungs)
    forest = replace(model.lines(runs), names=steps)
    if not isinstance(model, ResemblanceModel):
        return forest, None
    low, high = np.quantile(bootstrap(model, _DRAWS).value_at(runs), [0.05, 0.95])
    return forest, (float(low), float(high))


def profiles_of(solution: Solution, law: PayoffLaw) -> tuple[Profile, ...]:
    """The risk profiles of the best policy and of simpler ones, where these are exact."""
    found = [_profile("best policy", law.values, law.chances)]
    rivals = (("highest net value first", by_expected_value), ("everything", everything))
    for title, rival in rivals if law.how == "exact" and too_large(solution.forest) is None else ():
        try:
            exact = exact_payoffs(rival(solution.forest))
        except InvalidArgument:  # no rule for this kind of problem
            continue
        if exact is not None:
            other = _profile(title, *exact)
            if abs(other.mean - law.mean) > 1e-9 * max(1.0, abs(law.mean)):  # else the same policy
                found.append(other)
    return tuple(found)


def _profile(title: str, values: FloatArray, chances: FloatArray) -> Profile:
    """The steps of a distribution function, at most some hundred of them."""
    p, mean = np.cumsum(chances), float(values @ chances)
    some = np.arange(len(values))
    if len(values) > _POINTS:  # even steps upward; both ends stay
        some = np.unique(np.append(np.searchsorted(p, np.linspace(0, 1, _POINTS))[:-1], some[-1]))
    return Profile(title, values[some], p[some], mean)


def _comparison(solution: Solution, progress: Progress | None) -> Comparison | str:
    if (size := too_large(solution.forest)) is not None:
        return f"this would take too long with {size}. Run weitzman compare instead."
    if solution.forest.endless.any():
        return "fixed orders and sets need lines that end."
    half = None if progress is None else lambda done, total: progress(total + done, 2 * total)
    how: dict[str, Any] = {"episodes": _EPISODES, "limit": _SETS, "progress": half}
    try:
        return compare(solution.forest, solution=solution, **how)
    except InvalidArgument as error:
        return str(error)


def _runner_up(solution: Solution) -> tuple[str, float] | None:
    f, policy = solution.forest, solution.policy()
    if len(f) > _LARGE or len(policy.root) < 2 or solution.first_box is None:
        return None
    second, walk, worths = int(policy.root[1]), Walk(policy), list[float]()
    box = second, (1,) if f.count[second] > 1 or f.endless[second] else ()
    law = f.laws[int(f.law[second])][0]
    for y in np.flatnonzero(law).tolist():
        with walk.supposing(box, y):
            worths.append(walk.worth())
    chances, payoffs = law[law > 0], np.array(worths)
    if f.risk_tolerance is None:
        return f.name(second), float(chances @ payoffs)
    scale = -f.sign / f.risk_tolerance  # the certainty equivalent; shifted, so that exp is finite
    worst = float((scale * payoffs).max())
    mean = float((np.log(chances @ np.exp(scale * payoffs - worst)) + worst) / scale)
    return f.name(second), mean


def _what_if(solution: Solution, e: Evaluation, v: int) -> WhatIf:
    f = solution.forest
    state = int(np.argmax(e.opened_after[v]))
    up, steps = int(f.parent[v]), _STEPS if too_large(f) is None else _STEPS_LARGE
    turns = break_even(solution, v, None if up < 0 else state_called(f, up, state))
    # even steps from zero to above the highest cost that pays, through the cost now
    pays = turns.opened_below / turns.cost if turns.cost > 0 else np.inf
    part = max(1, round(steps / min(max(_CHEAPEST_END, _BEYOND * pays), float(steps))))
    factor = [i / part for i in range(steps + 1)]
    cost, now = f.costs[int(f.cost[v])], float(mean_cost(f, v)[state])
    solved = [solve(f.changed(cost={v: cost * x})) for x in factor]
    value, first = [s.value for s in solved], [s.first_box for s in solved]
    return WhatIf(v, state, now, turns, factor, value, first)


# -- for the scripts of pages: boxes and indices as plain lists, and answers to questions -------

_BYTES = 700_000  # the most bytes of laws in a page
_DIGITS = 7  # of a probability; indices, rewards and costs keep all digits


def important(
    policy: Policy, evaluation: Evaluation, most: int, told: Sequence[Opened]
) -> IntArray:
    """The numbers of about ``most`` boxes: the boxes opened most often, and all above them."""
    f = policy.forest
    rows = f.laws.shape[f.law, 0]
    highest = [policy.index[a : a + r].max() for a, r in zip(policy.index_at, rows, strict=True)]
    ranked = np.lexsort((-np.array(highest), -evaluation.opened))
    kept, laws, room = set[int](), set[int](), _BYTES
    seen = [step.box.number for step in told]
    for i, v in enumerate([*seen, *ranked.tolist()]):
        if i >= len(seen) and (len(kept) >= most or room < 0):
            break
        while v >= 0 and v not in kept:
            kept.add(v)
            law = int(f.law[v])
            if law not in laws:
                laws.add(law)
                matrix = f.laws[law]  # about as many bytes as it takes in a page
                room -= 2 * matrix.size + (_DIGITS + 2) * int(np.count_nonzero(matrix))
            v = int(f.parent[v])
    return np.array(sorted(kept), np.int64)


def problem(policy: Policy, keep: IntArray) -> dict[str, Any]:
    """Some boxes of a forest, closed upward, with their indices in the user's sign."""
    f = policy.forest
    place = np.full(len(f) + 1, -1, np.int64)  # the last entry is that of no parent
    place[keep] = np.arange(len(keep))
    columns = {"law": f.law, "cost": f.cost, "reward": f.reward}
    used = {name: np.unique(column[keep], return_inverse=True) for name, column in columns.items()}
    laws, costs, rewards = (which.tolist() for which, _ in used.values())
    pools = {"factors": f.factors, "durations": f.durations}
    time = {name: pool for name, pool in pools.items() if pool is not None}
    return {
        "minimize": f.minimize, "outside": f.outside,
        "amounts": f.amounts._replace(digits=_SHOWN)._asdict(),
        "risk": f.risk_tolerance, "prizes": int(f.prizes),
        "names": [f.name(v) for v in keep.tolist()],
        "parent": place[f.parent[keep]].tolist(),
        "count": f.count[keep].tolist(),
        "endless": f.endless[keep].tolist(),
        **{name: at.tolist() for name, (_, at) in used.items()},
        "laws": [
            [[float(f"{p:.{_DIGITS}g}") if p else 0 for p in row] for row in f.laws[i].tolist()]
            for i in laws
        ],
        "costs": [f.costs[i].tolist() for i in costs],
        **{name: [pool[i].tolist() for i in costs] for name, pool in time.items()},
        "rewards": [f.rewards[i][0].tolist() for i in rewards],
        "states": [f.state_names[i] for i in rewards],
        "indices": [_index(policy, v).tolist() for v in keep.tolist()],
        "folded": _folded(policy, place) if len(keep) < len(f) else None,
    }  # fmt: skip


def alone(forest: Forest, box: int) -> bool:
    """Whether a box exists only once: neither the box nor a box before it has copies."""
    few = not forest.endless[box]
    while box >= 0 and few:
        few, box = forest.count[box] == 1, int(forest.parent[box])
    return few


def steps(told: Sequence[Opened], keep: IntArray, taken: Iterable[Box] = ()) -> list[list[Any]]:
    """What was opened, for a stepper: box, copy, state, reward, cost; then what was taken."""
    place = {v: i for i, v in enumerate(keep.tolist())}
    opened = [
        [place[s.box.number], list(s.box.copy), s.state_number, s.reward, s.cost] for s in told
    ]
    return opened + [[place[box.number], list(box.copy)] for box in taken]


def _index(policy: Policy, v: int) -> FloatArray:
    """The indices of a box in the user's sign."""
    f, at = policy.forest, int(policy.index_at[v])
    return np.asarray(f.sign * policy.index[at : at + int(f.laws.shape[f.law[v], 0])] + 0.0)


def _folded(policy: Policy, place: IntArray) -> dict[str, Any]:
    """The best box left out: among the roots, and behind each box after each state."""
    f = policy.forest
    hidden = np.flatnonzero(place[:-1] < 0)
    below: dict[int, list[Any]] = {}
    for v in hidden[place[f.parent[hidden]] >= 0].tolist():
        up, index = int(f.parent[v]), _index(policy, v)
        best = below.setdefault(int(place[up]), [None] * len(index))
        for s, x in enumerate(index.tolist()):
            if best[s] is None or f.sign * x > f.sign * best[s][0]:
                best[s] = [x, f.name(v)]
    roots = policy.root[place[policy.root] < 0]  # the highest index comes first
    root = [float(_index(policy, int(roots[0]))[0]), f.name(int(roots[0]))] if len(roots) else None
    return {"boxes": len(hidden), "root": root, "below": below}


# up to which these questions are answered within seconds: a fitted box may have many chances
LARGEST, MOST_CHANCES = 400, 20_000


def too_large(f: Forest) -> str | None:
    """What makes a forest too large for many solves: its boxes or its chances."""
    if len(f) > LARGEST:
        return f"{len(f):,} boxes"
    entries = int(f.laws.shape[f.law].prod(axis=1).sum())
    return f"{entries:,} chances" if entries > MOST_CHANCES else None


_SHARE = 0.1  # each number is changed by this share
_MOVED = 6  # boxes whose numbers are changed
_TURNED = 3  # boxes for which to look for the change that alters the decision
_KNOWN = 8  # boxes that might be known beforehand
_ROWS = 12  # rows of a tornado
_CURVE = 32  # points of a curve

_OPTION = re.compile(r"`(\w+)`")  # pages do not quote options of Python

Found = dict[str, Any]


def answers(solution: Solution, evaluation: Evaluation) -> Found:
    """All answers as plain lists; ``leftOut`` has the reason for each answer that is None."""
    f = solution.forest
    parts = {"swings": _swings, "knowing": _knowing, "budget": _budget, "careful": _careful}
    found: Found = {"leftOut": {}}
    for key, part in parts.items():
        try:
            if (size := too_large(f)) is not None:
                raise InvalidArgument(f"this would take too long with {size}.")
            found[key] = part(solution, evaluation)
        except (InvalidArgument, InvalidForest) as error:
            reason = _OPTION.sub(lambda m: f"the {m[1].replace('_', ' ')}", str(error))
            found[key], found["leftOut"][key] = None, reason
    return found


def _swings(solution: Solution, e: Evaluation) -> Found:
    """How far the value moves with each number, and what changes the first decision."""
    found = tornado(solution.forest, share=_SHARE, boxes=_MOVED)
    turns = {(t.box, t.number): t.share for t in turning_points(solution, boxes=_TURNED)}
    rows = [
        {
            "box": s.box, "number": s.number, "low": s.low, "high": s.high,
            "firstLow": s.first_low, "firstHigh": s.first_high, "turns": s.turns,
            "turnsAt": turns.get((s.box, s.number)), "lookedAt": (s.box, s.number) in turns,
        }
        for s in found.swings[:_ROWS]
    ]  # fmt: skip
    return {"share": _SHARE, "value": solution.value, "rows": rows}


def _knowing(solution: Solution, e: Evaluation) -> list[Found]:
    """What it is worth to know a box before anything is opened, for the boxes opened most often."""
    f = solution.forest
    boxes = [v for v in np.argsort(-e.opened, kind="stable").tolist() if alone(f, v)][:_KNOWN]
    if not boxes:
        raise InvalidArgument(
            "only a single box can be known beforehand, but all boxes have copies."
        )
    found = [(f.name(v), value_of_knowing(f, [v])) for v in boxes]
    rows = [{"box": box, "worth": max(k.worth, 0.0), "error": k.error} for box, k in found]
    return sorted(rows, key=lambda row: -float(row["worth"]))


def _budget(solution: Solution, e: Evaluation) -> Found:
    """The most reward for each spend on average, the present spend among them."""
    curve = frontier(solution.forest, corners=_CURVE)
    if len(curve.corners) < 2:
        raise InvalidArgument("one policy is the best for every budget.")
    least, most = float(curve.spend[0]), float(curve.spend[-1])
    x = np.linspace(least, most, _CURVE + 1)
    now = int(np.argmin(np.abs(x - e.spend)))
    if least <= e.spend <= most:
        x[now] = e.spend
    found, prices = [curve.at(float(b)) for b in x], [*curve.price.tolist(), 0.0]  # to the right
    reward = [m.reward for m in found]
    if x[now] == e.spend:  # no policy gets more for this spend; a curve with few corners says less
        reward[now] = e.reward
    price = [prices[np.searchsorted(curve.spend, m.spend, "right") - 1] for m in found]
    return {"x": x.tolist(), "value": reward, "price": price, "now": now, "gap": curve.gap}


def _careful(solution: Solution, e: Evaluation) -> Found:
    """The value and the first decision for each risk tolerance, the most careful first."""
    sweep, own = sweeps.risk_sweep(solution.forest, steps=_CURVE), solution.forest.risk_tolerance
    x, value = sweep.tolerance[::-1].tolist(), sweep.value[::-1].tolist()
    first = [*sweep.first[::-1]]
    rewards = solution.forest.rewards.data  # a start in the middle: the range of the rewards
    spread = float(np.ptp(rewards[np.isfinite(rewards)].tolist() or [0.0])) or 1.0
    now = int(np.argmin(np.abs(np.log(np.array(x) / spread))))
    if own is not None:
        near = int(np.argmin(np.abs(np.log(np.array(x) / own))))
        now = near if x[0] < own < x[-1] else 0 if own <= x[0] else len(x) - 1
        x[now], value[now], first[now] = own, solution.value, solution.first_box
    ranges = [
        {"high": None if high == np.inf else high, "low": low, "first": first_box}
        for high, low, first_box in sweep.decisions()
    ]
    bold = sweep.solution.value
    return {"x": x, "value": value, "first": first, "now": now, "ranges": ranges, "bold": bold}
