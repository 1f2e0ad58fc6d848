"""Back-test: what would each method have earned on past runs?

May import ``tune``, ``learn`` and what lies below them.
"""

from .backtest import replay
from .bench import Bench
from .index_methods import FullRuns, IndexPolicy
from .methods import Log, Method, MethodPlan, Tuned
from .peers import all_methods
from .replay_result import Replay

__all__ = [
    "Bench",
    "FullRuns",
    "IndexPolicy",
    "Log",
    "Method",
    "MethodPlan",
    "Replay",
    "Tuned",
    "all_methods",
    "replay",
]
