"""Logs of other libraries as curves, one line for each."""

from __future__ import annotations

import json
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
from .log_files import read_log
from .log_tables import LogColumns, numbers
from .logged_runs import (
    LoggedRun,
    a_number,
    as_table,
    files_below,
    last_of_each,
    names_of,
    plain_settings,
    reading,
)
from .tracker_logs import mlflow_runs, tensorboard_runs, wandb_runs
from .tuner_logs import minimizes, optuna_runs, ray_runs, studies_of

if TYPE_CHECKING:
    from .curves import Curves


_LONGEST, _LONGEST_STATE = 2**20, 2**28  # bytes of hparams.yaml and of trainer_state.json


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
        studies : optuna.Study, several, or str
            A text is the URL of a storage, such as ``sqlite:///study.db``: all of its studies.
        **options
            ``minimize`` is what the study says; ``ended`` and ``blank`` as in :meth:`Curves.read`.
        """
        studies = studies_of(studies)
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
        cls,
        experiments: Any,
        metric: str,
        *,
        tracking_uri: str | None = None,
        online: bool = False,
        **options: Any,
    ) -> Curves:
        """The runs of MLflow experiments. With several experiments, each is a task of its own.

        Parameters
        ----------
        experiments : str or several
            Names of experiments, or their ids.
        metric : str
        tracking_uri : str, optional
            By default the tracking URI that MLflow is set to.
        online : bool
            Must be said of a tracking server, which is reached over the network.
        **options
            As in :meth:`Curves.read`.
        """
        runs = mlflow_runs(experiments, metric, tracking_uri, online)
        return cls._of(runs, repr(metric), "elapsed", options, metric)

    @classmethod
    def from_wandb(
        cls, source: Any, metric: str, *, online: bool = False, **options: Any
    ) -> Curves:
        """Runs of Weights & Biases.

        Parameters
        ----------
        source : str, path, pandas.DataFrame, mapping, or runs
            The folder ``wandb`` of runs that were logged offline, or one file ``run-ID.wandb``;
            with ``online``, ``"entity/project"``, which needs wandb; a CSV file exported from a
            chart, or the same as a table, with a column ``RUN - METRIC`` for each run; a mapping
            from names to the histories of runs; or runs as ``wandb.Api().runs`` gives them.
        metric : str
        online : bool
            Whether a name that is no file or folder is a project to be read over the network.
        **options
            As in :meth:`Curves.read`.
        """
        return cls._of(wandb_runs(source, metric, online), repr(metric), "elapsed", options, metric)

    @classmethod
    def from_tensorboard(
        cls, folder: Any, tag: str, *, cost: str = "time", **options: Any
    ) -> Curves:
        """Scalars of TensorBoard: every folder with event files is a run.

        Parameters
        ----------
        folder : path or several
            Searched with its subfolders.
        tag : str
        cost : "time" or "steps"
            What a row costs: the seconds since the row before, or the steps. Times with a pause in
            them, or all written at once, give a warning.
        **options
            As in :meth:`Curves.read`.
        """
        runs = tensorboard_runs(folder, tag, cost)
        return cls._of(runs, f"the tag {tag!r}", "elapsed", options, tag)

    @classmethod
    def from_huggingface(cls, source: Any, metric: str, **options: Any) -> Curves:
        """Runs of Hugging Face's ``Trainer``: the ``trainer_state.json`` of the last checkpoint.

        Rows without the metric are left out; a row costs the steps since the row before.

        Parameters
        ----------
        source : path or several
            Files, or folders that hold them; the checkpoints of a folder are one run.
        metric : str
            A name such as ``eval_loss``.
        **options
            As in :meth:`Curves.read`.
        """
        runs = huggingface_runs(source, metric)
        return cls._of(runs, repr(metric), "elapsed", options, metric)

    @classmethod
    def from_keras(cls, source: Any, metric: str, **options: Any) -> Curves:
        """Files of Keras' ``CSVLogger``: every file is a run, every epoch costs 1.

        Steps count the epochs that are done, from 1.

        Parameters
        ----------
        source : path or several
            Files, or folders that hold ``.csv`` files or files called ``training.log``.
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
    for name, path in files_below(source, "*.csv", "training.log"):
        epoch, score = _columns(path, "epoch", metric)
        order = np.arange(len(epoch)).tolist()  # after a restart epochs are logged again
        with reading(path, "a log of Keras"):
            steps, scores, _ = last_of_each((epoch + 1).tolist(), score.tolist(), order)
        yield LoggedRun(name, steps, scores, None)


def lightning_runs(source: Any, metric: str, step: str) -> Iterator[LoggedRun]:
    """Files of Lightning's CSVLogger, with the hyperparameters beside them as settings."""
    for name, path in files_below(source, "metrics.csv"):
        when, score = _columns(path, step, metric)
        seen = ~np.isnan(score) & ~np.isnan(when)
        done = (when[seen] + 1).tolist()  # steps are counted from 0
        with reading(path, "a log of Lightning"):
            steps, scores, _ = last_of_each(done, score[seen].tolist(), range(len(done)))
        settings = _hyperparameters(path.with_name("hparams.yaml"))
        yield LoggedRun(name, steps, scores, [float(x) for x in steps], settings)


def _columns(path: Path, step: str, metric: str) -> tuple[FloatArray, FloatArray]:
    table = LogColumns(read_log(str(path), text=True))
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
    with reading(path, "YAML"):
        if path.stat().st_size > _LONGEST:
            raise InvalidFile(f"{path}: must have at most {_LONGEST:,} bytes.")
        text = path.read_text("utf-8")
        try:
            found = yaml.safe_load(text)
        except yaml.YAMLError:
            kept = [line for line in text.splitlines() if "!!python" not in line]
            found = yaml.safe_load("\n".join(kept))
        return plain_settings(found)


def huggingface_runs(source: Any, metric: str) -> Iterator[LoggedRun]:
    """Runs of Hugging Face's Trainer; of the checkpoints of a run the one that got furthest."""
    furthest: dict[Path, tuple[float, str, Path, Any]] = {}
    for name, path in files_below(source, "trainer_state.json"):
        with reading(path, "a log of Hugging Face"):
            if path.stat().st_size > _LONGEST_STATE:
                raise InvalidFile(f"{path}: must have at most {_LONGEST_STATE:,} bytes.")
            state = json.loads(path.read_text("utf-8"))
            if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
                raise InvalidFile(f"{path}: there must be an object with a log_history.")
            reached = a_number(state.get("global_step"))
        run = path.parent
        if run.name.startswith("checkpoint-"):
            run, name = run.parent, Path(name).parent.as_posix()
        called = run.resolve().name if name in (".", "") else name
        there = furthest.get(run)
        if there is None or not reached <= there[0]:
            furthest[run] = (reached, called, path, state)
    for _, name, path, state in furthest.values():
        with reading(path, "a log of Hugging Face"):
            rows = [x for x in state["log_history"] if isinstance(x, dict)]
            seen = [x for x in rows if metric in x and not math.isnan(a_number(x.get("step")))]
            steps, scores, _ = last_of_each(
                [a_number(x["step"]) for x in seen],
                [a_number(x[metric]) for x in seen],
                range(len(seen)),
            )
            settings = plain_settings(state.get("trial_params") or {})
            there_are = {key for row in rows for key in row} - {"step", "epoch"}
        paid = [float(x) for x in steps]
        yield LoggedRun(name, steps, scores, paid, settings, names=there_are)
