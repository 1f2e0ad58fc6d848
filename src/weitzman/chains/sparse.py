"""Linear systems of large sparse chains, never made dense.

A chain whose states can be put in a row so that it only moves to near ones is factored directly:
there is little fill. Any other large chain is taken to mix well, as wide graphs do, and solved by a
Krylov method, repeated on what is left over. If that does not settle, an error says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import FloatArray
from .._common.optional import need
from ..errors import WeitzmanError

_FILL = 5e7  # states times bandwidth up to which factors are small enough
_WORK = 2000  # steps of the Krylov method
_ROUNDS = 6
_ENOUGH = 1e-11  # residual that is accepted


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

    The relative error of each entry is at most the residual, since the inverse is positive; that
    can be as small as rounding of the largest entry leaves it.
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
