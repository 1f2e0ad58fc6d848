"""What every method earned on past runs, and how sure that is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.optional import need
from .._common.text import as_html, cell, columns
from ..errors import UnknownName

if TYPE_CHECKING:
    import pandas

_DRAWS = 2000  # of the bootstrap
_MEASURES = ("payoff", "score", "spend", "regret", "behind")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Backtest:
    """Scores and costs of all methods in the same searches.

    Payoff and regret are in points of score: ``payoff = score - spend / price`` (``-score - ...``
    when minimizing), and the regret is how far the payoff falls short of that of ``hindsight``, the
    best single run stopped at its best moment. Multiply by the price for units of cost.

    Parameters
    ----------
    methods : tuple of str
        The last one is ``hindsight``.
    quoted : tuple of float
        The prices as they were given: what a point is worth in units of cost, or, if
        ``by_full_run``, how many points a full run costs on average.
    by_full_run : bool
    tasks : tuple of str
    price : (prices, tasks) array of float
        What one point of score is worth, in units of cost.
    task, repeat : (cells,) arrays of int
        A cell is one task with one log.
    best, spend : (methods, prices, cells, orders) arrays of float
        The best score seen, with its sign turned when minimizing, and the costs paid.
    told : (methods, prices, cells) tuples of str
        What each method chose on the log.
    minimize : bool
    """

    methods: tuple[str, ...]
    quoted: tuple[float, ...]
    by_full_run: bool
    tasks: tuple[str, ...]
    price: FloatArray
    task: IntArray
    repeat: IntArray
    best: FloatArray
    spend: FloatArray
    told: tuple[tuple[tuple[str, ...], ...], ...]
    minimize: bool

    # -- numbers -------------------------------------------------------------------------------

    @property
    def score(self) -> FloatArray:
        """The best score seen, by method, price, cell and order."""
        return -self.best if self.minimize else self.best

    @property
    def payoff(self) -> FloatArray:
        """Points earned, by method, price, cell and order."""
        return np.asarray(self.best - self.spend / self.price[:, self.task, None])

    @property
    def regret(self) -> FloatArray:
        """Points lost compared with hindsight, by method, price, cell and order."""
        payoff = self.payoff
        return np.asarray(payoff[-1] - payoff)

    def means(self, measure: str, task: str | None = None) -> FloatArray:
        """Mean and 95 % interval of a measure by method and price: shape (methods, prices, 3).

        The interval is a percentile bootstrap over tasks, since logs of one task are alike; over
        logs if there is one task, over orders if there is one log. All methods face the same
        searches, so that ``behind``, by how much a method's payoff is lower than that of the first
        one, is a paired difference.

        Parameters
        ----------
        measure : {"payoff", "score", "spend", "regret", "behind"}
        task : str, optional
            By default all tasks together, each with the same weight.
        """
        if measure not in _MEASURES:
            raise UnknownName(
                f"there is no measure {measure!r}. Choose from {', '.join(_MEASURES)}."
            )
        values = self.payoff[:1] - self.payoff if measure == "behind" else getattr(self, measure)
        cells = np.arange(len(self.task))
        if task is not None:
            if task not in self.tasks:
                raise UnknownName(f"there is no task {task!r} in this back-test.")
            cells = np.flatnonzero(self.task == self.tasks.index(task))
        which = self.task[cells]
        # what is drawn from: means of tasks, of logs, or single searches
        units = values[:, :, cells[0]] if len(cells) == 1 else values[:, :, cells].mean(axis=-1)
        if task is None and len(kinds := np.unique(which)) > 1:
            units = np.stack([units[..., which == t].mean(axis=-1) for t in kinds], axis=-1)
        draws = np.random.default_rng(0).integers(units.shape[-1], size=(_DRAWS, units.shape[-1]))
        share = np.stack([np.bincount(d, minlength=units.shape[-1]) for d in draws], axis=1)
        sampled = units @ (share / units.shape[-1])
        low, high = np.quantile(sampled, (0.025, 0.975), axis=-1)
        return np.stack([units.mean(axis=-1), low, high], axis=-1)

    # -- tables --------------------------------------------------------------------------------

    def summary(self, task: str | None = None) -> list[dict[str, Any]]:
        """A row for each price and method: means, with ``_low`` and ``_high`` ends."""
        found = {name: self.means(name, task) for name in _MEASURES}
        key = "full_run_cost" if self.by_full_run else "price"
        return [
            {"task": task or "", key: quoted, "method": method}
            | {
                name + end: float(values[m, p, i])
                for name, values in found.items()
                for i, end in enumerate(("", "_low", "_high"))
            }
            for p, quoted in enumerate(self.quoted)
            for m, method in enumerate(self.methods)
        ]

    def columns(self) -> dict[str, list[Any]]:
        """One entry for each method, price, task, log and order."""
        m, p, u, k = (x.reshape(-1) for x in np.indices(self.best.shape))
        quoted = {"full_run_cost": [self.quoted[i] for i in p]} if self.by_full_run else {}
        return {
            "method": [self.methods[i] for i in m],
            **quoted,
            "price": self.price[p, self.task[u]].tolist(),
            "task": [self.tasks[i] for i in self.task[u]],
            "repeat": self.repeat[u].tolist(),
            "order": k.tolist(),
            **{name: getattr(self, name).reshape(-1).tolist() for name in _MEASURES[:4]},
            "chosen": [self.told[a][b][c] for a, b, c in zip(m, p, u, strict=True)],
        }

    def to_pandas(self) -> pandas.DataFrame:
        """:meth:`columns` as a table."""
        return need("pandas", "table").DataFrame(self.columns())

    def document(self) -> dict[str, Any]:
        """The summaries of all tasks together and of each, as a document."""
        names = self.tasks if len(self.tasks) > 1 else ()
        return {
            "cells": len(self.task),
            "orders": self.best.shape[-1],
            "minimize": self.minimize,
            "prices": {task: self.price[:, t].tolist() for t, task in enumerate(self.tasks)},
            "summary": [row for task in (None, *names) for row in self.summary(task)],
        }

    def to_json(self) -> str:
        """The :meth:`document` as text, as ``weitzman backtest --json`` prints it."""
        return json.dumps(self.document(), indent=1)

    def table(self, task: str | None = None) -> str:
        """Text for people: a block for each price, methods in rows, the least regret first."""
        blocks, rows, count = [], self.summary(task), len(self.methods)
        title = "a full run costs {:g} points"
        if not self.by_full_run:
            title = "a point is worth {:g} units of cost"
        for p, quoted in enumerate(self.quoted):
            text = [["", "payoff", "score", "spend", "regret", "95 % interval", "behind", ""]]
            for row in sorted(rows[p * count : (p + 1) * count], key=lambda row: row["regret"]):
                line = [cell(row["method"]), *(f"{row[name]:.4g}" for name in _MEASURES[:3])]
                for name in _MEASURES[3:]:
                    ends = f"[{row[name + '_low']:.3g}, {row[name + '_high']:.3g}]"
                    first = name == "behind" and row["method"] == self.methods[0]
                    line += ["", ""] if first else [f"{row[name]:.4g}", ends]
                text.append(line)
            blocks.append("\n".join([title.format(quoted), *columns(text, right=1)]))
        return "\n\n".join(blocks)

    _repr_html_ = as_html
