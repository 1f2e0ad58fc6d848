"""From a forest to JSON text of the format ``weitzman/1``: one box per line, shared parts once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._common.arrays import FloatArray, IntArray
from ..forest.model import Forest
from .json_reader import ENDLESS, FORMAT

_WHOLE = re.compile(r"\.0(?=[],])")  # 21.0 is written 21
_NO_REWARD = re.compile(r"-?Infinity")
_BOXES_AT_ONCE = 1000


def pieces(forest: Forest) -> Iterator[str]:
    """The text, in pieces of some thousand lines."""
    writer = _Writer(forest, *_choose_kinds(forest))
    outside = _numbers(np.array([forest.outside]))[1:-1]
    yield f'{{\n  "format": "{FORMAT}",\n'
    yield f'  "objective": "{"minimize" if forest.minimize else "maximize"}",\n'
    yield f'  "outside": {outside},\n'
    yield "".join(f'  "{key}": {json.dumps(x)},\n' for key, x in written_terms(forest).items())
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


def written_terms(f: Forest) -> dict[str, str | float | int]:
    """Unit, rate, risk tolerance, prizes and stated error, where a forest has them."""
    terms = {"rate": f.rate, "risk_tolerance": f.risk_tolerance}
    found: dict[str, str | float | int] = {"unit": f.unit} if f.unit else {}
    found |= {key: x for key, x in terms.items() if x is not None}
    found |= {"prizes": int(f.prizes)} if f.prizes > 1 else {}
    return found | ({"stated_error": float(f.stated_error)} if f.stated_error else {})


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
        if f.count[v] != 1:
            fields.append(f'"count": {f.count[v]}')
        if f.endless[v]:
            fields.append(f'"length": "{ENDLESS}"')
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
        """The cost, and what time the opening takes."""
        f = self.forest
        timed = ("duration", f.durations) if f.durations is not None else ("factor", f.factors)
        for what, pool in (("cost", f.costs), timed):
            if pool is not None:
                entry = pool[int(f.cost[v])]
                flat = entry[:, 0] if entry.shape[1] == 1 else entry
                text = _numbers(entry[0])[1:-1] if entry.shape == (1, 1) else _numbers(flat)
                yield f'"{what}": {text}'

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


def _text(x: str) -> str:
    return json.dumps(x, ensure_ascii=False)


def _numbers(x: FloatArray) -> str:
    """Numbers that read back to the same bits; null for a reward that does not exist."""
    return _NO_REWARD.sub("null", _WHOLE.sub("", json.dumps(x.tolist())))
