"""Back-tests: the bench, the peers, what is learned on the log, and what comes out."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise

import numpy as np
import pytest

from weitzman import learn
from weitzman.backtest import methods as halving
from weitzman.backtest.backtest_result import Backtest
from weitzman.backtest.bench import Bench, Table
from weitzman.backtest.driver import Design, backtest, carry_out, jobs, split
from weitzman.backtest.methods import Log, MethodPlan, Tuned, trace
from weitzman.backtest.peers import (
    FullRuns,
    IndexPolicy,
    all_methods,
    firsts,
    methods_without_log,
    race,
    sizes,
)
from weitzman.errors import InvalidArgument, UnknownName
from weitzman.learn.curves import Curves
from weitzman.learn.ladder import top_excess
from weitzman.learn.run_model import RunModel

NAN = math.nan


def curves(scores, costs=None, *, task=None, minimize=False) -> Curves:
    """Curves from lists of scores, a list for each run; costs 1 a step unless given."""
    rows = [(r, k, x) for r, line in enumerate(scores) for k, x in enumerate(line)]
    table = {
        "run": [f"r{r}" for r, _, _ in rows],
        "step": [k + 1 for _, k, _ in rows],
        "score": [x for _, _, x in rows],
        "cost": [1.0 if costs is None else costs[r][k] for r, k, _ in rows],
        "task": ["" if task is None else task[r] for r, _, _ in rows],
    }
    return Curves.read(table, task="task", ended=True, minimize=minimize)


def random_curves(rng, runs=30, length=12, tasks=1, minimize=False) -> Curves:
    """Noisy rising curves of unequal length and cost, some of which diverge."""
    scores, costs = [], []
    for _ in range(runs * tasks):
        n = int(rng.integers(max(length // 2, 1), length + 1))
        level = rng.random()
        line = level * (1 - np.exp(-np.arange(1, n + 1) / 3)) + 0.03 * rng.standard_normal(n)
        if rng.random() < 0.1:
            line[n // 2 :] = NAN
        scores.append((-line if minimize else line).tolist())
        costs.append((0.5 + rng.random(n)).tolist())
    names = [f"t{i % tasks}" for i in range(runs * tasks)]
    return curves(scores, costs, task=names, minimize=minimize)


def bench_of(scores, costs=None, order=None) -> Bench:
    table = Table.of(curves(scores, costs))
    return Bench(table, np.arange(len(scores)) if order is None else np.array(order))


def play(rule, bench: Bench) -> Bench:
    for _ in rule(bench):
        pass
    return bench


# -- the bench ---------------------------------------------------------------------------------


def test_rows_are_paid_once_and_in_full():
    bench = bench_of([[0.1, 0.5, 0.3], [0.2, 0.2]], [[1, 2, 4], [8, 16]])
    assert bench.advance(0, 2) == 0.5
    assert (bench.best, bench.spent) == (0.5, 3)
    assert bench.advance(0, 2) == 0.5
    assert bench.advance(0, 1) == 0.5  # nothing is forgotten
    assert bench.spent == 3
    assert bench.advance_all(np.array([0, 1]), 9).tolist() == [0.3, 0.2]
    assert (bench.best, bench.spent) == (0.5, 31)
    assert bench.is_over(0)
    assert bench.is_over(1)
    assert bench.advance_all(np.array([1, 0]), 1).tolist() == [0.2, 0.3]
    assert bench.spent == 31


def test_spend_is_the_sum_of_the_costs_of_the_rows_seen():
    rng = np.random.default_rng(1)
    c = random_curves(rng)
    table, order = Table.of(c), rng.permutation(len(c))
    bench = Bench(table, order)
    seen = dict.fromkeys(range(len(c)), 0)
    for _ in range(200):
        some, rows = rng.choice(len(c), 3, replace=False), int(rng.integers(1, 14))
        if rng.random() < 0.5:
            bench.advance_all(some, rows)
        else:
            bench.advance(int(some[0]), rows)
            some = some[:1]
        for i in some:
            length = c.start[order[i] + 1] - c.start[order[i]]
            seen[int(i)] = max(seen[int(i)], min(rows, length))
    at = [(c.start[order[i]], k) for i, k in seen.items() if k]
    paid = sum(c.cost[a : a + k].sum() for a, k in at)
    best = max(np.nanmax(np.append(c.score[a : a + k], -np.inf)) for a, k in at)
    assert bench.spent == pytest.approx(paid, rel=1e-12)
    assert bench.best == max(best, np.nanmin(c.score))


def test_following_a_run_shows_the_new_rows_until_a_step():
    table = {
        "run": ["a"] * 4, "step": [2, 3, 7, 9], "score": [3.0, 4.0, 1.0, NAN], "cost": [1, 2, 3, 4]
    }  # fmt: skip
    bench = Bench(Table.of(Curves.read(table, minimize=True)), np.array([0]))
    assert str(bench.follow(0, 3)) == "[(2, 3.0, 1.0), (3, 4.0, 2.0)]"
    assert bench.follow(0, 5) == [(7, 1.0, 3.0)]  # there is no step 5: the next one after it
    assert bench.best == -1.0
    assert str(bench.follow(0, 100)) == "[(9, nan, 4.0)]"
    assert bench.is_over(0)
    assert bench.follow(0, 100) == []
    assert bench.spent == 10


def test_divergence_is_worth_the_worst_score_of_the_table():
    bench = bench_of([[NAN, NAN], [0.3, 0.9]])
    assert bench.advance(0, 2) == -math.inf
    assert (bench.best, bench.spent) == (0.3, 2)


def test_hindsight_by_hand():
    scores = [[0.1, 0.9], [0.5, 0.6], [0.2, 0.95], [NAN, NAN]]
    table = Table.of(curves(scores, [[1, 9], [1, 1], [3, 30], [3, 30]]))
    everything = np.arange(3)
    assert table.hindsight(everything, 1.0) == (0.5, 1.0)
    assert table.hindsight(everything, 30.0) == (0.9, 10.0)
    assert table.hindsight(everything, 1000.0) == (0.95, 33.0)
    assert table.hindsight(np.array([2]), 1.0) == (0.2, 3.0)  # it must start something
    assert table.hindsight(np.array([3]), 1.0) == (0.1, 3.0)  # the floor


# -- the peers ---------------------------------------------------------------------------------


def plain_halving(scores, sizes_, rows):
    """Rows that each run is trained for: at each rung the best so many go on, the rest stop."""
    seen = [0] * len(scores)
    alive = list(range(len(scores)))
    for keep, r in zip(sizes_, rows, strict=True):
        alive = sorted(alive, key=lambda i: (-scores[i][seen[i] - 1], i))[:keep]
        for i in alive:
            seen[i] = r
    return seen


@pytest.mark.parametrize(
    ("n", "rate", "least", "most"), [(9, 3, 1, 9), (10, 3, 1, 9), (7, 2, 2, 9)]
)
def test_successive_halving_keeps_the_best_share_at_each_rung(n, rate, least, most):
    rng = np.random.default_rng(n)
    scores = rng.random((n, most)).tolist()
    bench = bench_of(scores)
    play(partial(halving.successive_halving, runs=n, rate=rate, least=least, most=most), bench)
    rungs, keep, k = [least], [n], 1
    while least * rate**k < most and math.ceil(n / rate**k) > 1:
        rungs.append(least * rate**k)
        keep.append(math.ceil(n / rate**k))
        k += 1
    rungs.append(most)
    keep.append(math.ceil(n / rate**k))
    assert bench.seen.tolist() == plain_halving(scores, keep, rungs)
    assert bench.spent == bench.seen.sum()


def test_successive_halving_starts_as_many_as_it_is_told():
    bench = bench_of(np.random.default_rng(0).random((9, 9)).tolist())
    play(partial(halving.successive_halving, runs=4, rate=2, least=1, most=9), bench)
    assert (bench.seen > 0).tolist() == [True] * 4 + [False] * 5


def test_hyperband_has_the_brackets_of_the_paper():
    """R = 81, rate 3: the table of Li et al. (2018), section 2.3."""
    paper = {4: (81, 1), 3: (34, 3), 2: (15, 9), 1: (8, 27), 0: (5, 81)}
    starts = [size for size, _ in paper.values()]
    scores = np.random.default_rng(2).random((sum(starts), 81)).tolist()
    bench = bench_of(scores)
    play(partial(halving.hyperband, runs=999, rate=3, least=1, most=81), bench)
    begin = 0
    for s, (size, least) in paper.items():
        seen = bench.seen[begin : begin + size]
        for i in range(s + 1):
            wanted = size if i == 0 else size // 3**i
            assert (seen >= least * 3**i).sum() == wanted
        begin += size


def test_hyperband_stops_when_its_runs_are_used_up():
    scores = np.random.default_rng(2).random((200, 27)).tolist()
    bench = bench_of(scores)
    play(partial(halving.hyperband, runs=70, rate=3, least=1, most=27), bench)
    assert (bench.seen > 0).sum() == 70


def plain_asha(scores, rate, levels, starts):
    """Algorithm 2 of Li et al. (2020), looked up anew each time; gives rows seen."""
    at = {}  # the rungs that each run has reached, with its score there
    promoted = set()
    while True:
        for k in reversed(range(len(levels) - 1)):
            rung = sorted((-s[k], i) for i, s in at.items() if len(s) > k)
            top = [i for _, i in rung[: len(rung) // rate]]
            ready = [i for i in top if (i, k) not in promoted]
            if ready:
                promoted.add((ready[0], k))
                at[ready[0]].append(scores[ready[0]][levels[k + 1] - 1])
                break
        else:
            if len(at) == starts:
                return [levels[len(at[i]) - 1] if i in at else 0 for i in range(len(scores))]
            at[len(at)] = [scores[len(at)][levels[0] - 1]]


@pytest.mark.parametrize("rate", [2, 3, 4])
@pytest.mark.parametrize("starts", [1, 5, 24, 40])
def test_asha_follows_its_algorithm(rate, starts):
    scores = np.random.default_rng(starts).random((40, 16)).round(1).tolist()
    levels = {2: [2, 4, 8, 16], 3: [2, 6, 16], 4: [2, 8, 16]}[rate]
    bench = bench_of(scores)
    for _ in islice(halving.asha(bench, rate=rate, least=2, most=16), starts):
        pass
    assert bench.seen.tolist() == plain_asha(scores, rate, levels, starts)


def test_asha_promotes_a_share_at_each_rung():
    bench = bench_of(np.random.default_rng(3).random((81, 27)).tolist())
    play(partial(halving.asha, rate=3, least=1, most=27), bench)
    reached = [(bench.seen >= r).sum() for r in (1, 3, 9, 27)]
    assert reached[0] == 81
    for below, above in pairwise(reached):
        assert above >= below // 3  # more only because early promotions are not taken back
        assert above <= below // 3 + math.ceil(math.sqrt(81))


def test_top_k_trains_the_best_after_the_first_paid_step():
    costs = [[0, 1, 1]] * 4  # what is free is not an epoch
    scores = [[0.9, 0.1, 0.1], [0.1, 0.8, 0.9], [0.1, 0.7, 0.2], [0.1, 0.9, 0.3]]
    bench = bench_of(scores, costs)
    play(partial(halving.top_k, runs=3, keep=2), bench)
    assert bench.seen.tolist() == [2, 3, 3, 0]
    assert (bench.best, bench.spent) == (0.9, 5)


@pytest.mark.parametrize(
    "rule",
    [
        partial(halving.top_k, runs=4, keep=4),
        partial(halving.successive_halving, runs=4, rate=2, least=1, most=2),
        partial(halving.hyperband, runs=4, rate=2, least=1, most=2),
        partial(halving.asha, rate=2, least=1, most=2),
    ],
)
def test_diverged_runs_are_not_promoted(rule):
    bench = bench_of([[NAN, 0.5]] * 4)
    play(rule, bench)
    # Hyperband's last bracket trains what it starts in full, without looking before
    assert bench.seen.max() <= (2 if rule.func is halving.hyperband else 1)


def test_settings_to_choose_from():
    assert sizes(20) == [1, 2, 3, 4, 6, 8, 12, 16, 20]
    assert sizes(1) == [1]
    assert firsts(51) == [1, 2, 4, 8, 16]
    assert firsts(1) == [1]


# -- learning on the log -----------------------------------------------------------------------


def log_of(c: Curves, orders) -> Log:
    return Log(c, Table.of(c), np.array(orders))


def test_full_runs_stop_by_the_reservation_value():
    """E[(W - v)+] = 2 / price gives v: W is 1 or 0, or as likely 1 and an exponential excess."""
    log = log_of(curves([[1.0, 0.5], [0.0, -1.0]]), [[0, 1]])
    told = [float(plan.told.split()[1]) for plan in FullRuns().learn(log, [4.0, 40.0])]
    beyond = 1.0 - np.log(1 - (np.arange(8) + 0.5) / 8)  # the best runs differ by 1
    for value, price in zip(told, [4.0, 40.0], strict=True):
        gain = [max(1 - value, 0.0), max(-value, 0.0), np.maximum(beyond - value, 0.0).mean()]
        assert np.mean(gain) == pytest.approx(2 / price, rel=1e-3)
    rule = FullRuns().learn(log, [4.0])[0].rule
    bench = play(rule, bench_of([[0.2, 0.4], [0.9, 0.1], [0.9, 0.9]]))
    assert told[0] < 0.9
    assert bench.seen.tolist() == [2, 2, 0]


def test_rehearsals_search_each_logged_run_once_and_then_imagined_records():
    """Of j + 1 exchangeable runs the last is the best with probability 1 / (j + 1)."""
    rng = np.random.default_rng(0)
    scores = np.sort(rng.exponential(size=(60, 3)), axis=1)
    log = Log.of(curves(scores.tolist()), 300, rng)
    assert log.orders.shape == (32, 300)
    assert all(sorted(order[:60]) == list(range(60)) for order in log.orders.tolist())
    whole = log.rehearsed
    records = (log.orders[:, 60:] >= 60).sum(axis=1)
    assert records.mean() == pytest.approx(np.sum(1 / np.arange(61, 301)), abs=0.6)
    top = np.array([whole.top[order, -1].max() for order in log.orders])
    excess = top_excess(scores[:, -1], np.ones(60))[1]
    lead = excess * np.sum(1 / np.arange(61, 301))
    assert (top - scores.max()).mean() == pytest.approx(lead, abs=3 * excess / math.sqrt(32) * 1.3)
    assert (np.diff(whole.top, axis=1) >= 0).all()
    few = Log.of(curves(scores.tolist()), 20, rng)
    assert few.rehearsed.score.shape == log.table.score.shape
    assert all(len(set(order)) == 20 for order in few.orders.tolist())


def test_tuned_random_search_starts_as_many_runs_as_pay():
    """Exponential scores: j runs earn log(j) of the mean on average, so 1 / price more runs pay."""
    rng = np.random.default_rng(1)
    log = Log.of(curves(rng.exponential(size=(100, 1)).tolist()), 600, rng)

    def one_by_one(bench):
        for run in range(len(bench)):
            bench.advance(run, 1)
            yield

    tuned = Tuned("random search", lambda log: {"": one_by_one})
    (most,), (few,) = ([plan.stops for plan in tuned.learn(log, [p])] for p in (3000.0, 50.0))
    assert most > 400  # drawn with replacement from 100 runs, the best run is seen early
    assert 20 <= few <= 110


def test_options_are_those_of_highest_mean_payoff_in_rehearsals():
    c = random_curves(np.random.default_rng(4), runs=20)
    orders = np.random.default_rng(5).integers(20, size=(6, 15))
    log = log_of(c, orders)
    settings = {
        f"{n} {rate}": partial(halving.successive_halving, runs=n, rate=rate, least=1, most=12)
        for n in (2, 5, 10)
        for rate in (2, 3)
    }
    prices = [3.0, 30.0, 300.0]
    plans = Tuned("x", lambda log: settings, rehearsals=6).learn(log, prices)
    for price, plan in zip(prices, plans, strict=True):
        mean = {}
        for told, rule in settings.items():
            played = [play(rule, Bench(log.table, order)) for order in orders]
            mean[told] = np.mean([price * b.best - b.spent for b in played])
        assert plan.told == max(mean, key=mean.get)
        assert plan.rule is settings[plan.told]


def test_the_number_of_runs_is_chosen_along_the_way():
    c = random_curves(np.random.default_rng(6), runs=20)
    orders = np.random.default_rng(7).integers(20, size=(4, 12))
    rule = partial(halving.asha, rate=3, least=1, most=12)
    method = Tuned("x", lambda log: {"": rule}, rehearsals=4, longest=9)
    log = log_of(c, orders)
    for price, plan in zip((3.0, 100.0), method.learn(log, [3.0, 100.0]), strict=True):
        mean = []
        for stops in range(1, 10):
            played = []
            for order in orders:
                bench = Bench(log.table, order)
                for _ in islice(rule(bench), stops):
                    pass
                played.append(price * bench.best - bench.spent)
            mean.append(np.mean(played))
        assert plan.stops == int(np.argmax(mean)) + 1


# -- whole back-tests -----------------------------------------------------------------------------


class Myopic(RunModel):
    """A model that knows no curves: a new run up to step 2, then the others while they are good."""

    def __init__(self, curves: Curves, price: float) -> None:
        self.price, self.minimize = price, curves.minimize
        self._most = int(curves.step.max())
        self.rungs = np.array([2])

    def worth(self, score: float) -> float:
        return (-self.price if self.minimize else self.price) * score

    @property
    def fresh_index(self) -> float:
        return self.price * (-0.2 if self.minimize else 0.6)

    def next_rung(self, step: int | None) -> int | None:
        if step is None:
            return 2
        return step + 3 if step < self._most else None

    def next_index(self, steps, scores, costs=None, settings=None) -> float:
        index = self.worth(scores[-1]) + 0.1 * self.price - 1
        return -math.inf if math.isnan(index) else index

    def lines(self, n=1):
        raise NotImplementedError

    def gain(self, best, runs, fresh):
        raise NotImplementedError


def test_learning_on_the_way_changes_the_model():
    told = []

    class Learning(Myopic):
        def updated(self, curves):
            told.append(len(curves))
            return self

    bench = Bench(Table.of(random_curves(np.random.default_rng(17))), np.arange(30))
    model = Learning(random_curves(np.random.default_rng(18)), 1000.0)
    play(partial(race, model=model, refit=True), bench)
    assert told == sorted(set(told))
    assert 0 < told[-1] <= (bench.seen > 0).sum()
    again = Bench(Table.of(random_curves(np.random.default_rng(17))), np.arange(30))
    play(partial(race, model=model, refit=False), again)
    assert (
        again.seen.tolist() == bench.seen.tolist()
    )  # the model learned nothing, so the same moves


def simple_methods():
    return [
        IndexPolicy(Myopic),
        FullRuns(),
        Tuned("halving", halving_settings, rehearsals=4),
        Tuned("asha", asha_settings, rehearsals=4),
    ]


def halving_settings(log: Log):
    rule = halving.successive_halving
    return {str(n): partial(rule, runs=n, rate=3, least=1, most=log.most) for n in (3, 9)}


def asha_settings(log: Log):
    return {"3": partial(halving.asha, rate=3, least=1, most=log.most)}


@pytest.fixture(scope="module", params=[False, True], ids=["maximize", "minimize"])
def found(request) -> Backtest:
    c = random_curves(np.random.default_rng(8), tasks=3, minimize=request.param)
    return backtest(
        c, full_run_cost=[0.01, 0.1], methods=simple_methods(), repeats=2, orders=4, seed=3
    )


def test_hindsight_is_never_beaten(found):
    assert found.methods[-1] == "hindsight"
    assert found.regret.shape == (5, 2, 6, 4)
    assert found.regret.min() >= -1e-12
    assert found.regret[:-1].max() > 0
    assert (found.regret[-1] == 0).all()


def test_payoff_is_score_less_spend_at_the_price(found):
    sign = -1 if found.minimize else 1
    price = found.price[:, found.task, None]
    assert np.allclose(found.payoff, sign * found.score - found.spend / price, rtol=0, atol=1e-15)
    assert found.price[0] == pytest.approx(10 * found.price[1])


def test_all_methods_face_the_same_runs_in_the_same_orders():
    seen = []

    class Witness:
        name = "witness"

        def learn(self, log, prices):
            self.log = log.orders.tobytes(), log.curves.runs
            return [MethodPlan(self.look)] * len(prices)

        def look(self, bench):
            seen.append((self.log, bench._order.tobytes()))
            bench.advance(0, 1)
            yield

    c = random_curves(np.random.default_rng(9), tasks=2)
    backtest(c, price=10, methods=[Witness(), FullRuns(), Witness()], repeats=2, orders=3)
    backtest(c, price=10, methods=[Witness()], repeats=2, orders=3)
    jobs_ = [seen[i : i + 6] for i in range(0, 24, 6)]
    assert all(job[:3] == job[3:] for job in jobs_)
    assert [x for job in jobs_ for x in job[:3]] == seen[24:]
    assert len(set(seen)) == 12


def test_log_and_search_share_no_run():
    c = random_curves(np.random.default_rng(10))
    for job in jobs(c, None, [(1.0,)], 3):
        log, searched = split(job, Design(log_runs=11, logs=3, orders=1, seed=0))
        assert len(log) == 11
        assert sorted([*log, *searched]) == list(range(len(c)))


def test_instances_are_searched_one_after_the_other():
    c = random_curves(np.random.default_rng(11))
    labels = [f"seed{i % 3}" for i in range(30)]
    design = Design(log_runs=None, logs=3, orders=1, seed=0)
    searched = [split(job, design)[1].tolist() for job in jobs(c, labels, [(1.0,)], 3)]
    assert sorted(searched) == [list(range(k, 30, 3)) for k in range(3)]
    small = Design(log_runs=7, logs=3, orders=1, seed=0)
    log, mine = split(next(jobs(c, labels, [(1.0,)], 1)), small)
    assert len(log) == 7
    assert not {labels[i] for i in log} & {labels[i] for i in mine}


def test_a_hand_worked_search():
    """Two runs are the log, the other two are searched; costs and scores small enough to add up."""
    scores = [[0.0, 0.4], [0.0, 0.4], [0.0, 0.4], [0.0, 0.4]]
    found = backtest(curves(scores), price=10.0, methods=[FullRuns()], repeats=1, orders=2)
    # any run shows 0.4 for 2, worth 4 - 2; stopping after a row is worth 0 - 1
    assert found.score[..., 0].ravel().tolist() == [0.4, 0.4]
    assert found.spend[..., 0].ravel().tolist() == [2.0, 2.0]
    assert found.payoff[:, 0, 0, 0] == pytest.approx([0.2, 0.2])


def test_seeds_reproduce_and_differ():
    c = random_curves(np.random.default_rng(12), tasks=2)
    run = partial(backtest, c, price=[5.0, 50.0], methods=simple_methods(), repeats=2, orders=2)
    first, again, other = run(seed=1), run(seed=1), run(seed=2)
    assert np.array_equal(first.best, again.best)
    assert np.array_equal(first.spend, again.spend)
    assert first.told == again.told
    assert not np.array_equal(first.spend, other.spend)


def test_processes_change_nothing():
    c = random_curves(np.random.default_rng(13), tasks=2)
    # what travels to another process must be importable there
    methods = [FullRuns()]
    told = []
    run = partial(backtest, c, price=[5.0, 50.0], methods=methods, repeats=2, orders=2)
    alone, shared = run(), run(workers=2, progress=lambda done, total: told.append((done, total)))
    assert np.array_equal(alone.best, shared.best)
    assert np.array_equal(alone.spend, shared.spend)
    assert alone.told == shared.told
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_rule_for_several_prices_is_played_once():
    c = random_curves(np.random.default_rng(14))
    job = next(jobs(c, None, [(5.0, 50.0, 500.0)], 1))
    design = Design(log_runs=None, logs=1, orders=2, seed=0)
    together = carry_out(job, design, [Tuned("asha", asha_settings, rehearsals=4)])
    for p, price in enumerate(job.prices):
        alone = next(jobs(c, None, [(price,)], 1))
        done = carry_out(alone, design, [Tuned("asha", asha_settings, rehearsals=4)])
        assert np.array_equal(done.score[:, 0], together.score[:, p])
        assert np.array_equal(done.spend[:, 0], together.spend[:, p])


# -- what comes out ----------------------------------------------------------------------------


def tiny(best, spend) -> Backtest:
    """A result with two methods and hindsight, one price, one task."""
    best, spend = np.array(best, float), np.array(spend, float)
    cells = best.shape[2]
    return Backtest(
        methods=("a", "b", "hindsight"), quoted=(10.0,), by_full_run=False, tasks=("t",),
        price=np.array([[10.0]]), task=np.zeros(cells, np.int64), repeat=np.arange(cells),
        best=best, spend=spend, told=((("",) * cells,),) * 3, minimize=False,
    )  # fmt: skip


def test_means_and_paired_differences_by_hand():
    found = tiny(
        [[[[1.0, 2.0], [3.0, 4.0]]], [[[0.5, 1.5], [2.5, 3.5]]], [[[5.0] * 2] * 2]],
        [[[[1.0, 1.0], [2.0, 2.0]]], [[[1.0, 1.0], [2.0, 2.0]]], [[[0.0] * 2] * 2]],
    )
    assert found.means("payoff")[:, 0, 0] == pytest.approx([2.35, 1.85, 5.0])
    assert found.means("regret")[:, 0, 0] == pytest.approx([2.65, 3.15, 0.0])
    assert found.means("payoff")[0, 0, 1:] == pytest.approx([1.4, 3.3])  # two cells only
    # the cells differ a lot, the methods by 0.5 in each of them: no doubt about the difference
    assert found.means("behind")[1, 0] == pytest.approx([0.5, 0.5, 0.5])


def test_intervals_agree_with_a_slow_bootstrap():
    rng = np.random.default_rng(15)
    best = rng.random((3, 1, 25, 4))
    found = tiny(best, np.zeros_like(best))
    mean, low, high = found.means("score")[0, 0]
    cells = best[0, 0].mean(axis=1)
    draws = [rng.choice(cells, 25).mean() for _ in range(4000)]
    assert mean == pytest.approx(cells.mean())
    assert [low, high] == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.01)


def test_logs_of_one_task_are_not_taken_for_further_tasks():
    rng = np.random.default_rng(17)
    best = rng.random((3, 1, 6, 2))
    alone = tiny(best, np.zeros_like(best))
    tasks = replace(alone, tasks=tuple("uvwxyz"), task=np.arange(6), price=np.full((1, 6), 10.0))
    again = replace(  # each log four times over: nothing new is known
        tasks, task=np.repeat(np.arange(6), 4), repeat=np.tile(np.arange(4), 6),
        best=np.repeat(best, 4, axis=2), spend=np.zeros((3, 1, 24, 2)),
    )  # fmt: skip
    assert np.array_equal(again.means("score"), tasks.means("score"))


def test_a_single_cell_is_resampled_by_orders():
    rng = np.random.default_rng(16)
    best = rng.random((3, 1, 1, 30))
    mean, low, high = tiny(best, np.zeros_like(best)).means("score")[0, 0]
    error = best[0, 0, 0].std() / math.sqrt(30)
    assert low == pytest.approx(mean - 1.96 * error, abs=0.02)
    assert high == pytest.approx(mean + 1.96 * error, abs=0.02)


def test_tables_say_the_same(found):
    rows = found.summary()
    assert [row["method"] for row in rows[:5]] == list(found.methods)
    assert rows[0]["regret"] == pytest.approx(found.regret[0, 0].mean())
    read = json.loads(found.to_json())
    assert read["summary"][0]["regret"] == rows[0]["regret"]
    assert len(read["summary"]) == 2 * 5 * (1 + 3)
    text = found.table()
    assert text.splitlines()[0] == "a full run costs 0.01 points"
    assert text.count("hindsight") == 2
    frame = found.to_pandas()
    assert len(frame) == found.best.size
    each = frame[(frame.method == "asha") & (frame.full_run_cost == 0.1)]
    assert each.regret.mean() == pytest.approx(found.means("regret")[3, 1, 0])
    task = frame[(frame.task == "t1") & (frame.method == "halving") & (frame.full_run_cost == 0.1)]
    assert task.payoff.mean() == pytest.approx(found.means("payoff", "t1")[2, 1, 0])


def test_it_can_be_drawn(found):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    from weitzman import plot

    lines = plot.backtest(found, "regret").lines
    assert [line.get_label() for line in lines] == list(found.methods[:-1])
    assert lines[2].get_xdata().tolist() == [0.01, 0.1]
    assert lines[2].get_ydata().tolist() == found.means("regret")[2, :, 0].tolist()
    ax = plot.backtest(found, "payoff", task="t0")
    assert len(ax.lines) == 5
    assert plot.backtest(found, ax=ax) is ax
    pyplot.close("all")


def test_trace_is_cumulative():
    bench = bench_of([[0.1, 0.2]] * 3)
    assert trace(partial(halving.asha, rate=2, least=2, most=2), bench, 2).tolist() == [
        [0.2, 2.0],
        [0.2, 4.0],
    ]


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either `price` or `full_run_cost`"),
        ({"price": 1, "full_run_cost": 1}, "either `price` or `full_run_cost`"),
        ({"price": [1, -2]}, r"`price` must be above 0 and finite, but it is \[1.0, -2.0\]"),
        ({"full_run_cost": 0}, "`full_run_cost` must be above 0"),
        ({"price": 1, "orders": 0}, "`orders` must be a whole number from 1 on, but it is 0"),
        ({"price": 1, "log_runs": 30}, "has 30 runs, so its log can have 0 to 29 of them"),
        ({"price": 1, "instance": ["a"]}, "a label for each of the 30 runs, but it has 1"),
        ({"price": 1, "instance": ["a"] * 30}, "has only one, 'a'"),
        ({"price": 1, "methods": []}, "at least one method"),
    ],
)
def test_what_makes_no_sense_is_rejected(options, message):
    c = random_curves(np.random.default_rng(0))
    with pytest.raises(InvalidArgument, match=message):
        backtest(c, **{"methods": [FullRuns()], **options})


def test_a_task_of_one_run_cannot_be_split():
    with pytest.raises(InvalidArgument, match=r"a task needs two runs.*task 'b' has only 'r2'"):
        backtest(
            curves([[1.0]] * 3, task=["a", "a", "b"]), price=1, methods=[FullRuns()], repeats=1
        )


def test_free_runs_have_no_price_by_full_runs():
    with pytest.raises(InvalidArgument, match="cost nothing: state `price`"):
        backtest(curves([[1.0], [2.0]], [[0], [0]]), full_run_cost=0.1, methods=[FullRuns()])


def test_unknown_measures_and_tasks(found):
    with pytest.raises(UnknownName, match="no measure 'profit'"):
        found.means("profit")
    with pytest.raises(UnknownName, match="no task 'x'"):
        found.means("regret", "x")


def test_without_a_log_methods_have_their_documented_options():
    """The index policy learns on the way; peers that would choose their options are refused."""
    letters = learn.sample().of_task("letter")
    methods = [m for m in methods_without_log() if "Optuna" not in m.name]
    found = backtest(
        letters, full_run_cost=[0.0001, 0.3], methods=methods, log_runs=0, repeats=1, orders=2
    )
    assert found.methods[0] == "index policy"
    assert "Hyperband, 30 runs" in found.methods
    assert (found.regret[:-1] >= -1e-12).all()
    policy = found.means("spend")[0, :, 0]
    assert policy[0] > policy[1]  # dearer runs: less is spent
    fixed = found.means("spend")[found.methods.index("successive halving, 10 runs"), :, 0]
    assert fixed[0] == fixed[1]
    assert found.told[1][0] == ("as documented",)
    for method in (FullRuns(), all_methods()[2]):
        with pytest.raises(InvalidArgument, match=r"must have runs|has no runs"):
            backtest(letters, price=10.0, methods=[method], log_runs=0, repeats=1, orders=1)
