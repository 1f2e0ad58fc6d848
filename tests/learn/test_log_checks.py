"""Logs whose rows do not mean what they seem to."""

from __future__ import annotations

import numpy as np
import pytest

from weitzman import learn
from weitzman.errors import InvalidArgument
from weitzman.learn import Curves

NAN = float("nan")


def read(score, cost=None, **options):
    """Two runs of four steps."""
    cost = [1.0] * 8 if cost is None else cost
    table = {"run": ["a"] * 4 + ["b"] * 4, "step": [1, 2, 3, 4] * 2, "score": score, "cost": cost}
    return Curves.read(table, **options)


def test_blanks_between_scores_were_not_evaluated():
    curves = read([NAN, 0.5, NAN, 0.7, NAN, 0.4, NAN, 0.6], cost=[1, 2, 3, 4, 5, 6, 7, 8])
    assert curves.score.tolist() == [0.5, 0.7, 0.4, 0.6]
    assert curves.step.tolist() == [2, 4, 2, 4]
    assert curves.cost.tolist() == [3, 7, 11, 15]
    assert len(learn.fit(curves, price=10.0).rungs) == 2
    said = read([NAN, 0.5, NAN, 0.7, NAN, 0.4, NAN, 0.6], blank="diverged")
    assert len(said.score) == 8


def test_blanks_at_the_end_are_divergence():
    curves = read([0.1, 0.5, NAN, NAN, 0.2, 0.4, 0.5, 0.6])
    assert len(curves.score) == 8
    skipped = read([0.1, 0.5, NAN, NAN, NAN, NAN, NAN, NAN], blank="skipped")
    assert np.diff(skipped.start).tolist() == [2, 4]  # a run without any score stays
    with pytest.raises(InvalidArgument, match="all 8 of its rows are blank"):
        read([NAN] * 8)
    with pytest.raises(InvalidArgument, match="`blank` must be"):
        read([0.1] * 8, blank="zero")


def test_cumulative_costs():
    score, even = [0.1, 0.2, 0.3, 0.4] * 2, [10, 20, 31, 40, 9, 21, 30, 42]
    curves = read(score, even, cumulative=True)
    assert curves.cost.tolist() == [10, 10, 11, 9, 9, 12, 9, 12]
    with pytest.warns(UserWarning, match="cumulative=True"):
        assert read(score, even).cost.tolist() == even
    assert read(score, [1, 2, 4, 8] * 2).cost.sum() == 30  # dearer and dearer is no count
    with pytest.raises(InvalidArgument, match="times of day"):
        read(score, [1.7e9 + t for t in range(8)])
    with pytest.raises(InvalidArgument, match="at least 0"):
        read(score, [3, 2, 1, 0] * 2, cumulative=True)
