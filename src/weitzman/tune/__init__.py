"""Train many runs and stop when nothing more is worth its cost.

:func:`optimize` drives runs by itself; :mod:`weitzman.tune.optuna` and :mod:`weitzman.tune.ray` do
so within these libraries. :func:`paced` and :mod:`weitzman.tune.callbacks` turn training
loops of other libraries into runs. All of them ask a :class:`Race`, which can also be asked
directly.

May import ``learn`` and what lies below it.
"""

from .allowance import Allowance as Allowance
from .allowance import price_within as price_within
from .outcome import Report as Report
from .outcome import Result as Result
from .outcome import RunRecord as RunRecord
from .pacing import Ended as Ended
from .pacing import Paced as Paced
from .pacing import Reporter as Reporter
from .pacing import paced as paced
from .plain import optimize as optimize
from .race import Move as Move
from .race import Race as Race
from .race import RunModel as RunModel
from .refit import Refit as Refit
from .runs import Past as Past
from .stating import draw as draw
from .whole import whole_index as whole_index
