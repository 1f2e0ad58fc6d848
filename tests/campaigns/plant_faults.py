"""Plants faults in copies of the package and runs the tests against each: which are caught?

    python tests/campaigns/plant_faults.py 40 --seed 0 --jobs 2

A fault is one small change of the kind that slips in by hand: ``<`` for ``<=``, plus for minus, a
number off by one, ``and`` for ``or``, a condition turned around, a statement left out. Packages
take turns. A fault counts as caught if the tests of its package fail, or never end.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "weitzman"
TESTS = {  # where the tests of a package are, if not in the folder of its name
    "_kernels": ["kernels", "engine"],
    "_common": ["test_law.py", "test_numbers.py", "policy", "cli"],
    "show": ["show"],
    "engine": ["engine", "kernels"],
}
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


class Fault(NamedTuple):
    """A place in a file, and what stands there instead."""

    path: Path
    line: int
    change: str
    text: str


def places(tree: ast.Module) -> list[tuple[ast.AST, str]]:
    """Everything in functions that can be changed, with the kind of the change."""
    found: list[tuple[ast.AST, str]] = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            operation = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)
            if type(operation) in SWAPS and not isinstance(node, ast.UnaryOp):
                found.append((node, "swap"))
            elif isinstance(node, ast.Constant) and type(node.value) is int:
                found.append((node, "off by one"))
            elif isinstance(node, ast.If):
                found.append((node, "turned around"))
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                found.append((node, "left out"))
    return found


def planted(path: Path, pick: random.Random) -> Fault | None:
    """One fault in a file; comments and layout of the changed copy do not matter."""
    tree = ast.parse(path.read_text("utf-8"))
    found = places(tree)
    if not found:
        return None
    node, kind = pick.choice(found)
    before = ast.unparse(node).splitlines()[0]
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Constant):
        node.value += 1
    elif isinstance(node, ast.If):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Expr):
        node.value = ast.Constant(None)
    after = ast.unparse(ast.fix_missing_locations(node)).splitlines()[0]
    return Fault(path, node.lineno, f"{kind}: {before}  ->  {after}", ast.unparse(tree))


def caught_by(fault: Fault, scratch: Path, seconds: float) -> str:
    """The first test that fails with this fault, or nothing."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    shutil.copytree(SOURCE, folder / "weitzman", ignore=shutil.ignore_patterns("__pycache__"))
    part = fault.path.relative_to(SOURCE)
    (folder / "weitzman" / part).write_text(fault.text, "utf-8")
    package = part.parts[0] if len(part.parts) > 1 else "engine"
    tests = [str(ROOT / "tests" / name) for name in TESTS.get(package, [package])]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    # each copy compiles for itself: a fault in one kernel must not meet the code of another copy
    own = {"PYTHONPATH": str(folder), "WEITZMAN_CACHE_DIR": str(folder / "cache"), "CI": "true"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"(not done after {seconds:g} s)"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if done.returncode == 0:
        return ""
    failed = [x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0].split(" ", 1)[1] if failed else "(the tests do not start)"


def main() -> None:
    """Plant faults and print a table: the fault, and the test that caught it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("faults", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=600, help="for the tests of one fault")
    given = parser.parse_args()
    pick = random.Random(given.seed)
    packages = sorted({p.relative_to(SOURCE).parts[0] for p in SOURCE.glob("*/*.py")})
    faults: list[Fault] = []
    while len(faults) < given.faults:
        files = sorted((SOURCE / packages[len(faults) % len(packages)]).rglob("*.py"))
        fault = planted(pick.choice(files), pick)
        faults += [fault] if fault is not None else []
    with (
        tempfile.TemporaryDirectory() as scratch,
        ThreadPoolExecutor(given.jobs) as pool,
    ):
        answers = pool.map(lambda f: caught_by(f, Path(scratch), given.seconds), faults)
        caught = 0
        for fault, test in zip(faults, answers, strict=True):
            caught += bool(test)
            where = f"{fault.path.relative_to(SOURCE)}:{fault.line}"
            sys.stdout.write(f"{where}\n    {fault.change}\n    {test or 'NOT CAUGHT'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{caught} of {len(faults)} faults caught\n")


if __name__ == "__main__":
    main()
