"""The model of a running search: kept as bytes in the journal, and replaced by another one."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.numbers import counted
from ..engine.indices import Policy
from ..errors import InvalidForest, UnknownName
from ..files import binary as _binary
from ..forest.model import Forest
from .frontier import Id
from .ledger import Ledger


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
    """A checksum of everything that describes a box, its parent's name included."""
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


def replaced(old: Ledger, policy: Policy) -> Ledger:
    """The same search with another policy; an error if the policy does not have the same boxes."""
    if old.hands is not None or policy.forest.prizes > 1:
        raise InvalidForest("with several prizes a search keeps its model: start another one.")
    if policy.forest.minimize != old.forest.minimize:
        raise InvalidForest("a new model must minimize if the old one does, and only then.")
    new = Ledger(policy, old.rule, old.me)
    moved: dict[Id, Id] = {}
    for box, seen in old.told.items():  # parents come before their children
        moved[box] = _moved(old, box, new, moved)
        new.open(moved[box], _state(old, box, new, moved[box][0]), seen.reward, seen.cost)
        new.numbers[moved[box]] = old.numbers[box]
    for box in old.out:
        moved[box] = _moved(old, box, new, moved)
        new.out[moved[box]] = old.out[box]
    new.gone, new.owner, new.owned_by = old.gone, old.owner, old.owned_by
    return new


def _moved(old: Ledger, box: Id, new: Ledger, moved: dict[Id, Id]) -> Id:
    """Where an opened box, or one that is out, is in the new model."""
    must = "a box that was opened or handed out must stay as it is in a new model, but"
    try:
        v = new.forest.box(old.forest.name(box[0]))
    except UnknownName:
        raise InvalidForest(f"{must} {old.box(box)!r} is missing.") from None
    if new.forest.endless[v] != old.forest.endless[box[0]]:
        raise InvalidForest(f"{must} {old.box(box)!r} is endless in one of the models only.")
    above, up = old.above(box), int(new.forest.parent[v])
    if above is not None and above[0] == box[0]:  # further along an endless line
        return v, (*moved[above][1][:-1], box[1][-1])
    if (-1 if above is None else moved[above][0]) != up:
        raise InvalidForest(f"{must} {old.box(box)!r} has another parent.")
    copy = () if above is None else moved[above][1]
    if new.forest.endless[v]:
        return v, (*copy, 1)
    own = box[1][-1] if old.forest.count[box[0]] > 1 else 1
    count = int(new.forest.count[v])
    if own > count:
        raise InvalidForest(
            f"{must} of {old.box(box)!r} the new problem has only {counted(count, 'copy')}."
        )
    return v, (*copy, own) if count > 1 else copy


def _state(old: Ledger, box: Id, new: Ledger, v: int) -> int:
    """The state that an opened box showed, in the new model."""
    seen = old.told[box]
    named = old.forest.state_names[int(old.forest.reward[box[0]])] is not None
    try:
        return new.forest.state(v, seen.state if named else seen.state_number)
    except UnknownName as error:
        raise InvalidForest(
            f"a state that was seen must stay in a new model, but {error}"
        ) from None
