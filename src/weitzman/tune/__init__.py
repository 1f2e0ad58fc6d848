"""Train many runs and stop when nothing more is worth its cost.

:func:`optimize` drives runs by itself; :mod:`weitzman.tune.optuna` and :mod:`weitzman.tune.ray` do
so within these libraries. :func:`paced` and :mod:`weitzman.tune.callbacks` turn training
loops of other libraries into runs. All of them ask a :class:`Race`, which can also be asked
directly.

May import ``learn`` and what lies below it.
"""

from .outcome import Report as Report
from .outcome import Result as Result
from .outcome import RunRecord as RunRecord
from .plain import optimize as optimize
from .prices import full_run_index as full_run_index
from .prices import price_from_past as price_from_past
from .prices import price_from_trade as price_from_trade
from .prices import price_within as price_within
from .race import Move as Move
from .race import Race as Race
from .race import RunModel as RunModel
from .race import Seen as Seen
from .refit import Allowance as Allowance
from .refit import Refit as Refit
from .runs import Ended as Ended
from .runs import Paced as Paced
from .runs import Past as Past
from .runs import Reporter as Reporter
from .runs import paced as paced
from .search_space import draw as draw
