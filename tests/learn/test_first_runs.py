"""Halving that knows the price: levels, bars and what is still open, by plain definitions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weitzman import learn, tune
from weitzman.learn.curves import Curves
from weitzman.learn.first_runs import FEW, RATE, STARTS, UNKNOWN, Bars, OwnLevels, open_scale


def curves_of(scores, costs, ended=None, minimize=False, told=()):
    """One curve for each pair of lists."""
    rows = [
        {"run": i, "step": t, "score": x, "cost": c}
        for i, pair in enumerate(zip(scores, costs, strict=True))
        for t, (x, c) in enumerate(zip(*pair, strict=True))
    ]
    read = replace(Curves.read(rows, minimize=minimize, ended=False), settings=tuple(told))
    return read if ended is None else replace(read, ended=np.array(ended))


def plain_levels(costs, ended):
    """Rows of the levels of one run, by the definition."""
    rows, paid, before = [], 0.0, 0.0
    for t, cost in enumerate(costs):
        paid += cost
        over = ended and t == len(costs) - 1
        if paid > 0 and (over or paid >= RATE * before):
            rows.append(t)
            before = paid
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_levels_are_rows_at_which_a_run_has_paid_enough(seed):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 30, 7)
    costs = [random.uniform(0, 1, n).round(2) * random.integers(0, 2, n) + 0.01 for n in lengths]
    costs[0][:] = 0.0
    scores = [random.normal(size=n) for n in lengths]
    ended = random.random(7) < 0.5
    found = OwnLevels.of(curves_of(scores, costs, ended))
    for i in range(7):
        rows = plain_levels(costs[i], ended[i])
        assert found.count[i] == len(rows)
        best = np.maximum.accumulate(scores[i])[rows]
        assert found.best[i, : len(rows)] == pytest.approx(best)
        assert found.paid[i, : len(rows)] == pytest.approx(np.cumsum(costs[i])[rows])
        assert found.between[i] == (not rows or rows[-1] < lengths[i] - 1)


def test_where_everything_is_free_each_row_costs_the_same():
    free = OwnLevels.of(curves_of([[1, 2, 3, 4, 5]], [[0.0] * 5]))
    paid = OwnLevels.of(curves_of([[1, 2, 3, 4, 5]], [[1.0] * 5]))
    assert free.best.tolist() == paid.best.tolist() == [[1, 3]]


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_each_level_continue_and_ever_fewer(seed):
    random = np.random.default_rng(seed)
    scores = random.normal(size=(16, 1)) * np.ones(12)
    levels = OwnLevels.of(curves_of(scores, np.ones((16, 12))))
    bars = Bars.of(levels, np.ones(16, bool), 16, price=None, ceiling=math.inf)
    down = np.sort(scores[:, 0])[::-1]
    assert bars.bar == pytest.approx([down[k - 1] for k in (6, 2, 1)])


def test_the_scale_is_an_average_of_a_prior_and_of_spacings():
    scores = [[1.0], [4.0], [2.0], [10.0], [7.0]]
    levels = OwnLevels.of(curves_of(scores, [[1.0]] * 5))
    theta = (1 * 3 + 2 * 3 + 3 * 2) / 3
    assert open_scale(levels, math.inf) == pytest.approx((10 * 0.05 * (10 - 4) + 5 * theta) / 15)
    assert open_scale(levels, 20.0) == pytest.approx((10 * 0.05 * 10 + 5 * theta) / 15)


def test_the_next_of_exchangeable_runs_gains_what_the_scale_says():
    """Exponential scores: the next run adds exp(-best) on average, the scale over n + 1."""
    random, n = np.random.default_rng(0), 400
    gains, said = [], []
    for _ in range(300):
        scores = random.exponential(size=n)
        gains.append(math.exp(-scores.max()) * (n + 1))
        alone = np.ones((n, 1))
        levels = OwnLevels(scores[:, None], alone, np.ones(n, np.int64), np.zeros(n, bool))
        said.append(open_scale(levels, math.inf))
    assert np.mean(said) == pytest.approx(1.0, abs=0.1)  # the prior is a little off
    assert np.mean(gains) == pytest.approx(np.mean(said), abs=0.2)


def family(learns, share, n=400, seed=0, length=50):
    """Most runs learn little; a share of them rises by ``learns``, seen early."""
    random = np.random.default_rng(seed)
    level = np.where(random.random(n) < share, learns, 0.05) * random.uniform(0.5, 1.0, n)

    def start(i):
        for t in range(1, length + 1):
            yield 0.5 + level[i] * (1 - math.exp(-t / 10)), 1.0

    return start, list(range(n))


def test_the_lower_the_price_of_a_run_the_longer_the_search():
    start, runs = family(0.3, 0.1, seed=1)
    found = [tune.optimize(start, runs, price=50 / cost) for cost in (0.0003, 0.003, 0.03)]
    spent = [one.spent for one in found]
    assert spent[0] > spent[1] >= spent[2]
    assert found[0].best_score > 0.7
    assert FEW <= len(found[2].runs) < STARTS


def test_a_search_among_runs_that_are_alike_and_learn_stops_soon():
    def alike(i):
        for t in range(1, 51):
            yield 0.9 * (1 - math.exp(-t / 5)) + 1e-5 * (i % 7), 1.0

    for cost, runs in ((0.003, STARTS), (0.03, FEW)):
        found = tune.optimize(alike, list(range(300)), price=50 / cost)
        assert len(found.runs) == runs
        assert found.spent < 4 * 50


def test_going_on_stops_where_it_does_not_pay():
    """Curves that have become flat: at a high price no run comes to its end."""

    def flat(i):
        for t in range(1, 201):
            yield 0.8 * (1 - math.exp(-t / 4)) * (1 - 0.02 * (i % 5)), 1.0

    found = tune.optimize(flat, list(range(40)), price=200 / 0.1)
    assert found.best_score > 0.75
    assert max(run.steps[-1] for run in found.runs) < 100


@settings(max_examples=8, deadline=None)
@given(st.integers(-4, 6), st.integers(-8, 8), st.booleans(), st.sampled_from([None, 2.0]))
def test_neither_unit_nor_zero_nor_direction_of_scores_matters(power, shift, minimize, limit):
    scale, sign = 2.0**power, -1.0 if minimize else 1.0
    random = np.random.default_rng(3)
    level = np.round(1024 * random.uniform(0, 1, 40)) / 1024  # sums of these are exact
    rise = np.round(1024 * (1 - np.exp(-np.arange(1, 31) / 8))) / 1024

    def search(scale, shift, sign):
        def start(i):
            for x in rise:
                yield sign * scale * (level[i] * x + shift), 1.0

        model = learn.from_nothing(
            price=64 / scale,
            minimize=sign < 0,
            limit=None if limit is None else sign * scale * (limit + shift),
        )
        return [(run.steps, run.over) for run in tune.optimize(start, range(40), model).runs]

    assert search(scale, float(shift), sign) == search(1.0, 0.0, 1.0)


def test_the_price_says_how_many_runs_are_first():
    """Six at a high price; half as many again as long as they promise twice their cost."""
    scores = [[0.1 * (7 * i % 16)] for i in range(STARTS)]
    wanted = []
    for price in (1e-3, 100.0, 1e6):
        n, model = 1, learn.from_nothing(price=price)
        while n < STARTS:
            model = learn.from_nothing(price=price).updated(curves_of(scores[:n], [[1.0]] * n))
            more, cost = model._round
            if n in (FEW, 9, 14):
                assert (model.wanted > n) == (more > 2 * cost)
            if model.wanted <= n:
                break
            n += 1
        wanted.append(model.wanted)
    assert wanted == [FEW, 9, STARTS]


def test_a_search_never_goes_back_from_its_end():
    """Once the rule has stopped, the runs that were under way change nothing but the best score."""
    random = np.random.default_rng(2)
    curves = curves_of(np.sort(random.uniform(size=(STARTS, 9)), axis=1), np.ones((STARTS, 9)))
    stop = learn.from_nothing(price=1e-3).updated(replace(curves, ended=np.ones(STARTS, bool)))
    assert stop.over
    assert stop.fresh_index == stop.price * stop.best
    assert stop.reason.startswith("half as many further runs should add ")
    wanted = 0
    for n in range(1, STARTS + 1):
        part = curves.select(np.arange(n))
        model = learn.from_nothing(price=1e-3).updated(replace(part, ended=np.ones(n, bool)))
        assert model.wanted >= wanted
        wanted = model.wanted
    assert wanted == STARTS


def test_settings_tell_what_to_start_next():
    told = [{"rate": i / 16, "same": 1} for i in range(17)]
    scores = [[x["rate"]] for x in told]
    model = learn.from_nothing(price=10.0).updated(curves_of(scores, [[1.0]] * 17, told=told))
    index = model.start_indices([{"rate": x, "same": 1} for x in (0.05, 0.5, 0.95)])
    assert index[0] < index[1] < index[2]
    assert index.min() >= model.fresh_index >= UNKNOWN
    told, scores = [*told, {"rate": 0.3, "same": 1}], [*scores, [0.3]]
    for n in (15, 18):  # too few; and every third run is the next in order
        some = curves_of(scores[:n], [[1.0]] * n, told=told[:n])
        index = learn.from_nothing(price=10.0).updated(some).start_indices(told)
        assert len(set(index.tolist())) == 1
