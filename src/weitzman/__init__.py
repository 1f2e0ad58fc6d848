"""Optimal search when looking costs something.

Boxes on a forest: opening one costs something and shows a state, which has a reward and decides the
chances of the boxes behind it. Stop at any time with the best reward found. ``solve`` gives the
value of the best policy and the index of every box; ``evaluate`` and ``simulate`` predict
what it will do; ``Search`` runs it on real boxes.

The rest is in packages: ``weitzman.bounds``, ``chains``, ``engine``, ``errors``, ``files``,
``forest``, ``learn``, ``plot``, ``policy``, ``questions``, ``backtest``, ``strategies``, ``tune``.

>>> import weitzman
>>> chest = weitzman.Builder()
>>> _ = chest.add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
>>> _ = chest.add("B", parent="A", cost=3, outcomes={1: {21: .5, -9: .5}, 900: {920: .5, 890: .5}})
>>> _ = chest.add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
>>> solution = weitzman.solve(chest.build())
>>> round(solution.value, 3), round(solution.index("B", 900), 3)
(94.325, 914.0)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import WeitzmanError

if TYPE_CHECKING:
    from . import backtest, bounds, chains, engine, errors, files, forest, learn, policy, questions
    from . import examples as examples
    from . import strategies as strategies
    from . import tune as tune
    from .bounds import LazyForest, LazySearch, Node, truncate
    from .chains import Chain, solve_line
    from .engine import Policy, Solution, Status, break_even, evaluate, sensitivity, solve
    from .files import load, save
    from .forest import Builder, Forest, line, side_by_side
    from .policy import Search, describe, explain, simulate
    from .show import plot
    from .show.report import write_report
    from .strategies import compare

__version__ = "0.1.0"

# each name is imported when it is first used: the command starts without NumPy and Numba
_NAMES = {
    "bounds": "LazyForest LazySearch Node truncate",
    "chains": "Chain solve_line",
    "engine": "Policy Solution Status break_even evaluate sensitivity solve",
    "files": "load save",
    "forest": "Builder Forest line side_by_side",
    "policy": "Search describe explain simulate",
    "show": "plot",
    "show.report": "write_report",
    "strategies": "compare",
}
_LATER = {name: package for package, names in _NAMES.items() for name in names.split()}
_ROOMS = (
    "bounds", "chains", "engine", "errors", "examples", "files", "forest", "learn", "policy",
    "questions", "backtest", "strategies", "tune",
)  # fmt: skip

__all__ = [
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
    "backtest",
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


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    package = import_module(f".{_LATER[name]}", __name__)
    value = import_module(".show.plot", __name__) if name == "plot" else getattr(package, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
