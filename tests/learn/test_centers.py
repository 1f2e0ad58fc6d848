"""Centers of runs: plain twins, leaving one run out, repeated settings, costs, and limits."""

from dataclasses import replace

import numpy as np
import pytest

from weitzman import learn
from weitzman.learn.capped_runs import (
    Center,
    Forecast,
    Frame,
    Peers,
    SegmentLaw,
    _exceeding,
)
from weitzman.learn.curves import Curves
from weitzman.learn.resemblance import FitOptions
from weitzman.learn.resembling_runs import SegmentCosts, distinct, numbered
from weitzman.learn.run_model import Shown

PLAIN = FitOptions(tail=0.0)


def repeated_log(seed, *, configs=12, seeds=4, noise=0.02, steps=3):
    """Every configuration is trained with several seeds; its name says nothing about its score."""
    random = np.random.default_rng(seed)
    level, dear = random.uniform(0.3, 0.8, configs), random.lognormal(0.0, 2.0, configs)
    n = configs * seeds
    config = np.arange(n) % configs
    final = level[config] + noise * random.normal(size=n)
    shape = np.arange(1, steps + 1) / steps
    cost = dear[config] * random.lognormal(0.0, 0.05, n)
    table = {
        "run": np.repeat(np.arange(n), steps),
        "step": np.tile(np.arange(1, steps + 1), n),
        "score": (final[:, None] * shape).ravel(),
        "cost": np.repeat(cost, steps),
        "name": np.repeat([f"c{k}" for k in config], steps),
    }
    return Curves.read(table, settings=["name"], ended=True), level, dear


def random_law(random, m, n, groups, places):
    row = random.dirichlet(np.ones(n), m) * (random.random((m, n)) < 0.7)
    row[np.arange(m)[places >= 0], places[places >= 0]] = 0.0
    row = row / row.sum(axis=1, keepdims=True)
    return SegmentLaw(row, random.random(m), groups, places, random.normal(size=m))


def plain_center(center, peers, value, best, law, i, price):
    """What is said about run i, in loops: its center, and the centers of the runs of the stage."""
    floor = np.median(best)
    lean = [center.lean * price * max(b, floor) for b in best]
    mean = [float(np.mean(v)) for v in value]
    z = [max(x, np.median(mean)) - a for x, a in zip(mean, lean, strict=True)]
    same = [
        j for j in range(len(value))
        if peers.group[j] == law.group[i] >= 0 and peers.real[j] and j != law.place[i]
    ]  # fmt: skip
    own = center.lean * price * max(law.best[i], floor)
    if not same:
        return own, None
    weight = [(0.0 if j in same else law.row[i, j]) + 1e-3 / len(z) for j in range(len(z))]
    usual = np.dot(weight, z) / sum(weight)
    shrunken = usual + sum(z[j] - usual for j in same) / (len(same) + center.doubt)
    return own, shrunken


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("center", [Center(0.5, 0.3), Center(0.0, 1.0), Center(1.0, np.inf)])
def test_values_around_centers_are_those_of_loops(seed, center):
    random = np.random.default_rng(seed)
    n, price = 14, 3.0
    peers = Peers(random.integers(-1, 5, n), random.random(n) < 0.9)
    own = random_law(random, n, n, peers.group, np.arange(n))
    value = random.normal(size=(n, 4))
    frame = Frame.of(center, peers, price, value, own)
    asked = random_law(random, 6, n, np.array([-1, 0, 1, 2, 9, 3]), np.full(6, -1))
    asked.place[5] = int(np.flatnonzero(peers.group == 3)[0]) if 3 in peers.group else -1
    told = {j: plain_center(center, peers, value, own.best, own, j, price) for j in range(n)}
    seen = set()
    for which, errors, row, middle in frame.parts(asked):
        for a, i in enumerate(which.tolist()):
            seen.add(i)
            lean, more = plain_center(center, peers, value, own.best, asked, i, price)
            known = [j for j in range(n) if told[j][1] is not None]
            if more is None or not np.isfinite(center.doubt) or asked.row[i, known].sum() == 0:
                wanted = value - np.array([told[j][0] for j in range(n)])[:, None] + lean
                weight = asked.row[i]
            else:
                off = np.array([told[j][0] + told[j][1] for j in known])
                wanted = value[known] - off[:, None] + lean + more
                weight = asked.row[i, known] / asked.row[i, known].sum()
                group, at = asked.group[i], asked.place[i]
                same = [peers.group[j] == group and peers.real[j] and j != at for j in known]
                weight = (np.array(same, float) + 2.0 * weight) / (sum(same) + 2.0)
            assert errors + middle[a] == pytest.approx(wanted, abs=1e-12)
            assert row[a] == pytest.approx(weight, abs=1e-12)
    assert seen == set(range(6))


