"""Logs of other libraries as curves, one line for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import FloatArray
from .._common.log_names import is_loss
from .._common.optional import need
from ..errors import InvalidFile
from .log_tables import columns_of, numbers
from .logged_runs import LoggedRun, as_table, files_below, last_of_each, names_of
from .tracker_logs import mlflow_runs, tensorboard_runs, wandb_runs
from .tuner_logs import minimizes, optuna_runs, ray_runs

if TYPE_CHECKING:
    from .curves import Curves


class LogSources:
    """Ways to read the logs of other libraries.

    All of them take the options ``ended``, ``minimize`` and ``blank`` of :meth:`Curves.read`.
    Settings come with the runs where the library has logged them. Costs are seconds where the
    library has logged times, and otherwise 1 for each row.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @classmethod
        def read(cls, *args: Any, **options: Any) -> Curves: ...

    @classmethod
    def from_optuna(cls, studies: Any, **options: Any) -> Curves:
        """The trials of an Optuna study, or of several studies; then each study is a task.

        A trial that was pruned, has failed or still runs was cut off; a complete trial has
        ended. Optuna does not log when a value was reported, so each report costs the same part of
        the time that its trial took, unless :func:`weitzman.tune.optuna.optimize` has noted costs.
        If no trial reports anything on the way, trials are runs of one step.

        Parameters
        ----------
        studies : optuna.Study, or several
        **options
            ``minimize`` is what the study says; ``ended`` and ``blank`` as in :meth:`Curves.read`.
        """
        options = {"minimize": minimizes(studies)} | options
        return cls._of(optuna_runs(studies), "intermediate values", "cost", options)

    @classmethod
    def from_ray(
        cls,
        source: Any,
        metric: str,
        *,
        step: str = "training_iteration",
        cost: str = "time_this_iter_s",
        **options: Any,
    ) -> Curves:
        """The trials of a Ray Tune experiment.

        Parameters
        ----------
        source : ResultGrid, or path
            What ``Tuner.fit`` returns, or the folder of the experiment, which is read without Ray.
        metric, step, cost : str
            Names in the results. Names of nested results are joined by slashes.
        **options
            As in :meth:`Curves.read`.
        """
        return cls._of(ray_runs(source, metric, step, cost), repr(metric), "cost", options, metric)

    @classmethod
    def from_mlflow(
        cls, experiments: Any, metric: str, *, tracking_uri: str | None = None, **options: Any
    ) -> Curves:
        """The runs of MLflow experiments. With several experiments, each is a task of its own.

        Parameters
        ----------
        experiments : str or several
            Names of experiments, or their ids.
        metric : str
        tracking_uri : str, optional
            By default the tracking URI that MLflow is set to.
        **options
            As in :meth:`Curves.read`.
        """
        runs = mlflow_runs(experiments, metric, tracking_uri)
        return cls._of(runs, repr(metric), "elapsed", options, metric)

    @classmethod
    def from_wandb(cls, source: Any, metric: str, **options: Any) -> Curves:
        """Runs of Weights & Biases.

        Parameters
        ----------
        source : str, path, pandas.DataFrame, mapping, or runs
            ``"entity/project"``, which needs wandb and the network; the folder ``wandb`` of runs
            that were logged offline, or one file ``run-ID.wandb``; a CSV file exported from a
            chart, or the same as a table, with a column ``RUN - METRIC`` for each run; a mapping
            from names to the histories of runs; or runs as ``wandb.Api().runs`` gives them.
        metric : str
        **options
            As in :meth:`Curves.read`.
        """
        return cls._of(wandb_runs(source, metric), repr(metric), "elapsed", options, metric)

    @classmethod
    def from_tensorboard(cls, folder: Any, tag: str, **options: Any) -> Curves:
        """Scalars of TensorBoard: every folder with event files is a run.

        Parameters
        ----------
        folder : path or several
            Searched with its subfolders.
        tag : str
        **options
            As in :meth:`Curves.read`.
        """
        return cls._of(tensorboard_runs(folder, tag), f"the tag {tag!r}", "elapsed", options, tag)

    @classmethod
    def from_keras(cls, source: Any, metric: str, **options: Any) -> Curves:
        """Files of Keras' ``CSVLogger``: every file is a run, every epoch costs 1.

        Steps count the epochs that are done, from 1.

        Parameters
        ----------
        source : path or several
            Files, or folders that hold ``.csv`` files.
        metric : str
            A name such as ``val_accuracy``.
        **options
            As in :meth:`Curves.read`.
        """
        return cls._of(keras_runs(source, metric), repr(metric), "cost", options, metric)

    @classmethod
    def from_lightning(
        cls, source: Any, metric: str, *, step: str = "step", **options: Any
    ) -> Curves:
        """Logs of Lightning's ``CSVLogger``: every ``metrics.csv`` is a run.

        Rows without the metric are left out; a row costs the steps since the row before. Settings
        come from ``hparams.yaml`` beside the file; reading it needs PyYAML.

        Parameters
        ----------
        source : path or several
            Files, or folders that hold them.
        metric : str
        step : str
            ``"step"`` or ``"epoch"``.
        **options
            As in :meth:`Curves.read`.
        """
        return cls._of(
            lightning_runs(source, metric, step), repr(metric), "elapsed", options, metric
        )

    @classmethod
    def _of(
        cls,
        logged: Iterable[LoggedRun],
        what: str,
        cost: str,
        options: dict[str, Any],
        metric: str = "",
    ) -> Curves:
        """Curves of logged runs; ``cost`` is "elapsed" if costs count from the start of a run."""
        runs = list(logged)
        table, settings = as_table(runs, what, cost)
        told = all(run.ended is not None for run in runs)
        options = {"ended": "ended" if told else None, "minimize": is_loss(metric)} | options
        curves = cls.read(table, cost=cost, task="task", **options)
        return replace(curves, runs=names_of(runs), settings=settings)


