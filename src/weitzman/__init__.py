"""Optimal search when looking costs something.

Boxes on a forest: opening one costs something and shows a state, which has a reward and decides the
chances of the boxes behind it. Stop at any time with the best reward found. ``solve`` gives the
value of the best policy and the index of every box; ``evaluate`` and ``simulate`` tell beforehand
what it will do; ``Policy.start`` runs it.

>>> import weitzman
>>> chest = weitzman.Builder()
>>> _ = chest.add("A", cost=20, rewards={900: 0.1, 1: 0.9})
>>> _ = chest.add("B", parent="A", cost=3, rewards={1: {21: .5, -9: .5}, 900: {920: .5, 890: .5}})
>>> _ = chest.add("C", cost=5, rewards={50: 0.5, 10: 0.5})
>>> solution = weitzman.solve(chest.build())
>>> round(solution.value, 3), round(solution.index("B", 900), 3)
(94.325, 914.0)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .build import Builder, Discretized, discretize, expand, line, lines, to_scipy
from .errors import (
    InvalidAnswer,
    InvalidArgument,
    InvalidFile,
    InvalidForest,
    JournalError,
    TooLarge,
    UnknownName,
    WeitzmanError,
)
from .evaluate import Evaluation, evaluate
from .explain import describe, explain
from .interop import from_networkx, from_pandas, to_networkx, to_pandas
from .io import load, save
from .model import Forest
from .policy import Policy
from .sensitivity import BreakEven, Sensitivity, break_even, sensitivity
from .solution import Solution, Status
from .solve import solve

if TYPE_CHECKING:
    from . import chains, learn, plot, replay, strategies, tune
    from .chains import Chain, EndlessLine, solve_line
    from .dags import Dag, Spanning, spanning_policy
    from .dags.exhaustive import Exhaustive, exhaustive
    from .lazy import LazyForest, LazySearch, LazySolution, Node
    from .report import write_report
    from .search import Box, Search
    from .simulation import Simulation, simulate
    from .strategies import Comparison, compare
    from .truncation import Truncation, truncate

# what not everybody needs is imported when it is first used
_LATER = {
    "Box": "search",
    "Chain": "chains",
    "Comparison": "strategies",
    "Dag": "dags",
    "EndlessLine": "chains",
    "Exhaustive": "dags",
    "LazyForest": "lazy",
    "LazySearch": "lazy",
    "LazySolution": "lazy",
    "Node": "lazy",
    "Search": "search",
    "Simulation": "simulation",
    "Spanning": "dags",
    "Truncation": "truncation",
    "compare": "strategies",
    "exhaustive": "dags",
    "simulate": "simulation",
    "solve_line": "chains",
    "spanning_policy": "dags",
    "truncate": "truncation",
    "write_report": "report",
}

__all__ = [
    "Box",
    "BreakEven",
    "Builder",
    "Chain",
    "Comparison",
    "Dag",
    "Discretized",
    "EndlessLine",
    "Evaluation",
    "Exhaustive",
    "Forest",
    "InvalidAnswer",
    "InvalidArgument",
    "InvalidFile",
    "InvalidForest",
    "JournalError",
    "LazyForest",
    "LazySearch",
    "LazySolution",
    "Node",
    "Policy",
    "Search",
    "Sensitivity",
    "Simulation",
    "Solution",
    "Spanning",
    "Status",
    "TooLarge",
    "Truncation",
    "UnknownName",
    "WeitzmanError",
    "break_even",
    "chains",
    "compare",
    "describe",
    "discretize",
    "evaluate",
    "exhaustive",
    "expand",
    "explain",
    "from_networkx",
    "from_pandas",
    "learn",
    "line",
    "lines",
    "load",
    "plot",
    "replay",
    "save",
    "sensitivity",
    "simulate",
    "solve",
    "solve_line",
    "spanning_policy",
    "strategies",
    "to_networkx",
    "to_pandas",
    "to_scipy",
    "truncate",
    "tune",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in ("chains", "learn", "plot", "replay", "strategies", "tune"):
        return import_module(f".{name}", __name__)
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
