"""Several workers without a log: as many first runs as one worker starts, or a few more."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weitzman import learn, tune


def start(config):
    top = 0.9 - 0.1 * abs(math.log10(config["rate"]) + 2)
    for epoch in range(1, 21):
        yield top * (1 - math.exp(-epoch / 4)), 1.0


RATES = [{"rate": float(10**x)} for x in np.random.default_rng(0).uniform(-4, 0, 300)]


@pytest.mark.parametrize("stated", [{"budget": 100.0}, {"full_run_cost": 0.005}])
@pytest.mark.parametrize("workers", [2, 4, 8])
def test_workers_train_the_first_runs_further(stated, workers):
    """Runs in flight count: idle workers wait for them instead of starting more and more runs."""
    alone = tune.optimize(start, RATES, **stated)
    together = tune.optimize(start, RATES, workers=workers, **stated)
    assert together.best_score > 0.7  # of 0.9; a first step shows 0.2
    assert len(together.runs) <= 2 * len(alone.runs)


def test_runs_in_flight_count_as_started():
    race = tune.Race(learn.from_nothing(price=100.0))
    refit = tune.Refit(race)
    for _ in range(60):  # all workers are busy with their first step
        refit()
        if (move := race.next()) is None:
            break
        assert move.run is None
        race.started()
    assert len(race.runs) == 16
    race.observe(0, 1, 0.5, 1.0)
    refit()
    move = race.next()
    assert move is None or move.run == 0
