"""One object that samples, prunes and stops a plain ``study.optimize``, by the index of a run.

For objectives as most people write them: they report scores and ask ``trial.should_prune()``. A
pruned trial cannot be resumed, so a search that pauses trials earns more: see
:func:`weitzman.tune.optuna.optimize`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .._common.optional import need
from ..errors import InvalidArgument
from ..learn.features import Config
from ..learn.first_runs import NEW, STARTS
from ..learn.tuner_logs import COSTS
from .optuna_book import REASON
from .race import Race
from .refit import refitting
from .stating import Stated, model_of

_optuna: Any = need("optuna", "optuna")

Study = Any  # Optuna's classes are not typed here
Trial = Any
Space = dict[str, Any]
StepCost = float | Callable[[Config], float]

_CANDIDATES = 200  # settings that are compared before a trial starts


class IndexSampler(_optuna.samplers.BaseSampler, _optuna.pruners.BasePruner):  # type: ignore[misc]
    """Sampler, pruner and terminator of a study in one.

    * As a sampler it draws candidates from the space that trials have shown, and proposes the one
      with the highest index.
    * As a pruner it ends a trial once its index is below the index of an unknown new trial,
      or not above the worth of the best score so far. The trial with the best score is not
      pruned, since Optuna counts the values of complete trials only.
    * After each trial it stops the study if no candidate is worth its cost.

    Parameters
    ----------
    model : RunModel or Curves, optional
        What to expect of a trial. It must minimize if and only if the study does. Without a model,
        everything is learned during the search, from 16 trials on.
    price, full_run_cost : float, optional
        What a point of score is worth in units of cost; or how many points a full run costs. One of
        the two is needed unless a model is given.
    cost : float or callable
        What one step costs, or a function of the parameters that says so. What a trial has in its
        user attribute ``weitzman:costs``, one number for each report, comes first.
    seed : int, optional

    Attributes
    ----------
    race : Race or None
        What is known about the trials.

    Examples
    --------
    >>> import optuna
    >>> policy = IndexSampler(price=100.0, seed=0)
    >>> study = optuna.create_study(direction="maximize", sampler=policy, pruner=policy)
    >>> study.optimize(objective, n_trials=100)                              # doctest: +SKIP
    """

    def __init__(
        self,
        model: Stated = None,
        *,
        price: float | None = None,
        full_run_cost: float | None = None,
        cost: StepCost = 1.0,
        seed: int | None = None,
    ) -> None:
        self._stated = model, price, full_run_cost
        if model is not None or (price is None) == (full_run_cost is None):
            model_of(model, price=price, full_run_cost=full_run_cost)  # refuse here what is wrong
        self._cost = cost
        self._random = _optuna.samplers.RandomSampler(seed=seed)
        self.race: Race | None = None
        self._refit: Callable[[], None] | None = None
        self._run: dict[int, int] = {}  # number of a trial -> run
        self._proposed: Space = {}  # the best candidate,
        self._fresh = math.inf  # and its index
        self._lock = threading.RLock()  # with `n_jobs` trials run in threads

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    # -- as a sampler --------------------------------------------------------------------------

    def reseed_rng(self) -> None:
        """Draw other numbers, in another process."""
        self._random.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: Trial) -> Space:
        """The parameters that all trials have in common."""
        over = study.get_trials(deepcopy=False, states=_over())
        space = _optuna.search_space.intersection_search_space(over, include_pruned=True)
        return {name: what for name, what in space.items() if not what.single()}

    def sample_relative(self, study: Study, trial: Trial, search_space: Space) -> Space:
        """The candidate with the highest index."""
        with self._lock:
            found, self._proposed = self._proposed, {}
            if found.keys() == search_space.keys():  # chosen after the last trial
                return found
            return self._propose(self._learn(study), study, trial, search_space)

    def _propose(self, race: Race, study: Study, trial: Trial, search_space: Space) -> Space:
        if not search_space:
            return {}
        drawn = [
            {
                name: self._random.sample_independent(study, trial, name, what)
                for name, what in search_space.items()
            }
            for _ in range(_CANDIDATES)
        ]
        index = race.model.start_indices(drawn)
        self._fresh = float(index.max())
        return drawn[int(index.argmax())]

    def sample_independent(self, study: Study, trial: Trial, name: str, distribution: Any) -> Any:
        """Sample at random as long as the space is not known."""
        return self._random.sample_independent(study, trial, name, distribution)

    def after_trial(self, study: Study, trial: Trial, state: Any, values: Any) -> None:
        """Stop the study if nothing more is worth its cost."""
        with self._lock:
            race = self._learn(study)
            self._close(race, trial, state, None if values is None else values[0])
            if self._refit is not None:
                self._refit()
            space = self.infer_relative_search_space(study, trial)
            self._proposed = self._propose(race, study, trial, space)
            new = self._fresh if space else race.model.fresh_index
            few = self._stated[0] is None and len(race.runs) < STARTS
            if race.best_score is None or few or new > race.best:
                return
        reason = (
            f"Stop: the index of a further trial, {new:.6g}, is not above the best so far, worth "
            f"{race.best:.6g}."
        )
        study.set_user_attr(REASON, reason)
        with suppress(RuntimeError):  # outside of ``study.optimize`` there is nothing to stop
            study.stop()

    # -- as a pruner ---------------------------------------------------------------------------

    def prune(self, study: Study, trial: Trial) -> bool:
        """Whether a new trial is better, or nothing is worth its cost."""
        with self._lock:
            race = self._learn(study)
            run = self._told(race, trial)
            if race.runs[run].until is not None or run == race.best_run:
                return False  # no decision falls here; or the study would lose its best value
            index = race.waiting.get(run, -math.inf)
            return index < min(race.model.fresh_index, NEW) or not index > race.best

    # -- what is known -------------------------------------------------------------------------

    def _learn(self, study: Study) -> Race:
        """A race that has been told of all trials."""
        if self.race is None:
            self.race = Race(self._model(study))
            self._refit = refitting(self.race, None)
        for trial in study.get_trials(deepcopy=False):
            started = trial.state.is_finished() or trial.intermediate_values
            if started and not self._is_over(trial):
                self._told(self.race, trial)
                if trial.state.is_finished():
                    self._close(self.race, trial, trial.state, trial.value)
        if self._refit is not None:
            self._refit()
        return self.race

    def _model(self, study: Study) -> Any:
        if len(study.directions) != 1:
            raise InvalidArgument(
                f"the study must have one objective, but it has {len(study.directions)}."
            )
        model, price, full_run_cost = self._stated
        lower = study.direction == _optuna.study.StudyDirection.MINIMIZE
        return model_of(model, price=price, full_run_cost=full_run_cost, minimize=lower)

    def _is_over(self, trial: Trial) -> bool:
        run = self._run.get(trial.number)
        return run is not None and self.race is not None and bool(self.race.runs[run].over)

    def _told(self, race: Race, trial: Trial) -> int:
        """Tell the race what a trial has shown since; gives the number of its run."""
        if trial.number not in self._run:
            self._run[trial.number] = race.started()
        run = race.runs[self._run[trial.number]]
        if trial.params:
            race.describe(run.number, trial.params)
        for place, step in enumerate(sorted(trial.intermediate_values)):
            before = run.steps[-1] if run.steps else None
            if before is None or step > before:
                cost = self._paid(trial, place, step - (before or 0) if before else 1)
                race.observe(run.number, step, trial.intermediate_values[step], cost)
        return run.number

    def _paid(self, trial: Trial, place: int, steps: int) -> float:
        noted = trial.user_attrs.get(COSTS, ())
        if place < len(noted):
            return float(noted[place])
        each = self._cost(trial.params) if callable(self._cost) else self._cost
        return float(each) * steps

    def _close(self, race: Race, trial: Trial, state: Any, value: float | None) -> None:
        """A trial is over: its value counts if it reported nothing."""
        run = race.runs[self._told(race, trial)]
        if run.over:
            return
        states = _optuna.trial.TrialState
        if not run.steps and state == states.COMPLETE and value is not None:
            race.observe(run.number, 1, value, self._paid(trial, 0, 1))
        how = {states.COMPLETE: race.ended, states.FAIL: race.failed}.get(state, race.leave)
        how(run.number)


def _over() -> tuple[Any, Any]:
    return _optuna.trial.TrialState.COMPLETE, _optuna.trial.TrialState.PRUNED
