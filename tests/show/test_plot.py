"""What the pictures show: marks, labels, and text that does not overlap and is no formula."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from test_plot_data import Saturating, chests

import weitzman
from weitzman import plot
from weitzman.show.plot import style
from weitzman.show.plot.trees import tree

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

HARD = ["$x_1$", "100% & 5_$", "two\nlines", "שלום עולם", "مرحبا", "😀 漢字", "<b>", "x" * 200]


@pytest.fixture(autouse=True)
def _close():
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


def many(n: int, names: list[str] | None = None) -> weitzman.Forest:
    """Trees of five boxes each."""
    rng = np.random.default_rng(0)
    here = np.arange(n)
    parent = np.where(here % 5 == 0, -1, here - 1 - here % 2)
    parent[here % 5 == 1] = here[here % 5 == 1] - 1
    parent = np.where((parent < 0) | (parent // 5 == here // 5), parent, here // 5 * 5)
    law = [
        list(rng.dirichlet([6, 2, 1, 0.3])) if p < 0 else rng.dirichlet(np.ones(4), size=4)
        for p in parent
    ]
    cost = rng.uniform(0.5, 3, n)
    return weitzman.Forest.from_arrays(
        parent=parent, cost=cost, rewards=[0.0, 5.0, 10.0, 20.0], law=law, names=names
    )


@pytest.fixture(scope="module")
def solutions() -> dict[int, weitzman.Solution]:
    return {n: weitzman.solve(many(n)) for n in (5, 5000)}


def played(solution: weitzman.Solution, seed: int = 0, most: int = 10**9) -> weitzman.Search:
    """A search on boxes drawn at random."""
    f, rng = solution.forest, np.random.default_rng(seed)
    search, state = weitzman.Search(solution), {}
    while len(state) < most and (box := search.ask()) is not None:
        up = int(f.parent[box.number])
        law = f.laws[int(f.law[box.number])][0 if up < 0 else state[up]]
        state[box.number] = int(rng.choice(len(law), p=law))
        search.tell(box, state[box.number])
    return search


DRAW = {
    "forest": plot.forest,
    "phi": plot.phi,
    "capped_value": plot.capped_value,
    "payoff": lambda s, ax=None: plot.payoff(s, episodes=2000, ax=ax),
    "openings": plot.openings,
    "break_even": plot.break_even,
    "solution": plot.solution,
    "search": lambda s, ax=None: plot.search(played(s), ax=ax),
}


def texts(ax: Axes) -> list[mpl.text.Text]:
    """All texts of a drawn picture."""
    ax.figure.draw_without_rendering()
    found = [ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
    for axis in (ax.xaxis, ax.yaxis) if ax.axison else ():
        low, high = sorted(axis.get_view_interval())
        inside = (low <= at <= high for at in axis.get_ticklocs())
        found += [t for t, shown in zip(axis.get_ticklabels(), inside, strict=True) if shown]
    found += ax.get_legend().get_texts() if ax.get_legend() else []
    return [t for t in found if t.get_visible() and t.get_text().strip()]


def overlaps(ax: Axes) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other."""
    shown = [(t.get_text(), t.get_window_extent()) for t in texts(ax)]
    return [
        (a, b)
        for i, (a, one) in enumerate(shown)
        for b, two in shown[:i]
        if min(one.x1, two.x1) - max(one.x0, two.x0) > 1
        and min(one.y1, two.y1) - max(one.y0, two.y0) > 1
    ]


def assert_readable(ax: Axes) -> None:
    """No text lies on another, or partly outside the figure."""
    assert overlaps(ax) == []
    inside = ax.figure.bbox.padded(1)
    for text in texts(ax):
        box = text.get_window_extent()
        assert inside.contains(box.x0, box.y0), text.get_text()
        assert inside.contains(box.x1, box.y1), text.get_text()


@pytest.mark.parametrize("boxes", [5, 5000])
@pytest.mark.parametrize("name", DRAW)
def test_every_picture_small_and_large(name, boxes, solutions):
    assert_readable(DRAW[name](solutions[boxes]))


