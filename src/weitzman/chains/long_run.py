"""A chain in the long run: classes, the stationary distribution, and how fast it is reached.

Large sparse chains are never made dense. Where the states can be ordered so that the chain moves
only to near ones, the matrix is factored directly, with little fill. Any other large chain is
assumed to mix well, as wide graphs do, and is solved by a Krylov method, repeated on the residual.
If the residual stays large, an error says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.optional import need
from ..errors import InvalidArgument, WeitzmanError

_PAIRS = 300  # states up to which all pairs of rows are compared
_SMALL = 1e-3  # spread at which larger powers are no longer tried
_EPS = float(np.finfo(np.float64).eps)
_TOO_SLOW = "the chain mixes so slowly that rounding hides it: its distances cannot be computed."

_FILL = 5e7  # states times bandwidth up to which factors are small enough
_WORK = 2000  # steps of the Krylov method
_ROUNDS = 6
_ENOUGH = 1e-11  # residual that is accepted


class CommunicatingClass(NamedTuple):
    """A maximal set of states that all lead to each other."""

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


class Rate(NamedTuple):
    """Constants with max over s of the distance of P^t(s, .) to pi at most C alpha^t, all t."""

    C: float
    alpha: float


def variation(rows: FloatArray, pi: FloatArray) -> float:
    """Largest total-variation distance of a row to pi."""
    return float(np.abs(rows - pi).sum(axis=1).max() / 2)


def later(rows: FloatArray, law: Any, t: int) -> FloatArray:
    """Distributions t steps later; the law may be sparse."""
    if isinstance(law, np.ndarray) and t * len(rows) > 2 * len(law) * t.bit_length():
        while t:
            rows = rows @ law if t % 2 else rows
            law, t = _square(law) if t > 1 else law, t // 2
    for _ in range(t):
        rows = np.asarray(rows @ law)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def mixing_time(law: FloatArray, pi: FloatArray, eps: float) -> int:
    """Least t with a distance of at most eps, for a chain that converges."""
    if 1 - pi.min() <= eps:
        return 0
    powers = [law]
    while variation(powers[-1], pi) > eps:
        if _rounding(law, 2 ** len(powers)) > eps:
            raise InvalidArgument(_TOO_SLOW)
        powers.append(_square(powers[-1]))
    rows, t = np.eye(len(law)), 0  # a time that is too early, digit by digit
    for j in range(len(powers) - 2, -1, -1):
        later = rows @ powers[j]
        if variation(later, pi) > eps:
            rows, t = later, t + 2**j
    return t + 1


def rate(law: FloatArray, pi: FloatArray) -> Rate:
    """See :meth:`weitzman.chains.Chain.rate`."""
    d, power, m, best = [1 - float(pi.min())], law, 1, Rate(np.inf, 0.0)
    while True:
        slack = _rounding(law, m)
        if slack > _SMALL:
            if best.alpha > 0:
                return best
            raise InvalidArgument(_TOO_SLOW)
        now = min(1.0, variation(power, pi) + slack)
        spread = min(1.0, 2 * now, _spread(power) + slack)
        if spread < 1:
            alpha = spread ** (1 / m)
            # for r from 2^j to before 2^(j + 1), d(r) is at most d(2^j)
            last = [min(2 ** (j + 1), m) - 1 for j in range(len(d) - 1)]
            C = max([d[0]] + [x * alpha**-r for x, r in zip(d[1:], last, strict=True)])
            if C / (1 - alpha) < best.C / (1 - best.alpha):
                best = Rate(C, alpha)
            if spread < _SMALL:
                return best
        d.append(now)
        power, m = _square(power), 2 * m


def _rounding(law: FloatArray, m: int) -> float:
    """More than rounding can have moved a row of the m-th power, m reached by squaring."""
    return 4 * len(law) * m * _EPS


def _square(law: FloatArray) -> FloatArray:
    twice = law @ law
    return np.asarray(twice / twice.sum(axis=1, keepdims=True))


def _spread(rows: FloatArray) -> float:
    """Largest distance between two rows; 1 if there are too many to compare."""
    if len(rows) > _PAIRS:
        return 1.0
    return max(variation(rows, row) for row in rows)


def stationary(law: Any) -> FloatArray:
    """The stationary distribution of an irreducible chain in CSR form."""
    sparse = need("scipy.sparse", "scipy")
    n = law.shape[0]
    back = law.T.tocsr()
    pi = np.full(n, 1 / n)
    for _ in range(50):  # finds a state that is visited often
        pi = (pi + back @ pi) / 2
    if _narrow(law):
        rest = np.delete(np.arange(n), np.argmax(pi))
        system = sparse.eye_array(n, format="csr") - back
        into = (back[:, [int(np.argmax(pi))]]).toarray()[rest, 0]
        pi = np.insert(_direct(system[rest][:, rest], into), int(np.argmax(pi)), 1.0)
    else:
        u = pi  # I - P' + u 1' is regular, and takes the stationary distribution to u
        pi = _krylov(lambda x: x - back @ x + u * x.sum(), u, n)
    pi = np.maximum(pi, 0.0)
    pi /= pi.sum()
    _settled(float(np.abs(back @ pi - pi).sum()))
    return np.asarray(pi)


def absorb(inner: Any) -> FloatArray:
    """Solve (I - inner) x = 1 for a chain in CSR form that leaves in the end.

    The relative error of each entry is at most the residual, since the inverse is positive. The
    residual can be as small as the rounding of the largest entry.
    """
    sparse = need("scipy.sparse", "scipy")
    n = inner.shape[0]
    right = np.ones(n)
    if n == 0:
        return right
    if _narrow(inner):
        x = _direct(sparse.eye_array(n, format="csr") - inner, right)
    else:
        x = _krylov(lambda y: y - inner @ y, right, n)
    _settled(float(np.abs(x - inner @ x - right).max()), float(x.max()))
    return x


def _narrow(matrix: Any) -> bool:
    order = need("scipy.sparse.csgraph", "scipy").reverse_cuthill_mckee(matrix)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    entries = matrix.tocoo()
    ahead = np.abs(place[entries.row].astype(np.int64) - place[entries.col])
    return bool(ahead.max(initial=0) * len(order) <= _FILL)


def _direct(matrix: Any, right: FloatArray) -> FloatArray:
    linalg = need("scipy.sparse.linalg", "scipy")
    if matrix.shape[0] == 0:
        return right
    factors = linalg.splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0)
    x = factors.solve(right)
    x += factors.solve(right - matrix @ x)
    return np.asarray(x)


def _krylov(product: Any, right: FloatArray, n: int) -> FloatArray:
    linalg = need("scipy.sparse.linalg", "scipy")
    operator = linalg.LinearOperator((n, n), matvec=product, dtype=np.float64)
    x, left = np.zeros(n), right
    for _ in range(_ROUNDS):
        step, _ = linalg.bicgstab(operator, left, rtol=1e-10, atol=0.0, maxiter=_WORK)
        rest = right - product(x + step)
        if not np.abs(rest).sum() < np.abs(left).sum() / 2:
            break
        x, left = x + step, rest
    return np.asarray(x)


def _settled(residual: float, size: float = 1.0) -> None:
    if not residual <= max(_ENOUGH, 64 * size * float(np.finfo(np.float64).eps)):
        raise WeitzmanError(
            f"the sparse system cannot be solved: a residual of {residual:.1e} is left. The chain "
            f"is too wide to factor and mixes too slowly to iterate, or its times exceed what "
            f"double precision holds. Give the law as a dense array, or merge states."
        )
