"""Cut a forest where what lies deeper is certified not to matter."""

from .certified import Truncation as Truncation
from .certified import truncate as truncate
