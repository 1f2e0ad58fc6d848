"""Tune an Optuna study: pause and resume trials, and stop when no trial is worth its cost.

The objective is a generator: it suggests, trains a step, yields a score, and so on. Trials that
wait stay RUNNING; the best is COMPLETE in the end, as are trials that were trained to their end,
and the others are PRUNED as soon as it is clear that they will not be resumed, so that the sampler
learns from them. Scores are reported as intermediate values; what they cost is in the user
attributes of the trials. So the storage holds everything, a dashboard shows it, and after a crash
the same call continues the search.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from .._common.optional import need
from .._common.system import Process, is_alive, this_process
from ..errors import InvalidArgument, JournalError
from ..learn.features import Config
from ..learn.run_model import check_model
from ..learn.tuner_logs import RUN
from .book import Callback, Catch, LoopSettings, check_settings, exceptions
from .loop import Loop
from .optuna_book import REASON, StudyBook, clear_waiting
from .outcome import Display, Result, result_of
from .pacing import plain as plain
from .race import Race, RunModel
from .runs import SECONDS, Clock
from .stating import Stated, draw, model_of
from .storage_turns import StorageTurns, living
from .whole import whole_index

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

OWNER = "weitzman:owner"  # user attribute of the study: the process that drives it


_SETTLE = 0.05  # seconds


def optimize(
    study: Study,
    objective: Callable[..., Any],
    model: Stated = None,
    *,
    price: float | None = None,
    full_run_cost: float | None = None,
    candidates: Mapping[str, Any] | Sequence[Config] | None = None,
    n_trials: int | None = None,
    outside: float | None = None,
    budget: float | None = None,
    workers: int = 1,
    lost: Literal["abandon", "replay"] = "abandon",
    catch: Catch = (),
    refit: bool | None = None,
    reprice: bool = False,
    clock: Clock = SECONDS,
    timeout: float | None = None,
    alive: int | None = None,
    share: bool = False,
    progress: bool = False,
    callback: Callback | None = None,
) -> Result:
    """Start trials, advance the most promising one, and stop when nothing is worth its cost.

    Parameters
    ----------
    study : optuna.Study
        A study with one objective, any sampler and any storage. Its pruner is not used. If an
        earlier call was cut short, this call continues it; one process at a time, unless all of
        them ``share`` the study.
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
    share : bool
        Let other processes take part, on this machine or on others that reach the storage: each
        makes the same call. Every trial is started once, and any process may go on with any trial,
        so ``objective`` must take ``past``, with checkpoints where all processes find them. Each
        process returns the result of the whole search, and the last one completes the best trial.
        Trials of a process that was killed go to the others: at once on the same machine, and
        within a few minutes on another one.
    price, full_run_cost, outside, budget, workers, lost, catch, refit, reprice, clock, timeout,
    alive, progress, callback
        As in :func:`weitzman.tune.optimize`. The configuration in a report is the trial. A trial
        that was PRUNED is not resumed, even if the model changes its mind. Trials that the
        budget stopped stay RUNNING, and a later call continues them.

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
        reprice=reprice, clock=clock,
        watchers=[*([callback] if callback else []), *([Display()] if progress else [])],
        timeout=timeout, alive=alive, share=share,
    )  # fmt: skip
    check_settings(settings, objective)
    if share and isinstance(study._storage, optuna.storages.InMemoryStorage):
        raise InvalidArgument(
            "processes share a study through its storage, but this study is in memory. Give "
            "`create_study` a `storage`."
        )
    begun = sum(RUN in trial.user_attrs for trial in study.get_trials(deepcopy=False))
    most = None if n_trials is None else max(n_trials, begun)
    chosen = draw(candidates) if isinstance(candidates, Mapping) else candidates
    supply: dict[str, Any] = {"available": most} if chosen is None else {"candidates": chosen}
    race = Race(known, **supply, outside=outside, budget=budget)
    with _shared(study) if share else _owned(study) as turns:
        book = StudyBook(study, race, optuna, candidates=chosen, most=most, turns=turns)
        loop = Loop(race, book, objective, settings)
        if chosen is not None:
            clear_waiting(study, optuna)
        book.turn(book.catch_up)
        loop.run()
        book.finish()
    return result_of(race, book.params, loop.how_over)


@contextmanager
def _owned(study: Study) -> Iterator[None]:
    """Keep other processes from driving the study: the owner is in a user attribute."""
    me = [*this_process(), secrets.token_hex(8)]
    _check_owner(study, me)
    study.set_user_attr(OWNER, me)
    try:
        time.sleep(_SETTLE)  # if two processes come at once, the one that wrote last goes on
        _check_owner(study, me)
        if sharing := living(study):
            raise JournalError(
                f"study {study.study_name!r}: {sharing[0]} is using the study, which it shares "
                f"({len(sharing)} in all). Either all processes say `share=True` or only one "
                f"process drives the study."
            )
        yield
    finally:
        if study.user_attrs.get(OWNER) == me:
            study.set_user_attr(OWNER, None)


@contextmanager
def _shared(study: Study) -> Iterator[StorageTurns]:
    """Be one of the processes that drive the study."""
    turns = StorageTurns(study)
    try:
        _check_owner(study, [])
        yield turns
    finally:
        turns.leave()


def _check_owner(study: Study, me: list[Any]) -> None:
    owner = study.user_attrs.get(OWNER)
    if owner is None or owner == me:
        return
    process = Process(*owner[:4])
    if is_alive(process) is not False:
        raise JournalError(
            f"study {study.study_name!r}: {process} is using the study. One process drives it, "
            f"with several `workers` if need be, unless all processes say `share=True`. End that "
            f"process first; if it is gone, set the user attribute {OWNER!r} of the study to None."
        )


class StopWhenNotWorthIt:
    """A callback for ``study.optimize`` that ends it when no further trial is worth its cost.

    For objectives that train in one go. A trial is taken as one box: its reward is the best score
    of a run, its cost all that the run costs on average. The study stops once its best value is
    worth at least the index of that box.

    Parameters
    ----------
    model : ResemblanceModel

    Attributes
    ----------
    index : float
        The index of that box, in units of cost.

    Examples
    --------
    >>> study.optimize(objective, callbacks=[StopWhenNotWorthIt(model)])     # doctest: +SKIP
    """

    def __init__(self, model: Any) -> None:
        check_model(model)
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
