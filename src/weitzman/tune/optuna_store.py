"""The storage of an Optuna study as the store of a search that several processes may drive.

A storage has no lock, and nothing that is safe can be built of attributes that are read, judged and
written. But it has two steps that only one of several processes can make: a trial goes from WAITING
to RUNNING once, and a trial that is finished can be changed by nobody. So:

* A trial that waits for its turn is WAITING, and is advanced by the process that makes it RUNNING.
  (It stays RUNNING where only the process that has it in memory can continue with it.)
* The trial of a process that is gone is failed, and a copy of it, made before, takes its place. If
  the process was only stopped, all that it writes about the old trial from then on is rejected.
* Of two trials that start the same candidate, the one with the higher number fails. Numbers are
  given out one by one, so all processes agree on which one that is.

A process stopped between any two instructions therefore holds nothing that it does not have. Who is
advancing a trial stands in its attributes, but only to find out which trials nobody advances.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from .._common.disk import Heartbeats, Process, this_process
from ..errors import InvalidArgument
from ..learn.log_readers import CONTINUES, COSTS, ENDED, RUN
from ..learn.log_tables import Config
from .race import Race
from .run_store import NoMore, TakenOver
from .runs import Row

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

    from .loop import Loop

T = TypeVar("T")
REPAID = "weitzman:repaid"  # of a trial: what training again up to a checkpoint cost
CANDIDATE = "weitzman:candidate"  # of a trial: its number among the candidates
HOLDER = "weitzman:holder:"  # of a trial, with a process: until which step it has it, or null
FATE = "weitzman:fate"  # of a trial that broke off and is the best: its state, if it does not win
REASON = "weitzman:reason"  # of the study: why it has stopped
BEAT = "weitzman:beat:"  # of the study, with a process: its heartbeats
HEARTBEAT = 10.0  # seconds
LEASE = 120.0  # seconds without a heartbeat, after which a process on another machine is gone


class StudyStore:
    """The storage of a study as the store of a loop.

    Trials start with one of the ``candidates``, if there are any, and at ``most`` so many in all.
    ``movable`` says whether any process can continue with any trial.
    """

    durable = True

    def __init__(
        self, study: Study, race: Race, optuna: Any, *,
        candidates: Sequence[Config] | None = None, most: int | None = None, movable: bool = True,
    ) -> None:  # fmt: skip
        self._study, self._race, self._optuna = study, race, optuna
        self._storage: Any = study._storage
        self._state = optuna.trial.TrialState
        # what a storage raises if a finished trial is to be changed; Optuna 4 has no name for it
        self._finished = getattr(optuna.exceptions, "UpdateFinishedTrialError", RuntimeError)
        self._candidates, self._movable = candidates, movable
        self._most = math.inf if most is None else most
        self.me = secrets.token_hex(8)
        self._process = this_process()
        self._known: list[FrozenTrial] = []  # the trial of each run, as it was when it was read
        self._made: dict[int, Trial] = {}  # trials that this process has advanced
        self._runs: dict[int, int | None] = {}  # number of a trial -> run; None: it does not count
        self._started: set[int] = set()  # candidates
        self._mine: set[int] = set()  # runs that this process is advancing,
        self._parked: set[int] = set()  # and those that it has only just stopped advancing
        self._held: set[int] = set()  # runs that others are advancing
        self._repaid: dict[int, float] = {}
        self._closed: set[int] = set()  # runs whose trials are finished
        self._fate: dict[int, Any] = {}  # states of runs that broke off, unless they win
        self._beats, self._over = Heartbeats(), threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True, name="weitzman heartbeat")
        if not isinstance(self._storage, optuna.storages.InMemoryStorage):
            self._heart.start()

    @property
    def started(self) -> list[dict[str, Any]]:
        """The parameters of each run."""
        return [self._storage.get_trial(trial._trial_id).params for trial in self._known]

    # -- what the storage says -----------------------------------------------------------------

    def restore(self, loop: Loop) -> None:
        """Tell a new loop what the storage says."""
        self.catch_up()

    def catch_up(self) -> None:
        """Tell the race what the storage says and the race does not know."""
        trials = self._study.get_trials(deepcopy=False)
        marked = [trial for trial in trials if RUN in trial.user_attrs]
        for trial in marked:  # by number, so that all processes number their runs alike
            if trial.number not in self._runs:
                self._register(trial, trials)
        self._held.clear()
        for trial in marked:
            run = self._runs.get(trial.number)
            if run is None or run in self._closed or trial.number != self._known[run].number:
                continue  # it does not count, nothing more can come of it, or it has a copy
            self._learn(run, trial)

    def _register(self, trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> None:
        before = trial.user_attrs.get(CONTINUES)
        if before is not None:
            run = self._runs.get(before)
            first = run is None or self._known[run].number == before
            if trials[before].state != self._state.FAIL:
                return  # not yet, or never
            self._runs[trial.number] = run if first else None
            if run is not None and first:
                self._known[run] = trial
                self._made.pop(run, None)
                self._mine.discard(run)
                self._parked.discard(run)
            return
        number = self._candidate_of(trial)
        if number in self._started or len(self._known) >= self._most:
            self._runs[trial.number] = None
            return
        if number is not None:
            self._started.add(number)
        self._runs[trial.number] = self._race.started(number)
        self._known.append(trial)

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

    def _learn(self, run: int, trial: FrozenTrial) -> None:
        race, it = self._race, self._race.runs[run]
        if not it.over:
            if trial.params:
                race.describe(run, trial.params)
            steps = sorted(trial.intermediate_values)
            rows = zip(steps, trial.user_attrs.get(COSTS, []), strict=False)  # the last may be of
            for step, cost in list(rows)[len(it.steps) :]:  # no step yet
                race.observe(run, step, trial.intermediate_values[step], cost)
            repaid = trial.user_attrs.get(REPAID, 0.0)
            race.pay(repaid - self._repaid.get(run, 0.0))
            self._repaid[run] = repaid
        if trial.state.is_finished():
            self._closed.add(run)
        if it.over:
            return
        if trial.state.is_finished():
            failed, ended = trial.state == self._state.FAIL, ENDED in trial.user_attrs
            (race.failed if failed else race.ended if ended else race.leave)(run)
        elif FATE in trial.user_attrs:
            self._fate[run] = self._state[trial.user_attrs[FATE]]
            race.failed(run)
        elif run not in self._mine | self._parked:
            held: list[int] = []  # until which steps living processes advance it
            if trial.state == self._state.RUNNING:
                held = [until for until in self._holders(trial).values() if until is not None]
            if not held:
                if it.until is not None:
                    race.release(run)
            else:
                self._held.add(run)
                if it.until is None and max(held) > it.steps[-1]:
                    race.take(run, max(held))

    def _holders(self, trial: FrozenTrial) -> dict[str, int | None]:
        """The living processes that have a trial, each with the step until which it advances it."""
        found: dict[str, int | None] = {}
        for key, said in trial.system_attrs.items():
            if key.startswith(HOLDER) and said is not None:
                name, process = key.removeprefix(HOLDER), Process(*said[0])
                beats = partial(self._beats_of, name)
                if name == self.me or not self._beats.is_gone(name, process, beats, LEASE):
                    found[name] = said[1]
        return found

    def _beats_of(self, name: str) -> int:
        said = self._storage.get_study_system_attrs(self._study._study_id)
        return int(said.get(f"{BEAT}{name}", 0))

    def _say_beat(self, beats: int | None) -> None:
        with suppress(Exception):  # a storage that is busy: the next one may come through
            study, name = self._study._study_id, f"{BEAT}{self.me}"
            self._storage.set_study_system_attr(study, name, beats)

    def _beat(self) -> None:
        beats = 0
        while not self._over.wait(HEARTBEAT):
            beats += 1
            self._say_beat(beats)

    # -- having a trial ------------------------------------------------------------------------

    def turn(self, do: Callable[[], T]) -> T:
        """Learn what other processes did, then decide; afterwards let go of what waits."""
        self.catch_up()
        try:
            return do()
        finally:
            for run in sorted(self._parked):
                self._let_go(run)

    def held(self, run: int) -> bool:
        """Whether another process, which is alive, is advancing a run."""
        return run in self._held

    def take(self, run: int, until: int) -> bool:
        """Become the process that advances a run that waited; False if another one is."""
        if run in self._parked:
            self._parked.discard(run)
        elif not self._claim(run, until):
            trial = self._storage.get_trial(self._id(run))
            said = self._holders(trial).values()
            if not (trial.state == self._state.RUNNING and said and not any(said)):
                self._held.add(run)  # else another process keeps it in memory for later
            return False
        self._mine.add(run)
        return True

    def _claim(self, run: int, until: int | None) -> bool:
        trial = self._storage.get_trial(self._id(run))
        if trial.state == self._state.RUNNING:
            if self._holders(trial):
                return self._say_holder(self._id(run), until) if self._has(trial) else False
            trial = self._copied(run, trial)
        if trial is None or trial.state != self._state.WAITING:
            return False
        number = trial._trial_id
        if not self._say_holder(number, until):  # before: a trial that is RUNNING names its process
            return False
        with suppress(self._finished):
            if self._storage.set_trial_state_values(number, self._state.RUNNING):
                rows = self._storage.get_trial(number).intermediate_values
                if len(rows) <= len(self._race.runs[run].steps):
                    return True
                self._let_go(run)  # another process has advanced it since: decide anew
                return False
        self._say_holder(number, None, gone=True)
        return False

    def _has(self, trial: FrozenTrial) -> bool:
        return trial.system_attrs.get(f"{HOLDER}{self.me}") is not None

    def _say_holder(self, number: int, until: int | None, *, gone: bool = False) -> bool:
        said = None if gone else [list(self._process), until]
        try:
            self._storage.set_trial_system_attr(number, f"{HOLDER}{self.me}", said)
        except self._finished:
            return False
        return True

    def _copied(self, run: int, old: FrozenTrial) -> FrozenTrial | None:
        """A copy in place of the trial of a process that is gone; None if it was finished."""
        made, finished = None, self._finished
        if self._copy_of(old) is None:
            kept = {name: x for name, x in old.system_attrs.items() if HOLDER not in name}
            template = self._optuna.trial.create_trial(
                state=self._state.WAITING, params=old.params, distributions=old.distributions,
                user_attrs={**old.user_attrs, CONTINUES: old.number}, system_attrs=kept,
                intermediate_values=old.intermediate_values,
            )  # fmt: skip
            made = self._storage.create_new_trial(self._study._study_id, template_trial=template)
        copy = self._copy_of(old)
        assert copy is not None
        # from here on, a process that was only stopped cannot write about the old trial
        with suppress(finished):
            self._storage.set_trial_state_values(old._trial_id, self._state.FAIL)
        replaced = self._storage.get_trial(old._trial_id).state == self._state.FAIL
        if made is not None and (made != copy._trial_id or not replaced):
            with suppress(finished):  # another process was faster, or the old one has finished
                self._storage.set_trial_state_values(made, self._state.FAIL)
        self.catch_up()
        return self._storage.get_trial(copy._trial_id) if replaced else None

    def _copy_of(self, old: FrozenTrial) -> FrozenTrial | None:
        """The first copy of a trial, the one that counts."""
        trials = self._study.get_trials(deepcopy=False)
        copies = [trial for trial in trials if trial.user_attrs.get(CONTINUES) == old.number]
        return copies[0] if copies else None

    def waits(self, run: int) -> None:
        """This process no longer advances a run."""
        if run in self._mine:
            self._mine.discard(run)
            self._parked.add(run)

    def _let_go(self, run: int) -> None:
        """Let others continue with a run, if they can."""
        self._parked.discard(run)
        self._mine.discard(run)
        with suppress(self._finished):
            if self._movable:
                self._storage.set_trial_state_values(self._id(run), self._state.WAITING)
            self._say_holder(self._id(run), None, gone=self._movable)

    def leave(self) -> None:
        """Let go of everything: this process no longer takes part."""
        self._over.set()
        self._movable = True
        for run in sorted(self._made):
            trial = self._storage.get_trial(self._id(run))
            if self._has(trial) and not trial.state.is_finished():
                self._let_go(run)
        if self._heart.is_alive():
            self._say_beat(None)

    # -- writing down --------------------------------------------------------------------------

    def begin(self, candidate: int | None) -> int | None:
        """A new trial; None if another process has started this candidate.

        Trials that users have enqueued come first.
        """
        if self._candidates is not None and candidate is None:
            raise NoMore
        trial = self._asked(candidate)
        self.catch_up()  # what others have started before gets lower numbers
        run = self._runs.get(trial.number)
        if run is None:
            self._storage.set_trial_state_values(trial._trial_id, self._state.FAIL)
            return None
        self._made[run] = trial
        self._mine.add(run)
        if trial.user_attrs[RUN] != run:
            trial.set_user_attr(RUN, run)
        return run

    def _asked(self, candidate: int | None) -> Trial:
        study: Any = self._study
        until = self._race.model.next_rung(None)
        noted: dict[str, Any] = {RUN: len(self._known)}
        hidden: dict[str, Any] = {f"{HOLDER}{self.me}": [list(self._process), until]}
        if candidate is not None and self._candidates is not None:
            noted[CANDIDATE] = candidate
            hidden["fixed_params"] = dict(self._candidates[candidate])
        else:
            for trial in enqueued(study, self._optuna):
                self._say_holder(trial._trial_id, until)
                if self._storage.set_trial_state_values(trial._trial_id, self._state.RUNNING):
                    made = self._trial(trial._trial_id)
                    made.set_user_attr(RUN, noted[RUN])
                    return made
        template = self._optuna.trial.create_trial(
            state=self._state.RUNNING, user_attrs=noted, system_attrs=hidden
        )
        number = self._storage.create_new_trial(study._study_id, template_trial=template)
        study._thread_local.cached_all_trials = None  # as `ask` does, so that samplers read anew
        return self._trial(number)

    def _id(self, run: int) -> int:
        return self._known[run]._trial_id

    def config(self, run: int) -> Trial:
        """The trial of a run."""
        if run not in self._made:
            self._made[run] = self._trial(self._id(run))
        return self._made[run]

    def _trial(self, number: int) -> Trial:
        return self._optuna.trial.Trial(self._study, number)  # type: ignore[no-any-return]

    @contextmanager
    def _writing(self, run: int) -> Iterator[Any]:
        """The trial of a run, unless another process has put a copy in its place."""
        try:
            yield self.config(run)
        except self._finished:
            self._mine.discard(run)
            raise TakenOver from None

    def seen(self, run: int, row: Row) -> None:
        """Note what a run has shown."""
        with self._writing(run) as trial:
            if trial.params:
                self._race.describe(run, trial.params)
            trial.set_user_attr(COSTS, [*self._race.runs[run].costs, row.cost])
            trial.report(row.score, row.step)

    def paid(self, run: int, cost: float) -> None:
        """Note a cost that showed nothing new."""
        with self._writing(run) as trial:
            self._repaid[run] = self._repaid.get(run, 0.0) + cost
            trial.set_user_attr(REPAID, self._repaid[run])

    def over(self, run: int, how: str, why: str) -> None:
        """Note that a run has ended, failed or was lost."""
        with self._writing(run) as trial:
            if how == "failed":
                trial.set_user_attr("weitzman:failure", why)
            if how == "ended" and (best := self._score(run)) is not None:
                trial.set_user_attr(ENDED, True)
                self._tell(run, None, best)
                return
            self._fate[run] = self._state.FAIL if how == "failed" else self._state.PRUNED
            if run != self._race.best_run:
                self._tell(run, self._fate[run])
            else:  # it may win
                trial.set_user_attr(FATE, self._fate[run].name)
                self._mine.discard(run)
                self._parked.add(run)

    def settled(self, runs: Sequence[int]) -> None:
        """By the current model, these runs will no longer be advanced: samplers learn from them."""
        for run in runs:
            if run == self._race.best_run or not (run in self._parked or self._claim(run, None)):
                continue  # it may win; or another process has it
            it = self._race.runs[run]
            if self._race.has_ended(it) and not math.isnan(it.scores[-1]):
                self._tell(run, None, self._score(run))
                self._race.ended(run)
            else:
                self._tell(run, self._state.PRUNED)
                self._race.leave(run)

    def finish(self) -> None:
        """Complete the best trial, and note why the search has stopped.

        Of several processes the last one does so, since others may still continue.
        """
        self.turn(lambda: None)
        if self._held:
            return
        best = self._race.best_run
        if best is not None and best not in self._closed and self._free(best):
            self._tell(best, None, self._score(best))
        for run in self._fate.keys() - self._closed:
            if self._free(run):
                self._tell(run, self._fate[run])
        self._study.set_user_attr(REASON, self._race.reason)

    def _free(self, run: int) -> bool:
        """Whether this process may finish a trial."""
        trial = self._storage.get_trial(self._id(run))
        if trial.state == self._state.RUNNING:
            return self._has(trial) or not self._holders(trial)
        return self._claim(run, None)

    def _score(self, run: int) -> float | None:
        """The best score of a run."""
        scores = [x for x in self._race.runs[run].scores if not math.isnan(x)]
        return max(scores, key=self._race.model.worth, default=None)

    def _tell(self, run: int, state: Any, value: float | None = None) -> None:
        self._closed.add(run)
        self._mine.discard(run)
        self._parked.discard(run)
        number = self._known[run].number
        try:
            self._study.tell(number, value, state)
        except (RuntimeError, ValueError) as error:
            if not self._study.get_trials(deepcopy=False)[number].state.is_finished():
                raise
            faster = ValueError, self._finished
            if not isinstance(error, faster):  # a sampler whose grid is used up wants to stop
                self._race.exhausted()


def enqueued(study: Study, optuna: Any) -> list[FrozenTrial]:
    """The trials that users have enqueued, which are not yet part of the search."""
    waiting = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.WAITING])
    return [trial for trial in waiting if RUN not in trial.user_attrs]
