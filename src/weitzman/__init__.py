"""Optimal search when looking costs something.

Boxes on a forest: opening one costs something and shows a state, which has a reward and decides the
chances of the boxes behind it. Stop at any time with the best reward found. ``solve`` gives the
value of the best policy and the index of every box; ``evaluate`` and ``simulate`` tell beforehand
what it will do; ``Policy.start`` runs it.

>>> import weitzman
>>> chest = weitzman.Builder()
>>> _ = chest.add("A", cost=20, rewards={900: 0.1, 1: 0.9})
>>> _ = chest.add("B", parent="A", cost=3, rewards={1: {21: .5, -9: .5}, 900: {920: .5, 890: .5}})
>>> _ = chest.add("C", cost=5, rewards={50: 0.5, 10: 0.5})
>>> solution = weitzman.solve(chest.build())
>>> round(solution.value, 3), round(solution.index("B", 900), 3)
(94.325, 914.0)
"""

from .build import Builder as Builder
from .build import Discretised as Discretised
from .build import discretise as discretise
from .build import expand as expand
from .build import line as line
from .build import lines as lines
from .build import to_scipy as to_scipy
from .errors import InvalidFile as InvalidFile
from .errors import InvalidForest as InvalidForest
from .errors import UnknownName as UnknownName
from .errors import WeitzmanError as WeitzmanError
from .evaluate import Evaluation as Evaluation
from .evaluate import evaluate as evaluate
from .explain import describe as describe
from .explain import explain as explain
from .interop import from_networkx as from_networkx
from .interop import from_pandas as from_pandas
from .interop import to_networkx as to_networkx
from .interop import to_pandas as to_pandas
from .io import load as load
from .io import save as save
from .model import Forest as Forest
from .policy import Policy as Policy
from .sensitivity import BreakEven as BreakEven
from .sensitivity import Sensitivity as Sensitivity
from .sensitivity import break_even as break_even
from .sensitivity import sensitivity as sensitivity
from .solution import Solution as Solution
from .solution import Status as Status
from .solve import solve as solve
