"""Logged runs as flat columns, checked once and then trusted.

Words used in this package: a *run* is one line that was followed step by step (a training run, a
learner on growing samples); its *curve* is the score seen after each step and the cost paid to see
it; a *task* is a set of runs whose scores can be compared; a *kind* is what is known about a run
before it starts.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._common.arrays import FloatArray, IntArray
from .._common.log_names import is_cumulative, is_loss
from .._common.numbers import counted, such
from .._common.optional import need
from ..errors import InvalidArgument
from ..forest.rules import like
from .features import Config
from .log_joining import OWN, frame_columns, joined_columns
from .log_sources import LogSources
from .log_tables import (
    Blank,
    LogColumns,
    check_scores,
    columns_of,
    kept_rows,
    numbers,
    settings_of,
    step_costs,
    steps,
    with_skipped,
    words,
)

if TYPE_CHECKING:
    import pandas

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Curves(LogSources):
    """Curves of many runs, one row for each step that was seen.

    Most users call :meth:`read`, or :meth:`from_optuna` and similar methods for the logs of other
    libraries; this constructor takes the columns as they are stored.

    Parameters
    ----------
    runs : tuple of str
        A name for each run, unique within its task.
    start : (n + 1,) array of int
        The rows of run r are ``start[r]`` to ``start[r + 1]``, by ascending step.
    step, score, cost : arrays with one entry per row
        When the row was seen; what was seen, NaN where the run diverged; and what it cost to see
        it, counted from the row before.
    task, kind : tuples of str
        The task and kind of each run; "" where there is none.
    ended : (n,) array of bool
        Whether the run came to its own end with its last row. If False, the run was cut off there,
        and nobody knows what would have followed.
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
    kind: tuple[str, ...]
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
        cls,
        source: Any,
        *,
        run: str | Sequence[str] = "run",
        step: str = "step",
        score: str = "score",
        cost: str | None = "cost",
        task: str | Sequence[str] | None = "task",
        kind: str | Sequence[str] | None = None,
        ended: str | bool | None = None,
        minimize: bool | None = None,
        settings: Any = None,
        cumulative: bool | None = None,
        blank: Blank | None = None,
    ) -> Curves:
        """Read curves from a table with one row for each step of each run.

        Parameters
        ----------
        source : path, pandas.DataFrame, list of rows, or mapping from names to columns
            Files: ``.csv``, ``.csv.gz``, ``.parquet`` or ``.jsonl``; they need pandas.
        run : str or several
            The columns that name a run within its task.
        step, score, cost : str
            The columns with whole numbers, scores and costs. A cost of None counts 1 for every
            row.
        task, kind : str or several, optional
            Columns that are constant within a run. A task of None takes all runs as one task.
        ended : str, bool or None
            Whether the last row of a run is its own end: a column that says so in its last row,
            or one answer for all runs. With None, a run that got as far as any run of its task has
            ended, and the others were cut off.
        minimize : bool, optional
            Lower scores are better. By default if the name of the score says so, as ``val_loss``
            does.
        settings : list of str, path, pandas.DataFrame, or mapping from names to columns
            What runs were started with: columns of the log, or a table of its own with one row for
            each run. The table is joined by the columns that name a run and its task, or by those
            of these columns that the table has. Settings are numbers, texts, or blanks where a
            setting does not apply.
        cumulative : bool, optional
            Costs are counted from the start of the run, not from the row before; or they are times
            of day, and then the first row of a run costs as much as its rows usually do. By default
            if the name of the cost says so, as ``_runtime`` does.
        blank : "diverged" or "skipped", optional
            What a blank score (or NaN) means: the run diverged, or it was not evaluated in that
            step, whose cost then belongs to the next score. The default is "skipped" if a score
            follows a blank in most runs with blanks, and "diverged" otherwise.

        Notes
        -----
        If there is no column ``run``, ``step``, ``score``, ``cost`` or ``task``, the first one is
        taken that has a usual name, such as ``trial_id``, ``epoch``, ``val_accuracy``, ``seconds``
        or ``dataset``.

        Examples
        --------
        >>> curves = Curves.read({"run": ["a", "a", "b"], "step": [1, 2, 1],
        ...                       "score": [0.5, 0.7, 0.4], "cost": [1, 1, 1]})
        >>> curves.runs, curves.ended.tolist()
        (('a', 'b'), [True, False])
        """
        table = columns_of(source)
        if table.is_export(OWN) and (run, step, score, cost, kind) == (
            "run", "step", "score", "cost", None
        ):  # fmt: skip
            kind, ended = "kind", "ended" if ended is None else ended
            minimize = bool(table["minimize"].tolist()[:1] in ([1], ["True"])) if (
                minimize is None) else minimize  # fmt: skip
            if settings is None:
                settings = [x for x in table.names if x not in OWN] or None
        run, step, score = (
            table.role("run", run),
            table.role("step", step),
            table.role("score", score),
        )
        cost, task = (
            None if cost is None else table.role("cost", cost),
            table.optional("task", task),
        )
        size = len(table[step])
        if size == 0:
            raise InvalidArgument("curves need at least one row, but the table is empty.")
        tasks = words(table, task) if task is not None else [""] * size
        names = words(table, run)
        number: dict[tuple[str, str], int] = {}
        of_row = np.fromiter(
            (number.setdefault(k, len(number)) for k in zip(tasks, names, strict=True)),
            np.int64,
            size,
        )
        when = steps(table, step)
        order = np.lexsort((when, of_row))
        keys = list(number)
        ends = np.concatenate([[0], np.cumsum(np.bincount(of_row))])
        ordered, seen = of_row[order], numbers(table, score, blank=True)[order]
        check_scores(seen, score)
        kept = kept_rows(seen, ordered, blank)
        kinds = words(table, kind) if kind is not None else None
        paid = numbers(table, cost) if cost is not None else np.ones(size)
        each = step_costs(
            paid[order],
            ordered,
            cost is not None and is_cumulative(cost) if cumulative is None else cumulative,
        )
        first, last = order[ends[:-1]], order[ends[1:] - 1]
        called = [x for c in (task, run) for x in ([c] if isinstance(c, str) else c or ())]
        return cls(
            runs=tuple(k[1] for k in keys),
            start=np.concatenate([[0], np.cumsum(np.bincount(ordered[kept]))]),
            step=when[order][kept],
            score=seen[kept],
            cost=with_skipped(each, ordered, kept),
            task=tuple(k[0] for k in keys),
            kind=_constant(kinds, of_row, keys) if kinds is not None else ("",) * len(keys),
            ended=_ended(table, ended, last, when, [k[0] for k in keys]),
            minimize=is_loss(score) if minimize is None else minimize,
            settings=() if settings is None else tuple(settings_of(table, settings, first, called)),
        )

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

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds, in order of appearance."""
        return tuple(dict.fromkeys(self.kind))

    def of_task(self, task: str) -> Curves:
        """The runs of one task."""
        return self._where(self.task, task, "task")

    def of_kind(self, kind: str) -> Curves:
        """The runs of one kind."""
        return self._where(self.kind, kind, "kind")

    def _where(self, labels: Sequence[str], wanted: str, what: str) -> Curves:
        keep = np.flatnonzero([label == wanted for label in labels])
        if not len(keep):
            raise InvalidArgument(
                f"no run belongs to a {what} {wanted!r}{like(wanted, labels) or '.'}"
            )
        return self.select(keep)

    def select(self, runs: ArrayLike) -> Curves:
        """Some of the runs, by number in the order given, or by a mask of all."""
        which = _numbers(np.asarray(runs), len(self))
        size = np.diff(self.start)[which]
        start = np.concatenate([[0], np.cumsum(size)])
        rows = np.repeat(self.start[which] - start[:-1], size) + np.arange(start[-1])
        return Curves(
            runs=tuple(self.runs[i] for i in which),
            start=start,
            step=self.step[rows],
            score=self.score[rows],
            cost=self.cost[rows],
            task=tuple(self.task[i] for i in which),
            kind=tuple(self.kind[i] for i in which),
            ended=self.ended[which],
            minimize=self.minimize,
            settings=tuple(self.settings[i] for i in which) if self.settings else (),
        )

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
        return cls(**joined_columns(list(logs)))

    def __add__(self, other: object) -> Curves:
        return Curves.concat([self, other]) if isinstance(other, Curves) else NotImplemented

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each step, with a column for each setting.

        :meth:`read` knows such a table, also one that was a file in between, and takes the kinds,
        the direction, the ends and the settings from it.
        """
        return need("pandas", "table").DataFrame(frame_columns(self))

    def worth(self, price: float) -> FloatArray:
        """What each row's score is worth, in units of cost; minus infinity where it diverged."""
        signed = (-price if self.minimize else price) * self.score
        return np.where(np.isnan(signed), -np.inf, signed)

    @property
    def run_of_row(self) -> IntArray:
        """The run that each row belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    @property
    def total_cost(self) -> FloatArray:
        """What each run cost up to its last row."""
        return np.asarray(np.add.reduceat(self.cost, self.start[:-1]))


_DTYPES: dict[str, Any] = {
    "start": np.int64,
    "step": np.int64,
    "score": np.float64,
    "cost": np.float64,
    "ended": np.bool_,
}


def _numbers(which: NDArray[Any], n: int) -> IntArray:
    """Which of n runs are selected, by numbers or by a mask."""
    if which.dtype == bool and which.shape == (n,):
        return np.flatnonzero(which)
    whole = np.issubdtype(which.dtype, np.integer) or which.size == 0
    if not whole or which.ndim != 1 or ((which < 0) | (which >= n)).any():
        raise InvalidArgument(
            f"runs are chosen by numbers from 0 to {n - 1}, or by a mask of {n}, but not by "
            f"{which!r}."
        )
    return which.astype(np.int64)


def _constant(
    values: Sequence[str], of_row: IntArray, keys: Sequence[tuple[str, str]]
) -> tuple[str, ...]:
    """What is said about each run, which must be the same in all of its rows."""
    found: dict[int, str] = {}
    for run, value in zip(of_row.tolist(), values, strict=True):
        if found.setdefault(run, value) != value:
            raise InvalidArgument(
                f"a run has one kind, but run {keys[run][1]!r} is both {found[run]!r} and "
                f"{value!r}. Name a column that is constant within runs."
            )
    return tuple(found[r] for r in range(len(keys)))


def _ended(
    table: LogColumns,
    ended: str | bool | None,
    last: IntArray,
    step: IntArray,
    tasks: Sequence[str],
) -> BoolArray:
    if isinstance(ended, str):
        flags = numbers(table, ended)[last]
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
    sizes = {"score": rows, "cost": rows, "task": n, "kind": n, "ended": n}
    sizes |= {"settings": n} if c.settings else {}
    for name, wanted in sizes.items():
        if len(getattr(c, name)) != wanted:
            found = len(getattr(c, name))
            raise InvalidArgument(
                f"`{name}` must have {counted(wanted, 'entry')}, but it has {found}."
            )
    _refuse(c, np.isinf(c.score), "a score must be finite, or NaN where a run diverged", c.score)
    _refuse(c, ~(c.cost >= 0) | np.isinf(c.cost), "a cost must be at least 0 and finite", c.cost)
    again = np.diff(c.step, prepend=c.step[:1] - 1) <= 0
    again[c.start[:-1]] = False
    advice = " If these are rows of several runs, name all the columns that tell them apart."
    _refuse(c, again, "the steps of a run must rise, each once", c.step, advice)


def _refuse(c: Curves, bad: BoolArray, rule: str, values: NDArray[Any], advice: str = "") -> None:
    where = np.flatnonzero(bad)
    if len(where):
        row = int(where[0])
        run = int(np.searchsorted(c.start, row, "right")) - 1
        raise InvalidArgument(
            f"{rule}, but run {c.runs[run]!r} has {values[row]} at step {c.step[row]} "
            f"({such(len(where), 'row')}).{advice}"
        )


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
        table,
        run=["learner", "replicate"],
        score="accuracy",
        cost="seconds",
        task="task",
        kind="learner",
        ended=True,
    )
