"""Which boxes can be opened now, best first, without writing out copies.

A box without copies is ``(number, copy)`` with ``copy = ()``. If the box or boxes above it have
counts, ``copy`` holds the number of the copy (from 1) of each of these boxes, from the root down to
the box itself. For an endless box the last number is its place along the line, from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, Generic, TypeVar

from ..engine.indices import Policy
from ..forest.model import Forest

Copy = tuple[int, ...]
Id = tuple[int, Copy]
Group = tuple[int, int, Copy, int]
"""A box, its parent's state, its first copy not yet passed, the last copy. The order of ties."""

Key = TypeVar("Key", bound=Any)

ALONE = 0  # instead of that number, where no further copies follow


class Box(str):
    """A box handed out: its name, with the numbers of the copies if there are any.

    It is a string, so that it can be a key, printed or sent elsewhere, and where an index is
    expected it counts as the number of the box: ``table[box]`` is its row.

    Attributes
    ----------
    name : str
    number : int
        Name and number of the box in the forest.
    copy : tuple of int
        The number of the copy, from 1, of each box with copies on the way from the root to this
        one. For an endless box the last number is its place along the line.
    move : str
        "open"; or "take", if there are several prizes and the reward of this box should be taken
        for good.

    Examples
    --------
    >>> box = Box("drill", 2, (3, 1))
    >>> box
    'drill#3.1'
    >>> ["a", "b", "c"][box]
    'c'
    """

    __slots__ = ("copy", "move", "name", "number")
    copy: Copy
    move: str
    name: str
    number: int

    def __new__(cls, name: str, number: int, copy: Copy = (), move: str = "open") -> Box:
        self = super().__new__(cls, f"{name}#{'.'.join(map(str, copy))}" if copy else name)
        self.name, self.number, self.copy, self.move = name, number, copy, move
        return self

    def __index__(self) -> int:
        return self.number

    def __getnewargs__(self) -> tuple[str, int, Copy, str]:  # type: ignore[override]
        return self.name, self.number, self.copy, self.move


class Offers(Generic[Key]):
    """What can be opened, best first: the highest index, then the lowest key among equals.

    ``free`` says whether a key is still on offer; others are skipped when they come to the top.

    Examples
    --------
    >>> offers = Offers[str](lambda key: key != "gone")
    >>> for key, index in {"b": 2.0, "a": 2.0, "gone": 3.0}.items():
    ...     offers.put(key, index)
    >>> offers.top(), offers.next(best=2.0)
    (('a', 2.0), None)
    """

    def __init__(self, free: Callable[[Key], bool]) -> None:
        self._free = free
        self._heap: list[tuple[float, Key]] = []

    def __iter__(self) -> Iterator[tuple[Key, float]]:
        """All that are still on offer, in no order."""
        return ((key, -minus) for minus, key in self._heap if self._free(key))

    def put(self, key: Key, index: float) -> None:
        """Offer something."""
        heappush(self._heap, (-index, key))

    def top(self) -> tuple[Key, float] | None:
        """The best offer and its index; None if nothing is left."""
        while self._heap:
            minus, key = self._heap[0]
            if self._free(key):
                return key, -minus
            self.take()
        return None

    def next(self, best: float) -> tuple[Key, float] | None:
        """The best offer, if its index exceeds the best so far; None: stop."""
        top = self.top()
        return top if top is not None and top[1] > best else None

    def take(self) -> None:
        """Leave the best offer behind."""
        heappop(self._heap)

    def withdraw(self, key: Key) -> None:
        """Leave one offer behind, wherever it stands."""
        self._heap = [entry for entry in self._heap if entry[1] != key]
        heapify(self._heap)


