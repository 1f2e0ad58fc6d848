"""Plants faults in copies of the package and runs tests against each: which are caught?

    python tests/campaigns/plant_faults.py 40
    python tests/campaigns/plant_faults.py 40 --tree ../other-checkout
    python tests/campaigns/plant_faults.py 40 --seed 1 --list others.json

A fault is one small change of the kind that slips in by hand: ``<`` for ``<=``, plus for minus, a
number off by one, ``and`` for ``or``, a condition turned around, a statement left out. Packages
take turns. ``--list`` names a file that keeps the faults, so that a later state of package and
tests meets the same ones; a fault whose place is gone is replaced by another of its package.

Each fault meets the test files that concern it: those that name its function, its module and what
else the module defines most often, `FILES` of them, first without slow tests, then those.
It counts as caught if a test fails, or never ends.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FILES = 4
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


class Fault(NamedTuple):
    """A place in a function, the how-manieth of its text there, and what stands there instead."""

    package: str
    module: str
    function: str
    kind: str
    before: str
    number: int
    after: str


def places(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, str]]:
    """Everything in a function that can be changed, with the kind of the change."""
    for node in ast.walk(function):
        operation = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)
        if type(operation) in SWAPS and not isinstance(node, ast.UnaryOp):
            yield node, "swap"
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield node, "off by one"
        elif isinstance(node, ast.If):
            yield node, "turned around"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, "left out"


def first_line(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node)).splitlines()[0]


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def change(node: ast.AST) -> None:
    """Put the fault in place."""
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


def picked(source: Path, package: str, pick: random.Random) -> Fault | None:
    """A random fault in a random file of a package."""
    path = pick.choice(sorted((source / package).rglob("*.py")))
    tree = ast.parse(path.read_text("utf-8"))
    found = [(f, node, kind) for f in functions(tree) for node, kind in places(f)]
    if not found:
        return None
    function, node, kind = pick.choice(found)
    before = first_line(node)
    same = [x for x, k in places(function) if k == kind and first_line(x) == before]
    number = next(i for i, x in enumerate(same) if x is node)
    change(node)
    module = path.relative_to(source).as_posix()
    return Fault(package, module, function.name, kind, before, number, first_line(node))


def planted(source: Path, fault: Fault) -> tuple[Path, str] | None:
    """The file that holds the place of a fault, with the fault in it; modules may have moved."""
    paths = [source / fault.module, *sorted((source / fault.package).rglob("*.py"))]
    for path in filter(Path.exists, paths):
        tree = ast.parse(path.read_text("utf-8"))
        for function in functions(tree):
            if function.name == fault.function:
                nodes = [x for x, kind in places(function) if kind == fault.kind]
                same = [x for x in nodes if first_line(x) == fault.before]
                if len(same) > fault.number:
                    change(same[fault.number])
                    return path, ast.unparse(ast.fix_missing_locations(tree))
    return None


@cache
def texts(tests: Path) -> dict[Path, str]:
    """All test files that need no browser."""
    paths = [x for x in sorted(tests.rglob("test_*.py")) if "browser" not in x.parts]
    return {path: path.read_text("utf-8") for path in paths}


def concerned(tests: Path, path: Path, fault: Fault) -> list[Path]:
    """The test files that name the place of a fault most often."""
    tree = ast.parse(path.read_text("utf-8"))
    defined = {x.name for x in tree.body if isinstance(x, (ast.FunctionDef, ast.ClassDef))}
    weights = dict.fromkeys(defined, 1.0) | {fault.function: 4.0, path.stem: 4.0}
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(x)}(?!\w)" for x in sorted(weights)))

    found = {file: Counter(pattern.findall(text)) for file, text in texts(tests).items()}
    rarity = {
        name: weights[name] / max(1, sum(name in x for x in found.values())) for name in weights
    }

    near = {"kernels", "engine"} if fault.package == "_kernels" else {fault.package}

    def score(file: Path) -> float:
        named = sum(rarity[name] * min(times, 5) for name, times in found[file].items())
        beside = 2 * (file.parent.name in near)
        return named + beside + 2 * (file.stem == f"test_{path.stem}")

    scores = {file: score(file) for file in found}
    return sorted(scores, key=lambda file: -scores[file])[:FILES]


def caught_by(tree: Path, fault: Fault, scratch: Path, seconds: float) -> str:
    """The first test that fails with this fault, or nothing."""
    source = tree / "src" / "weitzman"
    place = planted(source, fault)
    assert place is not None
    folder = Path(tempfile.mkdtemp(dir=scratch))
    shutil.copytree(source, folder / "weitzman", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "weitzman" / place[0].relative_to(source)).write_text(place[1], "utf-8")
    files = [str(x) for x in concerned(tree / "tests", place[0], fault)]
    # compiled code depends on the sources of the kernels alone: most faults share it
    kernels = folder / "cache" if fault.package == "_kernels" else scratch / "cache"
    own = {"PYTHONPATH": str(folder), "WEITZMAN_CACHE_DIR": str(kernels), "CI": "true"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        for which in ("not slow", "slow"):
            done = subprocess.run(
                [*command, "-m", which, *files], cwd=tree, env={**os.environ, **own},
                capture_output=True, text=True, timeout=seconds, check=False,
            )  # fmt: skip
            if done.returncode not in (0, 5):  # 5: no such tests
                failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
                end = f"(end with {done.returncode})"
                return failed[0] if failed else end
    except subprocess.TimeoutExpired:
        return f"(not done after {seconds:g} s)"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ""


def chosen(given: Any, source: Path) -> list[Fault]:
    """The faults of the list, if there is one, and random ones for those that are missing."""
    kept = given.list
    listed = json.loads(kept.read_text("utf-8")) if kept.exists() else []
    packages = sorted({p.relative_to(source).parts[0] for p in source.glob("*/*.py")})
    pick = random.Random(given.seed)
    faults: list[Fault] = []
    while len(faults) < given.faults:
        at = len(faults)
        fault = Fault(*listed[at]) if at < len(listed) else None
        package = packages[at % len(packages)] if fault is None else fault.package
        while fault is None or planted(source, fault) is None:
            fault = picked(source, package, pick)
        faults.append(fault)
    rows = (json.dumps(fault, ensure_ascii=False) for fault in faults)
    kept.write_text("[\n" + ",\n".join(rows) + "\n]\n", "utf-8")
    return faults


def main() -> None:
    """Plant faults and print a table: the fault, and the test that caught it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("faults", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", type=Path, default=Path(__file__).with_name("faults.json"))
    parser.add_argument("--tree", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=600, help="for the tests of one fault")
    given = parser.parse_args()
    faults = chosen(given, given.tree / "src" / "weitzman")
    caught = 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(given.jobs) as pool:
        scratch = Path(name)
        answers = pool.map(lambda x: caught_by(given.tree, x, scratch, given.seconds), faults)
        sys.stdout.write("| where | fault | caught by |\n|---|---|---|\n")
        for fault, test in zip(faults, answers, strict=True):
            caught += bool(test)
            where = f"`{fault.module}`, `{fault.function}`"
            what = f"{fault.kind}: `{fault.before}` → `{fault.after}`".replace("|", "\\|")
            test = f"`{test.rpartition('/')[2]}`" if test else "**nothing**"
            sys.stdout.write(f"| {where} | {what} | {test} |\n")
            sys.stdout.flush()
    sys.stdout.write(f"\n{caught} of {len(faults)} faults caught\n")


if __name__ == "__main__":
    main()
