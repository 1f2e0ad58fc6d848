"""Time and memory of every function that takes a forest, by the number of boxes.

``python -m benchmarks.scale --write`` runs everything and writes the table into ``docs/scale.md``;
``--only NAME`` and ``--boxes N`` (both may be repeated) run some of it and print. The instance is
made and solved once for each size; then every call is measured in a process of its own, forked from
there. The instance is the hardest for memory: random trees of which every box has a law, rewards
and a cost of its own. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

import weitzman
from weitzman import Forest, Solution

from . import instances
from .measure import ROOT, Table, peak_during, seconds
from .memory import instance_bytes

SIZES = (10**3, 10**4, 10**5, 10**6)
LIMIT_S = 120.0
PAGE = ROOT / "docs" / "scale.md"
MARKS = "<!-- table -->", "<!-- end of table -->"

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


def _report(_: Forest, solution: Solution) -> None:
    with tempfile.TemporaryDirectory() as folder:
        weitzman.write_report(solution, Path(folder) / "report.html")


def _drawn(name: str) -> Task:
    def task(_: Forest, solution: Solution) -> None:
        import matplotlib as mpl

        mpl.use("Agg")
        getattr(weitzman.plot, name)(solution)

    return task


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
    "describe": lambda f, s: weitzman.describe(f),
    "explain": lambda f, s: weitzman.explain(s),
    "truncate": lambda f, s: weitzman.truncate(f, gap=0.01),
    "Solution.to_pandas": lambda f, s: s.to_pandas(),
    "Solution.capped_law": lambda f, s: s.capped_law(),
    "save and load .wz": _saved(".wz"),
    "save and load .json": _saved(".json"),
    "to and from_pandas": _pandas,
    "to and from_networkx": _networkx,
    "Forest.changed": lambda f, s: f.changed(cost={0: 0.1}),
    "Forest.subtree": lambda f, s: f.subtree(int(f.roots[-1])),
    "expand": lambda f, s: weitzman.forest.expand(f, 10**7),
    "side_by_side": lambda f, s: weitzman.side_by_side([f, f]),
    "payoff_law": lambda f, s: weitzman.policy.payoff_law(s),
    "equivalent_box": lambda f, s: weitzman.policy.equivalent_box(s),
    "compare": lambda f, s: weitzman.compare(s),
    **{
        name: _strategy(name)
        for name in (
            "approximate", "best_line", "best_nonadaptive", "best_partially_adaptive", "myopic",
            "everything",
        )
    },
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
    "index_slopes": lambda f, s: weitzman.questions.index_slopes(s, int(f.roots[0])),
    "write_report": _report,
    "plot.forest": _drawn("forest"),
    "plot.openings": _drawn("openings"),
    "plot.payoff": _drawn("payoff"),
}  # fmt: skip


def measured(task: Task, forest: Forest, solution: Solution) -> dict[str, float | str]:
    """Processor time and more memory of one call, or the words of a refusal."""
    refusal = ""

    def call() -> None:
        nonlocal refusal
        try:
            task(forest, solution)
        except weitzman.WeitzmanError as error:
            refusal = str(error)

    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        _, more = peak_during(call)
    return {"seconds": time.process_time() - start, "more": more, "refused": refusal}


def forked(task: Task, forest: Forest, solution: Solution) -> dict[str, float | str] | None:
    """The same in a process of its own; None if that takes too long."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(write, json.dumps(measured(task, forest, solution)).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    ready, _, _ = select.select([read], [], [], LIMIT_S)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        told = pipe.read() if ready else ""
    if ready and not told:
        raise RuntimeError("the child process died")
    return json.loads(told) if told else None


def column(names: Sequence[str], boxes: int) -> Iterator[tuple[str, str, str]]:
    """Function, its cell, and the words of a refusal; for one size."""
    small = instances.random_trees(50)
    solved = weitzman.solve(small)
    for name in names:  # compiles
        with contextlib.suppress(weitzman.WeitzmanError), contextlib.redirect_stdout(io.StringIO()):
            TASKS[name](small, solved)
    forest = instances.random_trees(boxes)
    solution = weitzman.solve(forest)
    yield "the instance itself", f"{instance_bytes(forest) / 1e6:.0f} MB", ""
    for name in names:
        found = forked(TASKS[name], forest, solution)
        if found is None:
            yield f"`{name}`", f"over {LIMIT_S:.0f} s", ""
        elif found["refused"]:
            yield f"`{name}`", "refuses", str(found["refused"])
        else:
            text = f"{seconds(float(found['seconds']))}, {float(found['more']) / 1e6:.0f} MB"
            yield f"`{name}`", text, ""


def table(names: Sequence[str], sizes: Sequence[int]) -> Table:
    """All cells, with the refusals below."""
    cells: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    for boxes in sizes:
        for name, text, told in column(names, boxes):
            print(f"{boxes:,} boxes, {name}: {text} {told}", flush=True)
            cells.setdefault(name, []).append(text)
            if told:
                refused[name] = told
    notes = [f"{name} refuses: {told}" for name, told in refused.items()]
    head = ["function", *(f"{n:,} boxes" for n in sizes)]
    return Table(head, [[name, *row] for name, row in cells.items()], notes)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, run, print; write where everything was run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=list(TASKS), metavar="NAME")
    parser.add_argument("--boxes", action="append", type=int)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args(arguments)
    found = table(options.only or list(TASKS), options.boxes or SIZES).markdown()
    print(found)
    if options.write:
        between = re.compile(f"(?<={MARKS[0]}).*(?={MARKS[1]})", re.DOTALL)
        page = between.sub(lambda _: f"\n\n{found}\n\n", PAGE.read_text("utf-8"))
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