class Frontier(Offers[Group]):
    """The boxes that can be opened.

    The heap holds the roots only down to the first that was never on top. Copies are one entry,
    which steps from one to the next. Boxes that are ``opened`` or ``out`` may be in the heap, even
    twice; they are skipped when they come to the top.
    """

    def __init__(self, policy: Policy, opened: Container[Id], out: Container[Id]) -> None:
        super().__init__(lambda group: (box := _first(group)) not in opened and box not in out)
        self._policy = policy
        self._count, self._endless = policy.forest.count, policy.forest.endless
        self._roots = 0  # how many roots were put into the heap
        self.asleep = False  # while a long journal is read; `wake` finds out what can be opened
        self._next_root()

    def add_children(self, box: Id, state: int) -> None:
        """A box was opened and showed ``state``."""
        v, copy = box
        if self.asleep:
            return
        at = self._policy.child_at
        for u in self._policy.child[at[v] : at[v + 1]].tolist():
            if u == v:  # the next one along an endless line
                self.put_back((v, (*copy[:-1], copy[-1] + 1)), state)
            else:
                self.put(self._group(u, copy, state), self.index(u, state))

    def put_back(self, box: Id, state: int) -> None:
        """One box can be opened (again) after its parent showed ``state``."""
        if self.asleep:
            return
        v, copy = box
        self.put((v, state, copy, ALONE), self.index(v, state))

    def best_first(self) -> Iterator[tuple[Id, float]]:
        """All boxes that can be opened and their indices, one copy after the other."""
        ahead = [(self._heap[0], 0)] if self._heap else []
        roots, last = self._roots, None
        while ahead:
            (minus, group), at = heappop(ahead)
            box = _first(group)
            if box != last and self._free(group):  # equal entries follow each other
                last = box
                yield box, -minus
            for below in (2 * at + 1, 2 * at + 2) if at >= 0 else ():
                if below < len(self._heap):
                    heappush(ahead, (self._heap[below], below))
            rest = _rest(group)
            if rest is not None:
                heappush(ahead, ((minus, rest), -1))
            elif box[0] == self._policy.root[roots - 1] and roots < len(self._policy.root):
                v = int(self._policy.root[roots])
                heappush(ahead, ((-self.index(v, 0), self._group(v, (), 0)), -1))
                roots += 1

    def index(self, v: int, state: int) -> float:
        """The index of a box after its parent showed ``state`` (0 for a root)."""
        return float(self._policy.index[self._policy.index_at[v] + state])

    def top(self) -> tuple[Group, float] | None:
        """The best box and its index; None if nothing is left, or while it sleeps."""
        return None if self.asleep else super().top()

    def offered(self) -> tuple[int, list[tuple[Group, float]]]:
        """How many roots were looked at, and all that is on offer: what comes next follows."""
        self.top()
        found = list[tuple[Group, float]]()
        for minus, entry in self._heap:
            group: Group | None = entry
            while group is not None and not self._free(group):  # copies that are open
                group = _rest(group)
            if group is not None:
                found.append((group, -minus))
        return self._roots, found

    def take(self) -> None:
        """Leave the first copy of the best group behind, and those after it that are not free."""
        minus, group = self._heap[0]
        rest = _rest(group)
        while rest is not None and not self._free(rest):
            rest = _rest(rest)
        if rest is not None:
            heapreplace(self._heap, (minus, rest))
            return
        if group[0] == self._policy.root[self._roots - 1]:  # the others come after it
            self._next_root()  # first, lest an interrupt loses a root
        heappop(self._heap)

    def close(self, box: Id, state: int) -> None:
        """A box was closed again: it can be opened after ``state``, its children cannot."""
        f, at = self._policy.forest, self._policy.child_at
        if self.asleep:
            return
        behind = set(self._policy.child[at[box[0]] : at[box[0] + 1]].tolist())
        if behind:
            self._heap = [
                (minus, group)
                for minus, group in self._heap
                if group[0] not in behind or parent_of(f, _first(group)) != box
            ]
            heapify(self._heap)
        self.put_back(box, state)

    def wake(self, answers: Mapping[Id, Any]) -> None:
        """Enter what is behind all boxes that are open, which a sleeping frontier did not note."""
        self.asleep, at = False, self._policy.child_at
        self._heap, self._roots = [], 0
        self._next_root()
        for box, answer in answers.items() if len(self._policy.child) else ():
            if at[box[0]] < at[box[0] + 1]:
                self.add_children(box, answer.state)
        self.top()  # passes over copies that are open: now, not at the first question

    def mark(self) -> tuple[list[tuple[float, Group]], int]:
        """The frontier as it is now, for :meth:`go_back`."""
        return self._heap.copy(), self._roots

    def go_back(self, mark: tuple[list[tuple[float, Group]], int]) -> None:
        """Return to a marked frontier."""
        self._heap, self._roots = mark

    def _group(self, v: int, above: Copy, state: int) -> Group:
        if self._endless[v]:
            return v, state, (*above, 1), ALONE
        count = int(self._count[v])
        return (v, state, (*above, 1), count) if count > 1 else (v, state, above, ALONE)

    def _next_root(self) -> None:
        while self._roots < len(self._policy.root):
            group = self._group(int(self._policy.root[self._roots]), (), 0)
            if group[3] != ALONE or self._free(group):  # what is released is put back in any case
                self.put(group, self.index(group[0], 0))
                self._roots += 1
                return
            self._roots += 1


def parent_of(f: Forest, box: Id) -> Id | None:
    """The parent of a box; None for a root."""
    v, copy = box
    if f.endless[v] and copy and copy[-1] > 1:
        return v, (*copy[:-1], copy[-1] - 1)
    up = int(f.parent[v])
    if up < 0:
        return None
    return up, copy[:-1] if f.count[v] > 1 or f.endless[v] else copy


def _first(group: Group) -> Id:
    return group[0], group[2]


def _rest(group: Group) -> Group | None:
    """The copies after the first."""
    v, state, copy, last = group
    if last == ALONE or copy[-1] == last:
        return None
    return v, state, (*copy[:-1], copy[-1] + 1), last
