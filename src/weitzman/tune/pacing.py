"""Training that reports as it goes, as a run that pauses: for loops of other libraries.

A function ``train(config, report)`` runs in a thread of its own. Each ``report(score)`` hands the
score over and waits there until the run is advanced again. So any training loop with a callback
can be paused and resumed, and ended: then ``report`` raises :class:`Ended`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from .._common.optional import need
from ..errors import InvalidAnswer
from .runs import Past

if TYPE_CHECKING:
    from optuna import Trial

Train = Callable[..., Any]


class Ended(Exception):
    """The run should not be trained any further; raised in ``report``, and expected there."""


class Reporter:
    """What a function that trains calls to show a score.

    Attributes
    ----------
    past : Past
        What the run has shown so far; ``past.step`` is 0 for a new run.
    """

    def __init__(self, past: Past) -> None:
        self.past = past
        self.closed = False
        self.shown: SimpleQueue[Any] = SimpleQueue()  # what was reported, or how it ended
        self.turns: SimpleQueue[bool] = SimpleQueue()  # True: go on; False: end

    def __call__(self, score: float, cost: float | None = None, step: int | None = None) -> None:
        """Show a score, and wait until the run is advanced.

        Parameters
        ----------
        score : float
        cost : float, optional
            What the step cost; by default the time that it took.
        step : int, optional
            The number of the step; by default one more than before.

        Raises
        ------
        Ended
            When the run should not be trained any further. Do not catch it, or end training.
        """
        steps = self.past.steps
        if step is not None and steps and step <= steps[-1]:
            return  # it has been seen: `train` went back to its last checkpoint
        self.shown.put((score, cost, step))
        self._wait()

    def offer(self, score: float, cost: float | None = None, step: int | None = None) -> bool:
        """Show a score without raising, for callbacks: returns whether to go on."""
        try:
            self(score, cost, step)
        except Ended:
            return False
        return True

    def _wait(self) -> None:
        if self.closed or not self.turns.get():
            self.closed = True
            raise Ended


class Paced:
    """A run made of a function that trains and reports: an object with ``advance`` and ``close``.

    Parameters
    ----------
    train : callable
        ``train(config, report)``, where ``report`` is a :class:`Reporter`.
    config : object
    past : Past, optional

    Examples
    --------
    >>> def train(config, report):
    ...     for epoch in range(3):
    ...         report(config * epoch, cost=1.0)
    >>> run = Paced(train, 5)
    >>> run.advance(), run.advance()
    ((0, 1.0, None), (5, 1.0, None))
    >>> run.close()
    """

    def __init__(self, train: Train, config: Any, past: Past | None = None) -> None:
        self._report = Reporter(past or Past(0))
        self._thread = threading.Thread(
            target=_follow,
            args=(train, config, self._report),
            daemon=True,
            name="weitzman run",
        )
        self._over = False

    def advance(self) -> tuple[float, float | None, int | None] | None:
        """Train until the next report; None at the end."""
        if self._over:
            return None
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._report.turns.put(True)
        shown = self._report.shown.get()
        if isinstance(shown, tuple):
            return shown
        self._over = True
        self._thread.join()
        if isinstance(shown, BaseException):
            raise shown
        return None

    def close(self) -> None:
        """End training where it waits."""
        if self._over or self._thread.ident is None:
            return
        self._over = True
        self._report.turns.put(False)
        self._report.turns.put(False)  # a second report after the first refusal does not wait
        self._thread.join()


def _follow(train: Train, config: Any, report: Reporter) -> None:
    """Train in this thread; at the end say how it ended."""
    try:
        train(config, report)
    except Ended:
        report.shown.put(None)
    except BaseException as error:
        report.shown.put(error)
    else:
        report.shown.put(None)


def paced(train: Train, *, resumes: bool = False) -> Callable[..., Paced]:
    """Make a ``start`` for :func:`weitzman.tune.optimize` of a function that trains and reports.

    Parameters
    ----------
    train : callable
        ``train(config, report)``: trains, and calls ``report(score)`` after each step. Anything
        that trains can be called within; see the callbacks in :mod:`weitzman.tune.callbacks`.
    resumes : bool
        ``train`` can go on from a checkpoint: if ``report.past.step`` is not 0, it must continue
        with the step after that one.

    Examples
    --------
    >>> from weitzman import learn, tune
    >>> log = {"run": [0, 0, 1, 1, 2, 2], "step": [1, 2] * 3, "score": [5, 7, 4, 4, 6, 9]}
    >>> model = learn.fit(learn.Curves.read(log, cost=None), price=100)
    >>> def train(config, report):
    ...     for epoch in (1, 2):
    ...         report(config * epoch, cost=1.0)
    >>> tune.optimize(tune.paced(train), [1, 5, 2], model).best_config
    5
    """
    if not callable(train):
        raise InvalidAnswer(f"`train` must be a function, but it is {train!r}.")

    def fresh(config: Any) -> Paced:
        return Paced(train, config)

    def back(config: Any, past: Past) -> Paced:
        return Paced(train, config, past)

    return back if resumes else fresh


class PacedTrial:
    """A trial whose ``report`` waits until the trial is advanced; otherwise like the trial."""

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
        """Never: a trial that is not worth continuing waits, or ends where it reports."""
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
