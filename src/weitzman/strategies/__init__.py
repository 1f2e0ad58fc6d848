"""Strategies to compare with the optimal one: the paper's classes, and what people do; DAGs.

May import ``policy`` and what lies below it.
"""

from .comparison import Comparison as Comparison
from .comparison import Strategy as Strategy
from .comparison import compare as compare
from .fixed_orders import FixedOrder as FixedOrder
from .fixed_orders import best_partially_adaptive as best_partially_adaptive
from .fixed_orders import value_of_order as value_of_order
from .fixed_sets import FixedLine as FixedLine
from .fixed_sets import FixedSet as FixedSet
from .fixed_sets import best_line as best_line
from .fixed_sets import best_nonadaptive as best_nonadaptive
from .fixed_sets import value_of_set as value_of_set
from .graphs import Dag as Dag
from .graphs import Exhaustive as Exhaustive
from .graphs import exhaustive as exhaustive
from .thumb_rules import by_expected_value as by_expected_value
from .thumb_rules import everything as everything
from .thumb_rules import myopic as myopic
from .thumb_rules import on_reward_grid as on_reward_grid
from .thumb_rules import random_order as random_order
