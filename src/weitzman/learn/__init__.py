"""From logged curves to a forest: what past runs say about the next one.

:class:`Curves` holds a log, :func:`fit` learns a :class:`LineModel` from it, whose ``lines(n)`` is
a forest of n new runs; :func:`draws` and :func:`diagnose` say how far to trust it.
"""

from ._laws import Settings
from .curves import Curves
from .diagnose import Diagnosis, diagnose
from .draws import Draws, draws
from .file import load, save
from .fit import fit
from .model import LineModel
from .sample import sample
from .transfer import default_curves, transfer

__all__ = [
    "Curves",
    "Diagnosis",
    "Draws",
    "LineModel",
    "Settings",
    "default_curves",
    "diagnose",
    "draws",
    "fit",
    "load",
    "sample",
    "save",
    "transfer",
]
