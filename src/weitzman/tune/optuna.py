"""Tune an Optuna study: pause and resume trials, and stop when no trial is worth its cost.

The objective is a generator: it suggests, trains a step, yields a score, and so on. Trials that
wait stay RUNNING; the best is COMPLETE in the end, as are trials that were trained to their end,
and the others are PRUNED as soon as it is clear that they will not be resumed, so that the sampler
learns from them. Scores are reported as intermediate values; what they cost is in the user
attributes of the trials. So the storage holds all there is to know, a dashboard shows it, and after
a crash the same call goes on where it stood.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from .._common.optional import need
from .._common.system import Process, is_alive, this_process
from ..errors import InvalidArgument, JournalError
from ..learn.tuner_logs import COSTS, ENDED, RUN
from .book import Callback, Catch, LoopSettings, T, check_settings, exceptions
from .loop import Loop
from .outcome import Display, Result, result_of
from .pacing import plain as plain
from .race import Race, Run, RunModel
from .runs import SECONDS, Clock, Row
from .stating import Stated, model_of
from .whole import whole_index

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

REPAID = "weitzman:repaid"  # of a trial: what training again up to a checkpoint cost
OWNER = "weitzman:owner"  # user attribute of the study: the process that drives it
REASON = "weitzman:reason"  # user attribute of the study: why it has stopped


_SETTLE = 0.05  # seconds


def optimize(
    study: Study,
    objective: Callable[..., Any],
    model: Stated = None,
    *,
    price: float | None = None,
    full_run_cost: float | None = None,
    n_trials: int | None = None,
    outside: float | None = None,
    budget: float | None = None,
    workers: int = 1,
    lost: Literal["abandon", "replay"] = "abandon",
    catch: Catch = (),
    refit: bool | None = None,
    clock: Clock = SECONDS,
    timeout: float | None = None,
    alive: int | None = None,
    progress: bool = False,
    callback: Callback | None = None,
) -> Result:
    """Start trials, advance the most promising one, and stop when nothing is worth its cost.

    Parameters
    ----------
    study : optuna.Study
        Of one objective, with any sampler and storage. Its pruner is not asked. If an earlier call
        was cut short, this one goes on where that stood; one process at a time.
    objective : callable
        ``objective(trial)`` returns a generator that suggests parameters and yields, for each
        step, a score, ``(score, cost)`` or ``(score, cost, step)``. One that reports and returns,
        as for ``study.optimize``, is given as ``plain(objective)``. With a second parameter
        ``past`` (a :class:`~weitzman.tune.Past`) it must also bring back a trial from its
        checkpoint; what it suggests is then what was suggested before.
    model : RunModel or Curves, optional
        It must minimize if and only if the study does. Without it all is learned on the way.
    n_trials : int, optional
        At most so many trials in all, those of earlier calls included.
    price, full_run_cost, outside, budget, workers, lost, catch, refit, clock, timeout, alive,
    progress, callback
        As in :func:`weitzman.tune.optimize`. The configuration in a report is the trial. A trial
        that was PRUNED is not resumed, even if the model changes its mind. Trials that a budget
        kept from going on stay RUNNING: a later call takes them up.

    Returns
    -------
    Result
        With the parameters of the trials as configurations. The number of a run is that in the
        user attribute ``weitzman:run`` of its trial.
    """
    optuna = need("optuna", "optuna")
    lower = len(study.directions) == 1 and study.direction == optuna.study.StudyDirection.MINIMIZE
    known = model_of(
        model, price=price, full_run_cost=full_run_cost, minimize=lower if model is None else None
    )
    _check_study(study, known, optuna)
    settings = LoopSettings(
        workers=workers, executor=None, lost=lost, catch=exceptions(catch), refit=refit,
        clock=clock,
        watchers=[*([callback] if callback else []), *([Display()] if progress else [])],
        timeout=timeout, alive=alive,
    )  # fmt: skip
    check_settings(settings, objective)
    begun = sum(RUN in trial.user_attrs for trial in study.get_trials(deepcopy=False))
    available = None if n_trials is None else max(n_trials, begun)
    race = Race(known, available=available, outside=outside, budget=budget)
    book = _Trials(study, race, optuna)
    loop = Loop(race, book, objective, settings)
    with _owned(study):
        book.tell_again()
        loop.run()
        book.finish()
    return result_of(race, [trial.params for trial in book.trials], loop.how_over)


@contextmanager
def _owned(study: Study) -> Iterator[None]:
    """Keep other processes from driving the study: the owner is in a user attribute."""
    me = [*this_process(), secrets.token_hex(8)]
    _check_owner(study, me)
    study.set_user_attr(OWNER, me)
    time.sleep(_SETTLE)  # of two that come at once, the one that wrote last goes on
    _check_owner(study, me)
    try:
        yield
    finally:
        if study.user_attrs.get(OWNER) == me:
            study.set_user_attr(OWNER, None)


def _check_owner(study: Study, me: list[Any]) -> None:
    owner = study.user_attrs.get(OWNER)
    if owner is None or owner == me:
        return
    process = Process(*owner[:4])
    if is_alive(process) is not False:
        raise JournalError(
            f"study {study.study_name!r}: {process} is using the study. One process at a time "
            f"drives it, with several `workers` if need be. End that process first; if it is gone, "
            f"set the user attribute {OWNER!r} of the study to None."
        )


class StopWhenNotWorthIt:
    """A callback for ``study.optimize`` that ends it when no further trial is worth its cost.

    For objectives that train in one go. A trial is taken as one box: its reward is the best score
    of a run, its cost all that the run costs on average. The study stops once its best value is
    worth at least the index of that box.

    Parameters
    ----------
    model : LineModel

    Attributes
    ----------
    index : float
        That index, in units of cost.

    Examples
    --------
    >>> study.optimize(objective, callbacks=[StopWhenNotWorthIt(model)])     # doctest: +SKIP
    """

    def __init__(self, model: Any) -> None:
        self._model: RunModel = model
        self.index = whole_index(model)

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        optuna = need("optuna", "optuna")
        _check_study(study, self._model, optuna)
        done = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
        worths = [self._model.worth(t.value) for t in done if t.value is not None]
        if worths and max(worths) >= self.index:
            study.set_user_attr(
                REASON,
                f"Stop: the index of a further trial, {self.index:.6g}, is not above the best so "
                f"far, worth {max(worths):.6g}.",
            )
            study.stop()


def _check_study(study: Study, model: RunModel, optuna: Any) -> None:
    if len(study.directions) != 1:
        raise InvalidArgument(
            f"the study must have one objective, but it has {len(study.directions)}."
        )
    minimizes = study.direction == optuna.study.StudyDirection.MINIMIZE
    if minimizes != model.minimize:
        raise InvalidArgument(
            f"the study and the model must agree, but the study "
            f"{'minimizes' if minimizes else 'maximizes'} and the model does not."
        )


class _Trials:
    """The storage of a study as the book of a loop."""

    def __init__(self, study: Study, race: Race, optuna: Any) -> None:
        self._study, self._race, self._optuna = study, race, optuna
        self.trials: list[Trial] = []
        self._told: set[int] = set()  # runs whose trials are not RUNNING
        self._fate: dict[int, Any] = {}  # states of runs that broke off, unless they win

    def tell_again(self) -> None:
        """Tell a new race what the storage says."""
        state = self._optuna.trial.TrialState
        mine = [t for t in self._study.get_trials(deepcopy=False) if RUN in t.user_attrs]
        mine.sort(key=lambda t: int(t.user_attrs[RUN]))
        for trial in mine:
            self._race.started()
            self.trials.append(self._optuna.trial.Trial(self._study, trial._trial_id))
        for number, trial in enumerate(mine):
            if trial.params:
                self._race.describe(number, trial.params)
            steps = sorted(trial.intermediate_values)
            costs = trial.user_attrs.get(COSTS, [])
            for step, cost in zip(steps, costs, strict=False):  # the last may be of no step yet
                self._race.observe(number, step, trial.intermediate_values[step], cost)
            self._race.pay(trial.user_attrs.get(REPAID, 0.0))
            if trial.state != state.RUNNING:
                self._told.add(number)
                self._close(number, trial)

    def _close(self, run: int, trial: FrozenTrial) -> None:
        if trial.state == self._optuna.trial.TrialState.FAIL:
            self._race.failed(run)
        elif ENDED in trial.user_attrs:
            self._race.ended(run)
        else:
            self._race.leave(run)

    def turn(self, do: Callable[[], T]) -> T:
        return do()  # one process at a time

    def held(self, run: int) -> bool:
        return False

    def take(self, run: int, until: int) -> None:
        """Nothing to note: trials that wait and trials that are advanced are RUNNING."""

    def begin(self, run: int, candidate: int | None) -> None:
        trial = self._study.ask()
        trial.set_user_attr(RUN, run)
        self.trials.append(trial)

    def config(self, run: int) -> Trial:
        return self.trials[run]

    def seen(self, run: int, row: Row) -> None:
        trial = self.trials[run]
        if trial.params:
            self._race.describe(run, trial.params)
        trial.set_user_attr(COSTS, [*self._race.runs[run].costs, row.cost])
        trial.report(row.score, row.step)

    def paid(self, run: int, cost: float) -> None:
        trial = self.trials[run]
        trial.set_user_attr(REPAID, trial.user_attrs.get(REPAID, 0.0) + cost)

    def over(self, run: int, how: str, why: str) -> None:
        state = self._optuna.trial.TrialState
        if how == "failed":
            self.trials[run].set_user_attr("weitzman:failure", why)
        if how == "ended" and self._score(run) is not None:
            self.trials[run].set_user_attr(ENDED, True)
            self._complete(run)
            return
        self._fate[run] = state.FAIL if how == "failed" else state.PRUNED
        if run != self._race.best_run:  # else it may win
            self._tell(run, self._fate[run])

    def settled(self, runs: Sequence[int]) -> None:
        for run in runs:
            if run == self._race.best_run:  # it may win
                continue
            if self._trained_to_its_end(self._race.runs[run]):
                self._complete(run)
                self._race.ended(run)
            else:
                self._tell(run, self._optuna.trial.TrialState.PRUNED)
                self._race.leave(run)

    def finish(self) -> None:
        """The best trial is complete, and it is noted why the search has stopped."""
        best = self._race.best_run
        if best is not None and best not in self._told:
            self._complete(best)
        for run in self._fate.keys() - self._told:
            self._tell(run, self._fate[run])
        self._study.set_user_attr(REASON, self._race.reason)

    def _trained_to_its_end(self, run: Run) -> bool:
        return self._race.model.next_rung(run.steps[-1]) is None and not math.isnan(run.scores[-1])

    def _score(self, run: int) -> float | None:
        """The best score of a run."""
        scores = [x for x in self._race.runs[run].scores if not math.isnan(x)]
        return max(scores, key=self._race.model.worth, default=None)

    def _complete(self, run: int) -> None:
        self._tell(run, None, self._score(run))

    def _tell(self, run: int, state: Any, value: float | None = None) -> None:
        self._told.add(run)
        try:
            self._study.tell(self.trials[run], value, state)
        except RuntimeError:  # a sampler whose grid is used up wants to stop `study.optimize`
            number = self.trials[run].number
            if not self._study.get_trials(deepcopy=False)[number].state.is_finished():
                raise
            self._race.exhausted()
