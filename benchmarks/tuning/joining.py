"""Results of several methods that were run one after the other, as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weitzman.backtest.backtest_result import Backtest


def join(found: Sequence[Backtest]) -> Backtest:
    """One result with all methods, hindsight last.

    The searches must have been the same: hindsight, which comes with each result, says so.
    """
    first = found[0]
    for other in found[1:]:
        same = (other.quoted, other.tasks) == (first.quoted, first.tasks) and all(
            np.array_equal(getattr(other, name), getattr(first, name))
            for name in ("price", "task", "repeat")
        )
        if not same or not _same_hindsight(other, first):
            raise ValueError(f"the searches of {other.methods[0]} and {first.methods[0]} differ.")
    return replace(
        first,
        methods=(*(name for x in found for name in x.methods[:-1]), first.methods[-1]),
        best=np.concatenate([*(x.best[:-1] for x in found), first.best[-1:]]),
        spend=np.concatenate([*(x.spend[:-1] for x in found), first.spend[-1:]]),
        told=(*(told for x in found for told in x.told[:-1]), first.told[-1]),
    )


def _same_hindsight(one: Backtest, other: Backtest) -> bool:
    return np.array_equal(one.best[-1], other.best[-1]) and np.array_equal(
        one.spend[-1], other.spend[-1]
    )
