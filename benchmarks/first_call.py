"""The first call of each command, when the folder for compiled code is still empty.

``python -m benchmarks.first_call A B`` checks out both commits and runs one command after the
other, each in a process of its own, as somebody would who tries the package. The folder for
compiled code is empty at first, and kept from one command to the next. It prints processor time and
wall time of whole processes, the interpreter included. The commands must print the same numbers
under both commits.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from .compare import ROOT, checkout
from .measure import Table, put

EXPLORER = (
    "import json, sys; from weitzman.show.explore.workbench import Workbench;"
    "w = Workbench(sys.argv[1]); ask = json.dumps({'document': w.start()['document']}).encode();"
    "found = w.answer('solve', ask); found.pop('seconds', None); found.pop('ms', None);"
    "print(found['value'], found['opened'], found['index'])"
)
LARGE = (
    "import numpy as np, weitzman; r = np.random.default_rng(1); n, k = 2000, 8;"
    "law = r.dirichlet(np.ones(k), (n, k)); law[0] = law[0, :1];"
    "f = weitzman.Forest.from_arrays(parent=np.arange(n) - 1, cost=r.uniform(0.01, 0.1, n),"
    "rewards=np.arange(k), law=law); print(weitzman.solve(f, threads=1).value)"
)
SMALL = (
    "import weitzman; total = 0.0\n"
    "for i in range(3000):\n"
    "    f = weitzman.line([[0.5, 0.3, 0.2]], rewards=[0, 4, 9], cost=1 + i / 5000, count=3)\n"
    "    total += weitzman.solve(f, threads=1).value\n"
    "print(total)"
)
COMMANDS = {
    "demo": ["-m", "weitzman", "demo"],
    "solve": ["-m", "weitzman", "solve", "FILE", "--json"],
    "evaluate": ["-m", "weitzman", "evaluate", "FILE", "--json"],
    "explorer, first answer": ["-c", EXPLORER, "FILE"],
    "report": ["-m", "weitzman", "report", "FILE", "-o", "REPORT"],
    "simulate, 100,000 episodes": ["-m", "weitzman", "simulate", "FILE", "--json"],
    "compare, 100,000 episodes": ["-m", "weitzman", "compare", "FILE", "--json"],
    "3,000 small solves": ["-c", SMALL],
    "a line of 2,000 boxes, 8 states": ["-c", LARGE],
}
GROWN = ("report", "compare, 100,000 episodes")  # later commits say more than the first one did
VALUE = "94.325"  # of the demo
BEYOND = ("3,000 small solves", "a line of 2,000 boxes, 8 states")  # not what a first look does


class Run(NamedTuple):
    """One command: its times, and the numbers that it printed."""

    processor: float
    wall: float
    numbers: list[str]


def run(command: Sequence[str], source: Path, folder: Path) -> Run:
    """Run Python on a checkout; compiled code is kept in ``folder``."""
    boxes, report = folder / "boxes.json", folder / "report.html"
    if not boxes.exists():
        folder.mkdir(parents=True, exist_ok=True)
        boxes.write_text(json.dumps(_problem()))
    full = [{"FILE": str(boxes), "REPORT": str(report)}.get(word, word) for word in command]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WEITZMAN", "NUMBA"))}
    env |= {"PYTHONPATH": str(source / "src"), "WEITZMAN_CACHE_DIR": str(folder / "cache")}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *full], env=env, capture_output=True, text=True, check=True, timeout=590
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    words = report.read_text("utf-8") if "REPORT" in command else done.stdout
    return Run(spent, wall, re.findall(r"-?\d+\.\d+", _without_times(words)))


def _without_times(words: str) -> str:
    """What a command found, without how long that took and what it may paint."""
    words = re.sub(r"<style.*?</style>|<script.*?</script>|<svg.*?</svg>", "", words, flags=re.S)
    return re.sub(r'"(seconds|ms|version)": [^,}]+|[\d.]+ (s|ms)\b', "", words)


def _problem() -> dict[str, object]:
    """The boxes of the demo."""
    done = subprocess.run(
        [sys.executable, "-m", "weitzman", "demo", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, object] = json.loads(done.stdout)
    return found


def side_by_side(a: str, b: str, names: Sequence[str]) -> Table:
    """A row for each command, and one for a first look at everything."""
    table = Table(["", f"`{a}`", f"`{b}`"])
    with checkout(a) as one, checkout(b) as other, tempfile.TemporaryDirectory() as room:
        sums = [0.0, 0.0]
        for name in names:
            found = [
                run(COMMANDS[name], source, Path(room) / side)
                for side, source in (("a", one), ("b", other))
            ]
            assert _agree(name, *(x.numbers for x in found)), name
            table.rows.append([name, *map(_cell, found)])
            print(table.rows[-1], flush=True)
            if name not in BEYOND:
                sums = [total + x.processor for total, x in zip(sums, found, strict=True)]
    table.rows.append(["a first look: all but the last two", *(f"{x:.1f}" for x in sums)])
    table.notes.append(
        f"Seconds of processor time (wall time). *Measured {date.today()}; load of the machine at "
        f"the end {os.getloadavg()[0]:.1f}.*"
    )
    return table


def _agree(name: str, one: list[str], other: list[str]) -> bool:
    """Whether two commits say the same, or at least the same value where the later says more."""
    return VALUE in one and VALUE in other if name in GROWN else one == other


def _cell(found: Run) -> str:
    return f"{found.processor:.1f} ({found.wall:.1f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument("--only", action="append", choices=list(COMMANDS))
    parser.add_argument("--write", action="store_true", help="write first_call.md")
    given = parser.parse_args(arguments)
    found = side_by_side(given.a, given.b, given.only or list(COMMANDS)).markdown()
    print(found)
    if given.write:
        put(ROOT / "benchmarks" / "first_call.md", "table", found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