def test_a_learner_that_varies_little_is_not_given_the_spread_of_others():
    """Half of the configurations vary 25 times as much as the others."""
    random = np.random.default_rng(5)
    n, config = 80, np.arange(80) % 10
    level = random.uniform(0.1, 0.9, 10)[config]
    score = level + np.where(config < 5, 0.002, 0.05) * random.normal(size=n)
    table = {"run": np.arange(n), "step": [1] * n, "score": score, "cost": [0.01] * n}
    log = Curves.read({**table, "name": [f"c{k}" for k in config]}, settings=["name"], ended=True)
    model = learn.fit(log, price=1.0, options=PLAIN)
    law = model._runs.start_law(model.encoder.numbers([{"name": f"c{k}"} for k in range(10)], 10))
    widths = np.zeros(10)
    for which, errors, row, _ in model._capped.frame[0].parts(law):
        values = errors.mean(axis=1)
        mean = row @ values
        widths[which] = np.sqrt(row @ values**2 - mean**2)
    assert np.isfinite(model._capped.frame[0].center.doubt)
    assert widths[:5].mean() < 0.045
    assert widths[:5].mean() < 0.7 * widths[5:].mean()


def test_what_a_run_did_itself_does_not_enter_what_is_expected_of_it():
    random = np.random.default_rng(3)
    n = 20
    peers = Peers(np.arange(n) % 4, np.ones(n, bool))
    law = random_law(random, n, n, peers.group, np.arange(n))
    number = random.normal(size=n)
    found = Forecast.of(law, peers.alike(law)).expected(number, 0.5)
    for i in range(n):
        keep = np.arange(n) != i
        fewer = Peers(peers.group[keep], peers.real[keep])
        mine = law.of(np.array([i]))
        mine = mine._replace(row=mine.row[:, keep], place=np.array([-1]))
        wanted = Forecast.of(mine, fewer.alike(mine)).expected(number[keep], 0.5)
        assert found[i] == pytest.approx(wanted[0], abs=1e-3)  # a faint share is spread over n
        changed = np.where(keep, number, 99.0)
        other = Forecast.of(law, peers.alike(law)).expected(changed, 0.5)
        assert abs(other[i] - found[i]) < 0.02 < abs(other - found).max()


