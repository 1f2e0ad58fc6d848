"""Forests as ``.csv`` files, by way of pandas."""

from __future__ import annotations

import math
import os
from typing import Any, BinaryIO

from ..errors import InvalidFile
from ..forest.model import Forest
from .pandas_tables import from_pandas, to_pandas
from .safely import check_regular, explained, replacing

_TEXT = ("box", "parent", "parent_state", "state")
_REAL = ("reward", "probability", "cost")


def load_table(path: str, outside: float | None, minimize: bool) -> Forest:
    """Read a forest from a table; the options say what the table does not hold.

    An outside option that is infinite means that something must be taken.
    """
    pandas = _pandas()
    if outside is not None and math.isinf(outside):
        outside = math.inf if minimize else -math.inf
    with explained(path, "read"):
        check_regular(os.stat(path))
        with open(path, "rb") as file:
            table = _read(pandas, file)
        return from_pandas(table, outside=outside, minimize=minimize)


def save_table(forest: Forest, path: str) -> None:
    """Write a forest as a table."""
    _pandas()
    with explained(path, "written"), replacing(path) as file:
        to_pandas(forest).to_csv(file, index=False)


def _read(pandas: Any, file: BinaryIO) -> Any:
    """A table whose names are text and whose numbers are read to the last digit."""
    try:
        table = pandas.read_csv(
            file,
            dtype=dict.fromkeys(_TEXT + _REAL, str),
            keep_default_na=False,  # a box may be called NA
            na_values=[""],
            low_memory=False,
        )
        for name in _REAL:
            if name in table:
                table[name] = table[name].map(float, na_action="ignore").astype(float)
    except ValueError as error:
        raise InvalidFile(f"not a table of boxes: {str(error).strip().rstrip('.')}.") from None
    return table


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise InvalidFile(
            'tables need pandas, which is not installed. Run: pip install "weitzman[table]"'
        ) from None
    return pandas
