"""Back-test: what would each method have earned on past runs?

May import ``tune``, ``learn`` and what lies below them.
"""

from .backtest import replay
from .bench import Bench
from .index_methods import FullRuns, IndexPolicy
from .methods import Log, Method, Plan, Tuned
from .peers import all_methods
from .replay_result import Replay

__all__ = [
    "Bench",
    "FullRuns",
    "IndexPolicy",
    "Log",
    "Method",
    "Plan",
    "Replay",
    "Tuned",
    "all_methods",
    "replay",
]
