"""Problems in files and in other libraries: JSON, binary, tables, pandas, NetworkX, chain files.

May import ``forest``, ``chains`` and what lies below them.
"""

from .instances import load as load
from .instances import save as save
from .mapped import save_many as save_many
from .networkx_graphs import from_networkx as from_networkx
from .networkx_graphs import to_networkx as to_networkx
from .pandas_tables import from_pandas as from_pandas
from .pandas_tables import to_pandas as to_pandas
