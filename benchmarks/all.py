"""All benchmarks that write a page, one after the other: ``python -m benchmarks.all``.

Each is a process of its own and writes its own page, so ``--only NAME`` (may be repeated) measures
a part again. The machine should have nothing else to do. About forty minutes in all. What fails is
told at the end, and does not stop the others.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence

from .measure import ROOT

BEFORE_TWINS = "7193f5b"  # the commit before kernels had a form in plain Python
COMMANDS: dict[str, list[str]] = {
    "results": ["-m", "benchmarks.run", "--write"],
    "roofline": ["-m", "benchmarks.roofline", "--write"],
    "terms": ["-m", "benchmarks.terms", "--write"],
    "larger": ["-m", "benchmarks.larger", "10000000", "--write"],
    "first_call": ["-m", "benchmarks.first_call", BEFORE_TWINS, "HEAD", "--write"],
    "dask": ["-m", "benchmarks.clusters", "dask", "--write"],
    "ray": ["-m", "benchmarks.clusters", "ray", "--write"],
    "paper": ["-m", "benchmarks.clusters", "paper", "--write"],
    "scale": ["-m", "benchmarks.scale", "--write"],
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and tell how long each took and which failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(COMMANDS))
    given = parser.parse_args(arguments)
    failed = []
    for name in given.only or list(COMMANDS):
        start = time.perf_counter()
        print(f"== {name}", flush=True)
        done = subprocess.run([sys.executable, *COMMANDS[name]], cwd=ROOT, check=False)
        print(f"== {name}: {time.perf_counter() - start:.0f} s", flush=True)
        if done.returncode != 0:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
