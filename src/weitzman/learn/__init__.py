"""From logged curves to a forest: what past runs say about the next one."""

from .curves import Curves

__all__ = ["Curves"]
