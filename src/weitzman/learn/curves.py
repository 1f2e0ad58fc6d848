"""Logged runs as flat columns, checked once and then trusted.

Words used in this package: a *run* is one line that was followed step by step (a training run, a
learner on growing samples); its *curve* is the score seen after each step and the cost paid to see
it; a *task* is a set of runs whose scores can be compared.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._common.log_names import is_cumulative, is_loss
from .._common.numbers import counted, such
from .._common.optional import need
from ..errors import InvalidArgument
from ..forest.rules import like
from . import log_readers
from .log_readers import LoggedRun
from .log_tables import (
    OWN,
    Blank,
    Config,
    LogColumns,
    columns_of,
    flat,
    kept_rows,
    settings_of,
    step_costs,
    with_skipped,
)

if TYPE_CHECKING:
    import pandas

_USUAL = "run", "step", "score", "cost"
_COPY = re.compile(r" \(\d+\)$")
_DTYPES: dict[str, Any] = {
    "start": np.int64, "step": np.int64, "score": np.float64, "cost": np.float64, "ended": np.bool_,
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Curves:
    """Curves of many runs, one row for each step that was seen.

    Most users call :meth:`read`, or :meth:`from_optuna` and similar methods for the logs of other
    libraries; this constructor takes the columns as they are stored.

    Parameters
    ----------
    runs, task : tuples of str
        A name for each run, unique within its task; its task, "" where there is none.
    start : (n + 1,) array of int
        The rows of run r are ``start[r]`` to ``start[r + 1]``, by ascending step.
    step, score, cost : arrays with one entry per row
        When the row was seen; what was seen, NaN where the run diverged; and what it cost to see
        it, counted from the row before.
    ended : (n,) array of bool
        Whether the run came to its own end with its last row, and was not cut off there.
    minimize : bool
        Lower scores are better.
    settings : tuple of mappings
        What each run was started with, from names to values; empty if that is not known.
    """

    runs: tuple[str, ...]
    start: IntArray
    step: IntArray
    score: FloatArray
    cost: FloatArray
    task: tuple[str, ...]
    ended: BoolArray
    minimize: bool = False
    settings: tuple[Config, ...] = ()

    def __post_init__(self) -> None:
        for name, dtype in _DTYPES.items():
            column = np.asarray(getattr(self, name)).astype(dtype, casting="same_kind")
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        _check(self)

    @classmethod
    def read(
        cls, source: Any, *, run: str | Sequence[str] = "run", step: str = "step",
        score: str = "score", cost: str | None = "cost", task: str | Sequence[str] | None = "task",
        ended: str | bool | None = None, minimize: bool | None = None, settings: Any = None,
        cumulative: bool | None = None, blank: Blank | None = None,
    ) -> Curves:  # fmt: skip
        """Read curves from a table with one row for each step of each run.

        Parameters
        ----------
        source : path, pandas.DataFrame, list of rows, or mapping from names to columns
            Files: ``.csv``, ``.csv.gz``, ``.parquet`` or ``.jsonl``; they need pandas.
        run, task : str or several
            The columns that name a run within its task. A task of None takes all runs as one task.
        step, score, cost : str
            The columns with whole numbers, scores and costs. A cost of None counts 1 for every
            row. If there is no column ``run``, ``step``, ``score``, ``cost`` or ``task``, the first
            one is taken that has a usual name, such as ``trial_id``, ``epoch``, ``val_accuracy``,
            ``seconds`` or ``dataset``.
        ended : str, bool or None
            Whether the last row of a run is its own end: a column that says so in its last row,
            or one answer for all runs. With None, a run that got as far as any run of its task has
            ended, and the others were cut off.
        minimize : bool, optional
            Lower scores are better. By default if the name of the score says so, as ``val_loss``
            does.
        settings : list of str, path, pandas.DataFrame, or mapping from names to columns
            What runs were started with: columns of the log, or a table with one row for each run,
            joined by the columns that name a run and its task, or those of them that it has.
            Settings are numbers, texts, or blanks where a setting does not apply.
        cumulative : bool, optional
            Costs are counted from the start of the run, not from the row before; or they are times
            of day, and then the first row of a run costs as much as its rows usually do. By default
            if the name of the cost says so, as ``_runtime`` does.
        blank : "diverged" or "skipped", optional
            What a blank score (or NaN) means: the run diverged, or it was not evaluated in that
            step, whose cost then belongs to the next score. The default is "skipped" if a score
            follows a blank in most runs with blanks, and "diverged" otherwise.

        Examples
        --------
        >>> curves = Curves.read({"run": ["a", "a", "b"], "step": [1, 2, 1],
        ...                       "score": [0.5, 0.7, 0.4], "cost": [1, 1, 1]})
        >>> curves.runs, curves.ended.tolist()
        (('a', 'b'), [True, False])
        """
        table = columns_of(source)
        if table.is_export and (run, step, score, cost) == _USUAL:
            ended = "ended" if ended is None else ended
            if minimize is None:
                minimize = table["minimize"].tolist()[:1] in ([1], ["True"])
            if settings is None:
                settings = [x for x in table.names if x not in OWN] or None
        run, step, score = map(table.role, ("run", "step", "score"), (run, step, score))
        cost = None if cost is None else table.role("cost", cost)
        task = table.role("task", task)
        if task == "task" and "task" not in table.names:
            task = None  # the default, and no column is called so
        when, size = table.steps(step), len(table[step])
        if size == 0:
            raise InvalidArgument("curves need at least one row, but the table is empty.")
        # number the runs in the order of their first rows, and sort rows by run and step
        tasks = [""] * size if task is None else table.words(task)
        number: dict[tuple[str, str], int] = {}
        of_row = np.array([
            number.setdefault(key, len(number))
            for key in zip(tasks, table.words(run), strict=True)
        ])  # fmt: skip
        order, ends = np.lexsort((when, of_row)), np.cumsum(np.bincount(of_row))
        first, last = order[ends - np.bincount(of_row)], order[ends - 1]
        ordered, seen = of_row[order], table.numbers(score, blank=True)[order]
        if np.isnan(seen).all():
            raise InvalidArgument(
                f"column {score!r} must hold scores, but all {size} of its rows are blank. Say "
                f"which column is meant."
            )
        kept = kept_rows(seen, ordered, blank)
        paid = np.ones(size) if cost is None else table.numbers(cost)[order]
        if cumulative is None:
            cumulative = cost is not None and is_cumulative(cost)
        each = step_costs(paid, ordered, cumulative)
        called = [x for c in (task, run) for x in ([c] if isinstance(c, str) else c or ())]
        own, names = zip(*number, strict=True)
        return cls(
            runs=names, task=own,
            start=np.concatenate([[0], np.cumsum(np.bincount(ordered[kept]))]),
            step=when[order][kept], score=seen[kept], cost=with_skipped(each, ordered, kept),
            ended=_ended(table, ended, last, when, own),
            minimize=is_loss(score) if minimize is None else minimize,
            settings=() if settings is None else tuple(settings_of(table, settings, first, called)),
        )  # fmt: skip

    # -- logs of other libraries. Settings come with the runs where they were logged. Costs are
    # seconds where times were logged.

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
            ``ended``, ``minimize`` (by default what the study or the name of the metric says) and
            ``blank`` as in :meth:`Curves.read`, here and in the methods that follow.
        """
        studies = log_readers.studies_of(studies)
        options = {"minimize": studies[0].direction.name == "MINIMIZE"} | options
        return cls._of(log_readers.optuna_runs(studies), "", "cost", options)

    @classmethod
    def from_ray(
        cls, source: Any, metric: str, *, step: str = "training_iteration",
        cost: str = "time_this_iter_s", **options: Any,
    ) -> Curves:  # fmt: skip
        """The trials of a Ray Tune experiment.

        ``source`` is what ``Tuner.fit`` returns, or the folder of the experiment, which is read
        without Ray. Names of nested results are joined by slashes.
        """
        return cls._of(log_readers.ray_runs(source, metric, step, cost), metric, "cost", options)

    @classmethod
    def from_mlflow(
        cls, experiments: Any, metric: str, *, tracking_uri: str | None = None,
        online: bool = False, cost: str = "time", **options: Any,
    ) -> Curves:  # fmt: skip
        """The runs of MLflow experiments. With several experiments, each is a task of its own.

        Experiments are given by name or id; ``tracking_uri`` is by default the one that MLflow is
        set to. A tracking server, which is reached over the network, needs ``online=True``. A row
        costs the seconds since the row before, or with ``cost="steps"`` the steps; times with a
        pause in them, or all logged at once, give a warning.
        """
        runs = log_readers.mlflow_runs(experiments, metric, tracking_uri, online, cost)
        return cls._of(runs, metric, "elapsed", options)

    @classmethod
    def from_wandb(
        cls, source: Any, metric: str, *, online: bool = False, cost: str = "time", **options: Any
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
        cost : "time" or "steps"
            As in :meth:`from_mlflow`; a chart has no times.
        """
        runs = log_readers.wandb_runs(source, metric, online, cost)
        return cls._of(runs, metric, "elapsed", options)

    @classmethod
    def from_tensorboard(
        cls, folder: Any, tag: str, *, cost: str = "time", **options: Any
    ) -> Curves:
        """Scalars of TensorBoard: every folder with event files is a run.

        One folder or several are searched with their subfolders; ``cost`` as in
        :meth:`from_mlflow`.
        """
        return cls._of(log_readers.tensorboard_runs(folder, tag, cost), tag, "elapsed", options)

    @classmethod
    def from_huggingface(cls, source: Any, metric: str, **options: Any) -> Curves:
        """Runs of Hugging Face's ``Trainer``: the ``trainer_state.json`` of the last checkpoint.

        Rows without the metric are left out; a row costs the steps since the row before. ``source``
        is a file, a folder or several; the checkpoints of a folder are one run. ``metric`` is a
        name such as ``eval_loss``.
        """
        return cls._of(log_readers.huggingface_runs(source, metric), metric, "elapsed", options)

    @classmethod
    def from_keras(cls, source: Any, metric: str, **options: Any) -> Curves:
        """Files of Keras' ``CSVLogger``: every file is a run, every epoch costs 1.

        Steps count the epochs that are done, from 1. ``source`` is a file, a folder with ``.csv``
        files or files called ``training.log``, or several; ``metric`` is a name such as
        ``val_accuracy``.
        """
        return cls._of(log_readers.keras_runs(source, metric), metric, "cost", options)

    @classmethod
    def from_lightning(
        cls, source: Any, metric: str, *, step: str = "step", **options: Any
    ) -> Curves:
        """Logs of Lightning's ``CSVLogger``: every ``metrics.csv`` is a run.

        Rows without the metric are left out; a row costs the steps since the row before. Settings
        come from ``hparams.yaml`` beside the file; reading it needs PyYAML. ``source`` is a file, a
        folder or several; ``step`` is ``"step"`` or ``"epoch"``.
        """
        return cls._of(log_readers.lightning_runs(source, metric, step), metric, "elapsed", options)

    @classmethod
    def _of(
        cls, logged: Iterable[LoggedRun], metric: str, cost: str, options: dict[str, Any]
    ) -> Curves:
        """Curves of logged runs; ``cost`` is "elapsed" if costs count from the start of a run."""
        runs = list(logged)
        shown = [run for run in runs if len(run.steps)]
        if not shown:
            there = ", ".join(sorted({str(x) for run in runs for x in run.names})[:20])
            raise InvalidArgument(
                f"at least one run must show {repr(metric) if metric else 'a score'}, but none "
                f"does.{f' There are {there}.' if there else ''}"
            )
        number = np.repeat(np.arange(len(shown)), [len(run.steps) for run in shown])
        table: dict[str, Any] = {
            "task": [shown[i].task for i in number], "ended": [shown[i].ended for i in number],
            "run": number, "step": [x for run in shown for x in run.steps],
            "score": [x for run in shown for x in run.scores],
            cost: [x for run in shown for x in run.costs or [1.0] * len(run.steps)],
        }  # fmt: skip
        known = all(run.ended is not None for run in runs)
        options = {"ended": "ended" if known else None, "minimize": is_loss(metric)} | options
        names: dict[tuple[str, str], None] = {}
        for run in shown:
            name, copy = run.name, 1
            while (run.task, name) in names:
                copy += 1
                name = f"{run.name} ({copy})"
            names[run.task, name] = None
        settings = tuple(flat(run.settings) for run in shown)
        return replace(
            cls.read(table, cost=cost, task="task", **options),
            runs=tuple(name for _, name in names), settings=settings if any(settings) else (),
        )  # fmt: skip

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.runs)

    def __repr__(self) -> str:
        return (
            f"Curves({counted(len(self), 'run')}, {counted(len(self.step), 'row')}, "
            f"{counted(len(self.tasks), 'task')}, {int((~self.ended).sum())} cut off"
            f"{', minimize' if self.minimize else ''})"
        )

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, in order of appearance."""
        return tuple(dict.fromkeys(self.task))

    def of_task(self, task: str) -> Curves:
        """The runs of one task."""
        keep = [i for i, name in enumerate(self.task) if name == task]
        if not keep:
            raise InvalidArgument(
                f"no run belongs to a task {task!r}{like(task, self.task) or '.'}"
            )
        return self.select(keep)

    def select(self, runs: ArrayLike) -> Curves:
        """Some of the runs, by number in the order given, or by a mask of all."""
        which, n = np.asarray(runs), len(self)
        if which.dtype == bool and which.shape == (n,):
            which = np.flatnonzero(which)
        whole = np.issubdtype(which.dtype, np.integer) or which.size == 0
        if not whole or which.ndim != 1 or ((which < 0) | (which >= n)).any():
            raise InvalidArgument(
                f"runs are chosen by numbers from 0 to {n - 1}, or by a mask of {n}, but not by "
                f"{which!r}."
            )
        which = which.astype(np.int64)
        size = np.diff(self.start)[which]
        start = np.concatenate([[0], np.cumsum(size)])
        rows = np.repeat(self.start[which] - start[:-1], size) + np.arange(start[-1])
        own: dict[str, Any] = {
            name: getattr(self, name)[rows] for name in ("step", "score", "cost")
        }
        for name in ("runs", "task", *(["settings"] if self.settings else [])):
            own[name] = tuple(getattr(self, name)[i] for i in which)
        return replace(self, start=start, ended=self.ended[which], **own)

    @classmethod
    def concat(cls, logs: Iterable[Curves]) -> Curves:
        """Join several logs into one, so that logs accumulate; ``a + b`` joins two logs.

        A run that appears in several logs under the same task and name counts once, with its
        longest curve. A run of the same name with a different curve is another run, and its name
        gets a number.

        Examples
        --------
        >>> rows = {"run": ["x", "y"], "step": [1, 1], "score": [0.6, 0.4], "cost": [1, 1]}
        >>> a, b = Curves.read(rows), Curves.read(rows | {"score": [0.7, 0.4]})
        >>> (a + b).runs
        ('x', 'y', 'x (2)')
        >>> (a + a).runs
        ('x', 'y')
        """
        every = list(logs)
        if not every:
            raise InvalidArgument("joining needs at least one log, but there is none.")
        if len({log.minimize for log in every}) > 1:
            raise InvalidArgument("logs to be joined must all maximize or all minimize.")
        before = np.cumsum([0, *(len(log.step) for log in every)]).tolist()
        starts = [log.start[1:] + rows for log, rows in zip(every, before, strict=False)]
        known = any(log.settings for log in every)
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(log, name) for log in every]) for name in _DTYPES
        }
        for name in ("runs", "task"):
            columns[name] = tuple(x for log in every for x in getattr(log, name))
        stacked = cls(
            minimize=every[0].minimize,
            settings=tuple(x for log in every for x in log.settings or ({},) * len(log) if known),
            **columns | {"start": np.concatenate([[0], *starts])},
        )
        kept = _distinct(stacked)
        return replace(stacked.select(list(kept.values())), runs=tuple(name for _, name in kept))

    def __add__(self, other: object) -> Curves:
        return Curves.concat([self, other]) if isinstance(other, Curves) else NotImplemented

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each step, with a column for each setting.

        A setting whose NAME is taken is called ``setting NAME``.
        :meth:`read` knows such a table, also one that was a file in between, and takes the
        direction, the ends and the settings from it.
        """
        run = self.run_of_row
        by_run = {"task": self.task, "run": self.runs}
        out: dict[str, Any] = {name: np.array(of, object)[run] for name, of in by_run.items()}
        out |= {"step": self.step, "score": self.score, "cost": self.cost}
        out |= {"ended": self.ended[run], "minimize": np.full(len(run), self.minimize)}
        rows = [flat(config) for config in self.settings]
        for name in dict.fromkeys(name for row in rows for name in row):
            values = [row.get(name) for row in rows]
            out[f"setting {name}" if name in OWN else name] = [values[i] for i in run.tolist()]
        return need("pandas", "table").DataFrame(out)

    @property
    def run_of_row(self) -> IntArray:
        """The run that each row belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    @property
    def total_cost(self) -> FloatArray:
        """What each run cost up to its last row."""
        return np.asarray(np.add.reduceat(self.cost, self.start[:-1]))