def keras_runs(source: Any, metric: str) -> Iterator[LoggedRun]:
    """Files of Keras' CSVLogger; epochs count from 1. Of a repeated epoch the last row counts."""
    for name, path in files_below(source, "*.csv"):
        epoch, score = _columns(path, "epoch", metric)
        order = np.arange(len(epoch)).tolist()  # after a restart epochs are logged again
        steps, scores, _ = last_of_each((epoch + 1).tolist(), score.tolist(), order)
        yield LoggedRun(name, steps, scores, None)


def lightning_runs(source: Any, metric: str, step: str) -> Iterator[LoggedRun]:
    """Files of Lightning's CSVLogger, with the hyperparameters beside them as settings."""
    for name, path in files_below(source, "metrics.csv"):
        when, score = _columns(path, step, metric)
        seen = ~np.isnan(score) & ~np.isnan(when)
        done = (when[seen] + 1).tolist()  # steps are counted from 0
        steps, scores, _ = last_of_each(done, score[seen].tolist(), range(len(done)))
        settings = _hyperparameters(path.with_name("hparams.yaml"))
        yield LoggedRun(name, steps, scores, [float(x) for x in steps], settings)


def _columns(path: Path, step: str, metric: str) -> tuple[FloatArray, FloatArray]:
    table = columns_of(path)
    for name in (step, metric):
        if name not in table.names:
            raise InvalidFile(
                f"{path}: there is no column {name!r}; the columns are {', '.join(table.names)}."
            )
    return numbers(table, step, blank=True), numbers(table, metric, blank=True)


def _hyperparameters(path: Path) -> dict[str, Any]:
    """What Lightning has saved; tagged Python objects in it are left out."""
    if not path.exists():
        return {}
    yaml = need("yaml", "learn")
    text = path.read_text("utf-8")
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        kept = [line for line in text.splitlines() if "!!python" not in line]
        try:
            found = yaml.safe_load("\n".join(kept))
        except yaml.YAMLError as error:
            raise InvalidFile(f"{path}: not YAML: {error}") from error
    plain = found if isinstance(found, dict) else {}
    return {str(k): None if isinstance(v, float) and math.isnan(v) else v for k, v in plain.items()}
