"""The sets of curves, how each is read, and how much of it is searched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from weitzman.learn.curves import Curves

FULL_RUN_COSTS = (0.0003, 0.001, 0.003, 0.01, 0.03)


@dataclass(frozen=True, slots=True)
class Size:
    """How much of a set is searched: tasks, spread over all, and how many logs and orders of each.

    Without a log, its number only says how often orders are drawn, or how many repetitions of the
    lines are searched.
    """

    tasks: int
    with_log: tuple[int, int]
    without: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Set:
    """One set: columns of its table, and how much of it is searched.

    ``instance`` is the column that tells apart repetitions of the same lines. Where there is one, a
    search is among the lines of one repetition, and the other repetitions are its log; otherwise
    the log are 150 random runs of the task. ``data`` is the folder of the table, if it has another
    name; ``among`` are the places of the tasks that may be taken, if not all.
    """

    name: str
    cost: str
    instance: str | None
    full: Size
    quick: Size
    data: str = ""
    among: tuple[int, ...] = ()

    def tasks(self, curves: Curves, most: int) -> tuple[str, ...]:
        """So many of the tasks that may be taken, spread over all."""
        some = [t for i, t in enumerate(curves.tasks) if not self.among or i in self.among]
        return tuple(some[:: -(-len(some) // most)])

    def read(self, folder: Path) -> tuple[Curves, tuple[str, ...] | None]:
        """The curves, and the repetition that each run belongs to."""
        place = folder / (self.data or self.name)
        curves = Curves.read(
            place / "curves.csv.gz",
            task="task",
            run="config_id" if self.instance is None else (self.instance, "config_id"),
            score="val_score",
            cost=self.cost,
            ended=True,
            settings=_settings(place),
        )
        if self.instance is None:
            return curves, None
        return curves, tuple(name.partition("/")[0] for name in curves.runs)


def _settings(folder: Path) -> Any:
    """What is known of a configuration before it starts: its row in a table, or its name.

    In algoperf a configuration is a submission with hyperparameters; in lcdb it is a learner.
    """
    if (folder / "configs.csv.gz").exists():
        return folder / "configs.csv.gz"
    if not (folder / "configs.csv").exists():
        return ["config_id"]
    pandas = import_module("pandas")
    table = pandas.read_csv(folder / "configs.csv")
    told = pandas.DataFrame([json.loads(x) for x in table.pop("hparams_json")])
    runs = pandas.read_csv(folder / "runs.csv.gz").drop_duplicates("config_id")
    known = runs[["config_id", "submission", "ruleset", "framework"]].astype(str)
    return (
        table[["config_id"]]
        .join(told)
        .merge(known, on="config_id")
        .assign(name=lambda x: x["config_id"])
    )


# tasks of lcdb that no choice has looked at: choices took every second or every eleventh task
_NEW = tuple(i for i in range(1, 165, 2) if i % 11)
_QUICK = Size(3, (1, 2), (1, 2))
SETS = (
    Set("taskset_text", "cost_units", None, Size(8, (1, 1), (1, 1)), _QUICK),
    Set("algoperf", "cost_seconds", "study", Size(10, (1, 1), (1, 1)), _QUICK),
    Set("lcdb", "cost_seconds", "replicate", Size(14, (1, 1), (2, 1)), _QUICK),
    Set("lcdb_new", "cost_seconds", "replicate", Size(15, (2, 1), (2, 1)), _QUICK, "lcdb", _NEW),
    Set("trained", "cost", None, Size(8, (1, 1), (1, 2)), _QUICK),
    Set("held_out", "cost", None, Size(7, (1, 2), (1, 4)), _QUICK),
)
CHOOSING, HOME_MADE = SETS[:3], SETS[4:]  # where defaults may be chosen; trained here, to check
# without a log the rule of the first runs was also simulated on `trained`
CHOSE_NOTHING = {"with": ("lcdb_new", "trained", "held_out"), "without": ("lcdb_new", "held_out")}
