"""Which states lead where: communicating classes, periods, ways to a set of states."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import IntArray
from .._common.numbers import such
from .._common.optional import need
from ..errors import InvalidArgument


class CommunicatingClass(NamedTuple):
    """A largest set of states that all lead to each other."""

    states: IntArray
    recurrent: bool
    """Whether the chain stays once it is there."""
    period: int
    """Greatest common divisor of the lengths of all ways back; 0 if there is none."""


def classes(graph: Any) -> tuple[CommunicatingClass, ...]:
    """The communicating classes of a chain in CSR form, by their first state.

    The period of a class is the greatest common divisor of level(i) + 1 - level(j) over its edges
    i -> j, where level is the number of steps from any one of its states.
    """
    sparse, csgraph = need("scipy.sparse", "scipy"), need("scipy.sparse.csgraph", "scipy")
    k = graph.shape[0]
    count, label = csgraph.connected_components(graph, connection="strong")
    row, col = graph.nonzero()
    within = label[row] == label[col]
    recurrent = np.ones(count, bool)
    recurrent[label[row[~within]]] = False
    row, col = row[within], col[within]
    _, first = np.unique(label, return_index=True)
    edges = np.concatenate([row, np.full(count, k)]), np.concatenate([col, first])
    star = sparse.csr_array((np.ones(len(edges[0])), edges), shape=(k + 1, k + 1))
    level = csgraph.shortest_path(star, method="D", unweighted=True, indices=k)[:k]
    period = np.zeros(count, np.int64)
    np.gcd.at(period, label[row], np.abs(level[row] + 1 - level[col]).astype(np.int64))
    by_label = np.argsort(label, kind="stable")
    members = np.split(by_label, np.cumsum(np.bincount(label, minlength=count))[:-1])
    found = [
        CommunicatingClass(members[i], bool(recurrent[i]), int(period[i])) for i in range(count)
    ]
    return tuple(sorted(found, key=lambda c: int(c.states[0])))


def only_recurrent(found: tuple[CommunicatingClass, ...]) -> IntArray:
    """The states of the only recurrent class."""
    closed = [c.states for c in found if c.recurrent]
    if len(closed) > 1:
        raise InvalidArgument(
            f"a stationary distribution is unique if there is one recurrent class, but states "
            f"{closed[0][0]} and {closed[1][0]} never meet ({such(len(closed), 'class')}). Make a "
            f"chain of each class."
        )
    return closed[0]


def must_converge(period: int) -> None:
    """Refuse a periodic chain: its law of box t does not converge."""
    if period > 1:
        raise InvalidArgument(
            f"the law of box t must converge, but the chain has period {period}. A chain that "
            f"sometimes stays where it is has period 1."
        )


def leading_to(graph: Any, target: Any, avoid: Any = None) -> Any:
    """States with a way into the target that never enters ``avoid``; states of the target count.

    The arguments are masks over the states; so is the result.
    """
    sparse, csgraph = need("scipy.sparse", "scipy"), need("scipy.sparse.csgraph", "scipy")
    k, aim = graph.shape[0], np.flatnonzero(target)
    row, col = graph.nonzero()
    if avoid is not None:
        row, col = row[~avoid[col]], col[~avoid[col]]
    edges = np.concatenate([col, np.full(len(aim), k)]), np.concatenate([row, aim])  # turned round
    back = sparse.csr_array((np.ones(len(edges[0])), edges), shape=(k + 1, k + 1))
    found = np.zeros(k + 1, bool)
    found[csgraph.breadth_first_order(back, k, return_predecessors=False)] = True
    return found[:k]
