"""Rows as mappings: lists of them, and files with one JSON object in each line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InvalidFile
from .known import flat


def by_column(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; what a row lacks is None there, and mappings within are laid flat."""
    even = [flat(row) for row in rows]
    names = dict.fromkeys(name for row in even for name in row)
    return {name: [row.get(name) for row in even] for name in names}


def json_lines(data: bytes) -> list[dict[str, Any]]:
    """The objects of a file, one in each line; a last line that was cut short is left out."""
    lines = data.decode("utf-8").splitlines()
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):  # still being written
                break
            raise InvalidFile(f"line {number} is not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise InvalidFile(f"line {number} must be a JSON object, but it is {line[:40]!r}.")
        rows.append(row)
    return rows
