r"""Solve a forest exactly.

The problem: boxes on a forest; opening box :math:`i` after its parent showed :math:`s` costs
:math:`c_i(s)` and shows a state :math:`y` with probability :math:`P_i(s, y)`; stop at any time with
the best reward seen or the outside option :math:`x_0`. Maximize E[best - total cost].

The solution, bottom-up, for each box :math:`v` and state :math:`s` of its parent:

.. math::

   W_s &= \max\bigl(r(Y),\ \max_{u\ \text{child of}\ v} \kappa_{u|Y}\bigr),\ Y \sim P_v(s,\cdot)\\
   \sigma_v(s) &: \quad E\,(W_s - \sigma)^+ = c_v(s) \qquad\text{the index}\\
   \kappa_{v|s} &= \min(W_s, \sigma_v(s)) \qquad\text{the capped value}

and :math:`V = E \max(x_0, \max_{\text{roots}} \kappa)`. Opening the available box with the highest
index while it exceeds the best so far earns exactly V, and no policy earns more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast, overload

import numpy as np

from .._common.interruption import interruptible
from .._common.sharing import Executor, check_executor
from .._kernels.jit import avoid_compiling as avoid_compiling
from .._kernels.jit import compile_always as compile_always
from .._kernels.jit import compiled_code as compiled_code
from .._kernels.jit import large_work
from ..errors import InvalidArgument
from ..forest.model import Forest
from .plan import Plan, PlanPass, Progress, check_threads, run_spread
from .prizes import run_several
from .small import is_small, recursion, value_of, work_of
from .solution import Solution, Status, hint
from .weights import takes_several

Answer = TypeVar("Answer", covariant=True)


class Unwritten(Protocol[Answer]):
    """A forest that is not written down and finds its own answer: a LazyForest."""

    @property
    def solve(self) -> Callable[..., Answer]:
        """Bounds on the value, by expanding what matters: see :meth:`LazyForest.solve`."""


_FIRST_EPS = 1e-3  # first guess of the tolerance a box, as a share of what is asked for
_RETRIES = 4
_PATIENCE = 1e9  # steps of work in NumPy where kernels fail: half a minute


@overload
def solve(
    forest: Forest,
    *,
    tolerance: float = 1e-9,
    exact: bool = False,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Solution: ...


@overload
def solve(
    forest: Unwritten[Answer],
    *,
    tolerance: float = 1e-9,
    threads: int | None = None,
    progress: Progress | None = None,
    gap: float = 0.0,
    budget: int = 10_000,
) -> Answer: ...


def solve(
    forest: Forest | Unwritten[Answer],
    *,
    tolerance: float = 1e-9,
    exact: bool = False,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    gap: float = 0.0,
    budget: int | None = None,
) -> Solution | Answer:
    """The optimal value and the index of every box (the paper's generalized reservation values).

    Parameters
    ----------
    forest : Forest, or LazyForest
    tolerance : float
        Certified error of the value, as a share of the range of the rewards.
    exact : bool
        Drop no breakpoint at all. The error is then only rounding, but time and memory can grow
        with the square of the depth.
    threads : int, optional
        All cores by default. Their number does not change the result (bitwise identical).
    executor : optional
        Workers to share the trees: a pool of ``concurrent.futures``, the ``get_executor()`` of a
        Dask client, a :class:`~weitzman.engine.RayExecutor`, anything with ``submit``. The result
        is bitwise identical to the one without.
    progress : callable, optional
        Called now and then with (operations done, operations in all); with an executor, with parts
        of the forest.
    gap, budget
        For a lazy forest only, without ``exact``: see :meth:`LazyForest.solve`.

    Returns
    -------
    Solution
        For a lazy forest, a LazySolution.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.Builder()
    >>> _ = chest.add("A", cost=2, outcomes={0: 0.5, 10: 0.5})
    >>> weitzman.solve(chest.build()).value
    3.0
    """
    check_executor(executor)
    if not isinstance(forest, Forest):
        lazy = _unwritten(forest, exact or executor is not None)
        limit = {} if budget is None else {"budget": budget}
        how: dict[str, Any] = {"threads": threads, "progress": progress, **limit}
        found: Answer = lazy.solve(gap=gap, tolerance=tolerance, **how)
        return found
    if gap != 0.0 or budget is not None:
        raise InvalidArgument(
            "`gap` and `budget` are for a LazyForest; for a Forest there is `tolerance`."
        )
    if not 0 <= tolerance < np.inf:
        raise InvalidArgument(f"`tolerance` must be a number from 0 on, but it is {tolerance}.")
    check_threads(threads)

    one_pass = _one_pass(forest, threads, executor, progress)
    if is_small(forest):
        return _solve_small(forest, tolerance, progress)

    def task() -> Solution:
        with large_work():
            found = _solve(forest, tolerance, None if exact else _FIRST_EPS, one_pass)
        # utilities may span more orders of magnitude than the kernels have digits
        lost = found.status is Status.COARSE and forest.risk_tolerance is not None
        if lost and work_of(forest, _PATIENCE) <= _PATIENCE:
            return _solve_small(forest, tolerance, progress)
        return found

    return interruptible(task)


OnePass = Callable[[Plan, float], PlanPass]


def _one_pass(
    forest: Forest, threads: int | None, executor: Executor | None, progress: Progress | None
) -> OnePass:
    """How one pass over the plan with a tolerance is made."""
    if takes_several(forest):
        if executor is not None:
            raise InvalidArgument(
                "an executor cannot share the trees of a forest with several prizes. Leave "
                "`executor` out: threads share them."
            )
        return lambda plan, eps: run_several(plan, eps, threads, progress)
    if executor is not None:
        return lambda plan, eps: run_spread(plan, eps, executor, progress)
    return lambda plan, eps: plan.run(eps, threads, progress)


def _solve_small(forest: Forest, tolerance: float, progress: Progress | None) -> Solution:
    """The recursion in NumPy alone, which drops nothing."""
    f, found = forest, recursion(forest)
    if progress is not None:
        progress(len(found.law), len(found.law))
    value = value_of(f, found)
    error, status = judged(f, 0.0 if np.isfinite(value) else np.inf, tolerance)
    index = f.sign * found.sigma + 0.0  # no negative zero is shown to anybody
    index.flags.writeable = False
    return Solution(
        f, float(f.sign * value + 0.0), error, status, found.width, found.class_of, found.start,
        index,
    )  # fmt: skip


def _solve(forest: Forest, tolerance: float, share: float | None, one_pass: OnePass) -> Solution:
    """Passes until the certified error is small enough; no ``share``: nothing may be dropped."""
    plan = Plan.of(forest)
    weights = plan.weights
    target = tolerance * plan.payoff_span()
    run = _within(plan, target, share, one_pass)
    more = weights.rounding(run.tail[0].min(initial=0.0)) if weights.tolerance > 0 else 0.0
    if weights.tolerance == 0 or weights.gap(run.value, more) <= target:
        more = 0.0  # rounding counts only where factors magnify it enough to matter
    error = max(weights.gap(run.value, run.gap + more), 0.0)
    found, status = judged(forest, error if np.isfinite(run.value) else np.inf, target)
    sign = forest.sign
    index = sign * weights.read_back(run.sigma) + 0.0
    index.flags.writeable = False
    return Solution(
        forest, float(sign * weights.read_back(run.value) + 0.0), found, status,
        int(run.width.sum()), plan.class_of, plan.sigma_at, index,
    )  # fmt: skip


def judged(forest: Forest, error: float, target: float) -> tuple[float, Status]:
    """The error of a value with what was stated about its forest, and how exact that makes it."""
    status = Status.COARSE
    if error <= target:
        status = Status.EXACT if error == 0 else Status.CERTIFIED
    if forest.stated_error > 0:  # no bound is known for certainty equivalents
        error = error + forest.stated_error if forest.risk_tolerance is None else np.inf
        status = status if status is Status.COARSE else Status.DISCRETIZED
    return error, status


def _within(plan: Plan, target: float, share: float | None, one_pass: OnePass) -> PlanPass:
    """Passes until the certified error is at most the target, or cannot become smaller."""
    weights = plan.weights
    # what a box may drop
    eps = share * target * weights.unit() if share is not None and np.isfinite(target) else 0.0
    run = one_pass(plan, eps)
    for _ in range(_RETRIES):  # errors added up more than guessed: now their size is known
        if not weights.gap(run.value, run.gap) > target:
            break
        eps *= target / weights.gap(run.value, run.gap) / 4
        run = one_pass(plan, eps)
    return run


def pass_within(plan: Plan, target: float, threads: int | None) -> PlanPass:
    """A pass over the plan of a plain forest whose certified error is at most the target."""
    return _within(plan, target, _FIRST_EPS, lambda plan, eps: plan.run(eps, threads))


def _unwritten(forest: object, finite_only: bool) -> Unwritten[Any]:
    """Solve an object that is not a Forest by its own method, or refuse it."""
    if not callable(getattr(forest, "solve", None)):
        raise InvalidArgument(
            f"solve needs a Forest, but got a {type(forest).__name__}. "
            + hint(
                forest,
                "Describe one with Forest.from_arrays, Builder or line, or read a file with load.",
            )
        )
    if finite_only:
        raise InvalidArgument("`exact` and `executor` are for a Forest, not for a LazyForest.")
    return cast(Unwritten[Any], forest)
