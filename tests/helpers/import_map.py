"""Who imports whom in the package, read from the source, also inside functions and by string."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import weitzman

SOURCE = Path(weitzman.__file__).parent


class Edge(NamedTuple):
    """One import: modules by their dotted names inside the package."""

    source: str
    target: str
    typing_only: bool

    @property
    def room(self) -> str:
        return self.source.split(".")[0]

    @property
    def target_room(self) -> str:
        return self.target.split(".")[0]


@cache
def modules() -> dict[str, Path]:
    """Files by module name; ``""`` and ``__main__`` are left out, as they are the doors."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name not in ("", "__main__"):
            found[name] = path
    return found


def packages() -> dict[str, ModuleType]:
    """The packages, imported."""
    names = [name for name, path in modules().items() if path.name == "__init__.py"]
    found = {name: importlib.import_module(f"weitzman.{name}") for name in names}
    return {"": weitzman, **found}


def children(package: str) -> list[str]:
    """Names of the modules that lie directly in a package."""
    return [
        name.rsplit(".", 1)[-1] for name in modules() if name.rpartition(".")[0] == package and name
    ]


@cache
def edges() -> tuple[Edge, ...]:
    """All imports between modules of the package."""
    return tuple(edge for name, path in modules().items() for edge in _imports(name, path))


def _imports(name: str, path: Path):
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    strings = {f"weitzman.{other}": other for other in modules()}

    def visit(node: ast.AST, typing_only: bool):
        for child in ast.iter_child_nodes(node):
            typing = typing_only or (
                isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            )
            if isinstance(child, ast.ImportFrom):
                for target in _targets(child, package):
                    if target != name:
                        yield Edge(name, target, typing)
            if isinstance(child, ast.Call) and "import_module" in ast.dump(child.func):
                for word in ast.walk(child):
                    if isinstance(word, ast.Constant) and word.value in strings:
                        yield Edge(name, strings[word.value], typing)
            yield from visit(child, typing)

    yield from visit(ast.parse(path.read_text("utf-8")), False)


def _targets(node: ast.ImportFrom, package: list[str]):
    if node.level:
        base = package[: len(package) - node.level + 1]
        base = [*base, *(node.module.split(".") if node.module else [])]
    elif node.module and node.module.split(".")[0] == "weitzman":
        base = node.module.split(".")[1:]
    else:
        return
    for alias in node.names:
        longer = ".".join([*base, alias.name])
        shorter = ".".join(base)
        if longer in modules():
            yield longer
        elif shorter in modules():
            yield shorter


def cycles() -> list[list[str]]:
    """Groups of modules that import each other, imports for type checkers alone left out."""
    import networkx

    graph = networkx.DiGraph()
    graph.add_edges_from((e.source, e.target) for e in edges() if not e.typing_only)
    return [
        sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1
    ]
