"""The public names, the direction of imports, and a light core."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import import_map
import pytest

import weitzman

# A package may import the packages before it in this list, never one after it.
ROOMS = [
    "errors", "_common", "_kernels", "forest", "examples", "chains", "files", "engine", "policy",
    "bounds", "strategies", "questions", "learn", "tune", "backtest", "show", "cli",
]  # fmt: skip

PUBLIC = [
    "Builder",
    "Chain",
    "Forest",
    "LazyForest",
    "LazySearch",
    "Node",
    "Policy",
    "Search",
    "Solution",
    "Status",
    "WeitzmanError",
    "__version__",
    "bounds",
    "break_even",
    "chains",
    "compare",
    "describe",
    "engine",
    "errors",
    "evaluate",
    "examples",
    "explain",
    "files",
    "forest",
    "learn",
    "line",
    "load",
    "plot",
    "policy",
    "questions",
    "backtest",
    "save",
    "sensitivity",
    "side_by_side",
    "simulate",
    "solve",
    "solve_line",
    "strategies",
    "truncate",
    "tune",
    "write_report",
]


def test_public_names_are_pinned():
    assert weitzman.__all__ == sorted(PUBLIC)
    for name in weitzman.__all__:
        assert getattr(weitzman, name) is not None


def test_no_module_is_hidden_by_a_function_of_its_name():
    for name, module in import_map.packages().items():
        for child in import_map.children(name):
            found = getattr(module, child, None)
            assert not callable(found), f"{name}.{child} is a module and a function"


def test_packages_import_one_way():
    rank = {name: i for i, name in enumerate(ROOMS)}
    wrong = [
        f"{edge.source} imports {edge.target}"
        for edge in import_map.edges()
        if edge.room != edge.target_room and rank[edge.target_room] > rank[edge.room]
    ]
    assert wrong == []


def test_modules_have_no_import_cycle():
    """Counting imports inside functions, too; those for type checkers alone do not run."""
    assert import_map.cycles() == []


def test_only_rooms_that_compute_touch_the_kernels():
    users = {edge.room for edge in import_map.edges() if edge.target_room == "_kernels"}
    assert users <= {
        "_kernels", "bounds", "chains", "engine", "forest", "learn", "policy", "questions",
        "strategies",
    }  # fmt: skip


def test_no_room_reaches_into_a_private_module_of_another():
    wrong = [
        f"{edge.source} imports {edge.target}"
        for edge in import_map.edges()
        if edge.room != edge.target_room
        and any(part.startswith("_") for part in edge.target.split(".")[1:])
    ]
    assert wrong == []


def test_every_module_has_a_name_of_its_own():
    names = Counter(module.rsplit(".", 1)[-1] for module in import_map.modules())
    assert [name for name, count in names.items() if count > 1] == []


def test_every_class_has_a_name_of_its_own():
    """A private class may share its name with none either: readers search for names."""
    found = Counter(
        node.name
        for path in Path(weitzman.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in found.items() if count > 1] == []


@pytest.mark.parametrize("missing", ["pandas", "networkx", "scipy"])
def test_the_core_needs_numpy_and_numba_only(missing):
    code = (
        f"import sys; sys.modules[{missing!r}] = None;"
        "import weitzman;"
        "s = weitzman.solve(weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1));"
        "assert s.value == 4.0, s.value"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_loads_no_optional_library():
    code = (
        "import sys; sys.modules['coverage'] = None;"  # Numba imports it if it can
        "import weitzman;"
        "assert not {'pandas', 'networkx', 'matplotlib', 'sqlite3', 'argparse'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
