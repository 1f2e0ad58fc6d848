"""How long a kernel takes as plain Python, about: in steps of ten microseconds.

What a kernel does with its numbers one by one is counted by :func:`numbers`. The other kernels do
more with each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .operations import COLUMNS, LAW, STATES

STEP = 1e-5  # seconds


def numbers(*args: Any) -> float:
    """How many numbers there are in arrays, tuples of arrays, and so on."""
    found = 0.0
    for x in args:
        if isinstance(x, np.ndarray):
            found += x.size
        else:
            found += numbers(*x) if isinstance(x, tuple) else 1.0
    return found


def few(*_: Any) -> float:
    """The same for every work: not much."""
    return 1.0


def sweep(order: Any, program: Any, *_: Any) -> float:
    """Operations on values: each probability of their laws meets tens of breakpoints."""
    law = program.ops.reshape(-1, COLUMNS)[order, LAW]
    law = law[law >= 0]
    return float(20 * order.size + 50 * (program.law_at[law + 1] - program.law_at[law]).sum())


def retrace(order: Any, route: Any, *_: Any) -> float:
    """The way back: at most all rewards for each state of an operation."""
    return float(route.ops[order, STATES].sum() * route.ranks.size)


def episodes(tables: Any, *rest: Any) -> float:
    """Episodes, as many as are recorded, with a guess of how many boxes are opened in each."""
    tally = next(x for x in rest if hasattr(x, "opened"))
    return float(tally.out.shape[1] * 10 * (1 + min(len(tables.boxes), 10)))