@pytest.mark.parametrize("name", DRAW)
def test_the_given_axes_are_used_and_returned(name, solutions):
    figure, (_, right) = plt.subplots(1, 2, figsize=(9, 4))
    assert DRAW[name](solutions[5], ax=right) is right
    assert len(figure.axes) <= 3  # a color bar may join them
    assert right.has_data() or right.texts


@pytest.mark.parametrize("name", DRAW)
def test_names_are_text_whatever_they_contain(name):
    forest = many(len(HARD), HARD)
    ax = DRAW[name](weitzman.solve(forest))
    ax.figure.canvas.draw()  # a missing glyph or a broken formula would be an error
    for text in texts(ax):
        if "$" in text.get_text():
            assert not text.get_parse_math()
            assert not text.get_usetex()


def test_what_the_font_lacks_is_written_as_an_escape():
    b = weitzman.Builder().add("漢 😀", cost=1, outcomes={0: 0.5, 10: 0.5})
    ax = plot.forest(weitzman.solve(b.build()))
    assert "\\u6f22 😀" in [t.get_text() for t in ax.texts]


def test_forest_shows_every_box_and_says_how_many_are_folded(solutions):
    ax = plot.forest(solutions[5])
    assert len(ax.collections[0].get_offsets()) == 5
    assert len(ax.patches) == 4  # edges
    ax = plot.forest(solutions[5000], limit=10)
    assert len(ax.collections[0].get_offsets()) == 10
    said = " ".join(t.get_text() for t in ax.texts)
    t = tree(solutions[5000], 10)
    assert f"and {t.rest:,} more boxes" in said
    assert t.rest + t.hidden.sum() == 4990


def test_forest_in_little_room_writes_smaller():
    solution = weitzman.solve(chests())
    _, ax = plt.subplots(figsize=(2.5, 1.5))
    sizes = {t.get_fontsize() for t in plot.forest(solution, ax=ax).texts}
    assert max(sizes) < 8
    assert overlaps(ax) == []


def test_openings_draw_two_bars_a_box_and_count_the_rest(solutions):
    ax = plot.openings(weitzman.solve(chests()), limit=2)
    opened, chosen = ax.containers
    assert [t.get_text() for t in ax.get_yticklabels()] == ["A", "C"]
    assert [bar.get_width() for bar in opened] == pytest.approx([1, 0.9])
    # 900 and 890 stay with A; 920 goes to B; else C shows 50, or 10 against B's 21 or -9
    assert [bar.get_width() for bar in chosen] == pytest.approx([0.05, 0.45 + 0.225])
    assert "2 of 3 boxes; the others are opened 0.55 times" in ax.get_xlabel()
    ax = plot.openings(solutions[5000], limit=7)
    assert "7 of 5,000 boxes" in ax.get_xlabel()
    assert plot.openings(weitzman.evaluate(solutions[5])).get_xlabel() == "probability"


def test_openings_of_copies_are_numbers():
    three = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    ax = plot.openings(weitzman.solve(three))
    assert ax.get_xlabel() == "copies, on average"
    assert [bar.get_width() for bar in ax.containers[0]] == [1.75]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0", "(outside option)"]


def test_payoff_says_how_it_was_found_and_shows_all_mass(solutions):
    ax = plot.payoff(weitzman.solve(chests()))
    assert "(exact)" in ax.get_title(loc="left")
    assert sum(bar.get_height() for bars in ax.containers for bar in bars) == pytest.approx(1)
    ax = plot.payoff(solutions[5000], episodes=3000)
    assert "3,000 simulated" in ax.get_title(loc="left")
    assert sum(bar.get_height() for bars in ax.containers for bar in bars) == pytest.approx(1)


