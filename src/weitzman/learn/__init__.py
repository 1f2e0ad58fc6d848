"""From logged curves to a forest: what past runs say about the next one.

:class:`Curves` holds a log, and :func:`fit` learns a model of a run from the log. ``lines(n)`` of a
model is a forest of n new runs; :func:`draws` and :func:`diagnose` say how far to trust the model.

May import ``policy``, ``engine`` and what lies below them.
"""

from .curves import Curves
from .diagnosis import Diagnosis, diagnose
from .drawing import Draws, draws
from .first_runs import FirstRuns, from_nothing
from .fitting import fit
from .laws import Settings
from .line_model import LineModel
from .model_files import load, save
from .resemblance import Resemblance, ResemblanceModel
from .run_model import RunModel, Shown
from .sample_log import sample

__all__ = [
    "Curves",
    "Diagnosis",
    "Draws",
    "FirstRuns",
    "LineModel",
    "Resemblance",
    "ResemblanceModel",
    "RunModel",
    "Settings",
    "Shown",
    "diagnose",
    "draws",
    "fit",
    "from_nothing",
    "load",
    "sample",
    "save",
]
