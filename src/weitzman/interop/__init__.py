"""Forests from and to other packages, each imported only when used."""

from .graph import from_networkx as from_networkx
from .graph import to_networkx as to_networkx
from .table import from_pandas as from_pandas
from .table import to_pandas as to_pandas

__all__ = ["from_networkx", "from_pandas", "to_networkx", "to_pandas"]
