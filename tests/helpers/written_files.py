"""Everything that writes a file for a user: ``python written_files.py FOLDER kills|together``.

    kills       each writer is killed (SIGKILL) at places all over its work on the file
    together    two processes write the same file at once while a third one reads it

Prints a JSON object with counts and with what went wrong.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import weitzman
from weitzman import backtest, files, learn
from weitzman.cli import backtest_command
from weitzman.files.written_tables import write_template
from weitzman.show.explore.workbench import OwnFile
from weitzman.show.report import write_report
from weitzman.tune.callbacks import partial_fits
from weitzman.tune.runs import Past, Reporter

Write = Callable[[Path, int], object]
DISK = os.path.join("_common", "disk.py")
WORK = "weitzman", "zipfile", "gzip.py", "pickle"  # whose lines are counted
PLACES = {"backtest.png": 2, "boxes.xlsx": 6, "report.xlsx": 4}  # slow to follow
MANY = 10  # places at which each of the others is killed


@cache
def forest(version: int, boxes_below: int = 20) -> Any:
    boxes = weitzman.Builder(outside=version).add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
    for i in range(boxes_below):
        boxes.add(f"B{i}", parent="A", cost=3, outcomes={1: {21: 0.5, -9: 0.5}, 900: {920: 1.0}})
    return boxes.build()


@cache
def solution(version: int) -> Any:
    return weitzman.solve(forest(version, 2))


@cache
def curves() -> Any:
    rows = [(run, step, (run * 7 % 5 + 1) * step / 10) for run in range(6) for step in (1, 2, 3)]
    named = dict(zip(("run", "step", "score"), zip(*rows, strict=True), strict=True))
    return learn.Curves.read({k: list(v) for k, v in named.items()}, cost=None)


@cache
def backtested(version: int) -> Any:
    methods = [x for x in backtest.all_methods() if "weitzman" in x.name.lower()]
    price = [20.0 * version]
    return backtest.backtest(curves(), price=price, repeats=1, orders=1, workers=1, methods=methods)


def explored(path: Path, version: int) -> None:
    OwnFile(str(path)).save(forest(version), anyway=True)


def checkpoint(path: Path, version: int) -> None:
    class Unheard(Reporter):
        def __call__(self, *_: Any, **__: Any) -> None:
            pass

    partial_fits(Unheard(Past(0)), lambda: [version] * 5000, len, len, steps=1, checkpoint=path)


WRITERS: dict[str, Write] = {
    **{f"boxes{x}": lambda path, v: weitzman.save(forest(v), path)
       for x in (".json", ".json.gz", ".wz", ".csv", ".tsv", ".xlsx")},
    "many.wz": lambda path, v: files.save_many([forest(v)] * 9, path),
    "template.csv": lambda path, _: write_template(str(path)),
    "template.xlsx": lambda path, _: write_template(str(path)),
    **{f"report{x}": lambda path, v: write_report(solution(v), path)
       for x in (".svg", ".csv", ".xlsx")},
    "explored.json": explored,
    "checkpoint.pickle": checkpoint,
    "backtest.png": lambda path, v: backtest_command._draw(backtested(v), str(path)),
}  # fmt: skip


def held(path: Path) -> Any:
    """What a file holds, without the time at which it was written."""
    if path.suffix != ".xlsx":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        if archive.testzip() is not None:
            raise zipfile.BadZipFile
        return [archive.read(x) for x in archive.namelist() if "sheet" in x]


def in_a_child(do: Callable[[], object]) -> int:
    """Do something in a process of its own; how it ended."""
    child = os.fork()
    if child == 0:
        try:
            do()
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
        os._exit(0)
    return child


class Killer:
    """Counts lines of what writes from the first of ``disk.py`` on; at the n-th there is an end."""

    def __init__(self, at: int) -> None:
        self.left, self.seen, self.begun = at, 0, False

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        name = frame.f_code.co_filename
        if not any(part in name for part in WORK):
            return None
        self.begun = self.begun or name.endswith(DISK)
        if self.begun and event == "line":
            self.seen += 1
            if self.seen == self.left:
                os.kill(os.getpid(), signal.SIGKILL)
        return self


def traced(write: Write, path: Path, at: int) -> int:
    """Write with a killer; how many lines there were."""
    killer = Killer(at)
    sys.settrace(killer)
    try:
        write(path, 2)
    finally:
        sys.settrace(None)
    return killer.seen


def kills(folder: Path) -> dict[str, Any]:
    """After a kill anywhere the file is the old one or the new one, and can be written again."""
    tried, wrong, old, new = 0, list[str](), 0, 0
    for name, write in WRITERS.items():
        path = folder / name
        write(path, 2)
        second = held(path)
        write(path, 1)
        first = held(path)
        lines = traced(write, folder / f"other-{name}", 0)
        places = PLACES.get(name, MANY)
        for i in range(places):
            write(path, 1)
            at = lines - i if i < places // 2 else 1 + (i - places // 2) * lines * 2 // places
            child = in_a_child(lambda write=write, path=path, at=at: traced(write, path, at))
            ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            found = _held_or_none(path)
            tried, old, new = tried + 1, old + (found == first), new + (found == second)
            if found not in (first, second) or ended not in (-signal.SIGKILL, 0):
                wrong.append(f"{name}, killed at line {at} of {lines}: {ended}")
    return {"tried": tried, "old": old, "new": new, "wrong": wrong}


def together(folder: Path, seconds: float = 0.2) -> dict[str, Any]:
    """Whoever reads sees a whole file of one or the other, at any time."""
    looks, wrong = 0, list[str]()
    for name, write in WRITERS.items():
        path, known = folder / name, []
        for version in (2, 1):
            write(path, version)
            known.append(held(path))
        end = time.monotonic() + seconds

        def again(version: int, write: Write = write, path: Path = path, end: float = end) -> None:
            while time.monotonic() < end:
                write(path, version)

        children = [in_a_child(lambda v=v: again(v)) for v in (1, 2)]
        while time.monotonic() < end:
            looks += 1
            if _held_or_none(path) not in known:
                wrong.append(f"{name}: half of it was seen")
        for child in children:
            if os.waitpid(child, 0)[1]:
                wrong.append(f"{name}: a writer failed")
        if _held_or_none(path) not in known:
            wrong.append(f"{name}: half of it is left")
    left = [x.name for x in folder.iterdir() if x.name.startswith(".")]
    return {"looks": looks, "wrong": wrong, "left": left}


def _held_or_none(path: Path) -> Any:
    try:
        return held(path)
    except (OSError, zipfile.BadZipFile, EOFError):
        return None


if __name__ == "__main__":
    result = {"kills": kills, "together": together}[sys.argv[2]](Path(sys.argv[1]))
    sys.stdout.write(json.dumps(result))
