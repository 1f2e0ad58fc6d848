"""Questions around a search: a budget instead of prices, what information is worth, choices.

``frontier`` and ``within_budget`` put a limit on the mean spend, ``cheapest`` finds the least spend
that reaches a target, ``capped`` limits the spend of every single run. ``value_of_knowing`` and
``tornado`` report what information is worth and which numbers matter, ``two_way``, ``scenarios``
and ``uncertainty`` what ranges of numbers do, ``risk_sweep`` how a careful
searcher decides. ``commit`` decides between several ways to look into a box, with a bound.
"""

from .budget import (
    CappedSpend,
    Corner,
    Mixture,
    SpendFrontier,
    capped,
    cheapest,
    frontier,
    within_budget,
)
from .caution import RiskSweep, risk_sweep
from .choices import Commitment, commit
from .information import Knowing, value_of_knowing, value_of_tests
from .robustness import (
    IndexSlopes,
    Swing,
    Tornado,
    Turning,
    index_slopes,
    tornado,
    turning_points,
)
from .uncertain_numbers import (
    Scenarios,
    TwoWay,
    Uncertainty,
    as_ranges,
    scenarios,
    two_way,
    uncertainty,
)

__all__ = [
    "CappedSpend",
    "Commitment",
    "Corner",
    "IndexSlopes",
    "Knowing",
    "Mixture",
    "RiskSweep",
    "Scenarios",
    "SpendFrontier",
    "Swing",
    "Tornado",
    "Turning",
    "TwoWay",
    "Uncertainty",
    "as_ranges",
    "capped",
    "cheapest",
    "commit",
    "frontier",
    "index_slopes",
    "risk_sweep",
    "scenarios",
    "tornado",
    "turning_points",
    "two_way",
    "uncertainty",
    "value_of_knowing",
    "value_of_tests",
    "within_budget",
]
