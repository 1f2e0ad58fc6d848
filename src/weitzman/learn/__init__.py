"""From logged curves to a forest: what past runs say about the next one."""

from ._laws import Settings
from .curves import Curves
from .fit import fit
from .model import LineModel

__all__ = ["Curves", "LineModel", "Settings", "fit"]