@pytest.mark.parametrize("minimize", [False, True])
def test_payoff_hatches_exactly_what_is_worse_than_nothing(minimize):
    # many ends: one of them is just as good as nothing, and a little below and above it
    sign = -1 if minimize else 1
    rewards = {sign * (0.3 + 0.1 * k): 0.02 for k in range(50)}
    b = weitzman.Builder(outside=sign * 0.3, minimize=minimize)
    solution = weitzman.solve(b.add("box", cost=0.7, outcomes=rewards).build())
    law = weitzman.policy.payoff_law(solution)
    assert law.how == "exact"
    assert len(law.values) > 40  # so that they are drawn in bins
    assert law.worse == pytest.approx(0.14)
    ax = plot.payoff(solution)
    bars = [bar for box in ax.containers for bar in box if bar.get_hatch()]
    assert sum(bar.get_height() for bar in bars) == pytest.approx(law.worse)
    assert sum(bar.get_height() for box in ax.containers for bar in box) == pytest.approx(1)
    few = weitzman.solve(chests())
    bars = [bar for box in plot.payoff(few).containers for bar in box if bar.get_hatch()]
    assert sum(bar.get_height() for bar in bars) == pytest.approx(
        weitzman.policy.payoff_law(few).worse
    )


def test_phi_marks_the_index():
    ax = plot.phi(weitzman.solve(chests()), "B", 900)
    x, y = next(line.get_data() for line in ax.lines if "index 914" in str(line.get_label()))
    assert (x[0], y[0]) == (914, pytest.approx(914))
    assert ax.get_title(loc="left").endswith("B after 900")


