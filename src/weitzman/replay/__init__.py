"""Back-test: what would each method have earned on past runs?"""

from ._peers import all_methods
from ._policies import FullRuns, IndexPolicy
from .bench import Bench
from .methods import Log, Method, Plan, Tuned
from .result import Replay
from .run import replay

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
