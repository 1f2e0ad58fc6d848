"""Learned models: against known laws, by symmetry, and through files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import weitzman
from weitzman import learn
from weitzman.errors import InvalidArgument
from weitzman.learn import FitOptions
from weitzman.learn.curves import Curves
from weitzman.learn.diagnosis import searched
from weitzman.learn.ladder import choose_rungs, climb
from weitzman.tune.race import Race

PLAIN = FitOptions(tail=0.0)
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


def test_being_cut_off_does_not_bias():
    runs, random = chain_runs(1000), np.random.default_rng(1)
    # whoever still has nothing is mostly given up after each step, as people do
    cut = [
        next((t for t in range(1, STEPS) if s[t - 1] == 0 and random.random() < 0.6), STEPS)
        for s in runs
    ]
    short = [s[:t] for s, t in zip(runs, cut, strict=True)]
    usual = replace(PLAIN, ratio=1.01)
    line = weitzman.line([FIRST, *[LAW] * (STEPS - 1)], rewards=PRICE * SCORES, cost=1.0)
    solution = weitzman.solve(line)
    model = learn.fit(table(short), price=PRICE, options=usual)
    assert model.fresh_index == pytest.approx(solution.index(0), rel=0.03)
    for steps, r in (([1], 1), ([1, 2], 2)):  # also where most runs have the best score
        found = [model.next_index(steps, [x] * r) for x in SCORES[1:]]
        assert found == pytest.approx(solution.indices(r)[1:], rel=0.03)
    naive = learn.fit(table(short, ended=True), price=PRICE, options=usual)
    # ends taken at face value do
    assert naive.next_index([1], [0.0]) < model.next_index([1], [0.0]) - 0.25


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
    model = learn.fit(curves, price=1.0, options=PLAIN)
    assert model.next_index([1, 2], [0.5, np.nan]) == -np.inf


def test_a_log_without_any_score_is_rejected():
    with pytest.raises(InvalidArgument, match="all 2 of its rows are blank"):
        learn.fit(table([[np.nan], [np.nan]]), price=1.0)


# -- symmetries ---------------------------------------------------------------------------------


@settings(max_examples=10)
@given(st.integers(0, 1000), st.integers(-3, 5))
def test_other_units_of_score_change_nothing(seed, power):
    runs, scale = rising(seed), 2.0**power  # no number is rounded, so trees split alike
    one = learn.fit(table(runs), price=3.0)
    other = learn.fit(table(scale * runs), price=3.0 / scale)
    assert other.fresh_index == pytest.approx(one.fresh_index, abs=1e-9)
    history = runs[3, :2]
    found = other.next_index([1, 2], scale * history)
    assert found == pytest.approx(one.next_index([1, 2], history), abs=1e-9)


@settings(max_examples=10)
@given(st.integers(0, 1000), st.floats(0.01, 100))
@example(199, 50.0)  # costs that differ by rounding alone must not decide a split
def test_other_units_of_cost_scale_all(seed, scale):
    runs = rising(seed)
    cost = np.random.default_rng(seed).lognormal(0, 1, runs.shape)
    one = learn.fit(table(runs, cost=cost), price=3.0, options=FitOptions())
    other = learn.fit(table(runs, cost=scale * cost), price=3.0 * scale, options=FitOptions())
    assert other.fresh_index == pytest.approx(scale * one.fresh_index, rel=1e-6)


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_losses_are_scores_upside_down(seed):
    runs = rising(seed)
    up = learn.fit(table(runs), price=3.0)
    down = learn.fit(table(-runs, minimize=True), price=3.0)
    assert down.fresh_index == up.fresh_index
    assert down.worth(-0.5) == up.worth(0.5)
    history = np.array([0.3, 0.1])
    assert down.next_index([1, 2], -history) == up.next_index([1, 2], history)


# -- the pieces ---------------------------------------------------------------------------------


def test_rungs_follow_what_was_paid():
    steps = np.arange(1, 51)
    curves = table([np.linspace(0, 1, 50)] * 2)
    rungs = choose_rungs(curves, 2.0)
    assert rungs.tolist() == [1, 2, 4, 8, 16, 32, 50]
    assert set(rungs) <= set(steps)


def test_no_score_beyond_the_limit_is_promised():
    runs = np.minimum(rising(3, n=40) + 0.4, 0.99)
    free = learn.fit(table(runs), price=1e6, options=FitOptions(tail=1.0))
    bound = learn.fit(table(runs), price=1e6, limit=1.0, options=FitOptions(tail=1.0))
    assert free.lines().rewards.data.max() > 1e6
    assert bound.lines().rewards.data.max() == 1e6
    loss = learn.fit(
        table(1 - runs, minimize=True), price=1e6, limit=0.0, options=FitOptions(tail=1.0)
    )
    assert loss.lines().rewards.data.max() == 0.0
    with pytest.raises(InvalidArgument, match=r"no score may be better than the limit of 0\.5"):
        learn.fit(table(runs), price=1.0, limit=0.5)


def test_a_line_ends_and_starts_where_it_should():
    model = learn.fit(table(rising(0)), price=10.0, options=PLAIN)
    assert model.next_rung(None) == model.rungs[0] == 1
    assert model.next_rung(9) is None
    assert model.next_index([9], [0.5]) == -np.inf
    assert model.next_index([], []) == model.fresh_index


def test_dear_runs_are_known_by_their_cost():
    runs = rising(1, n=60)
    factor = np.where(np.arange(60) % 2, 20.0, 0.5)
    cost = factor[:, None] * np.ones_like(runs)
    model = learn.fit(table(runs, cost=cost), price=30.0, options=PLAIN)
    score = [float(np.median(runs[:, 0]))]
    cheap, dear = (model.next_index([1], score, [c]) for c in (0.5, 20.0))
    assert cheap > dear + 1.0


def test_more_curves_are_as_if_all_had_been_there():
    runs = rising(2, n=40)
    whole = learn.fit(table(runs), price=10.0, options=FitOptions())
    part = learn.fit(table(runs[:25]), price=10.0, options=FitOptions())
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


def test_a_search_of_logged_runs_is_a_race():
    curves = learn.sample().of_task("waveform")
    log, rest = curves.select(range(50)), curves.select(range(50, len(curves)))
    for price in (1.0, 30.0, 300.0):
        model = learn.fit(log, price=price)
        found = searched(model, climb(rest, model.rungs))
        assert found == pytest.approx(race(model, rest))


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
        FitOptions(tail=-1)
    with pytest.raises(InvalidArgument, match="one score and one cost per step"):
        learn.fit(curves, price=1.0).next_index([1, 2], [0.1, 0.2], [1.0])


# -- how far to trust it ------------------------------------------------------------------------


def test_bootstrap_draws_surround_the_model():
    model = learn.fit(table(rising(5, n=30)), price=10.0, options=PLAIN)
    drawn = learn.bootstrap(model, 40, seed=1)
    value = drawn.value_at(3)
    assert value.min() < weitzman.solve(model.lines(3)).value < value.max()
    assert np.array_equal(value, learn.bootstrap(model, 40, seed=1).value_at(3))
    more = learn.fit(table(np.vstack([rising(5, n=30)] * 9)), price=10.0, options=PLAIN)
    assert learn.bootstrap(more, 40, seed=1).value_at(3).std() < 0.6 * value.std()


def test_moves_say_what_is_settled():
    model = learn.fit(table(rising(5, n=30)), price=100.0, options=PLAIN)
    drawn = learn.bootstrap(model, 20)
    assert drawn.moves(None) == {"new": pytest.approx(1.0)}
    assert drawn.moves(5.0) == {"stop": pytest.approx(1.0)}
    shares = drawn.moves(model.fresh_index / 100.0, [([1], [0.3])])
    assert sum(shares.values()) == pytest.approx(1.0)
