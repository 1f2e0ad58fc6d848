"""Boxes with several parents: exact when small, bounded when not."""

from .dag import Dag as Dag
from .exhaustive import Exhaustive as Exhaustive
from .exhaustive import exhaustive as exhaustive
from .spanning import Spanning as Spanning
from .spanning import spanning_policy as spanning_policy
