"""The public names, the direction of imports, and a light core."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import weitzman

SOURCE = Path(weitzman.__file__).parent

# A module imports from its own layer's package and from layers above it in this list, never down.
LAYERS = [
    {"errors", "_types", "_optional", "_text", "_disk"},
    {"_kernels"},
    {"_pool", "_columns", "_rules"},
    {"model"},
    {"build", "interop", "io", "solution", "chains"},
    {"plan"},
    {"solve", "policy", "explain"},
    {"evaluate", "_layout"},
    {"simulation", "sensitivity", "search", "truncation"},
    {"strategies", "dags", "lazy", "learn"},
    {"tune"},
    {"replay"},
    {"plot", "_page"},
    {"report", "explore"},
    {"cli"},
]


def test_public_names_are_pinned():
    assert weitzman.__all__ == sorted(weitzman.__all__)
    assert len(set(weitzman.__all__)) == len(weitzman.__all__)
    for name in weitzman.__all__:
        assert getattr(weitzman, name) is not None


def module_of(path: Path) -> str:
    """The first part of a module's name within the package."""
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path):
    """Modules of the package that a file imports when it is imported itself."""
    depth = len(path.relative_to(SOURCE).parts)
    waiting = list(ast.parse(path.read_text("utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from (name.split(".")[0] for name in names)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting.extend(ast.iter_child_nodes(node))


def test_imports_point_one_way():
    rank = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        me = module_of(path)
        if me in ("__init__", "__main__"):
            continue
        assert me in rank, f"{me} has no layer: put it in LAYERS"
        for other in imports(path):
            if other != me and rank[other] > rank[me]:
                wrong.append(f"{path.relative_to(SOURCE)} imports {other}")
    assert wrong == []


def test_only_some_modules_touch_the_kernels():
    users = {
        module_of(path)
        for path in SOURCE.rglob("*.py")
        if "_kernels" in set(imports(path)) and module_of(path) != "_kernels"
    }
    assert users <= {
        "_pool", "_rules", "build", "chains", "dags", "evaluate", "model", "plan", "simulation",
        "solution", "strategies", "truncation",
    }  # fmt: skip


def test_the_core_needs_numpy_and_numba_only():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'networkx', 'scipy']));"
        "import weitzman;"
        "s = weitzman.solve(weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1));"
        "assert s.value == 4.0, s.value"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_loads_no_optional_library():
    code = (
        "import sys; import weitzman;"
        "assert not {'pandas', 'networkx', 'matplotlib', 'sqlite3', 'argparse'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
