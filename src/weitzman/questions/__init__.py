"""Questions around a search: a budget instead of prices, what information is worth, choices.

``frontier`` and ``within_budget`` put a limit on the mean spend, ``cheapest`` finds the least spend
that reaches a target, ``within_budgets`` limits several resources, ``capped`` the spend of every
single run. ``value_of_knowing`` and ``tornado`` tell what information is worth and which numbers
matter, ``risk_sweep`` tells how a careful searcher decides. ``commit`` decides between several ways
to look into a box, with a bound.
"""

from .budget import Corner, Mixture, SpendFrontier, cheapest, frontier, within_budget
from .caution import RiskSweep, risk_sweep
from .choices import Commitment, commit
from .information import Knowing, value_of_knowing, value_of_tests
from .resources import CappedSpend, Plans, capped, within_budgets
from .robustness import (
    IndexSlopes,
    Swing,
    Tornado,
    Turning,
    index_slopes,
    tornado,
    turning_points,
)

__all__ = [
    "CappedSpend",
    "Commitment",
    "Corner",
    "IndexSlopes",
    "Knowing",
    "Mixture",
    "Plans",
    "RiskSweep",
    "SpendFrontier",
    "Swing",
    "Tornado",
    "Turning",
    "capped",
    "cheapest",
    "commit",
    "frontier",
    "index_slopes",
    "risk_sweep",
    "tornado",
    "turning_points",
    "value_of_knowing",
    "value_of_tests",
    "within_budget",
    "within_budgets",
]
