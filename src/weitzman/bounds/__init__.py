"""Lower and upper bounds around forests that are too long or too large: truncation, lazy forests.

May import ``policy`` and what lies below it.
"""

from .lazy_forest import LazyForest as LazyForest
from .lazy_forest import LazySolution as LazySolution
from .lazy_search import LazySearch as LazySearch
from .lazy_tree import Node as Node
from .refining import Ending as Ending
from .streaming import FileSolution as FileSolution
from .streaming import solve_file as solve_file
from .truncation import Truncation as Truncation
from .truncation import truncate as truncate
