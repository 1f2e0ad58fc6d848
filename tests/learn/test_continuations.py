"""Runs that were cut off go on as others did: against plain regressions, and by simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weitzman.learn.continuations import completed, continued, regressions
from weitzman.learn.ladder import Ladder

SIZE = 6


def ladder_of(best, seen, gone=None, cost=None):
    n, size = best.shape
    config = np.arange(float(n))[:, None]
    cost = np.ones((n, size)) if cost is None else cost
    gone = seen == size if gone is None else gone
    return Ladder(np.arange(1, size + 1), best, best, best, cost, config, seen, gone, np.ones(n))


def drawn(random, n, lasts=0.8, chance=0.4):
    """Runs with a lead of which a share lasts through each segment, and what comes by chance."""
    lead = random.normal(0.0, 1.0, (n, SIZE))
    for s in range(1, SIZE):
        lead[:, s] = lasts * lead[:, s - 1] + chance * lead[:, s]
    return lead + 9.0 * np.arange(SIZE)


def test_the_share_of_a_lead_that_lasts_is_a_regression_with_a_prior():
    """The prior as a further row of plain least squares; residuals by the definition."""
    best = drawn(np.random.default_rng(1), 12)
    before, after, lasts, error = regressions(ladder_of(best, np.full(12, SIZE)))
    spread = [np.std(np.sort(x)[6:], ddof=1) for x in best.T]
    for s in range(1, SIZE):
        top = np.argsort(-best[:, s - 1])[:6]
        x, y = best[top, s - 1], best[top, s]
        assert (before[s], after[s]) == pytest.approx((x.mean(), y.mean()))
        x, y = x - x.mean(), y - y.mean()
        root = np.sqrt(2.0) * spread[s - 1]  # the prior counts for two runs
        usual = 0.9 * spread[s] / spread[s - 1]
        rows = np.append(x, root)[:, None]
        slope = np.linalg.lstsq(rows, np.append(y, root * usual), rcond=None)[0][0]
        assert lasts[s] == pytest.approx(slope)
        missed = [(0.3 * spread[s]) ** 2] * 4 + list((y - slope * x) ** 2)
        assert error[s] ** 2 == pytest.approx(sum(missed) / (4 + 5))


def test_where_one_run_went_the_prior_counts_alone():
    best = drawn(np.random.default_rng(2), 5)
    before, after, lasts, error = regressions(ladder_of(best, np.array([SIZE, 2, 2, 1, 2])))
    assert lasts[2:] == pytest.approx(0.9)
    assert (before[2:] == best[0, 1:-1]).all()
    assert (after[2:] == best[0, 2:]).all()
    last = np.std(np.sort(best[[0, 1, 2, 4], 1])[2:], ddof=1)  # rung 2, the last of several runs
    assert error[2:] == pytest.approx(0.3 * last)


@pytest.mark.parametrize(("lasts", "chance"), [(0.3, 0.4), (0.8, 0.4), (1.2, 0.8)])
def test_forecasts_of_last_scores_hold_what_they_promise(lasts, chance):
    """Many runs drawn from the stated law, a third of them cut off: where do their ends lie?"""
    inside, gaps = [], []
    for seed in range(40):
        best = drawn(np.random.default_rng([seed, 7]), 120, lasts=lasts, chance=chance)
        seen = np.where(np.arange(120) < 80, SIZE, 2)
        found = continued(ladder_of(best, seen), np.arange(80, 120))
        ends = found.best[:, -1].reshape(40, 4)
        centre, width = ends.mean(axis=1), (ends[:, 3] - ends[:, 0]) / (2 * 1.2711)
        z = (best[80:, -1] - centre) / width
        inside.append(np.mean(np.abs(z) < 1.645))
        gaps.append(z.mean())
    assert 0.87 < np.mean(inside) < 0.93
    assert abs(np.mean(gaps)) < 0.1


def test_a_continuation_shares_the_weight_and_keeps_what_was_seen():
    random = np.random.default_rng(3)
    best = np.maximum.accumulate(drawn(random, 9), axis=1)
    seen = np.array([6, 2, 2, 1, 3, 6, 2, 1, 2])
    gone = (seen == SIZE) | (np.arange(9) == 2)
    cost = np.ones((9, SIZE)) * np.where(np.arange(9) == 4, 3.0, 1.0)[:, None]
    runs = replace(ladder_of(best, seen, gone, cost), weight=random.uniform(1, 2, 9))
    found = completed(runs)
    assert found.weight.sum() == pytest.approx(runs.weight.sum())
    assert (np.diff(found.best, axis=1) >= 0).all()
    for run in (1, 3, 4):
        mine = found.config[:, 0] == run
        assert mine.sum() == 4
        assert (found.best[mine, : seen[run]] == best[run, : seen[run]]).all()
        assert (found.seen[mine] == SIZE).all()
        assert found.gone[mine].all()
    usual = np.exp(np.log(3.0) / np.array([9, 7, 3]))  # the geometric mean of those who paid
    dear = found.cost[found.config[:, 0] == 4]
    assert dear[:, :3] == pytest.approx(3.0)
    assert dear[:, 3:] == pytest.approx(3.0 / usual[2])
    assert (found.config[:, 0] == 2).sum() == 1


def test_where_no_run_went_scores_stay_on_average():
    best = drawn(np.random.default_rng(5), 4)
    found = continued(ladder_of(best, np.array([3, 3, 2, 3])), np.arange(2))
    ends = found.best[:, 2:].reshape(2, 4, -1)
    assert ends[:, 2:].mean(axis=1)[:, 0] == pytest.approx(best[:2, 2])
    raised = ends[:, :, 1:] - best[:2, None, 2:3]
    assert (raised >= 0).all()  # as best scores
    assert (raised[:, :2] == 0).all()


def test_the_unit_and_the_origin_of_scores_do_not_matter():
    best = drawn(np.random.default_rng(4), 9)
    seen = np.array([6, 2, 2, 1, 3, 6, 2, 1, 2])
    one = completed(ladder_of(best, seen)).best
    other = completed(ladder_of(64.0 * best + 8.0, seen)).best
    assert other == pytest.approx(64.0 * one + 8.0)
