"""Ways to describe a forest: box by box, as lines, from parts, from distributions."""

from .builder import Builder as Builder
from .builder import line as line
from .combine import expand as expand
from .combine import lines as lines
from .distribution import Discretized as Discretized
from .distribution import discretize as discretize
from .distribution import to_scipy as to_scipy
