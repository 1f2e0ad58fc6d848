"""From logged curves to a forest: what past runs say about the next one.

:class:`Curves` holds a log, and :func:`fit` learns a model of a run from the log. ``lines(n)`` of a
model is a forest of n new runs; :func:`bootstrap` and :func:`diagnose` say how far to trust it.

May import ``policy``, ``engine`` and what lies below them.
"""

from .curves import Curves, sample
from .diagnosis import Bootstrap, Diagnosis, bootstrap, diagnose
from .first_runs import FirstRuns, from_nothing
from .resemblance import FitOptions, ResemblanceModel, fit
from .run_model import RunModel, Shown

__all__ = [
    "Bootstrap", "Curves", "Diagnosis", "FirstRuns", "FitOptions", "ResemblanceModel", "RunModel",
    "Shown", "bootstrap", "diagnose", "fit", "from_nothing", "sample",
]  # fmt: skip
