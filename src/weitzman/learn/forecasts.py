"""What each kind of knowledge adds to the forecast of a run's last score, on runs left out."""

from __future__ import annotations

import numpy as np

from .._common.arrays import BoolArray, FloatArray
from .kin import Trees, levels_of
from .known import CURVE, Encoder, features, is_category
from .ladder import Ladder
from .laws import usual_cost
from .resemblance import Resemblance

_SEED = 20160
_ENDS = 0.05, 0.95  # of an interval of 90 %


def knowledge(
    ladder: Ladder, encoder: Encoder, settings: Resemblance, r: int
) -> tuple[dict[str, float], float]:
    """Errors of forecasts made before segment r, by what is known, and the coverage of the last.

    An error is the mean continuous ranked probability score, in points of score; every run is
    forecast by trees that it did not help to grow. The coverage is the share of runs whose last
    score lies in the interval of 90 %, if everything is known.
    """
    runs = ladder.select(np.flatnonzero(ladder.gone & (ladder.seen > r)))
    final = runs.best[np.arange(len(runs)), runs.seen - 1]
    level = levels_of(runs, usual_cost(runs))
    known, category = features(runs, r, level), is_category(encoder, r)
    curve = np.arange(known.shape[1]) < (CURVE if r else 0)
    first = np.arange(known.shape[1]) < (1 if r else 0)
    kinds = {
        "nothing": np.zeros(len(category), bool),
        "best so far": first,
        "curve": curve,
        "settings": first | ~curve,
        "both": np.ones(len(category), bool),
    }
    errors, inside = {}, 0.0
    for name, used in kinds.items():
        row = _rows(known[:, used], category[used], final, runs.weight, settings)
        errors[name] = float(np.mean(ranked_errors(row, final)))
        inside = float(np.mean(_covered(row, final)))
    return errors, inside


def _rows(
    known: FloatArray,
    category: BoolArray,
    final: FloatArray,
    weight: FloatArray,
    settings: Resemblance,
) -> FloatArray:
    """How much each run resembles each other run. No run resembles itself."""
    if not known.shape[1]:
        row = (1.0 - np.eye(len(final))) * weight
        return np.asarray(row / row.sum(axis=1, keepdims=True))
    grown = Trees.grown(
        known, category, final[:, None], weight, trees=settings.trees, leaf=settings.leaf,
        random=np.random.default_rng(_SEED),
    )  # fmt: skip
    return grown.rows(known, np.arange(len(final)))


def ranked_errors(row: FloatArray, final: FloatArray) -> FloatArray:
    """The continuous ranked probability score of each forecast."""
    gap = np.abs(final[:, None] - final[None])
    return np.asarray((row * gap).sum(axis=1) - 0.5 * ((row @ gap) * row).sum(axis=1))


def _covered(row: FloatArray, final: FloatArray) -> BoolArray:
    """Whether each score lies between the ends of its forecast."""
    up = np.argsort(final, kind="stable")
    reached = np.cumsum(row[:, up], axis=1)
    low, high = (
        final[up][np.minimum((reached < end).sum(axis=1), len(final) - 1)] for end in _ENDS
    )
    return np.asarray((low <= final) & (final <= high))
