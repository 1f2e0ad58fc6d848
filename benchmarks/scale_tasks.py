"""Every public function that takes a forest or a solution, as a call that can be measured."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import weitzman
from weitzman import Forest, Solution

Task = Callable[[Forest, Solution], object]


def _search(forest: Forest, solution: Solution) -> None:
    search, rng = weitzman.Search(solution), np.random.default_rng(0)
    while (box := search.ask()) is not None:
        law = forest.laws[int(forest.law[box.number])]
        search.tell(box, int(rng.integers(law.shape[1])))


def _saved(ending: str) -> Task:
    def task(forest: Forest, _: Solution) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"forest{ending}"
            weitzman.save(forest, path)
            weitzman.load(path)

    return task


def _pandas(forest: Forest, _: Solution) -> None:
    weitzman.files.from_pandas(weitzman.files.to_pandas(forest), outside=forest.outside)


def _networkx(forest: Forest, _: Solution) -> None:
    weitzman.files.from_networkx(weitzman.files.to_networkx(forest))


def _report(ending: str) -> Task:
    def task(_: Forest, solution: Solution) -> None:
        with tempfile.TemporaryDirectory() as folder:
            weitzman.write_report(solution, Path(folder) / f"report{ending}")

    return task


def _drawn(name: str, made: Task | None = None) -> Task:
    """A picture of a solution, or of what is made of it."""

    def task(forest: Forest, solution: Solution) -> None:
        import matplotlib as mpl

        mpl.use("Agg")
        shown = solution if made is None else made(forest, solution)
        getattr(weitzman.plot, name)(shown)

    return task


def _journal(forest: Forest, solution: Solution) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "search.db"
        search = weitzman.Search(solution, journal=path)
        for _ in range(3):
            if (box := search.ask()) is not None:
                search.tell(box, 0)
        search.explain()
        search.close()
        weitzman.Search.resume(path).close()
        weitzman.Search.look(path)


def _parts(forest: Forest, _: Solution) -> None:
    with tempfile.TemporaryDirectory() as folder:
        weitzman.files.save_many([forest], Path(folder) / "forest.wz")
        weitzman.bounds.solve_file(Path(folder) / "forest.wz", part=50_000)


def _described(forest: Forest, _: Solution) -> None:
    f = forest
    columns = {name: [getattr(f, name + "s")[i] for i in getattr(f, name)] for name in _COLUMNS}
    Forest.from_arrays(
        parent=f.parent, cost=[c.item() for c in columns["cost"]],
        rewards=[r[0] for r in columns["reward"]], law=columns["law"],
    )  # fmt: skip


_COLUMNS = ("cost", "reward", "law")


def _built(forest: Forest, _: Solution) -> None:
    """With names instead of numbers, as by hand."""
    boxes = weitzman.Builder()
    rewards = [forest.rewards[int(r)][0].tolist() for r in forest.reward]
    for v, up in enumerate(forest.parent.tolist()):
        rows = [
            dict(zip(rewards[v], row, strict=True))
            for row in forest.laws[int(forest.law[v])].tolist()
        ]
        law = rows[0] if up < 0 else dict(zip(rewards[up], rows, strict=True))
        boxes.add(v, cost=0.1, outcomes=law, parent=None if up < 0 else up)
    boxes.build()


def _explorer(forest: Forest, _: Solution) -> None:
    from weitzman.show.explore.workbench import Workbench

    bench = Workbench(read=lambda: forest)
    ask = json.dumps({"document": bench.start()["document"]}).encode()
    bench.answer("solve", ask)


def _lazy(forest: Forest, _: Solution) -> None:
    """The trees as they are asked for, up to 2,000 boxes."""
    below: dict[int, list[int]] = {}
    for v, up in enumerate(forest.parent.tolist()):
        below.setdefault(up, []).append(v)

    def node(v: int) -> weitzman.Node:
        f = forest
        law, row = f.laws[int(f.law[v])], f.rewards[int(f.reward[v])][0]
        cost = float(f.costs[int(f.cost[v])][0, 0])
        own = law if f.parent[v] >= 0 else law[0]
        return weitzman.Node(law=own, rewards=row, cost=cost, name=str(v), data=v)

    lazy = weitzman.LazyForest(
        map(node, below[-1]), lambda n: map(node, below.get(n.data, [])), bound=lambda n: 1.0
    )
    weitzman.solve(lazy, gap=0.05, budget=2000)


def _strategy(name: str) -> Task:
    def task(forest: Forest, solution: Solution) -> None:
        function = getattr(weitzman.strategies, name)
        known = {"solution": solution} if name in _WITH_SOLUTION else {}
        function(forest, **known)

    return task


_WITH_SOLUTION = {"best_nonadaptive", "best_partially_adaptive", "compare"}


def _spend(solution: Solution) -> float:
    return weitzman.evaluate(solution).spend / 2


TASKS: dict[str, Task] = {
    "solve": lambda f, s: weitzman.solve(f),
    "solve(exact=True)": lambda f, s: weitzman.solve(f, exact=True),
    "evaluate": lambda f, s: weitzman.evaluate(s),
    "simulate": lambda f, s: weitzman.simulate(s, 10_000, 0),
    "sensitivity": lambda f, s: weitzman.sensitivity(s),
    "break_even": lambda f, s: weitzman.break_even(s, int(f.roots[0])),
    "Search": _search,
    "Search with a journal": _journal,
    "Forest.from_arrays of lists": _described,
    "Builder": _built,
    "LazyForest": _lazy,
    "describe": lambda f, s: weitzman.describe(f),
    "explain": lambda f, s: weitzman.explain(s),
    "truncate": lambda f, s: weitzman.truncate(f, gap=0.01),
    "Solution.to_pandas": lambda f, s: s.to_pandas(),
    "Solution.columns": lambda f, s: s.columns(),
    "Solution.table": lambda f, s: s.table(),
    "Evaluation.to_pandas": lambda f, s: weitzman.evaluate(s).to_pandas(),
    "Evaluation.table": lambda f, s: weitzman.evaluate(s).table(),
    "payoff_table": lambda f, s: weitzman.engine.payoff_table(f),
    "Solution.capped_law": lambda f, s: s.capped_law(),
    "save and load .wz": _saved(".wz"),
    "save and load .json": _saved(".json"),
    "save and load .csv": _saved(".csv"),
    "save and load .xlsx": _saved(".xlsx"),
    "to and from_pandas": _pandas,
    "to and from_networkx": _networkx,
    "Forest.changed": lambda f, s: f.changed(cost={0: 0.1}),
    "Forest.take": lambda f, s: f.take(np.arange(len(f))),
    "Forest.subtree": lambda f, s: f.subtree(int(f.roots[-1])),
    "expand": lambda f, s: weitzman.forest.expand(f, 10**7),
    "side_by_side": lambda f, s: weitzman.side_by_side([f, f]),
    "payoff_law": lambda f, s: weitzman.policy.payoff_law(s),
    "equivalent_box": lambda f, s: weitzman.policy.equivalent_box(s),
    "compare": lambda f, s: weitzman.compare(s),
    **{
        name: _strategy(name)
        for name in (
            "best_line", "best_nonadaptive", "best_partially_adaptive", "myopic",
            "everything",
        )
    },
    "by_expected_value": lambda f, s: weitzman.strategies.by_expected_value(f),
    "on_reward_grid": lambda f, s: weitzman.strategies.on_reward_grid(s),
    "exhaustive": lambda f, s: weitzman.strategies.exhaustive(f),
    "random_order": lambda f, s: weitzman.strategies.random_order(s, 1000, 0),
    "value_of_set": lambda f, s: weitzman.strategies.value_of_set(f, range(len(f))),
    "value_of_order": lambda f, s: weitzman.strategies.value_of_order(f, f.roots[:3].tolist()),
    "frontier": lambda f, s: weitzman.questions.frontier(f, corners=20),
    "within_budget": lambda f, s: weitzman.questions.within_budget(f, _spend(s)),
    "cheapest": lambda f, s: weitzman.questions.cheapest(f, s.value, 0.5),
    "value_of_knowing": lambda f, s: weitzman.questions.value_of_knowing(
        f, [int(f.roots[0])], samples=20
    ),
    "tornado": lambda f, s: weitzman.questions.tornado(f),
    "turning_points": lambda f, s: weitzman.questions.turning_points(s),
    "value_of_tests": lambda f, s: weitzman.questions.value_of_tests(f, {int(f.roots[0]): 0.8}),
    "capped": lambda f, s: weitzman.questions.capped(f, _spend(s)),
    "commit": lambda f, s: weitzman.questions.commit(f, unseen=[int(f.roots[0])]),
    "risk_sweep": lambda f, s: weitzman.questions.risk_sweep(f, steps=8),
    "save_many and solve_file": _parts,
    "explorer, first answer": _explorer,
    **{f"write_report {ending}": _report(ending) for ending in (".html", ".svg", ".csv")},
    "plot.forest": _drawn("forest"),
    "plot.openings": _drawn("openings"),
    "plot.payoff": _drawn("payoff"),
    "plot.solution": _drawn("solution"),
    "plot.break_even": _drawn("break_even"),
    "plot.capped_value": _drawn("capped_value"),
    "plot.phi": _drawn("phi"),
    "plot.strategies": _drawn("strategies", lambda f, s: weitzman.compare(s)),
    "plot.search": _drawn("search", lambda f, s: weitzman.Search(s)),
}  # fmt: skip
