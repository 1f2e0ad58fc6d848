"""Pictures of frontiers and tornados."""

from __future__ import annotations

import numpy as np
import pytest
from plain_forests import random_forest

from weitzman import Builder, evaluate, plot, questions, solve
from weitzman.errors import InvalidArgument

pytest.importorskip("matplotlib")


def test_a_frontier_is_drawn_through_its_corners():
    curve = questions.frontier(random_forest(np.random.default_rng(7), 30))
    ax = plot.frontier(curve)
    x, y = ax.lines[0].get_data()
    assert np.array_equal(x, curve.spend)
    assert np.array_equal(y, curve.reward)
    e = evaluate(solve(curve.forest, exact=True))  # the dot is the policy of the costs as they are
    assert ax.lines[1].get_xdata() == pytest.approx([e.spend])
    assert ax.lines[1].get_ydata() == pytest.approx([e.reward])


def test_a_tornado_has_a_row_for_each_number():
    found = questions.tornado(random_forest(np.random.default_rng(7), 8), boxes=3)
    ax = plot.tornado(found, limit=5)
    assert len(ax.patches) == 2 * 5


def test_a_risk_sweep_names_each_first_decision_once():
    boxes = Builder().add("long shot", cost=1, outcomes={0: 0.9, 60: 0.1})
    boxes.add("steady", cost=1, outcomes={5: 0.5, 6: 0.5})
    sweep = questions.risk_sweep(boxes.build(), steps=12)
    ax = plot.risk_sweep(sweep)
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["open long shot first", "open steady first", "expected payoff alone"]
    bold, careful = ax.lines[:2]
    assert bold.get_color() != careful.get_color()
    assert bold.get_xdata().min() == careful.get_xdata().max() == sweep.turns[0]
    assert bold.get_ydata()[-1] == sweep.value[0]


@pytest.mark.parametrize("draw", ["frontier", "tornado"])
def test_every_mark_is_in_the_legend(draw):
    f = random_forest(np.random.default_rng(7), 8)
    ax = getattr(plot, draw)(getattr(questions, draw)(f))
    said = len(ax.get_legend().get_texts())
    assert said == {"frontier": len(ax.lines), "tornado": 2 + len(ax.lines)}[draw]


@pytest.mark.parametrize("picture", [plot.frontier, plot.tornado, plot.risk_sweep])
def test_other_things_are_rejected(picture):
    with pytest.raises(InvalidArgument, match="this picture needs a"):
        picture(3)


def test_a_key_too_long_for_one_line_takes_two():
    f = random_forest(np.random.default_rng(3), 60)
    ax = plot.break_even(solve(f))
    ax.figure.canvas.draw()
    texts = ax.get_legend().get_texts()
    assert len(texts) == 4
    wide = ax.figure.bbox.width
    assert all(text.get_window_extent().x1 <= wide for text in texts)
