"""Successive halving that knows the price: levels, bars and hope against plain definitions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from weitzman import learn, tune
from weitzman.learn.curves import Curves
from weitzman.learn.thinning_out import RATE, Bars, OwnLevels, hope


def curves_of(scores, costs, ended=None, minimize=False):
    """One curve for each pair of lists."""
    rows = [
        {"run": i, "step": t, "score": x, "cost": c}
        for i, pair in enumerate(zip(scores, costs, strict=True))
        for t, (x, c) in enumerate(zip(*pair, strict=True))
    ]
    read = Curves.read(rows, minimize=minimize, ended=False)
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
        paid = np.cumsum(costs[i])[rows]
        assert found.cost[i, : len(rows)] == pytest.approx(np.diff(paid, prepend=0.0))
        assert found.between[i] == (not rows or rows[-1] < lengths[i] - 1)


def test_where_everything_is_free_each_row_costs_the_same():
    free = OwnLevels.of(curves_of([[1, 2, 3, 4, 5]], [[0.0] * 5]))
    paid = OwnLevels.of(curves_of([[1, 2, 3, 4, 5]], [[1.0] * 5]))
    assert free.best.tolist() == paid.best.tolist() == [[1, 2, 3, 5]]


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_each_level_go_on_and_ever_fewer(seed):
    random = np.random.default_rng(seed)
    scores = random.normal(size=(8, 1)) * np.ones(12)
    levels = OwnLevels.of(curves_of(scores, np.ones((8, 12))))
    bars = Bars.of(levels, np.ones(8, bool), 8, price=None, best=float(scores.max()))
    down = np.sort(scores[:, 0])[::-1]
    kept = [math.ceil(8 / 1.4**k) for k in range(1, levels.best.shape[1] + 1)]
    assert kept[:6] == [6, 5, 3, 3, 2, 2]
    assert bars.bar == pytest.approx([down[k - 1] for k in kept])


@pytest.mark.parametrize("seed", range(8))
def test_hope_is_the_best_mean_gain_of_simulated_rises(seed):
    """Two hundred thousand draws of the stated law at each number of levels."""
    random = np.random.default_rng(seed)
    lead, rise, cost, spread = random.normal(0, 1), *random.uniform(0.01, 1, 3)
    draws, most = random.normal(size=200_000), -math.inf
    mean, error, wild, spent, up = lead, 0.0, 0.0, 0.0, rise
    for k in range(1, 5):
        up, spent = 0.8 * up, spent + cost * 1.4**k
        mean += up
        error = math.hypot(math.sqrt(wild) + 0.4 * up, 2.0 * spread)
        wild = error**2
        most = max(most, np.maximum(mean + error * draws, 0.0).mean() - spent)
    assert hope(lead, rise, cost, spread) == pytest.approx(most, abs=0.02)


def test_without_rises_or_differences_nothing_pays_and_free_rises_do():
    assert hope(0.0, 0.0, 0.1, 0.0) < 0
    assert hope(-1.0, 0.01, 0.0, 0.0) == 0
    assert hope(0.0, 0.1, 0.01, 0.0) > 0


def family(learns, share, n=400, seed=0, length=50):
    """Most runs learn nothing; a share of them rises by ``learns``, seen early."""
    random = np.random.default_rng(seed)
    able = random.random(n) < share
    level = np.where(able, learns * random.uniform(0.5, 1.0, n), 0.0)
    noise = random.uniform(0, 0.002, n)

    def start(i):
        for t in range(1, length + 1):
            yield 0.5 + noise[i] + level[i] * (1 - math.exp(-t / 10)), 1.0

    return start, list(range(n))


def test_a_search_among_runs_that_learn_nothing_goes_on_for_long_at_a_low_price():
    """3 % of the runs learn much: eight runs that are alike are no reason to stop."""
    for seed in range(4):
        start, runs = family(0.3, 0.03, seed=seed)
        low = tune.optimize(start, runs, price=50 / 0.0003)
        high = tune.optimize(start, runs, price=50 / 0.03)
        assert len(low.runs) >= 50
        assert low.best_score > 0.6
        assert len(high.runs) <= 40
        assert high.spent < 4 * 50


def test_a_search_among_runs_that_are_alike_and_learn_stops_soon():
    def alike(i):
        for t in range(1, 51):
            yield 0.9 * (1 - math.exp(-t / 5)) + 1e-5 * (i % 7), 1.0

    for cost, most in ((0.003, 40), (0.03, 10)):
        found = tune.optimize(alike, list(range(300)), price=50 / cost)
        assert len(found.runs) <= most
        assert found.spent < 4 * 50


def test_going_on_stops_where_it_does_not_pay():
    """Curves that have become flat: at a high price no run comes to its end."""

    def flat(i):
        for t in range(1, 201):
            yield 0.8 * (1 - math.exp(-t / 4)) * (1 - 0.02 * (i % 5)), 1.0

    found = tune.optimize(flat, list(range(40)), price=200 / 0.1)
    assert found.best_score > 0.75
    assert max(run.steps[-1] for run in found.runs) < 100


@pytest.mark.parametrize("cost", [0.001, 0.01])
def test_scores_and_price_in_other_units_and_upside_down(cost):
    """With a stated limit the zero of scores does not matter either."""
    start, runs = family(0.3, 0.1, n=60, seed=3)

    def search(scale, shift, sign, limit=None):
        def turned(i):
            for score, paid in start(i):
                yield sign * scale * (score + shift), paid

        model = learn.from_nothing(
            price=50 / cost / scale, minimize=sign < 0,
            limit=None if limit is None else sign * scale * (limit + shift),
        )  # fmt: skip
        found = tune.optimize(turned, runs, model)
        return [(run.steps, run.over) for run in found.runs]

    assert search(64.0, 0.0, 1) == search(1.0, 0.0, 1) == search(1.0, 0.0, -1)
    assert search(1.0, 8.0, 1, limit=1.0) == search(1.0, 0.0, 1, limit=1.0)
