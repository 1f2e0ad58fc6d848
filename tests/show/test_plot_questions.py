"""Pictures of frontiers and tornados."""

from __future__ import annotations

import numpy as np
import pytest
from plain_forests import random_forest

from weitzman import plot, questions
from weitzman.errors import InvalidArgument

pytest.importorskip("matplotlib")


def test_a_frontier_is_drawn_through_its_corners():
    curve = questions.frontier(random_forest(np.random.default_rng(7), 30))
    ax = plot.frontier(curve)
    x, y = ax.lines[0].get_data()
    assert np.array_equal(x, curve.spend)
    assert np.array_equal(y, curve.reward)


def test_a_tornado_has_a_row_for_each_number():
    found = questions.tornado(random_forest(np.random.default_rng(7), 8), boxes=3)
    ax = plot.tornado(found, limit=5)
    assert len(ax.patches) == 2 * 5


@pytest.mark.parametrize("picture", [plot.frontier, plot.tornado])
def test_other_things_are_refused(picture):
    with pytest.raises(InvalidArgument, match="this picture needs a"):
        picture(3)
