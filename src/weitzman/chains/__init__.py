"""One transition matrix for all boxes of a line: chains, endless lines, how deep to look."""

from ._capped_value import Capped as Capped
from ._capped_value import value_together as value_together
from .chain import Chain as Chain
from .endless import EndlessLine as EndlessLine
from .endless import FixedPoint as FixedPoint
from .endless import fixed_point as fixed_point
from .endless import probe_until_top as probe_until_top
from .endless import solve_line as solve_line
from .truncation import MissBounds as MissBounds
from .truncation import exact_depth as exact_depth
from .truncation import miss_bounds as miss_bounds
