"""Callbacks that report to a search, for Keras, Lightning, Hugging Face, XGBoost and LightGBM.

Each takes the ``report`` that :func:`weitzman.tune.paced` hands to a function that trains, and
shows a score whenever the library has evaluated one. While the run waits, the library waits within
the callback; when the run is no longer worth its cost, the callback ends training in the way that
the library provides. With ``checkpoint`` the state is saved before each report, so that a run that
is no longer in memory can be brought back. No library is imported before its callback is made.
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
from .pacing import Reporter

File = str | os.PathLike[str]


def for_keras(report: Reporter, metric: str, *, checkpoint: File | None = None) -> Any:
    """A callback for ``model.fit`` of Keras: a step is an epoch.

    Parameters
    ----------
    report : Reporter
    metric : str
        A name such as ``"val_accuracy"``.
    checkpoint : path, optional
        Where to save the model after each epoch; the name ends with ``.keras``. To go on, load it
        with ``keras.models.load_model`` and fit with ``initial_epoch=report.past.step``.
    """
    keras = _imported(report, "keras")

    class KerasReport(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        """Shows a score after each epoch."""

        def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
            score = _found(logs or {}, metric)
            _save(checkpoint, self.model.save)
            if not report.offer(score, step=epoch + 1):
                self.model.stop_training = True

    return KerasReport()


def for_lightning(report: Reporter, metric: str, *, checkpoint: File | None = None) -> Any:
    """A callback for the ``Trainer`` of Lightning: a step is an epoch.

    Parameters
    ----------
    report : Reporter
    metric : str
        The name in the log, such as ``"val_acc"``.
    checkpoint : path, optional
        Where to save after each epoch. To go on, give it to ``trainer.fit`` as ``ckpt_path``.
    """
    lightning = _imported(report, "lightning.pytorch")

    class LightningReport(lightning.Callback):  # type: ignore[misc, name-defined]
        """Shows a score at the end of each epoch, after validation."""

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            score = _found(trainer.callback_metrics, metric)
            _save(checkpoint, trainer.save_checkpoint)
            if not report.offer(score, step=trainer.current_epoch + 1):
                trainer.should_stop = True

    return LightningReport()


def for_huggingface(report: Reporter, metric: str, *, save: bool = False) -> Any:
    """A callback for the ``Trainer`` of Hugging Face: a step is a step of the optimizer.

    Parameters
    ----------
    report : Reporter
    metric : str
        A name such as ``"eval_loss"``; shown after each evaluation.
    save : bool
        Have the trainer save a checkpoint after each evaluation, and report then. To go on, call
        ``trainer.train(resume_from_checkpoint=True)``.
    """
    transformers = _imported(report, "transformers")

    class HuggingFaceReport(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        """Shows a score after each evaluation, once the model is saved if that is wanted."""

        def __init__(self) -> None:
            self._score: float | None = None

        def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> Any:
            self._score = _found(more["metrics"], metric)
            if save:
                control.should_save = True
                return control
            return self._show(state, control)

        def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> Any:
            return control if self._score is None else self._show(state, control)

        def _show(self, state: Any, control: Any) -> Any:
            score, self._score = self._score, None
            if score is not None and not report.offer(score, step=int(state.global_step)):
                control.should_training_stop = True
            return control

    return HuggingFaceReport()


def for_xgboost(
    report: Reporter, data: str, metric: str, *, every: int = 1, checkpoint: File | None = None
) -> Any:
    """A callback for ``xgboost.train``: a step is a round.

    Parameters
    ----------
    report : Reporter
    data, metric : str
        The name of one of the ``evals``, and one of its metrics.
    every : int
        Report each time after this many rounds.
    checkpoint : path, optional
        Where to save the model before each report; the name ends with ``.json`` or ``.ubj``. To go
        on, give it as ``xgb_model`` and ask for ``report.past.step`` fewer rounds.
    """
    xgboost = _imported(report, "xgboost")

    class XGBoostReport(xgboost.callback.TrainingCallback):  # type: ignore[misc, name-defined]
        """Shows a score after every ``every`` rounds."""

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            rounds = int(model.num_boosted_rounds())
            if rounds % every:
                return False
            score = _found(_inner(evals_log, data), metric)
            _save(checkpoint, model.save_model)
            return not report.offer(score, step=rounds)

    return XGBoostReport()


def for_lightgbm(
    report: Reporter, data: str, metric: str, *, every: int = 1, checkpoint: File | None = None
) -> Callable[[Any], None]:
    """A callback for ``lightgbm.train``: a step is a round.

    Parameters
    ----------
    report : Reporter
    data, metric : str
        One of the ``valid_names``, and one of its metrics.
    every : int
        Report each time after this many rounds.
    checkpoint : path, optional
        Where to save the model before each report. To go on, give it as ``init_model`` and ask for
        ``report.past.step`` fewer rounds.
    """
    lightgbm = _imported(report, "lightgbm")

    def show(env: Any) -> None:
        rounds = int(env.model.current_iteration())
        if rounds % every:
            return
        found: dict[str, dict[str, float]] = {}
        for name, what, value, *_ in env.evaluation_result_list or []:
            found.setdefault(name, {})[what] = value
        score = _found(_inner(found, data), metric)
        _save(checkpoint, env.model.save_model)
        if not report.offer(score, step=rounds):
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
    """Train a model of scikit-learn by ``partial_fit``, and report after each step.

    Parameters
    ----------
    report : Reporter
    make : callable
        ``make()`` gives a new model.
    fit, score : callable
        ``fit(model)`` calls ``partial_fit`` for one step; ``score(model)`` evaluates it.
    steps : int
        How many steps a full run has.
    checkpoint : path, optional
        Where to keep the model as a pickle before each report; a run that is brought back continues
        from there. Only read files that you have written.

    Returns
    -------
    model
    """
    _check_report(report)
    done, model = _load(report, checkpoint) or (0, make())
    for step in range(done + 1, steps + 1):
        fit(model)
        found = float(score(model))
        _save(checkpoint, partial(_pickle, (step, model)))
        report(found, step=step)
    return model


def _check_report(report: object) -> None:
    """Refuse anything but the ``report`` that a training function receives."""
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


def _load(report: Reporter, checkpoint: File | None) -> tuple[int, Any] | None:
    """What was kept of a run that is brought back."""
    if checkpoint is None or not report.past.step:
        return None
    step, model = pickle.loads(Path(checkpoint).read_bytes())
    return int(step), model


def _save(checkpoint: File | None, save: Callable[[str], Any]) -> None:
    """Save beside the checkpoint and then replace it, so that a whole checkpoint always exists."""
    if checkpoint is None:
        return
    path = Path(checkpoint)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(str(path)) as new:
        save(new)


def _inner(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    if name not in found:
        raise InvalidAnswer(
            f"there is no evaluation of {name!r}; there are "
            f"{', '.join(map(repr, found)) or 'none'}."
        )
    return dict(found[name])


def _found(metrics: Mapping[str, Any], name: str) -> float:
    if name not in metrics:
        raise InvalidAnswer(
            f"there is no metric {name!r}; there are {', '.join(map(repr, metrics)) or 'none'}."
        )
    value = metrics[name]
    return float(value[-1] if isinstance(value, (list, tuple)) else value)