def _ended(
    table: LogColumns, ended: Any, last: IntArray, step: IntArray, tasks: Sequence[str]
) -> BoolArray:
    if isinstance(ended, str):
        flags = table.numbers(ended)[last]
        if not np.isin(flags, (0.0, 1.0)).all():
            raise InvalidArgument(f"column {ended!r} must be true or false in a run's last row.")
        return np.asarray(flags == 1.0)
    if ended is not None:
        return np.full(len(tasks), ended)
    furthest: dict[str, int] = {}
    for task, end in zip(tasks, step[last].tolist(), strict=True):
        furthest[task] = max(end, furthest.get(task, end))
    return np.asarray(step[last] == np.array([furthest[t] for t in tasks]))


def _check(c: Curves) -> None:
    """Raise InvalidArgument at the first rule that the columns break."""
    n, rows = len(c.runs), len(c.step)
    if n == 0:
        raise InvalidArgument("curves need at least one run, but there is none.")
    rising = len(c.start) == n + 1 and c.start[0] == 0 and (np.diff(c.start) > 0).all()
    if not rising or c.start[-1] != rows:
        raise InvalidArgument("`start` must rise from 0 to the number of rows, one entry per run.")
    sizes = {"score": rows, "cost": rows, "task": n, "ended": n}
    sizes |= {"settings": n} if c.settings else {}
    for name, wanted in sizes.items():
        if len(getattr(c, name)) != wanted:
            found = len(getattr(c, name))
            raise InvalidArgument(
                f"`{name}` must have {counted(wanted, 'entry')}, but it has {found}."
            )
    _reject(c, np.isinf(c.score), "a score must be finite, or NaN where a run diverged", c.score)
    _reject(c, ~(c.cost >= 0) | np.isinf(c.cost), "a cost must be at least 0 and finite", c.cost)
    again = np.diff(c.step, prepend=c.step[:1] - 1) <= 0
    again[c.start[:-1]] = False
    advice = " If these are rows of several runs, name all the columns that tell them apart."
    _reject(c, again, "the steps of a run must rise, each once", c.step, advice)


