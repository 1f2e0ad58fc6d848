"""Which boxes can be opened now, best first, without writing out copies.

A box that is there once is ``(number, copy)`` with ``copy = ()``. If it, or boxes above it, are
described by counts, ``copy`` holds the number of the copy (from 1) of each of these boxes, from the
root down to the box itself. Of an endless box the last number is its place along the line, from 1.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from heapq import heappop, heappush, heapreplace

from ..engine.indices import Policy

Copy = tuple[int, ...]
Id = tuple[int, Copy]
Entry = tuple[float, int, int, Copy, int]
"""Minus the index, the box, its parent's state, its first copy not yet passed, the last copy."""

ALONE = 0  # instead of that number, where no further copies follow


class Box(str):
    """A box handed out: its name, with the numbers of the copies if there are any.

    It is a string, so that it can be a key, printed or sent elsewhere, and where an index is
    expected it counts as the number of the box: ``table[box]`` is its row.

    Attributes
    ----------
    name : str
        Name of the box in the forest.
    number : int
        Its number in the forest.
    copy : tuple of int
        The number of the copy, from 1, of each box with copies on the way from the root to this
        one; empty where there are none. Of an endless box the last number is its place along the
        line.

    Examples
    --------
    >>> box = Box("drill", 2, (3, 1))
    >>> box
    'drill#3.1'
    >>> ["a", "b", "c"][box]
    'c'
    """

    __slots__ = ("copy", "name", "number")
    copy: Copy
    name: str
    number: int

    def __new__(cls, name: str, number: int, copy: Copy = ()) -> Box:
        self = super().__new__(cls, f"{name}#{'.'.join(map(str, copy))}" if copy else name)
        self.name, self.number, self.copy = name, number, copy
        return self

    def __index__(self) -> int:
        return self.number

    def __getnewargs__(self) -> tuple[str, int, Copy]:  # type: ignore[override]
        return self.name, self.number, self.copy


class Frontier:
    """The boxes that can be opened, as a heap.

    The heap holds the roots only down to the first that was never on top: ``policy.root`` has them
    in order. Copies are one entry, which steps from one to the next. Boxes that are ``told`` or
    ``out`` may be in the heap, even twice; they are passed over once they come to the top. So each
    step costs O(log n), plus O(log n) for each child of an opened box.
    """

    def __init__(self, policy: Policy, told: Container[Id], out: Container[Id]) -> None:
        self._policy = policy
        self._count, self._endless = policy.forest.count, policy.forest.endless
        self._told, self._out = told, out
        self._heap: list[Entry] = []
        self._roots = 0  # so many roots have been put into the heap
        self._next_root()

    def top(self) -> tuple[Id, float] | None:
        """The best box and its index (higher is better); None if no box is left."""
        heap = self._heap
        while heap:
            minus, v, _, copy, _ = heap[0]
            if self._free((v, copy)):
                return (v, copy), -minus
            self._pass()
        return None

    def add_children(self, box: Id, state: int) -> None:
        """A box was opened and showed ``state``."""
        v, copy = box
        at = self._policy.child_at
        for u in self._policy.child[at[v] : at[v + 1]].tolist():
            if u == v:  # the next one along an endless line
                self.put_back((v, (*copy[:-1], copy[-1] + 1)), state)
            else:
                self._push(u, copy, state)

    def put_back(self, box: Id, state: int) -> None:
        """A box can be opened (again) after its parent showed ``state``, it alone."""
        v, copy = box
        heappush(self._heap, (-self.index(v, state), v, state, copy, ALONE))

    def best_first(self) -> Iterator[tuple[Id, float]]:
        """All boxes that can be opened and their indices, one copy after the other."""
        ahead: list[tuple[Entry, int]] = [(self._heap[0], 0)] if self._heap else []
        roots, last = self._roots, None
        while ahead:
            entry, at = heappop(ahead)
            minus, v, _, copy, _ = entry
            if (v, copy) != last and self._free((v, copy)):  # equal entries follow each other
                last = v, copy
                yield last, -minus
            for below in (2 * at + 1, 2 * at + 2) if at >= 0 else ():
                if below < len(self._heap):
                    heappush(ahead, (self._heap[below], below))
            rest = _rest(entry)
            if rest is not None:
                heappush(ahead, (rest, -1))
            elif v == self._policy.root[roots - 1] and roots < len(self._policy.root):
                heappush(ahead, (self._entry(int(self._policy.root[roots]), (), 0), -1))
                roots += 1

    def index(self, v: int, state: int) -> float:
        """The index of a box after its parent showed ``state`` (0 for a root)."""
        return float(self._policy.index[self._policy.index_at[v] + state])

    def _free(self, box: Id) -> bool:
        return box not in self._told and box not in self._out

    def _entry(self, v: int, above: Copy, state: int) -> Entry:
        count = int(self._count[v])
        minus = -self.index(v, state)
        if self._endless[v]:
            return minus, v, state, (*above, 1), ALONE
        if count > 1:
            return minus, v, state, (*above, 1), count
        return minus, v, state, above, ALONE

    def _push(self, v: int, above: Copy, state: int) -> None:
        heappush(self._heap, self._entry(v, above, state))

    def _next_root(self) -> None:
        if self._roots < len(self._policy.root):
            self._push(int(self._policy.root[self._roots]), (), 0)
            self._roots += 1

    def _pass(self) -> None:
        """Leave the first copy of the top entry behind."""
        entry = self._heap[0]
        rest = _rest(entry)
        if rest is not None:
            heapreplace(self._heap, rest)
            return
        heappop(self._heap)
        if entry[1] == self._policy.root[self._roots - 1]:  # the others come after it
            self._next_root()


def _rest(entry: Entry) -> Entry | None:
    """The copies after the first."""
    minus, v, state, copy, last = entry
    if last == ALONE or copy[-1] == last:
        return None
    return minus, v, state, (*copy[:-1], copy[-1] + 1), last