def test_the_shaded_area_of_a_capped_value_is_the_gain():
    for solution in (weitzman.solve(chests()), weitzman.solve(losses())):
        ax = plot.capped_value(solution)
        corners = ax.collections[0].get_paths()[0].vertices
        x, y = corners[:, 0], corners[:, 1]
        area = abs(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2
        assert area == pytest.approx(abs(solution.value - solution.forest.outside))


def losses() -> weitzman.Forest:
    b = weitzman.Builder(minimize=True, outside=12)
    b.add("near", cost=1, outcomes={3: 0.5, 9: 0.5})
    b.add("far", cost=2, outcomes={1: 0.5, 20: 0.5})
    return b.build()


@pytest.mark.parametrize("name", DRAW)
def test_losses_and_no_outside_option(name):
    for forest in (losses(), losses().changed(outside=np.inf)):
        solution = weitzman.solve(forest)
        ax = DRAW[name](solution) if name != "search" else plot.search(told(solution))
        ax.figure.canvas.draw()
        assert_readable(ax)


@pytest.mark.parametrize("name", DRAW)
def test_forests_with_nothing_to_show(name):
    sign = weitzman.Builder().add("sign", cost=1, outcomes={"a": 1.0}, rewards={"a": None})
    sure = weitzman.Builder(outside=5).add("sure", cost=0, outcomes={5: 1.0})
    dear = weitzman.Builder().add("dear", cost=9, outcomes={0: 0.5, 10: 0.5})
    for builder in (sign, sure, dear):
        ax = DRAW[name](weitzman.solve(builder.build()))
        ax.figure.canvas.draw()
        assert_readable(ax)


def told(solution: weitzman.Solution) -> weitzman.Search:
    search = weitzman.Search(solution)
    search.tell("near", 9)
    return search


def test_search_draws_what_was_found(solutions):
    search = played(weitzman.solve(many(40)), 3)
    ax, history = plot.search(search), search.history
    found = next(line for line in ax.lines if line.get_label() == "found")
    assert list(found.get_ydata()) == [step.reward for step in history]
    assert len(found.get_xdata()) == len(history) > 0
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(min(step.best - step.spent for step in history))
    assert band.max() == search.best
    fresh = plot.search(weitzman.Search(solutions[5]))
    assert [t.get_text() for t in fresh.get_xticklabels()] == ["next"]


def test_a_long_search():
    slow = weitzman.line([[0.99, 0.01]], rewards=[0, 1000], cost=1, count=400)
    search = weitzman.Search(weitzman.solve(slow))
    for _ in range(300):
        search.tell(search.ask(), 0)
    ax = plot.search(search)
    assert_readable(ax)
    assert "opening" in ax.get_xlabel()


def test_line_colors_where_to_continue():
    law = [[0.5, 0.5], [0.25, 0.75]]
    solution = weitzman.solve(weitzman.line(([1, 0], law), length=5, rewards=[0, 8], cost=1))
    ax = plot.solution(solution)  # a single line is drawn as a map
    (image,) = ax.images
    assert (~np.ma.getmaskarray(image.get_array())).tolist() == [[True] * 4, [False] * 4]
    assert len(ax.texts) == 8
    assert_readable(ax)


def test_a_line_of_5000_boxes():
    law = np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    long = weitzman.line(([1, 0, 0], law), length=5000, rewards=[0, 5, 9], cost=0.25)
    ax = plot.solution(weitzman.solve(long))
    assert ax.images[0].get_array().shape == (3, 4999)
    assert ax.texts[:] == []
    assert_readable(ax)


def test_strategies_has_a_row_each():
    c = weitzman.compare(chests(), episodes=1000)
    ax = plot.strategies(c)
    assert len(ax.get_yticks()) == len(c.strategies)
    assert "94.325" in [t.get_text() for t in ax.texts]
    assert_readable(ax)


def test_bars_of_strategies_start_at_what_opening_nothing_gives():
    """With several prizes that is the outside option for each of them."""
    two = weitzman.side_by_side([weitzman.line([[0.5, 0.5]], rewards=[0, 9], cost=1)] * 3)
    ax = plot.strategies(weitzman.compare(two.changed(outside=2.0, prizes=2), episodes=200))
    starts = {float(path.vertices[0, 0]) for path in ax.collections[0].get_paths()}
    assert starts == {4.0}


def test_a_hopeless_strategy_does_not_hide_the_others():
    chest = weitzman.line([[0.9, 0.1]], rewards=[0, 10], cost=0.5, count=10_000, names=["chest"])
    ax = plot.strategies(weitzman.compare(chest, episodes=200))
    low, high = ax.get_xlim()
    assert -50 < low < 0 < weitzman.solve(chest).value < high
    assert any(t.get_text() == "\u22124,990" for t in ax.texts)  # told all the same


def test_strategies_without_an_outside_option():
    boxes = weitzman.Builder(outside=-np.inf)
    for prize in (9, 10):
        boxes.add(f"chest {prize}", cost=1, outcomes={3: 0.5, prize: 0.5})
    ax = plot.strategies(weitzman.compare(boxes.build(), episodes=200))
    assert np.isfinite(ax.get_xlim()).all()
    assert any(t.get_text() == "\u2212∞" for t in ax.texts)
    ax.figure.canvas.draw()


def test_many_copies_opened_are_a_short_number():
    chest = weitzman.line([[0.99, 0.01]], rewards=[0, 100], cost=0.5, count=1000, names=["chest"])
    assert not any("e+" in t.get_text() for t in plot.forest(weitzman.solve(chest)).texts)


def test_learning_curves_over_the_decisions():
    curves = type("C", (), {"start": np.array([0, 3, 4]), "step": np.array([1, 3, 9, 1]),
                            "score": np.array([0.1, 0.2, np.nan, 0.05])})()  # fmt: skip
    ax = plot.learning_curves(curves, Saturating(), best=0.15)
    field = ax.collections[0].get_array()
    steps, go_on = 2, ~np.ma.getmaskarray(field)
    assert field.shape == (120, steps)
    assert go_on[:, 1].sum() == 0
    assert 0 < go_on[:, 0].sum() < 120  # only from 0.05 on: 10 y + 1 > 1.5
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "worth continuing",
        "run",
        "best so far 0.15",
    ]
    assert_readable(ax)
    bare = plot.learning_curves(curves)
    assert len(bare.lines) == 2


def test_defaults_choose_by_shape(solutions):
    assert not plot.solution(solutions[5]).axison  # a tree
    assert plot.solution(solutions[5000]).axison  # bars


def test_without_matplotlib_a_clear_word():
    code = (
        "import sys; sys.modules['matplotlib'] = None; import weitzman\n"
        "s = weitzman.solve(weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1))\n"
        "weitzman.policy.payoff_law(s)\n"  # numbers need no matplotlib
        "try: weitzman.plot.solution(s)\n"
        "except ImportError as e: assert 'weitzman[plot]' in str(e), e\n"
        "else: raise SystemExit('no error')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("draw", [plot.forest, plot.phi, plot.capped_value, plot.payoff, plot.line,
                                  plot.openings, plot.break_even, plot.solution])  # fmt: skip
