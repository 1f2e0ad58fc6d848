"""Models that were fitted to past runs: the forest they stand for, and how sure it is."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Protocol, runtime_checkable

import numpy as np

from ..._common.arrays import IntArray
from ...forest.model import Forest

RUNS = 20
"""Runs that may be started unless told otherwise."""

FORMAT = b'"weitzman/line-model/'
"""How the file of such a model says what it is."""

_DRAWS = 30


@runtime_checkable
class Learnt(Protocol):
    """What a fitted model is here: something that tells of n new runs as a forest."""

    @property
    def rungs(self) -> IntArray:
        """The steps at which it is decided whether a run goes on, a box of ``lines`` each."""
        ...

    def lines(self, n: int = 1) -> Forest:
        """The forest of n new runs."""
        ...


def load(path: str) -> Learnt:
    """The model in a file."""
    model: Learnt = import_module("weitzman.learn").load(path)
    return model


def forest(model: Learnt, runs: int) -> Forest:
    """The forest of new runs, its boxes named for readers who do not know how it was fitted."""
    return replace(model.lines(runs), names=tuple(f"run to step {step}" for step in model.rungs))


def spread(model: Learnt, runs: int) -> tuple[float, float]:
    """Nine in ten of the models that the log might as well have led to give a value in between."""
    values = import_module("weitzman.learn").draws(model, _DRAWS).value(runs)
    low, high = np.quantile(values, [0.05, 0.95])
    return float(low), float(high)
