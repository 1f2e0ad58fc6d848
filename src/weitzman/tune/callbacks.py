"""Callbacks that report to a search, for Keras, Lightning, Hugging Face, XGBoost and LightGBM.

Each takes the ``report`` that :func:`weitzman.tune.paced` hands to a function that trains, and the
name of a ``metric`` in the library's log, and shows a score whenever the library has evaluated one.
While the run waits, the library waits within the callback; when the run is no longer worth its
cost, the callback ends training in the way that the library provides. With ``checkpoint``, a path,
the state is saved there before each report, so that a run that is no longer in memory can be
brought back. No library is imported before its callback is made.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from .._common.disk import replaced
from ..errors import InvalidAnswer, InvalidArgument
from .runs import Reporter

File = str | os.PathLike[str]


def for_keras(report: Reporter, metric: str, *, checkpoint: File | None = None) -> Any:
    """A callback for ``model.fit`` of Keras: a step is an epoch.

    The name of the checkpoint ends with ``.keras``. To continue, load it with
    ``keras.models.load_model`` and fit with ``initial_epoch=report.past.step``.
    """
    keras = _imported(report, "keras")

    class KerasReport(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
            score = _found(logs or {}, metric)
            if not _show(report, score, epoch + 1, checkpoint, self.model.save):
                self.model.stop_training = True

    return KerasReport()


def for_lightning(report: Reporter, metric: str, *, checkpoint: File | None = None) -> Any:
    """A callback for the ``Trainer`` of Lightning: a step is an epoch, with its validation.

    To continue, give the checkpoint to ``trainer.fit`` as ``ckpt_path``.
    """
    lightning = _imported(report, "lightning.pytorch")

    class LightningReport(lightning.Callback):  # type: ignore[misc, name-defined]
        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            score, step = _found(trainer.callback_metrics, metric), trainer.current_epoch + 1
            if not _show(report, score, step, checkpoint, trainer.save_checkpoint):
                trainer.should_stop = True

    return LightningReport()


def for_huggingface(report: Reporter, metric: str, *, save: bool = False) -> Any:
    """A callback for the ``Trainer`` of Hugging Face: a step is a step of the optimizer.

    A score is shown after each evaluation. With ``save`` the trainer saves a checkpoint then, and
    the score is shown once it is saved. To continue, call
    ``trainer.train(resume_from_checkpoint=True)``.
    """
    transformers = _imported(report, "transformers")

    class HuggingFaceReport(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self._score: float | None = None

        def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> Any:
            self._score = _found(more["metrics"], metric)
            if save:
                control.should_save = True
                return control
            return self.on_save(args, state, control)

        def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> Any:
            score, self._score = self._score, None
            if score is not None and not report.offer(score, step=int(state.global_step)):
                control.should_training_stop = True
            return control

    return HuggingFaceReport()


def for_xgboost(
    report: Reporter, data: str, metric: str, *, every: int = 1, checkpoint: File | None = None
) -> Any:
    """A callback for ``xgboost.train``: a step is a round; reports every so many rounds.

    ``data`` is the name of one of the ``evals``. The name of the checkpoint ends with ``.json`` or
    ``.ubj``. To continue, give it as ``xgb_model`` and ask for ``report.past.step`` fewer rounds.
    """
    xgboost = _imported(report, "xgboost")

    class XGBoostReport(xgboost.callback.TrainingCallback):  # type: ignore[misc, name-defined]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            rounds = int(model.num_boosted_rounds())
            if rounds % every:
                return False
            score = _found(_found(evals_log, data, "evaluation of"), metric)
            return not _show(report, score, rounds, checkpoint, model.save_model)

    return XGBoostReport()


def for_lightgbm(
    report: Reporter, data: str, metric: str, *, every: int = 1, checkpoint: File | None = None
) -> Callable[[Any], None]:
    """A callback for ``lightgbm.train``: a step is a round; reports every so many rounds.

    ``data`` is one of the ``valid_names``. To continue, give the checkpoint as ``init_model`` and
    ask for ``report.past.step`` fewer rounds.
    """
    lightgbm = _imported(report, "lightgbm")

    def show(env: Any) -> None:
        rounds = int(env.model.current_iteration())
        if rounds % every:
            return
        found: dict[str, dict[str, float]] = {}
        for name, what, value, *_ in env.evaluation_result_list or []:
            found.setdefault(name, {})[what] = value
        score = _found(_found(found, data, "evaluation of"), metric)
        if not _show(report, score, rounds, checkpoint, env.model.save_model):
            raise lightgbm.callback.EarlyStopException(env.iteration, env.evaluation_result_list)

    setattr(show, "order", 30)  # noqa: B010  after the evaluation was recorded
    return show


def partial_fits(
    report: Reporter,
    make: Callable[[], Any],
    fit: Callable[[Any], Any],
    score: Callable[[Any], float],
    *,
    steps: int,
    checkpoint: File | None = None,
) -> Any:
    """Train a model of scikit-learn by ``partial_fit``, and report after each of so many steps.

    ``make()`` gives a new model, ``fit(model)`` calls ``partial_fit`` for one step, and
    ``score(model)`` evaluates it. The checkpoint is a pickle, from which a run that is brought back
    continues; only read files that you have written. Returns the model.
    """
    _check_report(report)
    done, model = 0, None
    if checkpoint is not None and report.past.step:
        done, model = pickle.loads(Path(checkpoint).read_bytes())
    model = make() if model is None else model
    for step in range(done + 1, steps + 1):
        fit(model)
        found = float(score(model))
        _save(checkpoint, partial(_pickle, (step, model)))
        report(found, step=step)
    return model


def _check_report(report: object) -> None:
    if not isinstance(report, Reporter):
        raise InvalidArgument(
            f"a callback takes the `report` that `tune.paced` hands to a function that trains, but "
            f"got a {type(report).__name__}."
        )


def _imported(report: object, library: str) -> Any:
    _check_report(report)
    return import_module(library)


def _pickle(what: object, path: str) -> None:
    Path(path).write_bytes(pickle.dumps(what))


def _show(
    report: Reporter, score: float, step: int, checkpoint: File | None, save: Callable[[str], Any]
) -> bool:
    """Save, then report; returns whether to continue."""
    _save(checkpoint, save)
    return report.offer(score, step=step)


def _save(checkpoint: File | None, save: Callable[[str], Any]) -> None:
    """Save beside the checkpoint and then replace it, so that a whole checkpoint always exists."""
    if checkpoint is not None:
        Path(checkpoint).parent.mkdir(parents=True, exist_ok=True)
        with replaced(str(checkpoint)) as new:
            save(new)


def _found(metrics: Mapping[str, Any], name: str, what: str = "metric") -> Any:
    """A number, the last of a list, or the metrics of one evaluation."""
    if name not in metrics:
        there = ", ".join(map(repr, metrics)) or "none"
        raise InvalidAnswer(f"there is no {what} {name!r}; there are {there}.")
    value = metrics[name]
    if isinstance(value, Mapping):
        return value
    return float(value[-1] if isinstance(value, (list, tuple)) else value)
