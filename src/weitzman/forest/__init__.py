"""What a problem is: the forest, its rules, and the ways to describe one.

May import ``errors``, ``_common`` and ``_kernels``.
"""

from .builder import Builder as Builder
from .builder import expand as expand
from .builder import line as line
from .builder import side_by_side as side_by_side
from .columns import Pool as Pool
from .distributions import Discretized as Discretized
from .distributions import discretize as discretize
from .distributions import to_scipy as to_scipy
from .model import Forest as Forest
