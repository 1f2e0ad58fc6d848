"""Ways to describe a forest: box by box, as lines, from parts, from distributions."""

from .builder import Builder as Builder
from .builder import line as line
from .combine import expand as expand
from .combine import lines as lines
from .distribution import Discretised as Discretised
from .distribution import discretise as discretise
from .distribution import to_scipy as to_scipy
