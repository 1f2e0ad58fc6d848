"""Questions around a search: a budget instead of prices, what information is worth, studies.

``frontier`` and ``within_budget`` put a limit on the mean spend, ``cheapest`` finds the least spend
that reaches a target, ``capped`` limits the spend of every single run. ``value_of_knowing`` and
``tornado`` report what information is worth and which numbers matter, ``solve_many`` solves a
whole study, ``two_way``, ``scenarios`` and ``uncertainty`` what ranges of numbers do,
``risk_sweep`` how a careful searcher decides. ``commit`` decides between ways to look into a box.
"""

from .budget import CappedSpend as CappedSpend
from .budget import Corner as Corner
from .budget import Mixture as Mixture
from .budget import SpendFrontier as SpendFrontier
from .budget import capped as capped
from .budget import cheapest as cheapest
from .budget import frontier as frontier
from .budget import within_budget as within_budget
from .information import Commitment as Commitment
from .information import Knowing as Knowing
from .information import commit as commit
from .information import value_of_knowing as value_of_knowing
from .information import value_of_tests as value_of_tests
from .robustness import Swing as Swing
from .robustness import Tornado as Tornado
from .robustness import Turning as Turning
from .robustness import tornado as tornado
from .robustness import turning_points as turning_points
from .sweeps import RiskSweep as RiskSweep
from .sweeps import Scenarios as Scenarios
from .sweeps import SolvedMany as SolvedMany
from .sweeps import TwoWay as TwoWay
from .sweeps import Uncertainty as Uncertainty
from .sweeps import as_ranges as as_ranges
from .sweeps import risk_sweep as risk_sweep
from .sweeps import scenarios as scenarios
from .sweeps import solve_many as solve_many
from .sweeps import two_way as two_way
from .sweeps import uncertainty as uncertainty