def test_a_forest_that_is_not_solved_is_rejected(draw):
    with pytest.raises(weitzman.errors.InvalidArgument, match=r"needs a solution.*solve\(forest\)"):
        draw(chests())
    assert plt.get_fignums() == []  # and no empty figure is left behind


def test_other_arguments_that_make_no_sense():
    with pytest.raises(weitzman.errors.InvalidArgument, match="compare"):
        plot.strategies(chests())
    for draw in (plot.forest, plot.openings, plot.break_even):
        with pytest.raises(weitzman.errors.InvalidArgument, match="`limit` must be a whole number"):
            draw(weitzman.solve(chests()), limit=0)
    assert plt.get_fignums() == []


def legend(ax: Axes) -> list[str]:
    return [t.get_text() for t in ax.get_legend().get_texts()]


def struck(ax: Axes) -> list[str]:
    """Captions that a line of the picture goes through."""
    ax.figure.draw_without_rendering()
    boxes = [(t.get_text(), t.get_window_extent()) for t in ax.texts]
    boxes = [(text, box) for text, box in boxes if "cost" in text]
    paths = [p.get_path().transformed(p.get_transform()) for p in ax.patches]
    paths += [line.get_path().transformed(line.get_transform()) for line in ax.lines]
    points = [path.interpolated(1).to_polygons(closed_only=False) for path in paths]
    dense = [np.concatenate([_dense(part) for part in parts]) for parts in points]
    return [
        text
        for text, box in boxes
        for line in dense
        if any(box.contains(float(x), float(y)) for x, y in line)
    ]


def _dense(part: np.ndarray) -> np.ndarray:
    share = np.linspace(0, 1, 50)[:, None]
    return np.concatenate([a + share * (b - a) for a, b in itertools.pairwise(part)])


def test_lines_to_what_is_folded_leave_captions_alone():
    ax = plot.forest(weitzman.solve(many(60)))
    assert sum(" more" in t.get_text() for t in ax.texts) > 3
    assert struck(ax) == []
    ax.plot([0, 0.85], [0, 1.3])  # as it was: the test can fail
    assert struck(ax) != []


def test_break_even_by_hand():
    ax = plot.break_even(weitzman.solve(chests()))
    assert [t.get_text() for t in ax.get_yticklabels()] == ["A", "C", "B after 1"]
    marks = {c.get_label(): c.get_offsets().tolist() for c in ax.collections}
    assert marks["cost now"] == [[20, 0], [5, 1], [3, 2]]
    # C: mean 30; A leads while its index is above 40: 0.1 (905 - 40) + ... ; B after 1: (21 - 1)/2
    assert [bar.get_width() for bar in ax.containers[0]][1:] == pytest.approx([30, 10])
    assert [y for _, y in marks["begin elsewhere from here on"]] == [0]  # no cost matters to B
    b = weitzman.Builder()
    signs = {"rare": None, "often": None}
    b.add("sign", cost=1, outcomes={"rare": 0.1, "often": 0.9}, rewards=signs)
    b.add("box", parent="sign", cost=2, outcomes={"rare": {8: 1.0}, "often": {6: 1.0}})
    ax = plot.break_even(weitzman.solve(b.build()))
    assert [t.get_text() for t in ax.get_yticklabels()] == ["sign", "box after often"]
    assert [bar.get_width() for bar in ax.containers[0]] == pytest.approx([4.2, 6])


def test_marks_at_the_edge_are_drawn_whole():
    free = weitzman.Builder()
    free.add("A", cost=0, outcomes={0: 0.5, 10: 0.5})
    free.add("B", cost=1, outcomes={0: 0.5, 12: 0.5})
    ax = plot.break_even(weitzman.solve(free.build()))
    assert len(ax.collections) >= 2
    assert not any(marks.get_clip_on() for marks in ax.collections)
    hopeless = weitzman.line([[0.9, 0.1]], rewards=[0, 10], cost=0.5, count=10_000, names=["c"])
    ax = plot.strategies(weitzman.compare(hopeless, episodes=200))
    dots = [c for c in ax.collections if c.get_label() in ("expected payoff", "far lower")]
    assert len(dots) == 2
    assert not any(marks.get_clip_on() for marks in dots)


