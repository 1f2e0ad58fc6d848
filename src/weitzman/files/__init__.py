"""Problems in files and in other libraries: JSON, binary, tables, pandas, NetworkX, chain files.

May import ``forest``, ``chains`` and what lies below them.
"""

from .binary import save_many as save_many
from .instances import from_networkx as from_networkx
from .instances import from_pandas as from_pandas
from .instances import load as load
from .instances import read_ranges as read_ranges
from .instances import read_table as read_table
from .instances import save as save
from .instances import to_networkx as to_networkx
from .instances import to_pandas as to_pandas
from .ranges import Range as Range
from .ranges import Ranges as Ranges
from .tables import TableOptions as TableOptions
from .tables import TableReading as TableReading
