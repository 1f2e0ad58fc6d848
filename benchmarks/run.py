"""Run the benchmarks: ``python benchmarks/run.py [--quick] [--only NAME] [--write]``."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

for _library in ("OPENBLAS", "MKL", "OMP"):  # before NumPy is loaded: one thread each
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import cases  # noqa: E402
from benchmarks.measure import ROOT, Table, machine  # noqa: E402

RESULTS = ROOT / "benchmarks" / "RESULTS.md"

CASES: dict[str, tuple[str, Callable[[cases.Scale], list[Table]]]] = {
    "lines": ("Many different lines", cases.lines),
    "trees": ("One forest of random trees", cases.trees),
    "growth": ("Growth", cases.growth),
    "memory": ("Memory", cases.memory),
    "line": ("One line, against the user's own loop", cases.one_line),
    "peers": ("What people use today", cases.others),
    "counts": ("Copies given by counts", cases.counts),
    "evaluate": ("What a policy will do, exactly", cases.evaluation),
    "startup": ("Start-up", cases.startup),
    "simulation": ("Simulation", cases.simulation),
}

# What a reader should know about a result; above all, what limits it where an aim is missed.
REMARKS: dict[str, str] = {
    "lines": (
        "The aim of 2.5 times the bare products is missed, by more for fewer states. A "
        "product of 8 by 8 with some sixty columns takes 0.15 µs, and nothing else that a box"
        " needs (merging breakpoints, finding eight indices, capping, choosing what to keep) "
        "is a long loop: it is a few hundred short steps with branches that the processor "
        "cannot foresee."
    ),
    "trees": (
        "Boxes of two to eight states are too small for the product to matter: a box needs "
        "some 900 operations of it and, on average, 0.4 joins, which the bare products leave "
        "out."
    ),
    "growth": (
        "What exceeds ten is memory: a million boxes no longer fit into the caches of the "
        "processor."
    ),
    "memory": (
        "Most of what is added for trees is the list of operations, 80 bytes each, of which "
        "there are 1.4 a box."
    ),
    "line": "",
    "peers": "",
    "counts": "",
    "evaluate": (
        "Only the best trees are looked at, until the next one would be opened with a probability "
        "below 1e-18; here those are few. A forest that is one tree is looked at whole."
    ),
    "startup": "",
    "simulation": "",
}

_INTRODUCTION = """\
# How fast it is

Written by `python benchmarks/run.py --write`. All times in a table come from one run on one
machine, in which the contestants took turns; each is the least wall time of {repeats} turns after
one that was not counted (it compiles). A ratio is of two such times. The answers were asserted in
the same run: values and indices against independent computations, see `benchmarks/cases.py`.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases asked for, print each as it is done, and write them if asked."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.quick and options.write:
        parser.error("--quick says nothing about speed, so it is not written")
    scale = cases.QUICK if options.quick else cases.Scale()
    scale = replace(scale, python=options.python, repeats=options.repeats or scale.repeats)
    wanted = options.only or list(CASES)
    header = _header(scale)
    print(header)
    done: dict[str, str] = {}
    for name in wanted:
        start = time.perf_counter()
        try:
            done[name] = _section(name, CASES[name][1](scale))
        except Exception:  # a wrong answer in one case should not lose the others
            traceback.print_exc()
            continue
        print(done[name])
        print(f"({name}: {time.perf_counter() - start:.1f} s in all)\n", flush=True)
    if options.write:
        RESULTS.write_text(assemble(header, done, RESULTS), encoding="utf-8")
        print(f"wrote {RESULTS}")
    failed = [name for name in wanted if name not in done]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it all still run?")
    parser.add_argument("--only", action="append", choices=list(CASES), help="may be repeated")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--repeats", type=int, help="turns of each contestant")
    parser.add_argument(
        "--python", default=sys.executable, help="an interpreter that has the peers installed"
    )
    return parser


def _header(scale: cases.Scale) -> str:
    about = "\n".join(f"- {key}: {value}" for key, value in machine().items())
    small = "\n**Small sizes (`--quick`): these figures say nothing about speed.**\n"
    told = _INTRODUCTION.format(repeats=scale.repeats) + (small if scale.quick else "")
    return f"{told}\n{about}\n"


def _section(name: str, tables: Sequence[Table]) -> str:
    title = CASES[name][0]
    busy = f"{os.getloadavg()[0]:.1f}"
    parts = [f"## {title}", *(table.markdown() for table in tables)]
    if REMARKS[name]:
        parts.append(REMARKS[name])
    parts.append(f"*Measured {date.today()}; load of the machine at the end {busy}.*")
    return "\n\n".join(parts) + "\n"


def assemble(header: str, done: dict[str, str], path: Path) -> str:
    """The whole file: new sections, and old ones of the same machine that were not run again."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    kept = dict(re.findall(r"<!-- (\w+) -->\n(.*?)(?=\n<!-- |\Z)", old, re.DOTALL))
    if not old.startswith(header):
        kept = {}
    sections = {**kept, **done}
    return header + "".join(f"\n<!-- {n} -->\n{sections[n]}" for n in CASES if n in sections)


if __name__ == "__main__":
    sys.exit(main())
