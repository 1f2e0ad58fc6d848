"""Tune with Ray: a scheduler that pauses and resumes trials and ends the experiment by itself.

The scheduler keeps no state of its own that matters. What it knows follows from the results of the
trials, so after ``Tuner.restore`` it reads the results and continues.

Use ``reuse_actors=True``, or every resumed trial waits for a new process; and leave
``max_concurrent_trials`` unset, because it would hide trials from the scheduler.

One process at a time drives an experiment: a second one that starts or restores it is rejected, and
the message names the process that has it. This works if the folder of the experiment is on the
machine or on a network drive. In object stores of clouds, processes are not kept apart.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .._common.arrays import check_counts
from .._common.disk import Process, is_alive, this_process
from .._common.optional import need
from ..errors import InvalidArgument, JournalError
from ..learn.log_readers import rising_results
from ..learn.log_tables import flat
from .race import Move, Race, Run
from .refit import Allowance, refitting
from .search_space import Stated, model_of

_ray: Any = need("ray", "ray")
_tune: Any = need("ray.tune", "ray")
_schedulers: Any = need("ray.tune.schedulers", "ray")
_State: Any = need("ray.tune.experiment", "ray").Trial  # PENDING, PAUSED, ...

_OFTEN = 5.0  # seconds between two looks at the size of the cluster

Trial = Any  # Ray's classes are not typed throughout
Controller = Any


class IndexScheduler(_schedulers.TrialScheduler):  # type: ignore[misc]
    """Advances the trial with the highest index, and stops when nothing is worth its cost.

    Parameters
    ----------
    model, price, full_run_cost, limit, outside, budget, refit, reprice
        As in :func:`weitzman.tune.optimize`. The model must minimize if and only if the mode of the
        tuner is "min".
    minimize : bool, optional
        Lower scores are better; state it if there is no model.
    metric : str, optional
        The score in the results; by default the metric of ``TuneConfig``.
    step, cost : str
        The step and its cost in the results.
    workers : int, optional
        How many trials to run at once; by default as many as the cluster has room for. One is
        optimal; more save time and cost payoff.

    Attributes
    ----------
    race : Race
        The state of the search.
    """

    def __init__(
        self,
        model: Stated = None,
        *,
        price: float | None = None,
        full_run_cost: float | None = None,
        minimize: bool | None = None,
        limit: float | None = None,
        outside: float | None = None,
        budget: float | None = None,
        metric: str | None = None,
        step: str = "training_iteration",
        cost: str = "time_this_iter_s",
        workers: int | None = None,
        refit: bool | None = None,
        reprice: bool = False,
    ) -> None:
        super().__init__()
        check_counts(workers=workers)
        self._model, priced = model_of(
            model, price=price, full_run_cost=full_run_cost, minimize=minimize, limit=limit,
            budget=budget,
        )  # fmt: skip
        self._outside, self._workers = outside, workers
        self._budget, self._reprice = budget, reprice or not priced
        self._restored = False
        self._metric, self._step, self._cost, self._learn = metric, step, cost, refit
        self._begin()

    def _begin(self) -> None:
        self.race = Race(self._model, outside=self._outside, budget=self._budget)
        self._refit = refitting(self.race, self._learn)
        self._allowance = Allowance(self.race) if self._reprice else None
        self._trials: list[Trial] = []  # by the numbers of their runs
        self._run: dict[str, int] = {}  # trial id -> run
        self._fresh: list[Trial] = []  # not started yet
        self._staged: Trial | None = None  # chosen, and not running yet
        self._failing: set[str] = set()
        self._room, self._looked = 1, -math.inf  # for how many trials there is room, as of when
        self._owner: Owner | None = None
        self._rejected: JournalError | None = None
        self._looked_at = False  # whether the folder is that of the trials

    def __getstate__(self) -> dict[str, Any]:  # the settings only: the rest follows from results
        names = "_model", "_outside", "_budget", "_workers", "_metric", "_step", "_cost"
        return {name: self.__dict__[name] for name in (*names, "_learn", "_reprice")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._restored = True
        self._begin()

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Take the metric and the mode of the tuner."""
        if mode is not None and (mode == "min") != self._model.minimize:
            raise InvalidArgument(
                f"the tuner and the model must agree, but the mode is {mode!r} and the model "
                f"{'minimizes' if self._model.minimize else 'maximizes'}."
            )
        if self._metric is None:
            self._metric = metric or "_metric"  # as Ray calls one without a name
        elif metric is not None and metric != self._metric:
            return False
        return True

    # -- what Ray tells ------------------------------------------------------------------------

    def on_trial_add(self, tune_controller: Controller, trial: Trial) -> None:
        """Keep a new trial for later; take up one that was restored or is tried again."""
        self._claim(tune_controller)
        if trial.trial_id in self._run:
            self._failing.discard(trial.trial_id)
            run = self.race.runs[self._run[trial.trial_id]]
            if run.until is not None:
                self.race.release(run.number)
            return
        rows = list(history(trial, self.metric, self._step, self._cost))
        if not rows and trial.status not in (_State.TERMINATED, _State.ERROR):
            self._fresh.append(trial)
            return
        run = self._started(trial)
        for step, score, cost in rows:
            self.race.observe(run.number, step, score, cost)
        if trial.status in (_State.TERMINATED, _State.ERROR):
            over = trial.status == _State.TERMINATED
            (self.race.leave if over else self.race.failed)(run.number)
        elif run.until is not None:
            self.race.release(run.number)

    def on_trial_result(
        self, tune_controller: Controller, trial: Trial, result: dict[str, Any]
    ) -> str:
        """Go on with this trial, or pause it."""
        if self._owner is not None:
            self._owner.check()
        run = self._run_of(trial)
        if run.steps and int(result[self._step]) <= run.steps[-1]:
            if not result.get("done"):  # trained again since the last checkpoint
                self.race.pay(float(result[self._cost]))
            return str(self.CONTINUE)
        self._observe(run, result)
        if run.until is not None:
            return str(self.CONTINUE)
        move = self._next()
        if move is not None and move.run == run.number:
            self.race.next()
            return str(self.CONTINUE)
        # a searcher learns from trials that are over; else the process is kept by pausing
        if run.number in self._out(tune_controller):
            self.race.leave(run.number)
            return str(self.STOP)
        return str(self.PAUSE)

    def on_trial_complete(
        self, tune_controller: Controller, trial: Trial, result: dict[str, Any]
    ) -> None:
        """A trial has come to its end; its last result may be new."""
        run = self._run_of(trial)
        new = self.metric in result and int(result[self._step]) > (run.steps or [-1])[-1]
        if new and not run.over:
            self._observe(run, result)
        self._over(trial)

    def on_trial_remove(self, tune_controller: Controller, trial: Trial) -> None:
        """A trial that waits was stopped."""
        self._over(trial)

    def on_trial_error(self, tune_controller: Controller, trial: Trial) -> None:
        """A trial has failed; Ray may try it again."""
        self._failing.add(trial.trial_id)

    def choose_trial_to_run(self, tune_controller: Controller) -> Trial | None:
        """The trial to advance next; also ends the experiment when that is best."""
        if self._rejected is not None:
            raise self._rejected
        if self._owner is not None:
            self._owner.check()
            self._check_folder(tune_controller, self._owner.folder)
        for run, trial in zip(self.race.runs, self._trials, strict=True):
            if trial.trial_id in self._failing and trial.status == _State.ERROR:
                self._failing.discard(trial.trial_id)  # it has failed for good
                if not run.over:
                    self.race.failed(run.number)
        chosen = self._choose(tune_controller)
        self._hold(tune_controller)
        return chosen

    def debug_string(self) -> str:
        """The state of the search."""
        race = self.race
        best = "no score yet" if race.best_score is None else f"best {race.best_score:.6g}"
        move = race.peek()
        return f"{best}, spent {race.spent:.4g}. {race.reason if move is None else move.reason}"

    # -- deciding ------------------------------------------------------------------------------

    def _choose(self, controller: Controller) -> Trial | None:
        waiting = (_State.PENDING, _State.PAUSED)
        if self._staged is not None and self._staged.status in waiting:
            return self._staged
        self._staged = None
        for number in self._out(controller):
            if self._trials[number].status == _State.PAUSED:
                self.race.leave(number)
                controller.stop_trial(self._trials[number])
        if len(self.race.in_flight) >= self._capacity():
            return None
        move = self._next()
        if move is not None and move.run is None and not self._fresh:
            if not controller.search_alg.is_finished():
                return None  # there will be one in a moment
            self.race.exhausted()
            move = self.race.peek()
        if move is None:
            self._end(controller)
            return None
        if move.run is None:  # of the trials that can be started, the first with the highest index
            index = self.race.model.start_indices([_settings(trial) for trial in self._fresh])
            trial = self._fresh[int(index.argmax())]
        else:
            trial = self._trials[move.run]
        if trial.status not in waiting:  # it is being saved
            return None
        self.race.next()
        if move.run is None:
            self._fresh = [x for x in self._fresh if x is not trial]
            self._started(trial)
        self._staged = trial
        return trial

    def _next(self) -> Move | None:
        """The next move, with a model that knows what was seen, if it is to learn."""
        if self._refit is not None:
            self._refit()
        if self._allowance is not None:
            self._allowance()
        return self.race.peek()

    def _end(self, controller: Controller) -> None:
        """End the experiment, once the last checkpoint is written."""
        trials = controller.get_trials()
        if not self.race.done or any(trial.status == _State.RUNNING for trial in trials):
            return
        controller.search_alg.set_finished()
        if self._owner is not None:
            self._owner.release()
            self._owner = None
        for trial in list(trials):
            if not trial.is_finished():
                trial.init_local_path()  # Ray wants a folder, also of one that never started
                controller.stop_trial(trial)

    def _claim(self, controller: Controller) -> None:
        """Become the driver of the experiment; if another process is, raise when a step is due.

        Ray takes an earlier error as a sign that the experiment cannot be restored, and begins a
        new one.
        """
        inner = getattr(controller, "_tune_controller", controller)
        folder = getattr(inner, "experiment_path", None)
        if self._owner is None and folder is not None and os.path.isdir(folder):
            try:
                self._owner = Owner(folder)
            except JournalError as error:
                self._rejected = error

    def _check_folder(self, controller: Controller, folder: str) -> None:
        """Whether the results in the folder of a restored experiment are those of its trials.

        If the state of the experiment was only half written when it was killed, Ray begins a new
        one in the same folder without an error.
        """
        if self._looked_at or not self._restored:
            return
        known = {Path(trial.path).name for trial in controller.get_trials() if trial.path}
        found = [path for path in Path(folder).glob("*/result.json") if path.stat().st_size]
        lost = sorted(path.parent.name for path in found if path.parent.name not in known)
        if lost:
            raise JournalError(
                f"{folder}: Ray could not read the state of this experiment, perhaps because it "
                f"was killed while writing, and has begun a new one, which lacks trial {lost[0]} "
                f"({len(lost)} in all). Nothing was trained. Delete the newest experiment_state "
                f"files and restore again if there is an older one; else begin an experiment under "
                f"another name, with the log of this folder as its `model`."
            )
        self._looked_at = True

    def _out(self, controller: Controller) -> set[int]:
        """Runs that will no longer be advanced, while there is a searcher to learn from them."""
        finished = controller.search_alg.is_finished()
        return set() if finished else set(self.race.settled()) - {self.race.best_run}

    def _capacity(self) -> int:
        """How many trials the cluster can run at once."""
        trials = self._fresh or self._trials
        if self._workers is not None or not trials:
            return self._workers or 1
        need_of_one: Mapping[str, float] = trials[0].placement_group_factory.required_resources
        if time.monotonic() - self._looked > _OFTEN:
            there, self._looked = _ray.cluster_resources(), time.monotonic()
            rooms = [there.get(what, 0) // many for what, many in need_of_one.items() if many > 0]
            self._room = max(1, int(min(rooms, default=1)))
        return self._room

    def _observe(self, run: Run, result: dict[str, Any]) -> None:
        names = self._step, self.metric, self._cost
        for name in set(names) - result.keys():
            raise InvalidArgument(
                f"a result must have a step, a score and a cost, but one has no {name!r}; it has "
                f"{', '.join(map(str, result))}."
            )
        step, score, cost = (float(result[name]) for name in names)
        self.race.observe(run.number, int(step), score, cost)

    def _started(self, trial: Trial) -> Run:
        run = self.race.runs[self.race.started()]
        self._run[trial.trial_id] = run.number
        self._trials.append(trial)
        if known := _settings(trial):
            self.race.describe(run.number, known)
        return run

    def _run_of(self, trial: Trial) -> Run:
        """The run of a trial, also of a trial that Ray has started on its own."""
        if trial.trial_id not in self._run:
            self._fresh = [x for x in self._fresh if x is not trial]
            self._started(trial)
        return self.race.runs[self._run[trial.trial_id]]

    def _over(self, trial: Trial) -> None:
        self._fresh = [x for x in self._fresh if x is not trial]
        run = self._run.get(trial.trial_id)
        if run is not None and not self.race.runs[run].over:
            self.race.ended(run)

    def _hold(self, controller: Controller) -> None:
        """Keep Ray from starting trials that were not chosen.

        Ray would start every pending trial that there is room for. The list of these trials has no
        public name. If the list is gone, some trials are started too early, and nothing worse.
        """
        inner = getattr(controller, "_tune_controller", controller)
        queue = getattr(inner, "_pending_trials_list", [])
        queue[:] = [trial for trial in queue if trial is self._staged]
        for trials in getattr(inner, "_resources_to_pending_trials", {}).values():
            trials.intersection_update({self._staged})


class Owner:
    """Being the one process that drives the experiment in a folder.

    Each owner has the next number, and a file of that number that only one process can create. Who
    does not have the highest number is no longer the owner, which is checked before each decision:
    so a process that was stopped for however long cannot continue after another one has taken over.
    The files lie beside the folder, because Ray would copy a file within it back and forth.
    """

    def __init__(self, folder: str) -> None:
        self.folder, self._token = folder, secrets.token_hex(8)
        self._parent, name = os.path.split(os.path.abspath(folder))
        self._name = f".{name}.owner."
        while True:
            before = max(self._numbers(), default=0)
            owner, _ = _owner_in(self._path(before))
            unknown = owner is None and before > 0  # it is perhaps just being written
            alive = owner is not None and owner != this_process() and is_alive(owner) is not False
            if unknown or alive:
                raise JournalError(
                    f"{folder}: {owner or 'another process'} is using the experiment. One process "
                    f"at a time drives it. End that process first; if it is gone, delete "
                    f"{self._path(before)}."
                )
            self._number = before + 1
            try:
                file = os.open(self._path(self._number), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            except FileExistsError:
                continue  # another process was faster
            with os.fdopen(file, "w") as out:
                out.write(json.dumps([*this_process(), self._token]))
            break
        for number in self._numbers():
            if number < self._number:
                with suppress(OSError):
                    os.unlink(self._path(number))
        weakref.finalize(self, _unlink, self._path(self._number), self._token)

    def check(self) -> None:
        """Raise if another process has taken over."""
        newest = max(self._numbers(), default=0)
        if newest != self._number or _owner_in(self._path(newest))[1] != self._token:
            raise JournalError(
                f"{self.folder}: another process has taken over the experiment, so this one ends."
            )

    def release(self) -> None:
        """Free the experiment for others."""
        _unlink(self._path(self._number), self._token)

    def _path(self, number: int) -> str:
        return os.path.join(self._parent, f"{self._name}{number}.json")

    def _numbers(self) -> list[int]:
        form = re.compile(re.escape(self._name) + r"([0-9]+)\.json")
        found = (form.fullmatch(name) for name in os.listdir(self._parent))
        return [int(match[1]) for match in found if match]


def _owner_in(path: str) -> tuple[Process | None, str]:
    """The process and the token in a file; None if there is nothing that can be read."""
    try:
        with open(path, encoding="utf-8") as file:
            *process, token = json.load(file)
            return Process(*process), token
    except (OSError, ValueError, TypeError):
        return None, ""


def _unlink(path: str, token: str) -> None:
    if _owner_in(path)[1] == token:
        with suppress(OSError):
            os.unlink(path)


def history(trial: Trial, metric: str, step: str, cost: str) -> Iterator[tuple[int, float, float]]:
    """(step, score, cost) of all results of a trial, as Ray has logged them; rising steps only."""
    if not trial.has_reported_at_least_once:
        return iter(())
    texts = [""]  # here or in the storage
    local = Path(trial.local_path or ".", "result.json")
    if local.exists():
        texts.append(local.read_text("utf-8"))
    with suppress(OSError):  # it was not synchronized
        filesystem = trial.storage.storage_filesystem
        with filesystem.open_input_stream(f"{trial.path}/result.json") as file:
            texts.append(file.read().decode())
    rows = [json.loads(line) for line in max(texts, key=len).splitlines()]
    return rising_results(rows or [trial.last_result], metric, step, cost)


def _settings(trial: Trial) -> dict[str, Any]:
    """What a trial is started with: numbers and words."""
    config = flat(getattr(trial, "config", None) or {})
    return {name: x for name, x in config.items() if isinstance(x, (bool, int, float, str))}
