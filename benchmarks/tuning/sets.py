"""The sets of curves, how each is read, and how much of it is searched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from weitzman.learn import Curves

FULL_RUN_COSTS = (0.0003, 0.001, 0.003, 0.01, 0.03)


@dataclass(frozen=True, slots=True)
class Set:
    """One set: columns of its table, how many of its tasks are taken, logs and orders for each.

    ``instance`` is the column that tells apart repetitions of the same lines. Where there is one, a
    search is among the lines of one repetition, and the other repetitions are its log; otherwise
    the log are 150 random runs of the task.
    """

    name: str
    cost: str
    instance: str | None
    tasks: int
    repeats: int
    orders: int
    quick_tasks: int

    def read(self, folder: Path) -> tuple[Curves, tuple[str, ...] | None]:
        """The curves, and the repetition that each run belongs to."""
        curves = Curves.read(
            folder / self.name / "curves.csv.gz",
            task="task",
            run="config_id" if self.instance is None else (self.instance, "config_id"),
            score="val_score",
            cost=self.cost,
            kind=self.instance,
            ended=True,
        )
        labels = None if self.instance is None else curves.kind
        return replace(curves, kind=("",) * len(curves)), labels


SETS = (
    Set("taskset_text", "cost_units", None, tasks=8, repeats=1, orders=10, quick_tasks=3),
    Set("algoperf", "cost_seconds", "study", tasks=10, repeats=4, orders=10, quick_tasks=3),
    Set("lcdb", "cost_seconds", "replicate", tasks=28, repeats=1, orders=10, quick_tasks=6),
)

# What a reader should know about a result; above all, what limits it where an aim is missed.
REMARKS = {
    "taskset_text": """
Few settings learn anything here, and the best of 850 runs is far above what 150 runs promise. Where
the aim is missed at the lower prices, the policy stops too early: on the first task at 0.0003 it
spends 0.0017 points for a score of 0.775, where top-K spends 0.0058 for 0.843. What is imagined
beyond the best run of the log decides that, and it is chosen by rehearsal on that log.
""",
    "algoperf": "",
    "lcdb": "",
}