def _reject(c: Curves, bad: BoolArray, rule: str, values: NDArray[Any], advice: str = "") -> None:
    where = np.flatnonzero(bad)
    if len(where):
        row = int(where[0])
        run = int(np.searchsorted(c.start, row, "right")) - 1
        raise InvalidArgument(
            f"{rule}, but run {c.runs[run]!r} has {values[row]} at step {c.step[row]} "
            f"({such(len(where), 'row')}).{advice}"
        )


def _distinct(log: Curves) -> dict[tuple[str, str], int]:
    """The number of each different run, its longest curve, by its task and a name of its own."""
    kept: dict[tuple[str, str], int] = {}
    alike: dict[Any, list[tuple[str, str]]] = {}  # curves that begin alike, under one name
    copies: dict[tuple[str, str], int] = {}
    size = np.diff(log.start).tolist()
    # blank settings are left out: NaN would differ from itself
    settings = [
        {name: x for name, x in flat(config).items() if x is not None and x == x}
        for config in log.settings or ({},) * len(log)
    ]

    def continues(a: int, b: int) -> bool:
        """Whether one curve is the other one, or its beginning, with the same settings."""
        i, j, n = int(log.start[a]), int(log.start[b]), min(size[a], size[b])
        return settings[a] == settings[b] and all(
            np.array_equal(column[i : i + n], column[j : j + n], equal_nan=True)
            for column in (log.step, log.score, log.cost)
        )

    for r, key in enumerate(zip(log.task, log.runs, strict=True)):
        row = int(log.start[r])
        begin = [repr(float(column[row])) for column in (log.step, log.score, log.cost)]
        name = _COPY.sub("", key[1])
        known = alike.setdefault((key[0], name, *begin), [])
        copied = (x for x in known if x == key or _COPY.sub("", x[1]) == key[1])
        called = next((x for x in copied if continues(kept[x], r)), None)
        if called is None:
            called = key
            while called in kept:  # the names of copies may be taken as well
                copies[key] = copies.get(key, 1) + 1
                called = (key[0], f"{key[1]} ({copies[key]})")
            known.append(called)
        kept[called] = max(r, kept.get(called, r), key=lambda x: (size[x], bool(log.ended[x])))
    return kept


def sample() -> Curves:
    """Learning curves of scikit-learn classifiers on three data sets, each with five splits.

    A run is a learner on growing training sets; the cost is in seconds, from scratch at each size.
    From LCDB 1.0 (MIT License, Felix Mohr); ``sample.txt`` beside the file says more.

    Examples
    --------
    >>> sample()
    Curves(284 runs, 5,250 rows, 3 tasks, 0 cut off)
    """
    packed = files(__package__).joinpath("sample.csv.gz").read_bytes()
    rows = list(csv.reader(gzip.decompress(packed).decode().splitlines()))
    table = dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))
    return Curves.read(
        table, run=["learner", "replicate"], score="accuracy", cost="seconds", task="task",
        ended=True,
    )  # fmt: skip
