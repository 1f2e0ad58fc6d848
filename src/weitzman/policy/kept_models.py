"""Policies as bytes, to be kept in a journal."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.indices import Policy
from ..errors import InvalidForest
from ..files import binary as _binary
from ..forest.model import Forest


def to_parts(policy: Policy) -> dict[str, bytes]:
    """A policy: ``forest`` (format .wz), ``index_at`` and ``index`` (format .npy, no pickle)."""
    forest = io.BytesIO()
    try:
        _binary.write(policy.forest, forest)
    except UnicodeEncodeError as error:
        raise InvalidForest(
            f"names must be valid Unicode, but there is {error.object[:40]!r}. Rename it."
        ) from None
    return {
        "forest": forest.getvalue(),
        "index_at": _npy(policy.index_at),
        "index": _npy(policy.forest.sign * policy.index),
    }


def from_parts(part: Callable[[str], bytes]) -> Policy:
    """A policy from its parts; a ValueError says what is wrong."""
    at, index = (
        np.lib.format.read_array(io.BytesIO(part(name)), allow_pickle=False)
        for name in ("index_at", "index")
    )
    return Policy.of(_binary.read(io.BytesIO(part("forest"))), at, index)


def box_mark(forest: Forest, v: int) -> int:
    """A number that changes with anything that is said of a box, its parent's name included."""
    up = int(forest.parent[v])
    words = [forest.name(v), "" if up < 0 else forest.name(up), forest.outside, forest.minimize]
    mark = zlib.crc32(repr([*words, int(forest.count[v])]).encode("utf-8", "surrogatepass"))
    pools = (forest.laws, forest.law), (forest.rewards, forest.reward), (forest.costs, forest.cost)
    for pool, place in pools:
        matrix = pool[int(place[v])]
        mark = zlib.crc32(matrix.tobytes(), zlib.crc32(repr(matrix.shape).encode(), mark))
    return mark


def _npy(array: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()
