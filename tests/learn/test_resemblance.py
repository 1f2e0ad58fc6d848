"""Logged runs as states: laws and indices against plain twins, settings of any kind, symmetries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import weitzman
from weitzman import learn
from weitzman.errors import InvalidAnswer, InvalidArgument
from weitzman.learn import Curves, FitOptions, ResemblanceModel, Shown, resembling_runs
from weitzman.learn.capped_runs import shared_errors
from weitzman.learn.ladder import climb, compared_costs, features
from weitzman.learn.log_tables import Encoder
from weitzman.learn.resembling_runs import Trees
from weitzman.tune import Race
from weitzman.tune.refit import Refit

PLAIN = FitOptions(tail=0.0, ratio=1.01, trees=16, leaf=2)
PRICE = 10.0


def log(seed=0, n=24, steps=3, settings=None, **more):
    """Runs whose scores rise with their rate; costs 1 a step."""
    random = np.random.default_rng(seed)
    rate = random.uniform(0, 1, n)
    kind = random.choice(["a", "b"], n)
    noise = random.normal(0, 0.05, (n, steps))
    score = rate[:, None] * np.arange(1, steps + 1) / steps + 0.2 * (kind == "b")[:, None] + noise
    table = {
        "run": np.repeat(np.arange(n), steps),
        "step": np.tile(np.arange(1, steps + 1), n),
        "score": score.ravel(),
        "cost": np.ones(n * steps),
        "rate": np.repeat(rate, steps),
        "kind": np.repeat(kind, steps),
    }
    return Curves.read(table, settings=settings or ["rate", "kind"], **more)


def fitted(curves, **changes):
    options = {"price": PRICE, "options": PLAIN, **changes}
    return learn.fit(curves, **options)


# -- laws ----------------------------------------------------------------------------------------


def walked(trees: Trees, x, t):
    """The leaf of one tree that a row falls into, one question after the other."""
    feature, split, left, begin = trees.nodes
    node = 0
    while feature[begin[t] + node] >= 0:
        f, at = feature[begin[t] + node], split[begin[t] + node]
        value = x[f]
        low = np.isnan(value) or value <= at
        goes_left = value == at if trees.category[f] else low
        node = left[begin[t] + node] + (not goes_left)
    return node


def plain_row(trees: Trees, known, x, own=-1):
    """How much each run resembles a row, tree by tree."""
    total = np.zeros(len(known))
    for t, bag in enumerate(trees.bags):
        if own >= 0 and bag[own]:
            continue
        here = walked(trees, x, t)
        mates = [j for j in np.flatnonzero(bag) if walked(trees, known[j], t) == here]
        weight = trees.weight[mates]
        total[mates] += weight / weight.sum()
    return total / total.sum()


@pytest.mark.parametrize("seed", range(3))
def test_resemblance_is_what_the_leaves_say(seed):
    random = np.random.default_rng(seed)
    known = np.column_stack([random.normal(size=(15, 2)), random.integers(0, 3, 15)])
    known[random.random(known.shape) < 0.15] = np.nan
    category = np.array([False, False, True])
    target, weight = random.normal(size=(15, 2)), random.uniform(0.5, 2.0, 15)
    trees = Trees.grown(known, category, target, weight, trees=9, leaf=2, random=random)
    new = np.column_stack([random.normal(size=(4, 2)), random.integers(0, 4, 4)])
    found = trees.rows(new, np.full(4, -1))
    wanted = [plain_row(trees, known, x) for x in new]
    assert found == pytest.approx(np.array(wanted), abs=1e-12)
    own = trees.rows(known, np.arange(15))
    wanted = [plain_row(trees, known, x, i) for i, x in enumerate(known)]
    assert own == pytest.approx(np.array(wanted), abs=1e-12)
    assert np.diag(own).tolist() == [0.0] * 15  # nothing resembles itself
    for t, bag in enumerate(trees.bags):
        leaves = [walked(trees, known[j], t) for j in np.flatnonzero(bag)]
        assert min(np.bincount(leaves)[np.unique(leaves)]) >= 2


def test_trees_find_what_matters():
    random = np.random.default_rng(0)
    known = random.normal(size=(60, 4))
    target = (known[:, 2] > 0).astype(float)[:, None]
    options = {"trees": 40, "leaf": 3, "random": random}
    trees = Trees.grown(known, np.zeros(4, bool), target, np.ones(60), **options)
    row = trees.rows(known, np.arange(60))
    assert (row @ target - target).__abs__().mean() < 0.1
    assert np.abs(target.mean() - target).mean() > 0.4  # without looking


# -- indices -------------------------------------------------------------------------------------


def root(row, values, cost):
    """Where the mean excess over a worth comes down to the cost, by bisection."""
    low, high = min(values) - cost - 1.0, max(values) + 1.0
    for _ in range(80):
        middle = (low + high) / 2
        excess = sum(w * max(v - middle, 0.0) for w, v in zip(row, values, strict=True))
        low, high = (middle, high) if excess > cost else (low, middle)
    return (low + high) / 2


def centered(model, r, law, values):
    """The values of a stage, moved by how far runs were above or below the best score so far."""
    frame, kin = model._capped.frame[r], model._runs
    assert not np.isfinite(frame.center.doubt)  # no settings occur twice
    if r == 0:
        return values
    before = kin.ladder.best[kin.stages[r].runs, r - 1]
    floor = np.median(before)
    rise = max(law.best[0], floor) - np.maximum(before, floor)
    return values + frame.center.lean * model.price * rise


def capped_values(model):
    """Capped values of all runs, stage by stage, for logs in which every run came to its end."""
    kin = model._runs
    out = {}
    for r in reversed(range(len(kin.stages))):
        for j in kin.stages[r].runs.tolist():
            out[j, r] = model.price * kin.ladder.best[j, r]
            if r + 1 < len(kin.stages) and kin.ladder.seen[j] > r + 1:
                law = kin.logged_law(r + 1, np.array([j]))
                ahead = centered(model, r + 1, law, [out[k, r + 1] for k in kin.stages[r + 1].runs])
                index = root(law.row[0], ahead, law.cost[0])
                out[j, r] = max(out[j, r], min(index, out[j, r + 1]))
    return out


@pytest.mark.parametrize("seed", range(3))
def test_indices_are_those_of_a_plain_recursion(seed):
    model = fitted(log(seed, n=9, steps=4))
    wanted = capped_values(model)
    for r, stage in enumerate(model._runs.stages):
        for i, j in enumerate(stage.runs.tolist()):
            assert model._capped.value[r][i] == pytest.approx(wanted[j, r], abs=1e-9)
    first = [wanted[j, 0] for j in model._runs.stages[0].runs.tolist()]
    law = model._runs.stages[0].usual()
    assert model.fresh_index == pytest.approx(root(law.row[0], first, law.cost[0]), abs=1e-9)
    config = {"rate": 0.8, "kind": "b"}
    law = model._runs.start_law(model.encoder.numbers([config], 1))
    found = model.start_indices([config])[0]
    assert found == pytest.approx(root(law.row[0], first, law.cost[0]), abs=1e-9)


def test_a_run_that_was_cut_off_may_continue_as_others_did():
    scores = [[0.1, 0.9], [0.1, 0.5], [0.1, 0.7], [0.1, 0.3], [0.1]]
    rows = [(i, t + 1, x) for i, run in enumerate(scores) for t, x in enumerate(run)]
    run, step, score = zip(*rows, strict=True)
    curves = Curves.read({"run": run, "step": step, "score": score, "cost": [0.01] * len(run)})
    model = learn.fit(curves, price=1.0, options=FitOptions(tail=0.0, ratio=1.01, leaf=4))
    found = model._capped.value[0][4]
    assert (np.diff(found) > 0).any()
    assert set(found.tolist()) <= {0.3, 0.5, 0.7, 0.9, float(found.max())}  # or the index


def test_a_known_law_is_recovered():
    random = np.random.default_rng(0)
    score = random.choice([0.0, 0.5, 1.0], 1500, p=[0.6, 0.3, 0.1])
    later = np.where(random.random(1500) < 0.3, np.minimum(score + 0.5, 1.0), score)
    table = {
        "run": np.repeat(np.arange(1500), 2), "step": np.tile([1, 2], 1500),
        "score": np.column_stack([score, later]).ravel(), "cost": np.ones(3000),
    }  # fmt: skip
    options = FitOptions(tail=0.0, ratio=1.01, leaf=30, states=1500, trees=20)
    model = learn.fit(Curves.read(table), price=10.0, options=options)
    law = [[0.7, 0.3, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]]
    line = weitzman.line([[0.6, 0.3, 0.1], law], rewards=[0, 5, 10], cost=1.0)
    solution = weitzman.solve(line)
    assert model.fresh_index == pytest.approx(solution.index(0), rel=0.02)
    assert model.next_index([1], [0.5]) == pytest.approx(solution.indices(1)[1], rel=0.03)


def test_the_gain_is_that_of_a_forest_of_capped_values():
    model = fitted(log(1, n=12, steps=4))
    values = model._capped.value[0][:, 0]
    cost = model._runs.stages[0].usual().cost
    for n, best in ((1, 0.0), (1, 6.0), (5, 6.0), (5, 7.0)):
        box = weitzman.line([np.full(12, 1 / 12)], rewards=values, cost=cost[0], count=n)
        wanted = weitzman.solve(box.changed(outside=best)).value - best
        assert model.gain(best, [], n) == pytest.approx(wanted, abs=1e-9)
    assert model.gain(1e6, [], 5) == 0.0


def test_a_model_of_one_rung_is_a_forest():
    model = fitted(log(2, n=12, steps=1))
    assert weitzman.solve(model.lines()).index(0) == pytest.approx(model.fresh_index)
    assert weitzman.solve(fitted(log(2, n=12, steps=4)).lines(3)).value > 0.0


def test_what_a_run_has_shown_is_looked_up_as_in_the_log():
    curves = log(1)
    model = fitted(curves)
    ladder = model.ladder
    for i in (0, 5, 11):
        rows = slice(curves.start[i], curves.start[i] + 2)
        shown = Shown(curves.step[rows], curves.score[rows], curves.cost[rows], curves.settings[i])
        wanted = features(ladder, 2, model._runs.levels)[i]
        found = features(model._climbed([shown]), 2, np.zeros((1, 3)))[0]
        assert found == pytest.approx(wanted, nan_ok=True)
        both = model.next_indices([shown, shown])
        assert [model.next_index(*shown)] * 2 == pytest.approx(both.tolist())
    assert model.next_index([3], [0.5]) == -np.inf  # at its end
    assert model.next_index([1, 2], [0.5, np.nan]) == -np.inf  # diverged
    assert model.next_index([], []) == model.fresh_index
    with pytest.raises(InvalidArgument, match="one score"):
        model.next_index([1, 2], [0.5])


def test_a_free_step_has_the_index_of_the_best_that_may_come():
    curves = log(0, n=10, steps=1)
    free = Curves.read(
        {"run": list(curves.runs), "step": [1] * 10, "score": curves.score, "cost": [0] * 10},
    )
    model = learn.fit(free, price=1.0, options=PLAIN)
    assert model.fresh_index == pytest.approx(curves.score.max())


# -- symmetries ----------------------------------------------------------------------------------


def test_only_the_order_of_a_number_matters():
    curves = log(2)
    other = Curves(**{
        **{f: getattr(curves, f) for f in ("runs", "start", "step", "score", "cost", "task",
                                           "ended", "minimize")},
        "settings": tuple({**s, "rate": 10 ** (5 * s["rate"])} for s in curves.settings),
    })  # fmt: skip
    one, two = fitted(curves), fitted(other)
    asked = [{"rate": 0.3, "kind": "a"}, {"rate": 0.9, "kind": "b"}]
    scaled = [{**s, "rate": 10 ** (5 * s["rate"])} for s in asked]
    assert one.start_indices(asked).tolist() == two.start_indices(scaled).tolist()


def test_low_scores_may_be_the_good_ones():
    up = log(3)
    down = Curves(**{
        **{f: getattr(up, f) for f in ("runs", "start", "step", "cost", "task", "ended",
                                       "settings")},
        "score": -up.score, "minimize": True,
    })  # fmt: skip
    one, two = fitted(up), fitted(down)
    assert two.fresh_index == one.fresh_index
    history = [1, 2], np.array([0.2, 0.4])
    assert one.next_index(*history) == two.next_index(history[0], -history[1])


def test_another_price_needs_no_new_trees():
    curves = log(0)
    one, two = fitted(curves).at_price(3.0), fitted(curves, price=3.0)
    assert one.fresh_index == two.fresh_index
    assert (
        one.start_indices(curves.settings).tolist() == two.start_indices(curves.settings).tolist()
    )


def test_few_states_stand_for_many_runs():
    curves = log(4, n=200)
    recipes = (FitOptions(states=k, tail=0, trees=64) for k in (300, 100))
    many, few = (fitted(curves, options=recipe) for recipe in recipes)
    assert few.fresh_index == pytest.approx(many.fresh_index, rel=0.02)
    assert len(few._runs.ladder) == 100
    assert few._runs.ladder.weight.sum() == pytest.approx(200)
    assert few._runs.logged_law(1, np.arange(9)).row.sum(axis=1) == pytest.approx(np.ones(9))


def test_learning_more_is_learning_from_all():
    curves = log(5, n=40)
    part, rest = curves.select(np.arange(25)), curves.select(np.arange(25, 40))
    both = fitted(part).updated(rest)
    assert both.fresh_index == fitted(curves).fresh_index
    with pytest.raises(InvalidArgument, match="both maximize"):
        fitted(part).updated(log(5, minimize=True))


# -- settings ------------------------------------------------------------------------------------


def test_settings_tell_good_candidates():
    curves = log(6, n=80, steps=4)
    model = learn.fit(curves, price=PRICE)
    assert isinstance(model, ResemblanceModel)
    grid = [{"rate": x, "kind": k} for x in (0.1, 0.5, 0.9) for k in ("a", "b")]
    index = model.start_indices(grid).reshape(3, 2)
    assert (np.diff(index, axis=0) > 0).all()
    assert index[2, 1] > index[2, 0]
    with_unknown = model.start_indices([{"rate": 0.9, "kind": "c"}, {"rate": 0.9}, {}])
    assert np.isfinite(with_unknown).all()


def test_costs_depend_on_settings():
    random = np.random.default_rng(0)
    big = random.random(60) < 0.5
    table = {
        "run": np.repeat(np.arange(60), 2), "step": np.tile([1, 2], 60), "big": np.repeat(big, 2),
        "score": random.uniform(0, 1, 120), "cost": np.repeat(np.where(big, 8.0, 0.5), 2),
    }  # fmt: skip
    model = learn.fit(Curves.read(table, settings=["big"]), price=20.0, options=FitOptions())
    dear, cheap = model.start_indices([{"big": True}, {"big": False}])
    assert cheap > dear + 3.0


@pytest.mark.parametrize("times", [10.0, 1e4])
def test_a_run_that_was_far_more_expensive_than_all_stays_so(times):
    """One run cost many times what all others did; what it will cost grows as it did for them."""
    random = np.random.default_rng(1)
    size = random.lognormal(0.0, 0.5, 30)
    size[0] = times
    table = {
        "run": np.repeat(np.arange(30), 2), "step": np.tile([1, 2], 30),
        "score": random.uniform(0, 1, 60), "cost": (size[:, None] * [1.0, 2.0]).ravel(),
    }  # fmt: skip
    model = fitted(Curves.read(table))
    cost = model._runs.logged_law(1, np.arange(30)).cost
    assert cost == pytest.approx(2.0 * size, rel=1e-6)


def test_a_few_segments_with_inexact_times_do_not_decide_costs():
    random = np.random.default_rng(2)
    first = random.lognormal(0.0, 0.5, 40)
    first[:2] = 1e-5  # too short for the clock: afterwards these runs seem to grow without bounds
    table = {
        "run": np.repeat(np.arange(40), 2), "step": np.tile([1, 2], 40),
        "score": random.uniform(0, 1, 80),
        "cost": np.column_stack([first, np.full(40, 2.0)]).ravel(),
    }  # fmt: skip
    model = fitted(Curves.read(table), options=replace(PLAIN, leaf=10))
    cost = model._runs.logged_law(1, np.arange(2, 40)).cost
    assert np.median(cost / first[2:]) < 10.0


def test_settings_of_any_kind_become_numbers():
    encoder = Encoder.of([
        {"rate": 0.1, "deep": {"layers": 2}, "same": 1, "on": True, "what": "x", "mixed": 1},
        {"rate": None, "deep": {"layers": 3, "drop": 0.5}, "same": 1, "on": False, "mixed": "y"},
    ])  # fmt: skip
    assert encoder.names == ("rate", "deep/layers", "on", "what", "mixed", "deep/drop")
    assert encoder.is_category.tolist() == [False, False, False, True, True, False]
    row = encoder.numbers([{"what": "new", "deep": {"drop": 0.1}, "mixed": "y", "rate": "?"}], 1)
    assert np.isnan(row[0, :3]).all()
    assert row[0, 3] > 0  # no category of the log
    assert row[0, 4:].tolist() == [1.0, 0.1]


def test_blanks_arrays_and_huge_numbers_are_settings_too():
    pandas = pytest.importorskip("pandas")
    rows = [
        {"shape": np.array([]), "size": 10**400, "word": pandas.NA, "day": pandas.NaT, "x": 1.0},
        {"shape": np.array([1, 2]), "size": -(10**400), "word": "a", "day": "b", "x": pandas.NA},
        {"shape": [1], "size": 3, "word": np.float32("nan"), "day": None, "x": np.float32("nan")},
    ]
    encoder = Encoder.of(rows)
    assert encoder.is_category.tolist() == [True, False, True, True, False]
    found = encoder.numbers(rows, 3)
    assert found[:, 0].tolist() == [0.0, 1.0, 2.0]
    assert found[:, 1].tolist() == [1e100, -1e100, 3.0]
    assert np.isnan(found[:, 2:]).tolist() == [
        [True, True, False], [False, False, True], [True, True, True]
    ]  # fmt: skip


def test_a_search_learns_categories_that_the_log_does_not_have():
    model = fitted(log(settings=["kind"], n=40))
    live = log(5, settings=["kind"], n=40)
    named = [{"kind": "c" if i % 2 else config["kind"]} for i, config in enumerate(live.settings)]
    bad = np.array([config["kind"] == "c" for config in named])[live.run_of_row]
    live = replace(live, settings=tuple(named), score=np.where(bad, -1.0, live.score))
    asked = [{"kind": kind} for kind in ("b", "c", "d", None)]
    before, after = model.start_indices(asked), model.updated(live).start_indices(asked)
    assert before[1] == before[2] == before[3]
    assert after[1] < min(after[0], after[2]) - 0.5 * PRICE


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300, 10**400])
def test_endless_settings_are_numbers_as_others(value):
    curves = log()
    endless = {**curves.settings[0], "rate": value}
    model = fitted(replace(curves, settings=(endless, *curves.settings[1:])))
    assert np.isfinite(model.start_indices([endless])).all()


@pytest.mark.parametrize("wrong", [3, {"rate": 0.1}, ["rate"]])
def test_settings_of_a_model_are_recipes(wrong):
    with pytest.raises(InvalidArgument, match=r"must be a `learn\.FitOptions`"):
        fitted(log(), options=wrong)


def test_settings_are_read_from_a_table_of_their_own():
    rows = {"seed": [0, 0, 1, 1], "config": ["p", "q", "p", "q"], "step": [1] * 4,
            "score": [1.0, 2.0, 3.0, 4.0], "cost": [1] * 4}  # fmt: skip
    curves = Curves.read(
        rows, run=["seed", "config"], settings={"config": ["q", "p"], "rate": [0.5, 0.1]}
    )
    assert [dict(x) for x in curves.settings] == [{"rate": 0.1}, {"rate": 0.5}] * 2
    assert [dict(x) for x in curves.select([3]).settings] == [{"rate": 0.5}]
    for table, words in (
        ({"config": ["q"], "rate": [1]}, "config p has none .2 such runs"),
        ({"config": ["q", "p", "q"], "rate": [1, 2, 3]}, "several for config q"),
        ({"rate": [1]}, "must share a column"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            Curves.read(rows, run=["seed", "config"], settings=table)


def test_a_full_run_has_its_price():
    curves = log(0)
    assert learn.fit(curves, full_run_cost=0.1, options=PLAIN).price == pytest.approx(30.0)
    for wrong in ({}, {"price": 1.0, "full_run_cost": 1.0}, {"full_run_cost": 0.0}):
        with pytest.raises(InvalidArgument, match=r"price|full_run_cost"):
            learn.fit(curves, options=PLAIN, **wrong)
    with pytest.raises(InvalidArgument, match="trees must be at least 1, but it is 0"):
        FitOptions(trees=0)


# -- runs of a search against the log ----------------------------------------------------------


@pytest.mark.parametrize("told", [True, False])
def test_costs_in_another_unit_are_scaled(told):
    curves = log(7, n=40) if told else replace(log(7, n=40), settings=())
    known, rest = curves.select(np.arange(30)), curves.select(np.arange(30, 40))
    model = fitted(known)
    dear = replace(rest, cost=4.0 * rest.cost)
    with pytest.warns(UserWarning, match=r"cost 4 times what the log says \(mean of 10"):
        found = model.updated(dear)
    assert found.ladder.cost[:30] == pytest.approx(4.0 * model.ladder.cost)
    assert found.fresh_index < model.fresh_index
    same = model.updated(replace(rest, cost=1.2 * rest.cost))  # no warning
    assert same.ladder.cost[:30] == pytest.approx(model.ladder.cost)


def test_costs_are_compared_from_the_first_step_on():
    curves = log(7, n=40)
    model = fitted(curves)
    race = Race(model, candidates=[{"rate": 0.5, "kind": "a"}, {"rate": 0.4, "kind": "a"}])
    learn_now = Refit(race)
    run = race.started(race.next().candidate)
    race.observe(run, 1, 0.3, 10.0)
    said = r"cost 10 times what the log says \(mean of 1 run: 10 instead of 1 for the same"
    with pytest.warns(UserWarning, match=said):
        learn_now()
    assert race.model.ladder.cost[:40] == pytest.approx(10.0 * model.ladder.cost)
    learn_now()  # neither a warning nor another fit


def test_how_much_costs_vary_in_the_log_decides_what_one_run_tells():
    usual = climb(log(7, n=40), np.array([1, 2, 3]))
    random = np.random.default_rng(0)
    varied = replace(usual, cost=usual.cost * np.exp(random.normal(size=(40, 1))))
    dear = replace(usual, cost=4.0 * usual.cost).select(np.arange(1))
    assert compared_costs(usual, dear).ratio == pytest.approx(4.0)
    assert compared_costs(varied, dear).ratio == 1.0
    # the rule in other words: log 4 must exceed log 2 and two standard deviations of the log
    paid = varied.cost.sum(axis=1)
    ratio = dear.cost.sum() / np.exp(np.log(varied.cost).mean(axis=0)).sum()
    assert np.log(ratio) < np.log(2.0) + 2.0 * np.log(paid).std()


@pytest.mark.filterwarnings("error")
def test_a_run_that_ends_before_the_first_decision_is_noticed():
    curves = log(0)
    model = fitted(replace(curves, step=1000 * curves.step))
    race = Race(model, available=1)
    race.next()
    run = race.started()
    race.observe(run, 3, 0.3, 1.0)
    with pytest.warns(UserWarning, match="ended at step 3, but the first decision on a run falls"):
        race.ended(run)


def test_steps_in_another_unit_are_noticed():
    race = Race(fitted(log(0)), candidates=[{"rate": 0.5, "kind": "a"}])
    run = race.started(race.next().candidate)
    with pytest.warns(UserWarning, match="begins with step 500, but the runs of the log end at st"):
        race.observe(run, 500, 0.3, 1.0)


def test_a_race_starts_the_best_candidate_and_learns_what_it_was():
    model = fitted(log(6, n=60), options=FitOptions())
    candidates = [{"rate": x, "kind": k} for x in (0.1, 0.9, 0.5) for k in ("a", "b")]
    race = Race(model, candidates=candidates)
    index = model.start_indices(candidates)
    move = race.next()
    assert move.candidate == int(np.argmax(index))
    assert move.index == pytest.approx(index.max())
    run = race.started(move.candidate)
    assert race.runs[run].settings == candidates[move.candidate]
    race.observe(run, 1, 0.1, 1.0)
    assert race.expected_gain > 0.0
    with pytest.raises(InvalidAnswer, match="was started before"):
        race.started(move.candidate)
    race.offer([{"rate": 1.0, "kind": "b"}])
    race.change_model(model.at_price(20.0))
    assert race.next().run in (None, run)
    with pytest.raises(InvalidArgument, match=r"the model of a run must be one that `learn\.fit"):
        Race("model")


# -- files and diagnosis ---------------------------------------------------------------------------


def test_a_diagnosis_says_what_each_kind_of_knowledge_adds():
    """The score is the rate, up to little noise; the noise of the curve tells nothing."""
    curves = log(n=80, steps=6)
    found = learn.diagnose(fitted(curves, options=FitOptions()), curves, splits=2)
    assert list(found.error) == ["nothing", "best so far", "curve", "settings", "both"]
    start = {name: values[0] for name, values in found.error.items()}
    assert start["nothing"] == start["best so far"] == start["curve"]
    assert start["settings"] == start["both"] < 0.5 * start["nothing"]
    late = {name: values[-1] for name, values in found.error.items()}
    assert late["best so far"] < 0.5 * late["nothing"]
    assert (found.coverage > 0.8).all()
    assert "in 90 %" in str(found)
    assert found.realized.mean() == pytest.approx(found.predicted.mean(), abs=2.0)
    assert (found.runs >= 1).all()


def test_errors_of_forecasts_are_those_of_the_definition():
    """The integral of the squared distance of distribution functions, on a fine grid."""
    random = np.random.default_rng(1)
    final = random.normal(size=7).round(1)
    row = random.dirichlet(np.ones(7), size=7)
    grid = np.linspace(-5, 5, 20001)
    below = (final[None] <= grid[:, None]).astype(float)
    for i, score in enumerate(shared_errors(final, row, final)):
        wanted = np.trapezoid(np.square(below @ row[i] - (grid >= final[i])), grid)
        assert score == pytest.approx(wanted, abs=1e-3)


def test_another_object_cannot_be_diagnosed():
    with pytest.raises(InvalidArgument, match=r"a diagnosis needs a model from `learn\.fit`"):
        learn.diagnose("model", log())


# -- learning a little more ----------------------------------------------------------------------


def runs_of(curves, first, last):
    return curves.select(np.arange(first, last))


def test_trees_that_serve_again_hold_the_new_runs(monkeypatch):
    curves = log(5, n=64)
    grown = []
    grow = resembling_runs.grow
    monkeypatch.setattr(resembling_runs, "grow", lambda *a: grown.append(len(a[0].x)) or grow(*a))
    before = fitted(runs_of(curves, 0, 50), options=replace(PLAIN, tail=0.3))
    count = len(grown)
    after = before.updated(runs_of(curves, 50, 55), before)
    assert len(grown) == count  # a tenth more runs: no tree is grown
    more = before.updated(runs_of(curves, 50, 64), after)
    assert len(grown) == count + 1  # a fifth more: one stage at a time
    before.updated(runs_of(curves, 50, 64), more)
    assert len(grown) == count + 2
    for r, stage in enumerate(after._runs.stages):
        old, new = before._runs.stages[r].trees, stage.trees
        assert np.array_equal(new.bags[:, :50], old.bags[:, :50])
        assert 0.5 < new.bags[:, 50:].mean() < 0.75
        known = features(after._runs.ladder.select(stage.runs), r, after._runs.levels[stage.runs])
        leaf = [
            [new.nodes.begin[t] + walked(new, x, t) for x in known] for t in range(len(new.bags))
        ]
        assert np.array_equal(new.leaf, leaf)


def test_no_run_resembles_itself_in_trees_that_serve_again():
    curves = log(5, n=60)
    before = fitted(runs_of(curves, 0, 40), options=replace(PLAIN, trees=32))
    after = before.updated(runs_of(curves, 40, 44), before)
    after = before.updated(runs_of(curves, 40, 60), after)
    for r, stage in enumerate(after._runs.stages):
        row = after._runs.logged_law(r, stage.runs).row
        assert not row.diagonal().any()
        assert row.sum(axis=1) == pytest.approx(np.ones(len(row)))
        assert (row[:, 40:].sum(axis=1) > 0).mean() > 0.9  # new runs count


def test_learning_step_by_step_is_about_learning_at_once():
    curves = log(7, n=300)
    model = last = fitted(runs_of(curves, 0, 150), options=FitOptions())
    for end in range(155, 301, 5):
        last = model.updated(runs_of(curves, 150, end), last)
    whole = fitted(curves, options=FitOptions())
    grid = [{"rate": x, "kind": k} for x in np.linspace(0.3, 1.0, 40) for k in "ab"]
    steps, once, begun = (m.start_indices(grid) for m in (last, whole, model))
    assert np.abs(steps - once).mean() < 0.7 * np.abs(begun - once).mean()
