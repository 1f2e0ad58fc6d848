"""Objectives of Optuna as most people write them, as runs that pause."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._common.optional import need
from .pacing import Ended, Paced, Reporter
from .runs import Past

if TYPE_CHECKING:
    from optuna import Trial


class PacedTrial:
    """A trial whose ``report`` waits until the trial is advanced; else as the trial itself."""

    def __init__(self, trial: Trial, report: Reporter) -> None:
        self._trial, self._report = trial, report
        self.reported = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trial, name)

    def report(self, value: float, step: int) -> None:
        """Show a value; the search writes it to the storage."""
        self.reported = True
        self._report(value, step=step)

    def should_prune(self) -> bool:
        """Never: a trial that is not worth going on with waits, or ends where it reports."""
        return False


def plain(objective: Callable[[Any], Any]) -> Callable[[Any], Paced]:
    """Take an objective that reports and returns, instead of one that yields.

    It trains in a thread of its own and waits in ``trial.report``. Its costs are the times between
    reports. What it returns counts only if it reports nothing: then it is a run of one step.

    Parameters
    ----------
    objective : callable
        ``objective(trial)`` as for ``study.optimize``.

    Examples
    --------
    >>> optimize(study, plain(objective), model)                             # doctest: +SKIP
    """

    def train(trial: Any, report: Reporter) -> None:
        paced = PacedTrial(trial, report)
        try:
            value = objective(paced)
        except need("optuna", "optuna").TrialPruned:
            raise Ended from None
        if not paced.reported:
            report(value, step=1)

    def start(trial: Any) -> Paced:
        return Paced(train, trial, Past(trial.number))

    return start
