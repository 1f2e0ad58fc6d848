"""Back-test: what would each method have earned on past runs?

May import ``tune``, ``learn`` and what lies below them.
"""

from .backtest_result import Backtest
from .bench import Bench
from .driver import backtest
from .methods import Log, Method, MethodPlan, Tuned
from .peers import FullRuns, IndexPolicy, all_methods

__all__ = [
    "Backtest",
    "Bench",
    "FullRuns",
    "IndexPolicy",
    "Log",
    "Method",
    "MethodPlan",
    "Tuned",
    "all_methods",
    "backtest",
]
