"""Learned lines: against known laws, by symmetry, and through files."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weitzman
from weitzman import learn
from weitzman.errors import InvalidArgument, InvalidFile
from weitzman.learn.curves import Curves
from weitzman.learn.ladder import choose_rungs, climb
from weitzman.learn.laws import Settings
from weitzman.learn.line_model import LineModel
from weitzman.learn.rehearsal import choices, choose, rehearse
from weitzman.tune.race import Race

PLAIN = Settings(tail=0.0)
SCORES = np.array([0.0, 0.5, 1.0])
FIRST = np.array([0.6, 0.3, 0.1])
LAW = np.array([[0.8, 0.15, 0.05], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])  # scores never fall
STEPS, PRICE = 4, 10.0


def table(runs, *, ended=None, minimize=False, cost=None):
    """Curves from a list of lists of scores."""
    rows = [(f"r{i}", t + 1, s) for i, scores in enumerate(runs) for t, s in enumerate(scores)]
    names, steps, scores = zip(*rows, strict=True)
    paid = np.ones(len(rows)) if cost is None else np.concatenate(cost)
    columns = {"run": names, "step": steps, "score": scores, "cost": paid}
    return Curves.read(columns, ended=ended, minimize=minimize)


def chain_runs(n, seed=0):
    """Runs of the known chain."""
    random = np.random.default_rng(seed)
    state = random.choice(3, n, p=FIRST)
    out = [state]
    for _ in range(STEPS - 1):
        state = (random.random(n)[:, None] > np.cumsum(LAW, axis=1)[state]).sum(axis=1)
        out.append(state)
    return SCORES[np.stack(out, axis=1)]


def true_value(n):
    law = [FIRST, *[LAW] * (STEPS - 1)]
    line = weitzman.line(law, rewards=PRICE * SCORES, cost=1.0)
    return weitzman.solve(weitzman.side_by_side([line] * n)).value


def rising(seed, n=24, steps=9):
    """Random curves that look like training."""
    random = np.random.default_rng(seed)
    speed, limit = random.uniform(0.2, 1.5, n), random.beta(2, 3, n)
    t = np.arange(1, steps + 1)
    score = limit[:, None] * (1 - np.exp(-speed[:, None] * t))
    return score + random.normal(0, 0.01, score.shape)


# -- against a known law ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 5])
def test_a_known_chain_is_recovered(n):
    model = learn.fit(table(chain_runs(4000)), price=PRICE, settings=replace(PLAIN, ratio=1.01))
    assert model.rungs.tolist() == [1, 2, 3, 4]
    found = weitzman.solve(model.lines(n)).value
    assert found == pytest.approx(true_value(n), rel=0.02)


def test_being_cut_off_does_not_bias():
    runs, random = chain_runs(6000), np.random.default_rng(1)
    # whoever still has nothing is mostly given up after each step, as people do
    cut = [
        next((t for t in range(1, STEPS) if s[t - 1] == 0 and random.random() < 0.6), STEPS)
        for s in runs
    ]
    short = [s[:t] for s, t in zip(runs, cut, strict=True)]
    usual = replace(PLAIN, ratio=1.01)
    known = weitzman.solve(learn.fit(table(short), price=PRICE, settings=usual).lines(2)).value
    naive = learn.fit(table(short, ended=True), price=PRICE, settings=usual).lines(2)
    assert known == pytest.approx(true_value(2), rel=0.02)
    assert weitzman.solve(naive).value < 0.97 * true_value(2)  # ends taken at face value do


def test_a_run_cut_off_within_a_segment_says_nothing_of_its_end():
    curves = table([[0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.9]])
    ladder = climb(curves, np.array([2, 4]))
    assert ladder.seen.tolist() == [2, 1]
    assert ladder.gone.tolist() == [True, False]
    assert ladder.best[:, 0].tolist() == [0.2, 0.3]


def test_diverged_runs_are_gone():
    curves = table([[0.1, np.nan, 0.3, 0.4], [0.2, 0.3, np.nan, np.nan], [0.5, 0.6, 0.7, 0.8]])
    ladder = climb(curves, np.array([1, 3, 4]))
    assert ladder.seen.tolist() == [3, 2, 3]  # the first one came back before the rung
    assert ladder.best[1, :2].tolist() == [0.2, 0.3]
    assert ladder.gone[1]
    model = learn.fit(curves, price=1.0, settings=PLAIN)
    assert model.next_index([1, 2], [0.5, np.nan]) == -np.inf


def test_a_log_without_any_score_is_refused():
    with pytest.raises(InvalidArgument, match="all 2 of its rows are blank"):
        learn.fit(table([[np.nan], [np.nan]]), price=1.0)


# -- symmetries ---------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.integers(0, 1000), st.floats(0.1, 50), st.floats(-10, 10))
def test_other_units_of_score_change_nothing(seed, scale, shift):
    runs = rising(seed)
    one = learn.fit(table(runs), price=3.0, settings=Settings())
    other = learn.fit(table(shift + scale * runs), price=3.0 / scale, settings=Settings())
    moved = 3.0 * shift / scale
    assert other.fresh_index == pytest.approx(one.fresh_index + moved, abs=1e-6 * (1 + abs(moved)))
    history = runs[3, :2]
    assert other.next_index([1, 2], shift + scale * history) == pytest.approx(
        one.next_index([1, 2], history) + moved, abs=1e-6 * (1 + abs(moved))
    )


@settings(max_examples=10)
@given(st.integers(0, 1000), st.floats(0.01, 100))
def test_other_units_of_cost_scale_all(seed, scale):
    runs = rising(seed)
    cost = np.random.default_rng(seed).lognormal(0, 1, runs.shape)
    one = learn.fit(table(runs, cost=cost), price=3.0, settings=Settings())
    other = learn.fit(table(runs, cost=scale * cost), price=3.0 * scale, settings=Settings())
    assert other.fresh_index == pytest.approx(scale * one.fresh_index, rel=1e-6)


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_losses_are_scores_upside_down(seed):
    runs = rising(seed)
    up = learn.fit(table(runs), price=3.0)
    down = learn.fit(table(-runs, minimize=True), price=3.0)
    assert down.fresh_index == up.fresh_index
    assert down.worth(-0.5) == up.worth(0.5)
    history = np.array([0.3, 0.1])  # the best one counts, not the last
    assert down.next_index([1, 2], -history) == up.next_index([1, 2], history)
    assert up.next_index([1, 2], history) == up.next_index([1, 2], history[::-1])


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_the_order_of_runs_does_not_matter(seed):
    runs = rising(seed)
    order = np.random.default_rng(seed).permutation(len(runs))
    one = learn.fit(table(runs), price=3.0, settings=Settings())
    other = learn.fit(table(runs[order]), price=3.0, settings=Settings())
    assert other.fresh_index == pytest.approx(one.fresh_index, rel=1e-9)


# -- the pieces ---------------------------------------------------------------------------------


def test_rungs_follow_what_was_paid():
    steps = np.arange(1, 51)
    curves = table([np.linspace(0, 1, 50)] * 2)
    rungs = choose_rungs(curves, 2.0)
    assert rungs.tolist() == [1, 2, 4, 8, 16, 32, 50]
    assert set(rungs) <= set(steps)


def test_every_law_adds_up_and_no_policy_follows_the_gone():
    model = learn.fit(learn.sample().of_task("letter"), price=100.0)
    forest = model.lines(3)
    for box in range(len(forest)):
        law = forest.laws[int(forest.law[box])]
        np.testing.assert_allclose(law.sum(axis=1), 1.0, rtol=1e-12)
    solution = weitzman.solve(forest)
    alive = [s.alive.shape[1] for s in model._segments]
    for box, states in enumerate(alive[:-1], start=1):  # no better than the worst
        assert solution.indices(box)[states:].max() <= forest.rewards.data.min()


def test_imagined_runs_carry_the_chance_of_a_record():
    runs = rising(3, n=40)
    log = table(runs)
    tail = learn.fit(log, price=100.0, settings=Settings(tail=1.0))
    none = learn.fit(log, price=100.0, settings=PLAIN)
    first = tail.lines()
    reward = first.rewards[int(first.reward[0])].ravel()
    law = first.laws[int(first.law[0])].ravel()
    best = 100.0 * runs[:, 0].max()
    assert law[reward > best + 1e-9].sum() == pytest.approx(1 / 41)
    assert tail.fresh_index > none.fresh_index


def test_no_score_beyond_the_limit_is_promised():
    runs = np.minimum(rising(3, n=40) + 0.4, 0.99)
    free = learn.fit(table(runs), price=1e6, settings=Settings(tail=1.0))
    bound = learn.fit(table(runs), price=1e6, limit=1.0, settings=Settings(tail=1.0))
    assert free.lines().rewards.data.max() > 1e6
    assert bound.lines().rewards.data.max() == 1e6
    loss = learn.fit(
        table(1 - runs, minimize=True), price=1e6, limit=0.0, settings=Settings(tail=1.0)
    )
    assert loss.lines().rewards.data.max() == 0.0
    with pytest.raises(InvalidArgument, match=r"no score may be better than the limit of 0\.5"):
        learn.fit(table(runs), price=1.0, limit=0.5)


def test_a_line_ends_and_starts_where_it_should():
    model = learn.fit(table(rising(0)), price=10.0, settings=PLAIN)
    assert model.next_rung(None) == model.rungs[0] == 1
    assert model.next_rung(9) is None
    assert model.next_index([9], [0.5]) == -np.inf
    assert model.next_index([], []) == model.fresh_index
    assert weitzman.solve(model.lines()).index(0) == model.fresh_index


def test_the_rest_of_a_run_has_its_index():
    model = learn.fit(table(rising(0)), price=10.0, settings=PLAIN)
    grid = model.ladder.best[:, 1]
    for score in (grid.max(), np.median(grid), grid.min()):
        steps = [1, int(model.rungs[1])]
        place = np.abs(model._segments[1].grid - score).argmin()
        on_grid = model._segments[1].grid[place]
        rest = model.rest([(steps, [on_grid, on_grid])], 0)
        found = weitzman.solve(rest).index(0)
        assert model.next_index(steps, [on_grid, on_grid]) == pytest.approx(found, abs=1e-7)
    assert model.rest([([9], [0.3])], 0) is None
    whole = weitzman.solve(model.rest([], 7)).value
    assert whole == pytest.approx(weitzman.solve(model.lines(7)).value)


def test_the_rest_of_several_runs_is_that_of_each_side_by_side():
    """Costs differ too, and scores lie between the points of the grid."""
    model = learn.fit(learn.sample().of_task("letter"), price=500.0)
    last = [int(x) for x in model.rungs]
    runs = [
        ([last[0]], [0.21], [0.5]),
        (last[:3], [0.2, 0.31, 0.33], [0.4, 0.4, 0.9]),
        (last[:5], [0.3, 0.4, 0.45, 0.46, 0.52], [1.0] * 5),
        ([], [], []),
        (last, [0.1] * len(last), [1.0] * len(last)),  # at its end: nothing is left of it
    ]
    alone = [part for run in runs if (part := model.rest([run], 0)) is not None]
    assert len(alone) == 4
    beside = weitzman.side_by_side(*alone, model.lines(3))
    together = model.rest(runs, 3)
    assert together.boxes == beside.boxes
    for outside in (0.0, 150.0, 300.0):
        wanted = weitzman.solve(beside.changed(outside=outside)).value
        assert weitzman.solve(together.changed(outside=outside)).value == pytest.approx(wanted)


def test_the_best_score_never_falls():
    model = learn.fit(learn.sample().of_task("letter"), price=100.0)
    for before, after in pairwise(model._segments):
        score = np.repeat(before.grid, len(before.levels))[:, None]
        below = after.grid[None] < score - 1e-12
        # what falls between two points is split, so one point below may hold a share
        below[:, :-1] &= after.grid[None, 1:] < score - 1e-12
        alive = after.alive.reshape(len(score), len(after.grid), -1).sum(axis=2)
        assert not ((alive + after.gone) * below).any()


def test_costs_follow_the_level_of_the_run():
    random = np.random.default_rng(0)
    runs, factor = rising(1, n=60), random.lognormal(0, 1, 60)
    model = learn.fit(table(runs, cost=factor[:, None] * np.ones_like(runs)), price=30.0)
    for before, after in pairwise(model._segments):
        level = np.tile(before.levels, len(before.grid))
        far = np.abs(level) < 1.0  # scaling stops at a factor of 20 between runs
        wanted = after.usual * np.exp(level)
        np.testing.assert_allclose(after.cost[far], wanted[far], rtol=0.02)


def test_dear_runs_are_known_by_their_cost():
    runs = rising(1, n=60)
    factor = np.where(np.arange(60) % 2, 20.0, 0.5)
    cost = factor[:, None] * np.ones_like(runs)
    model = learn.fit(table(runs, cost=cost), price=30.0, settings=PLAIN)
    score = [float(np.median(runs[:, 0]))]
    cheap, dear = (model.next_index([1], score, [c]) for c in (0.5, 20.0))
    assert cheap > dear + 1.0


def test_more_curves_are_as_if_all_had_been_there():
    runs = rising(2, n=40)
    whole = learn.fit(table(runs), price=10.0, settings=Settings())
    part = learn.fit(table(runs[:25]), price=10.0, settings=Settings())
    assert part.updated(table(runs[25:])).fresh_index == whole.fresh_index
    with pytest.raises(InvalidArgument, match="both maximize or both minimize"):
        part.updated(table(runs, minimize=True))


def race(model, curves):
    """What a race earns on recorded curves, by the driver that users have."""
    moves, seen = Race(model, available=len(curves)), {}
    while (move := moves.next()) is not None:
        run = moves.started() if move.run is None else move.run
        rows = range(seen.get(run, curves.start[run]), curves.start[run + 1])
        for row in (i for i in rows if curves.step[i] <= move.until):
            step, score = int(curves.step[row]), float(curves.score[row])
            moves.observe(run, step, score, float(curves.cost[row]))
            seen[run] = row + 1
        if seen[run] == curves.start[run + 1]:
            moves.ended(run)
    return moves.best - moves.spent


def test_a_rehearsal_is_a_race():
    curves = learn.sample().of_task("waveform")
    log, rest = curves.select(range(50)), curves.select(range(50, len(curves)))
    for price in (1.0, 30.0, 1000.0):
        model = learn.fit(log, price=price, settings=Settings())
        found = rehearse(model, climb(rest, model.rungs))
        assert found == pytest.approx(race(model, rest))


def test_settings_are_chosen_by_what_they_earn():
    curves = learn.sample().of_task("waveform")
    ladder = climb(curves, choose_rungs(curves, 1.4))
    blind = Settings(neighbors=1000.0, tail=50.0)  # all rows alike and wild hopes
    order = [blind, Settings()]
    assert choose(ladder, price=30.0, minimize=False, candidates=order) == Settings()
    assert choose(ladder, price=30.0, minimize=False, candidates=order[::-1]) == Settings()
    assert learn.fit(curves, price=30.0).settings in choices()


def test_arguments_are_checked():
    curves = table(rising(0))
    for price in (0.0, -1.0, np.nan, np.inf, "40"):
        with pytest.raises(InvalidArgument, match="price must be positive"):
            learn.fit(curves, price=price)
    with pytest.raises(InvalidArgument, match="limit must be finite"):
        learn.fit(curves, price=1.0, limit=np.nan)
    with pytest.raises(InvalidArgument, match=r"a model needs curves of one task.*of 3"):
        learn.fit(learn.sample(), price=1.0)
    with pytest.raises(InvalidArgument, match="tail must be at least 0, but it is -1"):
        Settings(tail=-1)
    with pytest.raises(InvalidArgument, match="one score and one cost per step"):
        learn.fit(curves, price=1.0).next_index([1, 2], [0.1, 0.2], [1.0])
    with pytest.raises(InvalidArgument, match="share the ratio"):
        learn.fit(curves, price=1.0, settings=[Settings(), Settings(ratio=2.0)])


# -- how far to trust it ------------------------------------------------------------------------


def test_draws_surround_the_model():
    model = learn.fit(table(rising(5, n=30)), price=10.0, settings=PLAIN)
    drawn = learn.draws(model, 40, seed=1)
    value = drawn.value_at(3)
    assert value.min() < weitzman.solve(model.lines(3)).value < value.max()
    assert np.array_equal(value, learn.draws(model, 40, seed=1).value_at(3))
    more = learn.fit(table(np.vstack([rising(5, n=30)] * 9)), price=10.0, settings=PLAIN)
    assert learn.draws(more, 40, seed=1).value_at(3).std() < 0.6 * value.std()


def test_moves_say_what_is_settled():
    model = learn.fit(table(rising(5, n=30)), price=100.0, settings=PLAIN)
    drawn = learn.draws(model, 20)
    assert drawn.moves(None) == {"new": pytest.approx(1.0)}
    assert drawn.moves(5.0) == {"stop": pytest.approx(1.0)}
    shares = drawn.moves(model.fresh_index / 100.0, [([1], [0.3])])
    assert sum(shares.values()) == pytest.approx(1.0)


def test_a_first_order_chain_needs_no_more():
    log = table(chain_runs(300))
    found = learn.diagnose(learn.fit(log, price=PRICE, settings=replace(PLAIN, ratio=1.01)), log)
    assert found.error["second order"].mean() > 0.97 * found.error["first order"].mean()
    assert "kind known" not in found.error
    miss = (found.predicted - found.realized).mean()
    assert abs(miss) < 4 * (found.predicted - found.realized).std() / np.sqrt(10) + 0.1


def test_memory_is_noticed():
    random = np.random.default_rng(0)
    slope = random.uniform(0, 1, 200)  # straight lines from scattered starts
    runs = random.uniform(0, 1, 200)[:, None] + slope[:, None] * np.arange(4)
    log = table(runs)
    model = learn.fit(log, price=PRICE, settings=replace(PLAIN, ratio=1.01))
    error = learn.diagnose(model, log).error
    assert error["second order"][1:].mean() < 0.8 * error["first order"][1:].mean()
    assert "second order" in str(learn.diagnose(model, log))


# -- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("minimize", [False, True])
def test_a_file_gives_back_the_model(tmp_path, minimize):
    runs = [s[: 3 + i % 7] for i, s in enumerate(rising(4))]
    sign = -1.0 if minimize else 1.0
    model = learn.fit(table([sign * s for s in runs], minimize=minimize), price=10.0)
    learn.save(model, tmp_path / "m.json")
    again = learn.load(tmp_path / "m.json")
    assert again.fresh_index == model.fresh_index
    assert again.settings == model.settings
    assert again.minimize == minimize
    history = [1, 2], [sign * 0.1, sign * 0.2]
    assert again.next_index(*history) == model.next_index(*history)
    learn.save(again, tmp_path / "n.json")
    assert (tmp_path / "n.json").read_bytes() == (tmp_path / "m.json").read_bytes()


def spoil(text, path, value):
    """A document with one value replaced, or one key removed."""
    document = json.loads(text)
    at = document
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["price"], -1, "price must be a number above 0"),
        (["price"], True, "price must be a number above 0"),
        (["format"], "weitzman/1", "format must be"),
        (["rungs"], [2, 1], "whole numbers that rise"),
        (["rungs"], None, "must have the key 'rungs'"),
        (["runs"], [], "at least one run"),
        (["runs", 0, "best"], [0.5, "x"], r"runs\[0\]: best\[1\] must be a number"),
        (["runs", 0, "best"], [0.5] * 99, "equally many entries"),
        (["runs", 0, "cost", 0], -1, "a cost must be at least 0"),
        (["runs", 0, "gone"], 1, "gone must be true or false"),
        (["runs", 0, "eval"], "1+1", "'eval' is not a key here|eval"),
        (["settings", "points"], 2.5, "points must be a whole number"),
        (["settings", "ratio"], 0.5, "ratio must be above 1"),
    ],
)
def test_damaged_files_are_refused(tmp_path, path, value, message):
    learn.save(learn.fit(table(rising(4)), price=10.0), tmp_path / "m.json")
    text = spoil((tmp_path / "m.json").read_text(), path, value)
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(InvalidFile, match=message):
        learn.load(tmp_path / "m.json")


def test_names_of_files_are_checked(tmp_path):
    model = learn.fit(table(rising(4)), price=10.0)
    with pytest.raises(InvalidFile, match=r"must end in \.json"):
        learn.save(model, tmp_path / "m.pkl")
    with pytest.raises(InvalidFile, match="cannot be read"):
        learn.load(tmp_path / "none.json")
    assert isinstance(model, LineModel)


@pytest.mark.parametrize("rung", [2.0**53 + 2, 1e300])
def test_a_rung_beyond_all_steps_is_refused(tmp_path, rung):
    path = tmp_path / "m.json"
    learn.save(learn.fit(table(rising(4)), price=10.0), path)
    document = json.loads(path.read_text())
    document["rungs"][-1] = rung
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidFile, match="rungs must be at most"):
        learn.load(path)