def test_every_mark_is_in_the_legend(solutions):
    hopeless = weitzman.line([[0.9, 0.1]], rewards=[0, 10], cost=0.5, count=10_000, names=["c"])
    ax = plot.strategies(weitzman.compare(hopeless, episodes=200))
    assert set(legend(ax)) == {
        "expected payoff", "far lower", "95% interval", "most that this kind can earn",
    }  # fmt: skip
    search = played(weitzman.solve(many(40)), 3)
    assert "other indices" in legend(plot.search(search))
    assert legend(plot.capped_value(solutions[5]))[-1] == "outside option"
    assert any("no worse than opening nothing" in t for t in legend(plot.payoff(solutions[5])))


def test_colors_do_not_repeat_and_differ_visibly():
    rgb = np.array([mpl.colors.to_rgb(c) for c in style.colors(24)])
    apart = np.linalg.norm(rgb[:, None] - rgb[None], axis=2) + 9 * np.eye(24)
    assert apart.min() > 0.08


def money() -> weitzman.Forest:
    boxes = weitzman.Builder()
    boxes.add("a", cost=80_000, outcomes={0: 0.5, 4_000_000: 0.5})
    boxes.add("b", cost=120_000, outcomes={0: 0.7, 6_000_000: 0.3})
    return boxes.build().changed(unit="$")


PICTURES = {
    "strategies": lambda s: plot.strategies(weitzman.compare(s.forest, solution=s, episodes=500)),
    "break_even": plot.break_even,
    "phi": plot.phi,
    "capped_value": plot.capped_value,
    "payoff": plot.payoff,
    "search": lambda s: plot.search(weitzman.Search(s)),
    "frontier": lambda s: plot.frontier(weitzman.questions.frontier(s.forest)),
    "risk_sweep": lambda s: plot.risk_sweep(weitzman.questions.risk_sweep(s.forest)),
    "tornado": lambda s: plot.tornado(weitzman.questions.tornado(s.forest)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_amounts_along_axes_have_commas_and_a_unit(name):
    """Millions were written as 1e6, and no axis said what they are."""
    ax = PICTURES[name](weitzman.solve(money()))
    ax.figure.canvas.draw()
    labelled = [a for a in (ax.xaxis, ax.yaxis) if a.get_label_text().endswith("($)")]
    assert labelled
    for axis in labelled:
        texts = [t.get_text() for t in axis.get_majorticklabels() if t.get_text()]
        assert axis.get_offset_text().get_text() == ""
        assert any("," in t for t in texts)
        assert all(re.fullmatch(r"−?[\d,]+(\.\d+)?", t) for t in texts), texts
    plt.close(ax.figure)


def test_pictures_say_amounts_as_the_command_does():
    solution = weitzman.solve(money())
    value = solution.forest.amounts(solution.value)
    assert value.startswith("$")
    assert value in plot.forest(solution).get_title(loc="left")
    assert "cost $80,000" in " ".join(t.get_text() for t in plot.forest(solution).texts)
    ax = plot.strategies(weitzman.compare(solution.forest, solution=solution, episodes=500))
    assert value in [t.get_text() for t in ax.texts]
    plt.close("all")


def test_tuning_draws_runs_their_pauses_and_the_best_so_far():
    history = ((0, 1, 0.2, 1.0), (1, 1, 0.5, 2.0), (0, 2, 0.6, 3.0), (1, 2, 0.55, 4.0))
    runs = [SimpleNamespace(over="failed"), SimpleNamespace(over="")]
    result = SimpleNamespace(
        history=history, runs=runs, curves=None, spent=4.0, reason="Stop: $x$ is $y$."
    )
    ax = plot.tuning(result)
    assert [line.get_linestyle() for line in ax.lines[:2]] == [":", ":"]  # each was paused
    assert ax.lines[2].get_ydata().tolist() == [0.2, 0.5, 0.6, 0.6]
    assert legend(ax) == ["failed or lost", "paused", "best so far"]
    assert "2 runs, 4 spent. Stop: $x$" in ax.get_title(loc="left")
    assert_readable(ax)
    with pytest.raises(weitzman.errors.InvalidArgument, match="needs a score"):
        plot.tuning(SimpleNamespace(history=()))