def test_chances_of_exceeding_are_sums():
    random = np.random.default_rng(2)
    value, row = random.integers(0, 5, (7, 4)) / 2, random.dirichlet(np.ones(7), 3)
    bar = random.integers(-1, 6, (3, 8)) / 2
    wanted = [[sum(p * (v > s).mean() for p, v in zip(ps, value, strict=True)) for s in ss]
              for ps, ss in zip(row, bar, strict=True)]  # fmt: skip
    assert _exceeding(value, row, bar) == pytest.approx(np.array(wanted), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_repeated_settings_are_known_nearly_exactly(seed):
    log, level, dear = repeated_log(seed)
    model = learn.fit(log, full_run_cost=1e-4, options=PLAIN)
    names = [{"name": f"c{k}"} for k in range(len(level))]
    assert np.isfinite(model._capped.frame[0].center.doubt)
    index = model.start_indices(names) / model.price
    assert level[np.argmax(index)] > level.max() - 0.03
    good = level > np.median(level)  # the others are only known to be bad
    assert np.abs(index - level)[good].max() < 0.08
    assert index[~good].max() < index[good].min() + 0.08
    law = model._runs.start_law(model.encoder.numbers(names, len(names)))
    assert law.cost == pytest.approx(dear, rel=0.15)


def test_the_gain_of_one_run_is_the_mean_of_its_capped_value():
    log, level, _ = repeated_log(1)
    model = learn.fit(log, full_run_cost=0.01, options=PLAIN)
    config = {"name": f"c{int(np.argmax(level))}"}
    law = model._runs.start_law(model.encoder.numbers([config], 1))
    ((_, errors, row, middle),) = model._capped.frame[0].parts(law)
    capped = np.minimum(errors + middle[0], model.start_indices([config])[0])
    run = Shown((), (), (), config)
    for share in (0.5, 0.9, 0.99):
        best = share * float(capped.max())
        wanted = row[0] @ np.maximum(capped - best, 0.0).mean(axis=1)
        assert wanted > 0
        assert model.gain(best, [run], 0) == pytest.approx(wanted, rel=0.01)


def test_costs_by_settings_leave_the_run_out():
    log, _, _ = repeated_log(2)
    model = learn.fit(log, full_run_cost=0.01, options=PLAIN)
    stage = model._runs.stages[1]
    law = model._runs.logged_law(1, stage.runs)
    assert np.isfinite(model._runs.stages[0].costs.doubt)
    assert law.cost == pytest.approx(model._runs.ladder.cost[:, 1], rel=0.25)
    alone = SegmentCosts.of(stage.costs.cost, stage.costs.level)
    assert alone.by_settings(law, Peers(np.arange(48), stage.peers.real)) is alone


def test_a_good_start_raises_what_may_come():
    """Scores rise alike from wherever they begin: the best begins above all of the log."""
    random = np.random.default_rng(7)
    n = 60
    first = random.uniform(0.0, 0.5, n)
    table = {
        "run": np.repeat(np.arange(n), 2), "step": np.tile([1, 2], n), "cost": np.ones(2 * n),
        "score": np.column_stack([first, first + 0.2 + 0.01 * random.random(n)]).ravel(),
        "rate": np.repeat(random.random(n), 2),
    }  # fmt: skip
    model = learn.fit(Curves.read(table, settings=["rate"], ended=True), price=1e3, options=PLAIN)
    assert model._capped.frame[1].center.lean == 1.0
    found = model.next_index([1], [0.9], [1.0], {"rate": 0.5}) / model.price
    assert found == pytest.approx(1.105, abs=0.01)
    bound = learn.fit(
        Curves.read(table, settings=["rate"], ended=True), price=1e3, options=PLAIN, limit=1.0
    )
    assert bound.next_index([1], [0.9], [1.0], {"rate": 0.5}) / bound.price <= 1.0


def test_settings_are_the_same_only_if_all_are():
    config = np.array([[1.0, np.nan], [1.0, 2.0], [1.0, np.nan], [np.nan, np.nan], [-0.0, 1.0]])
    number = distinct(config)
    assert numbered(number, config).tolist() == [0, 1, 0, -1, 3]
    assert numbered(number, np.array([[0.0, 1.0], [2.0, 1.0]])).tolist() == [3, -1]
    none = np.zeros((3, 0))
    assert numbered(distinct(none), none).tolist() == [-1, -1, -1]


def test_imagined_runs_are_no_repetitions():
    log, level, _ = repeated_log(1, seeds=1)
    model = learn.fit(log, full_run_cost=0.01, options=replace(PLAIN, tail=0.3))
    assert len(model._runs.ladder) == len(level) + 3
    assert not any(stage.peers.repeated for stage in model._runs.stages)
    assert not any(np.isfinite(frame.center.doubt) for frame in model._capped.frame)


def rising_log(n=60, noise=0.1):
    """Scores rise alike from wherever they begin, so the best score so far is in every center."""
    random = np.random.default_rng(7)
    first = random.uniform(0.0, 0.5, n)
    table = {
        "run": np.repeat(np.arange(n), 2), "step": np.tile([1, 2], n), "cost": np.ones(2 * n),
        "score": np.column_stack([first, first + 0.2 + noise * random.random(n)]).ravel(),
        "rate": np.repeat(random.random(n), 2),
    }  # fmt: skip
    return Curves.read(table, settings=["rate"], ended=True)


@pytest.mark.parametrize("begin", [0.3, 0.6, 0.74, 0.79])
def test_no_value_above_the_limit_enters_an_index(begin):
    model = learn.fit(rising_log(), price=20.0, options=PLAIN, limit=0.8)
    shown = Shown([1], [begin], [1.0], {"rate": 0.5})
    ((_, _, law),) = model._laws([shown])
    ((_, errors, row, middle),) = model._capped.frame[1].parts(law)
    value = np.minimum(errors + middle[0], 0.8 * model.price)
    low, high = -1e3, float(value.max())
    while high - low > 1e-9:
        mean = row[0] @ np.maximum(value - (low + high) / 2, 0.0).mean(axis=1)
        low, high = ((low + high) / 2, high) if mean > law.cost[0] else (low, (low + high) / 2)
    assert model._capped.frame[1].center.lean > 0
    assert model.next_indices([shown])[0] == pytest.approx(low, abs=1e-6)
    assert low <= 0.8 * model.price - law.cost[0] + 1e-6  # going on is never free


@pytest.mark.parametrize("unit", [1e-7, 1e7])
def test_a_promise_does_not_depend_on_the_unit_of_cost(unit):
    log = rising_log()
    model = learn.fit(log, price=30.0, options=PLAIN)
    other = learn.fit(replace(log, cost=log.cost * unit), price=30.0 * unit, options=PLAIN)
    some = model.ladder.select(np.arange(5))
    assert other.promised(some) == pytest.approx(unit * model.promised(some), rel=1e-9)


def test_the_promise_of_one_run_is_the_mean_of_its_capped_value():
    log, _, _ = repeated_log(5)
    model = learn.fit(log, price=30.0, options=PLAIN)
    for i in range(6):
        one = model.ladder.select(np.array([i]))
        law = model._runs.start_law(one.config)
        ((_, errors, row, middle),) = model._capped.frame[0].parts(law)
        capped = np.minimum(errors + middle[0], model._capped.index(0, law)[0])
        wanted = row[0] @ capped.mean(axis=1)
        assert model.promised(one) == pytest.approx(wanted, abs=1e-3 * model.price)
