"""Strategies to compare with the optimal one: the paper's classes, and what people do; DAGs.

May import ``policy`` and what lies below it.
"""

from .approximation import Approximation as Approximation
from .approximation import approximate as approximate
from .comparison import Comparison as Comparison
from .comparison import Strategy as Strategy
from .comparison import compare as compare
from .dags import Dag as Dag
from .enumeration import Exhaustive as Exhaustive
from .enumeration import exhaustive as exhaustive
from .fixed_line import FixedLine as FixedLine
from .fixed_line import best_line as best_line
from .fixed_order import FixedOrder as FixedOrder
from .fixed_order import best_partially_adaptive as best_partially_adaptive
from .fixed_order import value_of_order as value_of_order
from .fixed_set import FixedSet as FixedSet
from .fixed_set import best_nonadaptive as best_nonadaptive
from .fixed_set import value_of_set as value_of_set
from .spanning import Spanning as Spanning
from .spanning import spanning_policy as spanning_policy
from .thumb_rules import by_expected_value as by_expected_value
from .thumb_rules import everything as everything
from .thumb_rules import myopic as myopic
from .thumb_rules import on_reward_grid as on_reward_grid
from .thumb_rules import random_order as random_order
