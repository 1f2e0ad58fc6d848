"""Results by kinds of forest: each number that a result holds, by one other way.

The third part of the table of ``test_kinds_by_functions.py``: attributes, properties and methods of
the results instead of functions. The last test reads the classes of the rooms and fails for a
number that no row names and that has no reason.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lazy_forests import lazily
from small_oracles import Followed, columns_of, follow_all
from test_kinds_by_functions import CLOSE, KINDS, draw

import weitzman
from weitzman import Forest, Solution, policy, strategies
from weitzman.errors import WeitzmanError

SEEDS = range(3)


def slack(f: Forest, found: Followed) -> float:
    """What the paths not followed to their end may add, and rounding."""
    return CLOSE + (100 * found.left if f.endless.any() else 0.0)


def evaluation(f: Forest, s: Solution) -> None:
    """By a search that is told everything it can be told: ties are broken alike, too."""
    e, found = weitzman.evaluate(s), follow_all(s)
    near = slack(f, found)
    for v in range(len(f)):
        assert e.opened_after[v] == pytest.approx(found.opened_after[v], abs=near)
        assert e.chosen[v] == pytest.approx(found.chosen[v], abs=near)
        assert e.opened[v] == pytest.approx(found.opened_after[v].sum(), abs=near)
        assert e.wins[v] == pytest.approx(found.chosen[v].sum(), abs=near)
        assert e.worth.opened_after[v] == pytest.approx(found.opened_after[v], abs=near)
    assert e.outside == pytest.approx(found.outside, abs=near)
    assert e.reward == pytest.approx(found.reward, abs=near)
    assert e.spend == pytest.approx(found.spend, abs=near)
    assert e.openings == pytest.approx(found.openings, abs=near)
    assert e.value == pytest.approx(found.reward - f.sign * found.spend, abs=near)
    assert abs(e.value - (found.reward - f.sign * found.spend)) <= near + e.error < 2 * CLOSE + near
    assert abs(e.residual) < CLOSE
    assert e.time == 0
    columns = e.columns()
    assert columns["opened"] == e.opened.tolist()
    assert columns["chosen"] == e.wins.tolist()
    assert sum(columns["spend"]) == pytest.approx(found.spend, abs=near)


def searches(f: Forest, s: Solution) -> None:
    """What a search promises is the mean of what its answers make of the promise."""
    found = follow_all(s)
    for said, came in found.expected:
        assert said == pytest.approx(came, abs=1e-7)
    search = weitzman.Search(s)
    assert search.expected == pytest.approx(s.value, abs=CLOSE)
    ranked = sorted(-f.sign * s.index(v) for v in f.roots.tolist())
    assert -f.sign * search.available(None)[0][1] == ranked[0]
    best, spent = f.outside, 0.0
    for _ in range(3):
        if (box := search.ask()) is None:
            break
        search.tell(box, 1)
        last = search.history[-1]
        best, spent = f.sign * max(f.sign * best, f.sign * reward_of(f, last)), spent + last.cost
        assert (search.best, search.spent) == (best, pytest.approx(spent))
        assert search.payoff == pytest.approx(best - f.sign * spent)
        assert (last.best, last.spent) == (search.best, search.spent)
    assert search.time == 0
    assert search.filled == {}  # without quotas; with them: policy/test_policy_quotas.py


def reward_of(f: Forest, seen: policy.Opened) -> float:
    """What the forest says of the state that was told."""
    return float(f.rewards[int(f.reward[seen.box.number])][0][seen.state_number])


def simulations(f: Forest, s: Solution) -> None:
    n, found = 20_000, follow_all(s)
    played = weitzman.simulate(s, n, 11)
    for sample, exact in (
        (played.reward, found.reward), (played.spend, found.spend),
        (played.openings, found.openings), (played.rounds, found.openings),
        (played.payoff, found.reward - f.sign * found.spend),
    ):  # fmt: skip
        assert abs(sample.mean - exact) <= 5 * sample.standard_error + slack(f, found)
        values = sample.values
        assert sample.mean == pytest.approx(values.mean())
        assert sample.standard_error == pytest.approx(values.std(ddof=1) / np.sqrt(n))
    assert (played.value, played.value_error) == (played.payoff.mean, played.payoff.standard_error)
    assert (played.episodes, played.workers, played.time.mean) == (n, 1, 0)
    for v in range(len(f)):
        exact = found.opened_after[v].sum()
        assert abs(played.opened[v] - exact) < 5 * np.sqrt((exact + 1e-4) * 6 / n)
    if np.isfinite(f.outside):
        low, high = played.loss_interval(1 - 1e-6)
        assert low - slack(f, found) <= found.loss <= high + slack(f, found)
        assert low <= played.loss <= high
        if played.exact_loss is not None:
            assert played.exact_loss == pytest.approx(found.loss, abs=slack(f, found))
        error = np.sqrt((found.loss + 1e-4) / n)
        assert abs(played.loss_share - found.loss) < 5 * error + slack(f, found)


def solutions(f: Forest, s: Solution) -> None:
    """All ways to an index agree; the law of a capped value is the slope of phi."""
    start, index = s.index_columns()
    rows = iter(s.columns()["index"])
    for v in range(len(f)):
        up = int(f.parent[v])
        for i, state in enumerate((None,) if up < 0 else range(len(f.states(up)))):
            x = s.index(v, state)
            assert x == s.indices(v)[i] == index[start[v] + i] == next(rows)
            law, tree = s.capped_law(v, state), f.subtree(v, state)
            assert (law.index, law.stated_error) == (x, f.stated_error)
            for y in (-2.0, 1.5, 4.5):
                alone = weitzman.solve(tree.changed(outside=f.sign * y)).value
                assert s.phi(f.sign * y, v, state) == pytest.approx(alone, abs=1e-7)
            capped(f, tree, law)
    first = weitzman.Search(s).ask()
    assert (s.first_box is None) == (first is None)
    assert first is None or f.name(first.number) == s.first_box
    assert 0 <= s.gap <= 1e-7
    assert s.breakpoints > 0


def capped(f: Forest, tree: Forest, law: Any) -> None:
    """Between two points, phi rises by the chance that nothing better is to be found."""
    points, tails = law.points, law.tails
    marks = f.sign * np.array([*tree.rewards.data, f.outside, law.index])
    shown = points[f.sign * points >= marks[np.isfinite(marks)].min()]
    assert ((law.low <= shown) & (shown <= law.high)).all()
    assert not np.isfinite(f.outside) or law.low <= f.outside <= law.high
    wide = np.flatnonzero(np.diff(points) > 1e-3)
    for i in wide.tolist():
        a, b = points[i] + 1e-4, points[i + 1] - 1e-4
        slope = (law.phi(b) - law.phi(a)) / (b - a)
        reached = tails[i] if f.minimize else tails[i + 1]
        assert slope == pytest.approx(1 - reached, abs=1e-7)


def sensitivities(f: Forest, s: Solution) -> None:
    """Each derivative lies between the slopes to both sides, which it is where they agree."""
    found, h = weitzman.sensitivity(s), 1e-4
    for v in range(len(f)):
        for name, slopes in (("cost", found.cost[v]), ("rewards", found.reward[v])):
            for i, slope in enumerate(slopes.tolist()):
                if name == "cost" or np.isfinite(columns_of(f)["rewards"][v][i]):
                    ends = [moved(f, name, v, i, d) - s.value for d in (-h, h)]
                    low, high = sorted([-ends[0] / h, ends[1] / h])
                    assert low - 1e-4 <= slope <= high + 1e-4
        assert found.cost_totals[v] == pytest.approx(found.cost[v].sum())
    assert found.columns()["per_unit_of_cost"] == found.cost_totals.tolist()
    if np.isfinite(f.outside):
        ends = [weitzman.solve(f.changed(outside=f.outside + d)).value for d in (-h, h)]
        low, high = sorted([(s.value - ends[0]) / h, (ends[1] - s.value) / h])
        assert low - 1e-4 <= found.outside <= high + 1e-4


def moved(f: Forest, name: str, v: int, i: int, by: float) -> float:
    """The value with one number moved: the reward of a state, or costs after a state above."""
    columns = columns_of(f)
    if name == "rewards":
        columns["rewards"][v][i] += by
    else:
        states = len(f.laws[int(f.law[v])])
        cost = columns["cost"][v]
        columns["cost"][v] = np.broadcast_to(cost, (states, cost.shape[1])).copy()
        columns["cost"][v][i] += by
    return weitzman.solve(Forest.from_arrays(**columns)).value


def truncations(f: Forest, s: Solution) -> None:
    """The boxes kept are the first levels, and earn what the lower bound says."""
    cut = weitzman.truncate(f, gap=0.3)
    level = np.zeros(len(cut.forest), int)
    for v, up in enumerate(cut.forest.parent.tolist()):
        level[v] = 1 + (level[up] if up >= 0 else 0)
    assert cut.depth == level.max()
    assert (cut.kept, cut.of) == (len(level), np.inf if f.endless.any() else len(f))
    assert cut.gap == cut.upper - cut.lower
    assert (cut.box < len(f)).all()
    earned = weitzman.solve(cut.forest).value
    sure = cut.upper if f.minimize else cut.lower
    assert f.sign * sure - CLOSE <= f.sign * earned <= f.sign * s.value + CLOSE


def lazy_solutions(f: Forest, s: Solution) -> None:
    """Endless lines are nodes that have themselves as a child."""
    for gap in (0.5, 0.01):
        found = weitzman.solve(lazily(f), gap=gap)
        assert found.lower - CLOSE <= s.value <= found.upper + CLOSE
        assert found.gap == found.upper - found.lower
        assert found.history[-1] == (found.expanded, found.lower, found.upper)
        earned = weitzman.evaluate(found.policy()).value
        assert found.lower - CLOSE <= earned <= found.upper + CLOSE
        low, high = found.index
        true = f.outside if found.first_box is None else s.index(found.first_box)
        assert low - CLOSE <= true <= high + CLOSE
        best = max(f.sign * s.index(v) for v in f.roots.tolist())
        behind = max(best, f.sign * f.outside) - f.sign * true
        assert behind <= CLOSE or found.regret > 0
        assert not found.proven or found.regret <= CLOSE


def comparisons(f: Forest, s: Solution) -> None:
    """Each strategy once more by its own function; shares and losses by hand."""
    found = weitzman.compare(s, episodes=500)
    alone = {
        "optimal": s.value, "fixed_set": strategies.best_nonadaptive(f).value,
        "fixed_order": strategies.best_partially_adaptive(f).value,
        "myopic": weitzman.evaluate(strategies.myopic(f)).value,
        "everything": weitzman.evaluate(strategies.everything(f)).value,
    }  # fmt: skip
    assert len(set(alone) & {x.key for x in found.strategies}) >= 4
    for x in found.strategies:
        if x.key in alone and x.error == 0:
            assert x.value == pytest.approx(alone[x.key], abs=CLOSE)
        behind = f.sign * (s.value - x.value)
        if not np.isnan(x.bound):
            assert x.gap == pytest.approx(f.sign * (x.bound - x.value), abs=CLOSE)
        assert found.lost(x.key) == pytest.approx(behind, abs=CLOSE)
        if np.isfinite(f.outside) and abs(s.value - f.outside) > CLOSE:
            share = (x.value - f.outside) / (s.value - f.outside)
            assert found.share(x.key) == pytest.approx(share)
        low, high = found.gap(x.key)
        assert low <= high
        assert high == pytest.approx(max(behind, 0), abs=CLOSE)


ROWS: dict[str, Callable[[Forest, Solution], None]] = {
    "Evaluation: opened opened_after chosen wins value reward spend openings outside residual time "
    "error columns": evaluation,
    "Search: best spent payoff expected time available filled; Opened: best spent cost "
    "state_number reward": searches,
    "Simulation: payoff reward spend openings rounds time loss loss_share exact_loss "
    "loss_interval opened value value_error episodes workers": simulations,
    "Solution: value index indices index_columns columns phi gap breakpoints; CappedLaw: points "
    "tails low high index phi stated_error": solutions,
    "Sensitivity: cost reward outside cost_totals columns": sensitivities,
    "Truncation: depth kept of box gap lower upper": truncations,
    "LazySolution: lower upper gap index regret expanded history": lazy_solutions,
    "Comparison: lost share gap; Strategy: value error bound gap": comparisons,
}  # fmt: skip
REASONS: dict[tuple[str, str], str] = {("Comparison", "endless"): "needs a forest that ends"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.partition(":")[0])
def test_each_result_on_each_kind(row: str, kind: str) -> None:
    refused = REASONS.get((row.partition(":")[0], kind))
    for seed in SEEDS:
        f = draw(seed, **KINDS[kind])
        solution = weitzman.solve(f)
        if refused and f.endless.any():
            with pytest.raises(WeitzmanError, match=refused):
                ROWS[row](f, solution)
        else:
            ROWS[row](f, solution)


@pytest.mark.parametrize("seed", range(8))
def test_equal_rewards_of_copies_are_distinguished_alike(seed: int) -> None:
    """Searches and evaluations choose among copies in one order, whichever was opened first."""
    f = draw(seed, ties=True, copies=True, minimize=seed % 2 == 1)
    assert f.count.max() > 1, "or there is nothing to tell apart"
    evaluation(f, weitzman.solve(f))  # asserts each number against searches told everything


# -- completeness ----------------------------------------------------------------------------------

# Classes whose numbers are not those of a forest of these kinds, and where another way gets them.
ELSEWHERE = {
    "Capped": "chains/test_endless.py", "Chain": "chains/test_chain.py test_paper_objects.py",
    "EndlessLine": "chains/test_endless.py", "FixedPoint": "chains/test_endless.py",
    "MissBounds": "chains/test_hitting.py",
    "LazySearch": "bounds/test_lazy_search.py", "FileSolution": "bounds/test_streaming.py",
    "CappedSpend": "questions/test_budget.py", "Corner": "questions/test_budget.py",
    "Turning": "questions/test_information.py", "TwoWay": "questions/test_sweeps.py",
    "Scenarios": "questions/test_sweeps.py", "SolvedMany": "questions/test_sweeps.py",
    "Uncertainty": "questions/test_sweeps.py",
    "PayoffTable": "test_paper_objects.py",
}  # fmt: skip
# Results whose numbers are compared in the rows of their functions, in the other two files.
BY_FUNCTION = {
    "BreakEven", "PayoffLaw", "Exhaustive", "FixedSet", "FixedOrder", "FixedLine",
    "Commitment", "Knowing", "Mixture", "SpendFrontier",
    "RiskSweep", "Swing", "Tornado",
}  # fmt: skip
# Classes that hold what a caller gave, or names.
GIVEN = {
    "Builder", "Discretized", "Forest", "Pool", "Policy", "Status", "Ending", "LazyForest", "Node",
    "Dag", "Box", "RayExecutor",
}  # fmt: skip
NUMBER = re.compile(r"float|int|FloatArray|IntArray|PerBox|Sample|\bAny\b")
ROOMS = ("forest", "chains", "engine", "policy", "bounds", "strategies", "questions")


def classes() -> dict[str, type]:
    """The public classes of the rooms."""
    return {
        name: thing for room in ROOMS for name, thing in vars(getattr(weitzman, room)).items()
        if inspect.isclass(thing) and not name.startswith("_")
        if thing.__module__.startswith("weitzman") and not issubclass(thing, Exception)
    }  # fmt: skip


def numbers(thing: type) -> set[str]:
    """Public attributes, properties and methods that give numbers."""
    kinds = dict(inspect.get_annotations(thing))
    for name, member in vars(thing).items():
        called = member.fget if isinstance(member, property) else member
        if inspect.isfunction(called):
            kinds[name] = inspect.signature(called).return_annotation
    return {x for x, kind in kinds.items() if x[0] != "_" and NUMBER.search(str(kind))}


def told() -> dict[str, set[str]]:
    """The members that the rows name, by class."""
    parts = [part.split(":") for row in ROWS for part in row.split(";")]
    return {name.strip(): set(members.split()) for name, members in parts}


# Numbers in classes of the table that are another number once more, or text.
SAME = {
    "Evaluation": {"to_pandas", "table", "worth"}, "Simulation": {"summary", "columns"},
    "Search": {"taken"}, "Truncation": {"columns"}, "Comparison": {"columns"},
    "Strategy": {"openings", "spend"},
}  # fmt: skip


# What was given, what only other terms of a search have, and counts of the work that was done.
# The turns of a sweep are the ends of its decisions.
PLAIN = {
    "Chain": {"dense"}, "MissBounds": {"delta"},
    "FixedSet": {"sequence"}, "RiskSweep": {"turns"}, "FixedLine": {"looked_at"},
    "Exhaustive": {"situations"},
}  # fmt: skip
PARTS = ("functions", "questions", "results")


def test_every_number_of_every_result_has_a_row() -> None:
    found, rows = classes(), told()
    placed = set(rows) | set(ELSEWHERE) | BY_FUNCTION | GIVEN
    assert set(found) == placed
    for name, members in rows.items():
        assert numbers(found[name]) - members - SAME.get(name, set()) == set(), name


def test_the_other_results_are_compared_where_the_table_says() -> None:
    here = Path(__file__).parent
    both = "".join((here / f"test_kinds_by_{x}.py").read_text("utf-8") for x in PARTS)
    missing = {}
    for name, thing in classes().items():
        if name in ELSEWHERE or name in BY_FUNCTION:
            places = ELSEWHERE.get(name, "").split()
            text = "".join((here / x).read_text("utf-8") for x in places) or both
            known = PLAIN.get(name, set())
            left = {x for x in numbers(thing) - known if not re.search(rf"\.{x}\b", text)}
            if left:
                missing[name] = left
    assert missing == {}
