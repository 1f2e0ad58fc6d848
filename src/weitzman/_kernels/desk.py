"""The desk: arrays on which one operation after the other is worked out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .blocks import block_size, padded
from .boxes import GROUP
from .jit import lane_helper
from .lanes import LANES, pointer


class Desk(NamedTuple):
    """Places to work on ``most`` breakpoints and ``widest`` states; [j, y] are rows of states."""

    after: np.ndarray  # [j, y] tails of max(reward, children), by own state
    rows: np.ndarray  # [j, s] tails of the result before it is capped
    law: np.ndarray  # [y, s] the law, transposed
    grid: np.ndarray  # [j] breakpoints of max(reward, children)
    x: np.ndarray  # [j] breakpoints of the result
    sigma: np.ndarray  # [s] and so on
    caps: np.ndarray
    rank: np.ndarray
    errors: np.ndarray
    tops: np.ndarray
    floor: np.ndarray
    price: np.ndarray
    reward: np.ndarray
    nothing: np.ndarray  # a block for what is minus infinity for sure
    numbers: np.ndarray  # [j] 0, 1, 2, ...
    pos: np.ndarray  # [j] numbers of rows
    source: np.ndarray
    active: np.ndarray  # [y] numbers of states
    most: int
    widest: int


@lane_helper()
def desk_size(most, widest):
    """Floats, and integers, to work on ``most`` breakpoints and ``widest`` states."""
    room, by_state = most + 1 + LANES, 8 * widest + padded(block_size(0, widest))
    table = (most + 1 + GROUP) * widest
    return 2 * table + widest * widest + by_state + 2 * padded(room), 3 * room + widest


@lane_helper()
def set_desk(floats, ints, most, widest):
    """Share out floats and the integers 0, 1, 2, ..., as many as `desk_size` says."""
    room, table = most + 1 + LANES, (most + 1 + GROUP) * widest
    law = pointer(floats, 2 * table)
    grid = pointer(law, widest * widest)
    x = pointer(grid, padded(room))
    by_state = pointer(x, padded(room))
    return Desk(
        floats, pointer(floats, table), law, grid, x, by_state, pointer(by_state, widest),
        pointer(by_state, 2 * widest), pointer(by_state, 3 * widest), pointer(by_state, 4 * widest),
        pointer(by_state, 5 * widest), pointer(by_state, 6 * widest), pointer(by_state, 7 * widest),
        pointer(by_state, 8 * widest), ints, pointer(ints, room), pointer(ints, 2 * room),
        pointer(ints, 3 * room), most, widest,
    )  # fmt: skip
