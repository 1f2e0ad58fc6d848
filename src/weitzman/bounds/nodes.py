"""One box of a forest that is not written down as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Node:
    """A box, without the boxes behind it.

    Parameters
    ----------
    law : array
        A vector for a root; for a child a matrix with a row for each state of its parent. Nodes of
        one kind should share one array.
    rewards : array
        The reward of each state; minus infinity (plus, when minimizing) marks a mere signal.
    cost : number or array
        As in :meth:`Forest.from_arrays <weitzman.Forest.from_arrays>`: a number; for a child one
        number per state of its parent; or a matrix where it depends on what is found.
    name : str
        A name that no other node has. By default the way from the root: "0.2.1" is the second
        child of the third child of the first root.
    data : object
        Whatever the function that makes the children wants to know. Nothing else looks at it.
    count : int
        So many copies, each with its own copy of all that lies behind.
    states : names, optional
        Of the states; otherwise they have numbers.
    """

    law: ArrayLike
    rewards: ArrayLike
    cost: ArrayLike
    name: str = ""
    data: Any = None
    count: int = 1
    states: Sequence[object] | None = None

    def __repr__(self) -> str:
        return f"Node({self.name!r})"


Expand = Callable[[Node], Iterable[Node]]
"""The children of a node, in an order that is always the same; none if it has no children."""
