"""The storage of an Optuna study as the book of a search."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument
from ..learn.known import Config
from ..learn.tuner_logs import COSTS, ENDED, RUN
from .book import NoMore, T
from .race import Race, Run
from .runs import Row

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

REPAID = "weitzman:repaid"  # of a trial: what training again up to a checkpoint cost
CANDIDATE = "weitzman:candidate"  # of a trial: its number among the candidates
REASON = "weitzman:reason"  # of the study: why it has stopped


def clear_waiting(study: Study, optuna: Any) -> None:
    """Drop candidates that a crash left in the queue; refuse a queue made by others."""
    state = optuna.trial.TrialState
    waiting = study.get_trials(deepcopy=False, states=[state.WAITING])
    others = [trial.number for trial in waiting if CANDIDATE not in trial.user_attrs]
    if others:
        raise InvalidArgument(
            f"with `candidates` the study must have no enqueued trials, but trial {others[0]} is "
            f"WAITING ({len(others)} in all). Add their parameters to the candidates."
        )
    for _ in waiting:
        study.tell(study.ask(), state=state.FAIL)


class StudyBook:
    """The storage of a study as the book of a loop.

    Parameters
    ----------
    study : optuna.Study
    race : Race
    optuna : module
    candidates : sequence of mappings, optional
        What trials may be started with.
    most : int, optional
        The most trials that may be started in all.
    """

    def __init__(
        self,
        study: Study,
        race: Race,
        optuna: Any,
        *,
        candidates: Sequence[Config] | None = None,
        most: int | None = None,
    ) -> None:
        self._study, self._race, self._optuna = study, race, optuna
        self._candidates, self._most = candidates, most
        self.trials: list[Trial] = []
        self._told: set[int] = set()  # runs whose trials are not RUNNING
        self._fate: dict[int, Any] = {}  # states of runs that broke off, unless they win

    def tell_again(self) -> None:
        """Tell a new race what the storage says."""
        state = self._optuna.trial.TrialState
        mine = [t for t in self._study.get_trials(deepcopy=False) if RUN in t.user_attrs]
        mine.sort(key=lambda t: int(t.user_attrs[RUN]))
        for trial in mine:
            self._race.started(self._candidate_of(trial))
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

    def _candidate_of(self, trial: FrozenTrial) -> int | None:
        """The candidate that a trial of an earlier call was, which must still be one."""
        if self._candidates is None:
            return None
        number = int(trial.user_attrs.get(CANDIDATE, -1))
        known = self._candidates[number] if 0 <= number < len(self._candidates) else None
        if known is None or any(trial.params.get(name, x) != x for name, x in known.items()):
            raise InvalidArgument(
                f"the candidates must be those of the earlier call, but trial {trial.number} was "
                f"started with {trial.params}, which is "
                f"{'no candidate' if known is None else f'not candidate {number}'}."
            )
        return number

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
        if self._candidates is not None:
            if candidate is None or (self._most is not None and run >= self._most):
                raise NoMore
            fixed = dict(self._candidates[candidate])
            self._study.enqueue_trial(fixed, user_attrs={CANDIDATE: candidate})
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
        """Complete the best trial, and note why the search has stopped."""
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
