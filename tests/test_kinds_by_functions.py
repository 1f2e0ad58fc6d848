"""Functions by kinds of forest: each number by one other way, in every cell of one table.

A cell without a comparison has a reason, and the test sees that the function refuses. A public
function that is not in the table must be in the list of those that return no number of a forest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small_oracles import follow_all, state_above

import weitzman
from weitzman import Forest, Solution, bounds, engine, forest, policy, strategies
from weitzman.errors import InvalidArgument, InvalidFile, TooLarge, WeitzmanError

SEEDS = range(4)
CLOSE = 1e-8


# -- kinds of forests ------------------------------------------------------------------------------


def draw(seed: int, **kind: Any) -> Forest:
    """A small forest of a kind: two lines, or a fork beside a box."""
    rng = np.random.default_rng(seed)
    k = 2
    parent = [[-1, 0, -1, 2], [-1, 0, 0, -1], [-1, 0, 1, -1]][seed % 3]
    n = len(parent)
    law = [rng.dirichlet(np.ones(k), None if p < 0 else k) for p in parent]
    levels = [0.0, 2.0, 4.0, 6.0, 8.0] if kind.get("ties") else rng.uniform(0, 9, 40)
    rewards = rng.choice(levels, (n, k)) if kind.get("ties") else rng.permutation(levels)[: n * k]
    rewards = np.array(rewards).reshape(n, k)
    cost: list[Any] = rng.uniform(0.1, 1, n).tolist()
    if kind.get("ties"):
        cost = [0.5, 1.0, 0.5, 1.0]
    if kind.get("random_costs"):
        cost = [rng.uniform(0, 1.5, (1 if p < 0 else k, k)) for p in parent]
    if kind.get("signals"):
        rewards[0] = -np.inf
        rewards[3, 0] = -np.inf
    if kind.get("minimize"):
        rewards = -rewards
    endless = np.zeros(n, bool)
    if kind.get("endless"):
        endless[1] = 1 not in parent
        endless[2] = 2 not in parent and parent[2] >= 0
    none = kind.get("outside", 1.0)
    return Forest.from_arrays(
        parent=parent, cost=cost, rewards=rewards, law=law, endless=endless,
        count=[2, 1, 1, 3] if kind.get("copies") else None, minimize=bool(kind.get("minimize")),
        outside=-none if kind.get("minimize") else none,
    )  # fmt: skip


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "endless": {"endless": True},
    "copies": {"copies": True},
    "signals": {"signals": True},
    "random costs": {"random_costs": True},
    "minimize": {"minimize": True},
    "no outside option": {"outside": -np.inf},
    "ties": {"ties": True},
}


# -- functions, each with another way to its number ------------------------------------------------


def value(f: Forest, s: Solution) -> None:
    """By looking at everything that can happen; an endless line between its bounds."""
    if f.endless.any():
        cut = weitzman.truncate(f, gap=1e-7)
        assert cut.lower - CLOSE <= s.value <= cut.upper + CLOSE
        best = strategies.exhaustive(weitzman.truncate(f, gap=1.0).forest, limit=200_000).value
        assert s.value >= best - CLOSE
    else:
        assert s.value == pytest.approx(strategies.exhaustive(f).value, abs=CLOSE)


def index(f: Forest, s: Solution) -> None:
    """It is where holding x and searching just stops paying."""
    for v in range(len(f)):
        up = int(f.parent[v])
        for state in (None,) if up < 0 else range(len(f.states(up))):
            x = s.index(v, state)
            tree = f.subtree(v, state)
            if np.isfinite(x):
                assert weitzman.solve(tree.changed(outside=x)).value == pytest.approx(x, abs=CLOSE)
                better = weitzman.solve(tree.changed(outside=x - f.sign * 0.1)).value
                assert f.sign * better > f.sign * (x - f.sign * 0.1) + 1e-6


def evaluate(f: Forest, s: Solution) -> None:
    e = weitzman.evaluate(s)
    assert e.value == pytest.approx(s.value, abs=CLOSE)
    assert e.value == pytest.approx(e.reward - f.sign * e.spend, abs=CLOSE)
    assert e.chosen.data.sum() + e.outside == pytest.approx(1, abs=CLOSE)
    played = weitzman.simulate(s, 20_000, 5)
    error = np.sqrt(np.maximum(e.opened, 1e-9) * 40 / 20_000)
    assert (np.abs(played.opened - e.opened) < 5 * error + 1e-9).all()


def simulate(f: Forest, s: Solution) -> None:
    e, played = weitzman.evaluate(s), weitzman.simulate(s, 20_000, 7)
    for name in ("reward", "spend", "openings"):
        sample = getattr(played, name)
        assert abs(sample.mean - getattr(e, name)) <= 5 * sample.standard_error + 1e-9
    if not f.endless.any():
        budget = weitzman.simulate(s, 50, 1, budget=f.boxes)
        assert budget.openings.mean == f.boxes  # also of boxes in which nothing can be found


def sensitivity(f: Forest, s: Solution) -> None:
    """The value lies on one side of the line with this slope: it is convex in costs."""
    found = weitzman.sensitivity(s)
    for h in (-0.05, 0.05):
        for v in f.roots.tolist():
            cost = f.costs[int(f.cost[v])] + h
            moved = weitzman.solve(f.changed(cost={v: np.maximum(cost, 0).reshape(-1)}))
            if (cost >= 0).all():
                ahead = s.value + h * float(found.cost[v][0])
                assert f.sign * moved.value >= f.sign * ahead - CLOSE
        if np.isfinite(f.outside):
            moved = weitzman.solve(f.changed(outside=f.outside + h))
            assert f.sign * moved.value >= f.sign * (s.value + h * found.outside) - CLOSE


def break_even(f: Forest, s: Solution) -> None:
    for v in f.roots.tolist():
        first = weitzman.break_even(s, v).first_below
        for share, begins in ((0.99, True), (1.01, False)):
            if first is not None and 1e-6 < first < np.inf:
                moved = weitzman.solve(f.changed(cost={v: first * share}))
                assert (moved.first_box == f.name(v)) is begins
        turn = weitzman.break_even(s, v).opened_below
        if not np.isfinite(f.outside):
            assert turn == np.inf
            continue
        for share, opens in ((0.99, True), (1.01, False)):
            if turn > 1e-6:
                moved = weitzman.solve(f.changed(cost={v: turn * share}))
                assert (f.sign * moved.index(v) > f.sign * f.outside) is opens


def phi(f: Forest, s: Solution) -> None:
    for x in (-1.0, 0.5, 3.0, 8.5):
        again = weitzman.solve(f.changed(outside=f.sign * x)).value
        assert s.phi(f.sign * x) == pytest.approx(again, abs=1e-7)


def capped_box(f: Forest, s: Solution) -> None:
    free = s.capped_law().box(f.outside)
    for x in (-1.0, 0.5, 3.0, 8.5):
        one, other = (weitzman.solve(g.changed(outside=f.sign * x)).value for g in (free, f))
        assert one == pytest.approx(other, abs=1e-7)


def payoff_law(f: Forest, s: Solution) -> None:
    law, e = policy.payoff_law(s, episodes=20_000), weitzman.evaluate(s)
    assert law.mean == pytest.approx(e.value, abs=1e-6)
    assert law.chances.sum() == pytest.approx(1)
    spread = np.sqrt(law.chances @ (law.values - law.mean) ** 2 / 20_000)
    slack = 1e-6 if law.how == "exact" else 5 * spread
    assert abs(law.chances @ law.values - e.value) <= slack
    if law.how == "exact":
        assert law.worse == pytest.approx(follow_all(s).loss, abs=CLOSE)


def equivalent_box(f: Forest, s: Solution) -> None:
    try:
        box = policy.equivalent_box(s)
    except TooLarge:
        assert f.endless.any() or (f.count > 1).any()
        return
    taken = f.sign * np.maximum(f.sign * box.rewards[0][0], f.sign * f.outside)
    earned = box.laws[0][0] @ (taken - f.sign * box.costs[0][0])
    assert earned == pytest.approx(s.value, abs=CLOSE)
    assert (box.outside, box.stated_error) == (f.outside, f.stated_error)


def truncate(f: Forest, s: Solution) -> None:
    cut = weitzman.truncate(f, gap=0.05)
    assert cut.lower - CLOSE <= s.value <= cut.upper + CLOSE
    assert cut.upper - cut.lower <= 0.05 + CLOSE
    assert f.sign * weitzman.solve(cut.forest).value >= f.sign * s.value - 0.05 - CLOSE


def expand(f: Forest, s: Solution) -> None:
    assert weitzman.solve(forest.expand(f)).value == pytest.approx(s.value, abs=CLOSE)


def compare(f: Forest, s: Solution) -> None:
    found = weitzman.compare(s, episodes=200)
    assert found["optimal"].value == s.value
    kinds = [f.sign * found[key].value for key in ("optimal", "fixed_order", "fixed_set")]
    assert kinds[0] >= kinds[1] - CLOSE >= kinds[2] - 2 * CLOSE
    members = strategies.best_nonadaptive(f)
    e = weitzman.evaluate(strategies.everything(f)).value
    assert f.sign * members.value >= f.sign * e - CLOSE


def exhaustive(f: Forest, s: Solution) -> None:
    found = strategies.exhaustive(f)
    assert found.value == pytest.approx(s.value, abs=CLOSE)
    written = weitzman.solve(forest.expand(f))  # copies have names of their own
    best = max(f.sign * written.index(v) for v in written.forest.roots.tolist())
    if found.first_box is not None:
        assert f.sign * written.index(found.first_box) >= best - CLOSE


def payoff_table(f: Forest, s: Solution) -> None:
    """Of the line below a root that is one; endless lines and copies are refused."""
    for v in f.roots.tolist():
        tree = f.subtree(v)
        if (tree.parent == np.arange(-1, len(tree) - 1)).all():
            if tree.endless.any() or (tree.count > 1).any():
                with pytest.raises(InvalidArgument, match="one finite line without copies"):
                    engine.payoff_table(tree)
                continue
            table = engine.payoff_table(tree)
            for x, found in zip(table.levels.tolist(), table.phi[0][:, 0].tolist(), strict=True):
                assert found == pytest.approx(s.phi(x, v), abs=1e-7)


def files(f: Forest, s: Solution, folder: Any) -> None:
    for name in ("f.json", "f.wz"):
        weitzman.save(f, folder / name)
        again = weitzman.load(folder / name)
        assert again == f
        assert weitzman.solve(again).value == s.value
    if f.endless.any():
        with pytest.raises(InvalidFile, match="must have no 'endless'"):
            bounds.solve_file(folder / "f.wz")
        return
    read = bounds.solve_file(folder / "f.wz", part=1)  # tree by tree
    assert read.value == pytest.approx(s.value, abs=CLOSE)
    assert (None if read.first_box is None else f.name(read.first_box)) == s.first_box


def search(f: Forest, s: Solution) -> None:
    """Told at random, searches earn on average what the solution says."""
    rng, earned = np.random.default_rng(1), []
    for _ in range(150):
        run = weitzman.Search(s)
        seen: dict[Any, int] = {}
        while (box := run.ask()) is not None:
            law = f.laws[int(f.law[box.number])]
            row = law[state_above(f, box, seen)] if len(law) > 1 else law[0]
            state = int(rng.choice(len(row), p=row / row.sum()))
            seen[box.number, box.copy] = state
            run.tell(box, state)
        earned.append(run.payoff)
    error = np.std(earned) / np.sqrt(len(earned))
    assert abs(np.mean(earned) - s.value) < 5 * error + 1e-9


FUNCTIONS: dict[str, Callable[..., None]] = {
    "solve().value": value,
    "solve().index": index,
    "evaluate": evaluate,
    "simulate": simulate,
    "sensitivity": sensitivity,
    "break_even": break_even,
    "Solution.phi": phi,
    "CappedLaw.box": capped_box,
    "policy.payoff_law": payoff_law,
    "policy.equivalent_box": equivalent_box,
    "truncate": truncate,
    "forest.expand": expand,
    "compare": compare,
    "strategies.exhaustive": exhaustive,
    "engine.payoff_table": payoff_table,
    "save, load, bounds.solve_file": files,
    "Search": search,
}

# Cells without a comparison: why, and what a caller is told.
REASONS: dict[tuple[str, str], tuple[str, str]] = {
    ("forest.expand", "endless"): ("no end to write out", "needs a forest that ends"),
    ("compare", "endless"): ("fixed sets and orders name every box", "needs a forest that ends"),
    ("strategies.exhaustive", "endless"): ("no end of situations", "needs a forest that ends"),
}

# Public names that give no number of a forest, with what they give.
NO_NUMBER = {
    "Builder", "Forest", "line", "side_by_side", "load", "save",  # forests
    "Chain", "solve_line",  # chains: tests/chains compares them with exact arithmetic
    "LazyForest", "LazySearch", "Node",  # bounds on forests without an end: tests/bounds
    "Policy", "Solution", "Status", "Search", "WeitzmanError", "__version__",  # types
    "describe", "explain", "plot", "write_report",  # words and pictures
    "bounds", "chains", "engine", "errors", "files", "forest", "learn", "policy", "questions",
    "backtest", "strategies", "tune",  # rooms
    "examples",  # gives forests
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_on_each_kind(name: str, kind: str, tmp_path: Any) -> None:
    check = FUNCTIONS[name]
    for seed in SEEDS:
        f = draw(seed, **KINDS[kind])
        solution = weitzman.solve(f)
        if (name, kind) in REASONS and (kind != "endless" or f.endless.any()):
            with pytest.raises(InvalidArgument, match=REASONS[name, kind][1]):
                check(f, solution)
        elif check is files:
            check(f, solution, tmp_path)
        else:
            check(f, solution)


def test_the_table_is_complete() -> None:
    told = {word for name in FUNCTIONS for word in re.findall(r"\w+", name)}
    missing = set(weitzman.__all__) - NO_NUMBER - told
    assert missing == set()
    assert all(name in FUNCTIONS and kind in KINDS for name, kind in REASONS)


def test_kinds_are_what_they_say() -> None:
    drawn = {kind: [draw(seed, **flags) for seed in SEEDS] for kind, flags in KINDS.items()}
    assert any(f.endless.any() for f in drawn["endless"])
    assert all((f.count > 1).any() for f in drawn["copies"])
    assert all(np.isinf(f.rewards.data).any() for f in drawn["signals"])
    assert all((f.costs.shape[:, 1] > 1).any() for f in drawn["random costs"])
    assert all(f.minimize for f in drawn["minimize"])
    assert all(f.outside == -np.inf for f in drawn["no outside option"])
    assert all(len(np.unique(f.rewards.data)) <= 5 for f in drawn["ties"])
    with pytest.raises(WeitzmanError):
        draw(0, outside=np.nan)
