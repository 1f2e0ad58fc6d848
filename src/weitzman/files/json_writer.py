"""From a forest to JSON text of the format ``weitzman/1``: one box per line, shared parts once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import FloatArray, IntArray
from ..forest.fields import said
from ..forest.model import BY_BOX, Forest
from .json_reader import FORMAT

_WHOLE = re.compile(r"\.0(?=[],])")  # 21.0 is written 21
_NO_REWARD = re.compile(r"-?Infinity")
_BOXES_AT_ONCE = 1000


def pieces(forest: Forest) -> Iterator[str]:
    """The text, in pieces of some thousand lines."""
    writer = _Writer(forest, *_choose_kinds(forest))
    yield f'{{\n  "format": "{FORMAT}",\n'
    yield "".join(f'  "{key}": {_value(x)},\n' for key, x in said(forest).items())
    if len(writer.leader):
        yield '  "kinds": {\n'
        yield ",\n".join(f'    "k{i}": {writer.kind(i)}' for i in range(len(writer.leader)))
        yield "\n  },\n"
    yield '  "boxes": [\n'
    n = len(forest)
    for i in range(0, n, _BOXES_AT_ONCE):
        end = min(i + _BOXES_AT_ONCE, n)
        yield ",\n".join(f"    {writer.box(v)}" for v in range(i, end))
        yield ",\n" if end < n else "\n"
    yield "  ]\n}\n"


def _choose_kinds(f: Forest) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
    """The kind of each box (-1: none), the first box of each kind, and whether it gives the law.

    Boxes with the same law are of one kind; of the others, those with the same rewards.
    """
    by_law = f.law * 2 + (f.parent < 0)  # a root's law is written in its own way
    same_law = _shared(by_law)
    key = np.where(same_law, by_law, -1 - f.reward)
    shared = np.flatnonzero(same_law | _shared(key))
    _, first, number = np.unique(key[shared], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # kinds are numbered as they appear
    kind = np.full(len(f), -1, np.int64)
    kind[shared] = rank[number]
    leader = shared[np.sort(first)]
    return kind, leader, same_law[leader]


def _shared(key: IntArray) -> npt.NDArray[np.bool_]:
    _, number, copies = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(copies[number] > 1)


@dataclass
class _Writer:
    """Text of kinds and boxes. A kind says what the first box of it says; the others differ."""

    forest: Forest
    kind_of: IntArray
    leader: IntArray
    gives_law: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        given = [(one, one.given(self.forest)) for one in BY_BOX]
        there = [(one, x) for one, x in given if x is not None]
        self.openings = [(one.key, x) for one, x in there if one.form == "opening"]
        self.entries = [(one, x) for one, x in there if one.form == "entry"]

    def kind(self, i: int) -> str:
        """What the boxes of a kind share."""
        v = int(self.leader[i])
        fields = [*self._opening(v), *self._rewards(v)]
        return _object(fields + [self._law(v)] * bool(self.gives_law[i]))

    def box(self, v: int) -> str:
        """A box: what its kind does not say."""
        f, kind, up = self.forest, int(self.kind_of[v]), int(self.forest.parent[v])
        fields = [] if f.names is None else [f'"name": {_text(f.names[v])}']
        if up >= 0:
            fields.append(f'"parent": {up if f.names is None else _text(f.names[up])}')
        if kind < 0:
            fields += [*self._opening(v), *self._rewards(v), self._law(v)]
        else:
            fields.append(f'"kind": "k{kind}"')
            fields += self._differences(v, kind)
        for one, column in self.entries:
            if (x := column[v]) != one.default:
                fields.append(f'"{one.key}": {_value(one.plain(x))}')
        return _object(fields)

    def _differences(self, v: int, kind: int) -> Iterator[str]:
        f, like = self.forest, int(self.leader[kind])
        if f.cost[v] != f.cost[like]:
            yield from self._opening(v)
        if f.reward[v] != f.reward[like]:
            yield from self._rewards(v, unlike=like)
        if not self.gives_law[kind]:
            yield self._law(v)

    def _opening(self, v: int) -> Iterator[str]:
        """The cost, and what else comes with the opening."""
        for key, pool in self.openings:
            entry = pool[int(self.forest.cost[v])]
            flat = entry[:, 0] if entry.shape[1] == 1 else entry
            text = _numbers(entry[0])[1:-1] if entry.shape == (1, 1) else _numbers(flat)
            yield f'"{key}": {text}'

    def _rewards(self, v: int, unlike: int = -1) -> Iterator[str]:
        """Rewards and names of the states; ``unlike`` is a box whose names must not be taken."""
        f = self.forest
        row = int(f.reward[v])
        yield f'"rewards": {_numbers(f.rewards[row][0])}'
        names = f.state_names[row]
        if names is not None:
            yield f'"states": [{", ".join(map(_text, names))}]'
        elif unlike >= 0 and f.state_names[int(f.reward[unlike])] is not None:
            yield '"states": null'

    def _law(self, v: int) -> str:
        law = self.forest.laws[int(self.forest.law[v])]
        return f'"law": {_numbers(law[0] if self.forest.parent[v] < 0 else law)}'


def _object(fields: list[str]) -> str:
    return "{" + ", ".join(fields) + "}"


def _text(x: Any) -> str:
    return json.dumps(x, ensure_ascii=False)


def _value(x: Any) -> str:
    return _numbers(np.array([x]))[1:-1] if isinstance(x, float) else _text(x)


def _numbers(x: FloatArray) -> str:
    """Numbers that read back to the same bits; null for a reward that does not exist."""
    return _NO_REWARD.sub("null", _WHOLE.sub("", json.dumps(x.tolist())))
