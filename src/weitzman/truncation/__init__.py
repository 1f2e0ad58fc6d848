"""Cut a forest where what lies deeper is certified not to matter."""

from .truncate import Truncation as Truncation
from .truncate import truncate as truncate
