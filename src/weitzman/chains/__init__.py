"""One transition matrix for all boxes of a line: chains, endless lines, how deep to look.

May import ``forest`` and what lies below it.
"""

from .chain import Chain as Chain
from .endless import Capped as Capped
from .endless import EndlessLine as EndlessLine
from .endless import FixedPoint as FixedPoint
from .endless import fixed_point as fixed_point
from .endless import probe_until_top as probe_until_top
from .endless import solve_line as solve_line
from .endless import value_together as value_together
from .hitting import MissBounds as MissBounds
from .hitting import exact_depth as exact_depth
from .hitting import miss_bounds as miss_bounds
from .hitting import miss_bounds_together as miss_bounds_together
