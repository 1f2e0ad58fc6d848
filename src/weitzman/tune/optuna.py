"""Tune an Optuna study: pause and resume trials, and stop when no trial is worth its cost.

The objective is a generator: it suggests, trains a step, yields a score, and so on. Trials that are
paused are WAITING (or RUNNING, if only this process can resume them). The best is COMPLETE in
the end, as are trials that were trained to their end, and the others are PRUNED as soon as it is
clear that they will not be resumed, so that the sampler learns from them. Scores are reported as
intermediate values; what they cost is in the user attributes of the trials. So the storage holds
everything, a dashboard shows it, and after a crash the same call continues the search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

from .._common.optional import need
from ..errors import InvalidArgument
from ..learn.log_readers import CONTINUES, RUN
from ..learn.log_tables import Config
from ..learn.run_model import check_model
from .loop import Callback, Catch, Loop, Missing, checked
from .optuna_store import REASON, StudyStore, enqueued
from .outcome import Result
from .prices import full_run_index
from .race import Race, RunModel
from .runs import SECONDS, Clock, Ended, Paced, Past, Reporter, takes_past
from .search_space import Stated, draw, model_of, names_in

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial


def optimize(
    study: Study,
    objective: Callable[..., Any],
    model: Stated = None,
    *,
    price: float | None = None,
    full_run_cost: float | None = None,
    limit: float | None = None,
    candidates: Mapping[str, Any] | Sequence[Config] | None = None,
    n_trials: int | None = None,
    outside: float | None = None,
    budget: float | None = None,
    seed: int | None = None,
    workers: int = 1,
    on_missing_checkpoint: Missing = "abandon",
    catch: Catch = (),
    refit: bool | None = None,
    reprice: bool = False,
    clock: Clock = SECONDS,
    timeout: float | None = None,
    max_in_memory: int | None = None,
    progress: bool = False,
    callback: Callback | None = None,
) -> Result:
    """Start trials, advance the most promising one, and stop when nothing is worth its cost.

    Several processes may make the same call at once, on this machine or on others that reach the
    storage. Every candidate is started once, a trial is advanced by one process at a time, and each
    process returns the result of the whole search. Trials of a process that was killed go to the
    others: at once on the same machine, and within a few minutes on another one. A copy takes the
    place of such a trial, which is then FAIL. For this the ``objective`` must take ``past``, with
    checkpoints where all processes find them; otherwise each process continues with its own trials.

    Parameters
    ----------
    study : optuna.Study
        A study with one objective, any sampler and any storage. Its pruner is not used. If an
        earlier call was cut short, this call continues it.
    objective : callable
        ``objective(trial)`` returns a generator that suggests parameters and yields, for each step,
        a score, ``(score, cost)`` or ``(score, cost, step)``. An objective that reports and
        returns, as for ``study.optimize``, is given as ``plain(objective)``. With a second
        parameter ``past`` (a :class:`~weitzman.tune.Past`) it must also bring back a trial from its
        checkpoint; what it suggests is then what was suggested before.
    model : RunModel or Curves, optional
        It must minimize if and only if the study does. Without a model, everything is learned
        during the search.
    candidates : mapping, or sequence of mappings, optional
        What trials may be started with: a space as for :func:`weitzman.tune.draw`, or a list of
        parameters by name, all that the objective suggests. Then each candidate has an index of its
        own, and the search, not the sampler, chooses which to start; any other parameter is
        sampled.
    n_trials : int, optional
        The most trials in all, including trials of earlier calls and other processes.
    seed : int, optional
        The seed of candidates that are drawn from a space; by default it follows from the name of
        the study.
    price, full_run_cost, limit, outside, budget, workers, on_missing_checkpoint, catch, refit,
    reprice, clock, timeout, max_in_memory, progress, callback
        As in :func:`weitzman.tune.optimize`. The configuration in a report is the trial. A trial
        that was PRUNED is not resumed, even if the model changes its mind. Trials that the
        budget stopped stay WAITING, and a later call continues them.

    Returns
    -------
    Result
        With the parameters of the trials as configurations. The number of a run is that in the
        user attribute ``weitzman:run`` of its trial.
    """
    optuna = need("optuna", "optuna")
    lower = len(study.directions) == 1 and study.direction == optuna.study.StudyDirection.MINIMIZE
    known, priced = model_of(
        model, price=price, full_run_cost=full_run_cost, limit=limit, budget=budget,
        minimize=lower if model is None else None, space=names_in(candidates),
    )  # fmt: skip
    _check_study(study, known, optuna)
    settings = checked(
        objective, catch, callback, progress, workers=workers, executor=None, refit=refit,
        on_missing_checkpoint=on_missing_checkpoint, reprice=reprice or not priced, clock=clock,
        timeout=timeout, max_in_memory=max_in_memory,
    )  # fmt: skip
    chosen: Sequence[Config] | None
    if isinstance(candidates, Mapping):
        chosen = draw(candidates, seed=crc32(study.study_name.encode()) if seed is None else seed)
    else:
        chosen = candidates
    if chosen is not None and (others := enqueued(study, optuna)):
        raise InvalidArgument(
            f"with `candidates` the study must have no enqueued trials, but trial "
            f"{others[0].number} is WAITING ({len(others)} in all). Add their parameters to the "
            f"candidates."
        )
    marks = [trial.user_attrs for trial in study.get_trials(deepcopy=False)]
    begun = sum(RUN in marked and CONTINUES not in marked for marked in marks)
    most = None if n_trials is None else max(n_trials, begun)
    race = Race(known, candidates=chosen, outside=outside, budget=budget, max_runs=most)
    movable = takes_past(objective) or on_missing_checkpoint == "replay"
    store = StudyStore(study, race, optuna, candidates=chosen, most=most, movable=movable)
    return Loop(race, store, objective, settings).run()


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
    """Take an objective that reports and returns, as for ``study.optimize``, instead of yielding.

    It trains in a thread of its own and waits in ``trial.report``. Its costs are the times between
    reports. What it returns counts only if it reports nothing: then it is a run of one step.

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


class StopWhenNotWorthIt:
    """A callback for ``study.optimize`` that ends it when no further trial is worth its cost.

    For objectives that train in one go. The study stops once its best value is worth at least
    ``index``: :func:`weitzman.tune.full_run_index` of the model.

    Examples
    --------
    >>> study.optimize(objective, callbacks=[StopWhenNotWorthIt(model)])     # doctest: +SKIP
    """

    def __init__(self, model: Any) -> None:
        check_model(model)
        self._model: RunModel = model
        self.index = full_run_index(model)

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
