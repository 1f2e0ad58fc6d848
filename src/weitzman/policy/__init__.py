"""Acting on indices: the rule, searches and their journal, simulation, the policy in words.

May import ``engine``, ``files`` and what lies below them.
"""

from .frontier import Box as Box
from .search import Search as Search
from .simulation import simulate as simulate
from .simulation_result import Simulation as Simulation
from .walk import Opened as Opened
from .words import describe as describe
from .words import explain as explain
