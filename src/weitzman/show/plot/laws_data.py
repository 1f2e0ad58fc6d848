"""The numbers behind pictures of laws: capped values and payoffs."""

from __future__ import annotations

from ...engine.capped_laws import CappedLaw
from ...engine.solution import Solution
from ...errors import InvalidArgument
from ...policy.payoff_laws import PayoffLaw as PayoffLaw
from ...policy.payoff_laws import payoff_law as payoff_law
from ...policy.payoff_laws import state_called as state_called


def check_solution(solution: object, what: str) -> None:
    """Most pictures need a solution; a clear word for anything else."""
    if not isinstance(solution, Solution):
        raise InvalidArgument(
            f"{what} needs a solution, but got a {type(solution).__name__}. Call solve(forest) "
            f"first."
        )


def capped_law(
    solution: Solution, box: str | int | None = None, state: str | int | float | None = None
) -> CappedLaw:
    """See :meth:`Solution.capped_law <weitzman.Solution.capped_law>`."""
    check_solution(solution, "the law of a capped value")
    return solution.capped_law(box, state)
