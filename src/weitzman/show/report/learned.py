"""Models that were fitted to past runs: the forest they stand for, and how sure it is."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np

from ...forest.model import Forest
from ...learn.run_model import RunModel

RUNS = 20
"""Runs that may be started unless told otherwise."""

FORMAT = b'"weitzman/line-model/'
"""How the file of such a model says what it is."""

_DRAWS = 30


def load(path: str) -> RunModel:
    """The model in a file."""
    model: RunModel = import_module("weitzman.learn").load(path)
    return model


def forest(model: RunModel, runs: int) -> Forest:
    """The forest of new runs, its boxes named for readers who do not know how it was fitted."""
    return replace(model.lines(runs), names=tuple(f"run to step {step}" for step in model.rungs))


def spread(model: RunModel, runs: int) -> tuple[float, float]:
    """Nine in ten of the models that the log might as well have led to give a value in between."""
    values = import_module("weitzman.learn").draws(model, _DRAWS).value_at(runs)
    low, high = np.quantile(values, [0.05, 0.95])
    return float(low), float(high)
