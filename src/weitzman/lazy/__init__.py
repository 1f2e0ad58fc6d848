"""Forests that are not written down: children on demand, bounds on the rest."""

from ._refine import Ending as Ending
from .forest import LazyForest as LazyForest
from .forest import LazySolution as LazySolution
from .node import Node as Node
from .search import LazySearch as LazySearch
