"""The capped-value recursion and what follows from it: solve, indices, exact evaluation, what if.

May import ``forest``, ``chains`` and what lies below them.
"""

from .._common.sharing import RayExecutor as RayExecutor
from .evaluation import Evaluation as Evaluation
from .evaluation import evaluate as evaluate
from .indices import Policy as Policy
from .payoff_tables import PayoffTable as PayoffTable
from .payoff_tables import payoff_table as payoff_table
from .solution import CappedLaw as CappedLaw
from .solution import Solution as Solution
from .solution import Status as Status
from .solver import solve as solve
from .what_if import BreakEven as BreakEven
from .what_if import Sensitivity as Sensitivity
from .what_if import break_even as break_even
from .what_if import sensitivity as sensitivity
