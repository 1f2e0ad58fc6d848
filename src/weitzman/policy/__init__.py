"""Acting on indices: the rule, searches and their journal, simulation, the policy in words.

May import ``engine``, ``files`` and what lies below them.
"""

from .frontier import Box as Box
from .payoff_laws import equivalent_box as equivalent_box
from .search import Search as Search
from .simulation import PayoffLaw as PayoffLaw
from .simulation import Simulation as Simulation
from .simulation import difference as difference
from .simulation import payoff_law as payoff_law
from .simulation import simulate as simulate
from .walk import Opened as Opened
from .words import describe as describe
from .words import explain as explain
