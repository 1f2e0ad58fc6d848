"""Time and memory of every function that takes a forest, by the number of boxes.

``python -m benchmarks.scale --write`` runs everything and writes the table into
``benchmarks/scale.md``;
``--only NAME`` and ``--boxes N`` (both may be repeated) run some of it and print. The instance is
made and solved once for each size; then every call is measured in a process of its own, forked from
there. The instance is the hardest for memory: random trees of which every box has a law, rewards
and a cost of its own. A call is given up after 40 seconds, and not tried where a tenth of the boxes
took more than 8. About twenty minutes in all. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

import weitzman
from weitzman import Forest, Solution

from . import instances
from .measure import ROOT, Table, peak_during, peak_of, put, resident, seconds
from .memory import instance_bytes
from .scale_tasks import TASKS, Task

SIZES = (10**3, 10**4, 10**5, 10**6)
LIMIT_S = 40.0
HOPELESS = LIMIT_S / 5  # seconds of a call that is not tried with ten times as many boxes
PAGE = ROOT / "benchmarks" / "scale.md"


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


def forked(task: Task, forest: Forest, solution: Solution) -> dict[str, float | str]:
    """The same in a process of its own; without ``seconds`` if that takes too long."""
    read, write = os.pipe()
    before, more = resident(), 0
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
        more = max(peak_of(child) - before, 0)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        told = pipe.read() if ready else ""
    if ready and not told:
        raise RuntimeError("the child process died")
    found: dict[str, float | str] = json.loads(told) if told else {"more": more, "refused": ""}
    return found


class Cell(NamedTuple):
    """One call: its function, what is told of it, the words of a refusal, and its time."""

    name: str
    text: str
    refusal: str = ""
    seconds: float = 0.0


def column(names: Sequence[str], boxes: int, before: Mapping[str, float]) -> Iterator[Cell]:
    """All calls for one size; ``before`` are the seconds that they took for the size before."""
    small = instances.random_trees(50)
    solved = weitzman.solve(small)
    for name in names:  # compiles
        with contextlib.suppress(weitzman.WeitzmanError), contextlib.redirect_stdout(io.StringIO()):
            TASKS[name](small, solved)
    forest = instances.random_trees(boxes)
    solution = weitzman.solve(forest)
    yield Cell("the instance itself", f"{instance_bytes(forest) / 1e6:.0f} MB")
    for name in names:
        if before.get(name, 0.0) > HOPELESS:
            yield Cell(name, "not tried", seconds=np.inf)
            continue
        found = forked(TASKS[name], forest, solution)
        memory = f"{float(found['more']) / 1e6:.0f} MB"
        if "seconds" not in found:
            text = f"over {LIMIT_S:.0f} s, {memory} so far"
            yield Cell(name, text, seconds=np.inf)
        elif found["refused"]:
            yield Cell(name, "refuses", str(found["refused"]))
        else:
            took = float(found["seconds"])
            yield Cell(name, f"{seconds(took)}, {memory}", seconds=took)


def table(names: Sequence[str], sizes: Sequence[int]) -> Table:
    """All cells, with the refusals below."""
    cells: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    took: dict[str, float] = {}
    for boxes in sizes:
        for cell in column(names, boxes, took.copy()):
            print(f"{boxes:,} boxes, {cell.name}: {cell.text} {cell.refusal}", flush=True)
            cells.setdefault(cell.name, []).append(cell.text)
            took[cell.name] = cell.seconds
            if cell.refusal:
                refused[cell.name] = cell.refusal
    notes = [f"`{name}` refuses: {told}" for name, told in refused.items()]
    head = ["function", *(f"{n:,} boxes" for n in sizes)]
    rows = [[f"`{name}`" if name in TASKS else name, *row] for name, row in cells.items()]
    return Table(head, rows, notes)


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
        put(PAGE, "table", found)


if __name__ == "__main__":
    main(sys.argv[1:])
