"""Forests that are not written down: children on demand, bounds on the rest."""

from ._refine import Ending as Ending
from .forest import LazyForest as LazyForest
from .node import Node as Node
from .search import LazySearch as LazySearch
from .solution import LazySolution as LazySolution
