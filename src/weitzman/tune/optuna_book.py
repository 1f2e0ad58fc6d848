"""The storage of an Optuna study as the book of a search."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument
from ..learn.features import Config
from ..learn.tuner_logs import COSTS, ENDED, RUN
from .book import NoMore, T, TakenOver
from .race import Race, Run
from .runs import Row
from .storage_turns import StorageTurns

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

REPAID = "weitzman:repaid"  # of a trial: what training again up to a checkpoint cost
CANDIDATE = "weitzman:candidate"  # of a trial: its number among the candidates
HOLDER = "weitzman:holder"  # of a trial: which process advances it, and until which step
FATE = "weitzman:fate"  # of a trial that broke off and is the best: its state, if it does not win
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

    Processes that share the study learn from the storage what the others did, at each turn: the
    trials of a process that is gone are offered again. A trial says which process advances it.

    Parameters
    ----------
    study : optuna.Study
    race : Race
    optuna : module
    candidates : sequence of mappings, optional
        What trials may be started with.
    most : int, optional
        The most trials that may be started in all.
    turns : StorageTurns, optional
        If other processes take part.
    """

    def __init__(
        self,
        study: Study,
        race: Race,
        optuna: Any,
        *,
        candidates: Sequence[Config] | None = None,
        most: int | None = None,
        turns: StorageTurns | None = None,
    ) -> None:
        self._study, self._race, self._optuna = study, race, optuna
        self._storage: Any = study._storage
        self._candidates, self._most, self._turns = candidates, most, turns
        self._known: list[FrozenTrial] = []  # the trial of each run, as it was when it was read
        self._made: dict[int, Trial] = {}  # trials that this process has advanced
        self._runs: dict[int, int] = {}  # id of a trial -> run
        self._holder: dict[int, list[Any]] = {}  # run -> who advances it, until when
        self._gone: set[str] = set()
        self._repaid: dict[int, float] = {}
        self._told: set[int] = set()  # runs whose trials are not RUNNING
        self._fate: dict[int, Any] = {}  # states of runs that broke off, unless they win

    @property
    def params(self) -> list[dict[str, Any]]:
        """The parameters of each run."""
        return [self._storage.get_trial(trial._trial_id).params for trial in self._known]

    # -- what the storage says -----------------------------------------------------------------

    def catch_up(self) -> None:
        """Tell the race what the storage says and the race does not know."""
        mine = [t for t in self._study.get_trials(deepcopy=False) if RUN in t.user_attrs]
        new = [trial for trial in mine if trial._trial_id not in self._runs]
        for trial in sorted(new, key=lambda t: (int(t.user_attrs[RUN]), t.number)):
            if self._candidates is None and not self._race.startable:  # others may start more
                self._race.allow(1)
            self._note(trial, self._race.started(self._candidate_of(trial)))
        for trial in mine:
            run = self._runs[trial._trial_id]
            if run not in self._told:
                self._learn(run, trial)
        self._find_gone()

    def _note(self, trial: FrozenTrial, run: int) -> None:
        self._runs[trial._trial_id] = run
        self._known.append(trial)

    def _learn(self, run: int, trial: FrozenTrial) -> None:
        race, it = self._race, self._race.runs[run]
        if not it.over:
            if trial.params:
                race.describe(run, trial.params)
            self._follow(run, trial.system_attrs.get(HOLDER))
            steps = sorted(trial.intermediate_values)
            rows = zip(steps, trial.user_attrs.get(COSTS, []), strict=False)  # the last may be of
            for step, cost in list(rows)[len(it.steps) :]:  # no step yet
                race.observe(run, step, trial.intermediate_values[step], cost)
            repaid = trial.user_attrs.get(REPAID, 0.0)
            race.pay(repaid - self._repaid.get(run, 0.0))
            self._repaid[run] = repaid
        if trial.state != self._optuna.trial.TrialState.RUNNING:
            self._told.add(run)
            self._close(run, trial)
        elif FATE in trial.user_attrs and not it.over:
            self._fate[run] = self._optuna.trial.TrialState[trial.user_attrs[FATE]]
            race.failed(run)

    def _follow(self, run: int, holder: list[Any] | None) -> None:
        """Note who advances a run."""
        if self._turns is None or holder is None or holder == self._holder.get(run):
            return
        self._holder[run] = holder
        if holder[0] != self._turns.me:
            self._race.take(run, holder[1])

    def _find_gone(self) -> None:
        """Offer again what processes had that are gone."""
        if self._turns is None:
            return
        flying = [run for run in self._race.in_flight if run in self._holder]
        alive = {self._turns.me, *self._turns.others()} if flying else set()
        self._gone = {self._holder[run][0] for run in flying} - alive
        for run in flying:
            if self._holder[run][0] in self._gone:
                self._race.release(run)

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
        if self._race.runs[run].over:
            return
        if trial.state == self._optuna.trial.TrialState.FAIL:
            self._race.failed(run)
        elif ENDED in trial.user_attrs:
            self._race.ended(run)
        else:
            self._race.leave(run)

    # -- several processes ---------------------------------------------------------------------

    def turn(self, do: Callable[[], T]) -> T:
        if self._turns is None:
            return do()
        inside = self._turns.inside

        def up_to_date() -> T:
            if not inside:
                self.catch_up()
            return do()

        return self._turns.take(up_to_date)

    def held(self, run: int) -> bool:
        if self._turns is None or run not in self._holder:
            return False
        holder = self._holder[run][0]
        return holder != self._turns.me and holder not in self._gone

    def take(self, run: int, until: int) -> None:
        if self._turns is not None:
            self._holder[run] = [self._turns.me, until]
            self._storage.set_trial_system_attr(self._id(run), HOLDER, self._holder[run])

    def _check_mine(self, run: int) -> None:
        """Whether this process still advances a run: others may have taken it for gone."""
        if self._turns is not None and not self._turns.inside:
            holder = self._storage.get_trial(self._id(run)).system_attrs.get(HOLDER)
            if holder is None or holder[0] != self._turns.me:
                raise TakenOver

    # -- writing down --------------------------------------------------------------------------

    def begin(self, run: int, candidate: int | None) -> None:
        if self._candidates is not None and (
            candidate is None or (self._most is not None and run >= self._most)
        ):
            raise NoMore
        trial = self._asked(run, candidate)
        self._made[run] = trial
        self._note(self._storage.get_trial(trial._trial_id), run)

    def _asked(self, run: int, candidate: int | None) -> Trial:
        """A new trial; what it is to the search is written in the same instant.

        Trials that users have enqueued come first.
        """
        state = self._optuna.trial.TrialState
        study: Any = self._study
        noted: dict[str, Any] = {RUN: run}
        hidden: dict[str, Any] = {}
        if self._turns is not None:
            until = self._race.model.next_rung(None)
            hidden[HOLDER] = self._holder[run] = [self._turns.me, until]
        if candidate is not None and self._candidates is not None:
            noted[CANDIDATE] = candidate
            hidden["fixed_params"] = dict(self._candidates[candidate])
        elif study.get_trials(deepcopy=False, states=[state.WAITING]):
            trial: Trial = study.ask()
            for key, value in hidden.items():
                self._storage.set_trial_system_attr(trial._trial_id, key, value)
            trial.set_user_attr(RUN, run)
            return trial
        template = self._optuna.trial.create_trial(
            state=state.RUNNING, user_attrs=noted, system_attrs=hidden
        )
        number = self._storage.create_new_trial(study._study_id, template_trial=template)
        study._thread_local.cached_all_trials = None  # as `ask` does, so that samplers read anew
        made: Trial = self._optuna.trial.Trial(study, number)
        return made

    def _id(self, run: int) -> int:
        return self._known[run]._trial_id

    def config(self, run: int) -> Trial:
        if run not in self._made:
            self._made[run] = self._optuna.trial.Trial(self._study, self._id(run))
        return self._made[run]

    def seen(self, run: int, row: Row) -> None:
        self._check_mine(run)
        trial = self.config(run)
        if trial.params:
            self._race.describe(run, trial.params)
        trial.set_user_attr(COSTS, [*self._race.runs[run].costs, row.cost])
        trial.report(row.score, row.step)

    def paid(self, run: int, cost: float) -> None:
        self._check_mine(run)
        self._repaid[run] = self._repaid.get(run, 0.0) + cost
        self.config(run).set_user_attr(REPAID, self._repaid[run])

    def over(self, run: int, how: str, why: str) -> None:
        self._check_mine(run)
        state = self._optuna.trial.TrialState
        if how == "failed":
            self.config(run).set_user_attr("weitzman:failure", why)
        if how == "ended" and self._score(run) is not None:
            self.config(run).set_user_attr(ENDED, True)
            self._complete(run)
            return
        self._fate[run] = state.FAIL if how == "failed" else state.PRUNED
        if run != self._race.best_run:
            self._tell(run, self._fate[run])
        else:  # it may win
            self.config(run).set_user_attr(FATE, self._fate[run].name)

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
        """Complete the best trial, and note why the search has stopped.

        Of several processes the last one does so, since others may still go on.
        """
        if self._turns is None:
            self._finish()
            return
        turns = self._turns

        def last() -> None:
            self.catch_up()
            if not turns.others():
                self._finish()

        turns.take(last, last=True)

    def _finish(self) -> None:
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
        number = self._known[run].number
        try:
            self._study.tell(number, value, state)
        except RuntimeError:  # a sampler whose grid is used up wants to stop `study.optimize`
            if not self._study.get_trials(deepcopy=False)[number].state.is_finished():
                raise
            self._race.exhausted()
