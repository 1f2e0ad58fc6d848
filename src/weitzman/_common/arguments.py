"""Checks of plain arguments: counts and amounts, each with one message everywhere."""

from __future__ import annotations

import math
from numbers import Integral, Real

from ..errors import InvalidArgument


def check_counts(least: int = 1, **named: object) -> None:
    """Reject arguments that are not whole numbers from ``least`` on; None counts as left out.

    >>> check_counts(episodes=10, budget=None)
    """
    for name, n in named.items():
        if n is not None and (isinstance(n, bool) or not isinstance(n, Integral) or n < least):
            raise InvalidArgument(
                f"`{name}` must be a whole number from {least} on, but it is {n!r}."
            )


def check_amounts(least: float = 0.0, **named: object) -> None:
    """Reject arguments that are not numbers from ``least`` on; infinity is a number.

    >>> check_amounts(budget=2.5, cap=math.inf)
    """
    for name, x in named.items():
        if isinstance(x, bool) or not isinstance(x, Real) or math.isnan(float(x)):
            raise InvalidArgument(f"`{name}` must be a number from {least:g} on, but it is {x!r}.")
        if x < least:
            raise InvalidArgument(f"`{name}` must be at least {least:g}, but it is {x:g}.")
