"""A forest as the columns and settings of a table: None where a cell is empty."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import IntArray
from ..forest.model import Forest
from .json_writer import written_terms


def written_columns(forest: Forest) -> dict[str, list[Any]]:
    """A row for each box, state of its parent, and own state; numbers where names are missing."""
    f = forest
    shape = f.laws.shape[f.law]
    size = shape[:, 0] * shape[:, 1]
    box = np.repeat(np.arange(len(f)), size)
    within = np.arange(len(box)) - np.repeat(np.cumsum(size) - size, size)
    given, own = np.divmod(within, shape[box, 1])
    up = f.parent[box]
    reward = f.rewards.data[f.rewards.start[f.reward[box]] + own]
    columns: dict[str, list[Any]] = {
        "box": _box_names(f, box),
        "parent": _box_names(f, up),
        "parent_state": _state_names(f, np.where(up < 0, -1, f.reward[up]), given),
        "state": _state_names(f, f.reward[box], own),
        "reward": [x if np.isfinite(x) else None for x in reward.tolist()],
        "probability": f.laws.data[f.laws.start[f.law[box]] + within].tolist(),
        "cost": f.costs.entries(f.cost[box], given, own).tolist(),
        "count": f.count[box].tolist(),
    }
    if f.endless.any():
        columns["endless"] = f.endless[box].tolist()
    if f.durations is not None:
        columns["duration"] = f.durations.entries(f.cost[box], given, own).tolist()
    elif f.factors is not None:
        columns["factor"] = f.factors.entries(f.cost[box], given, own).tolist()
    return columns


def settings_of(forest: Forest) -> list[list[Any]]:
    """What a table says above its heading, where it is not the usual."""
    f, rows = forest, list[list[Any]]()
    if f.minimize:
        rows.append(["objective", "minimize"])
    if f.outside != 0:
        rows.append(["outside option", f.outside if np.isfinite(f.outside) else "none"])
    return rows + [[key.replace("_", " "), x] for key, x in written_terms(f).items()]


def _box_names(f: Forest, box: IntArray) -> list[Any]:
    """Names of boxes (-1: none), or numbers where they have no names."""
    if f.names is None:
        return [None if v < 0 else v for v in box.tolist()]
    names = [*f.names, None]
    return [names[v] for v in box.tolist()]


def _state_names(f: Forest, row: IntArray, state: IntArray) -> list[Any]:
    """Names of states by rows of rewards (-1: none); numbers where no box has names."""
    if all(names is None for names in f.state_names):
        return [None if r < 0 else s for r, s in zip(row.tolist(), state.tolist(), strict=True)]
    sizes = f.rewards.shape[:, 1].tolist()
    flat = [
        name
        for names, k in zip(f.state_names, sizes, strict=True)
        for name in (map(str, range(k)) if names is None else names)
    ]
    at = np.where(row < 0, len(flat), f.rewards.start[row] + state)
    names = [*flat, None]
    return [names[i] for i in at.tolist()]
