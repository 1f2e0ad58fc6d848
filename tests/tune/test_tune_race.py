"""A race makes the moves that a Policy makes on the same lines."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tuning_worlds import Chained, four_grades

import weitzman
from weitzman.errors import InvalidAnswer, InvalidArgument
from weitzman.tune.race import Race


@st.composite
def chains(draw: st.DrawFn) -> Chained:
    """Small lines with coarse numbers, so that indices tie now and then."""
    k = draw(st.integers(1, 3))
    rungs = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True).map(sorted))
    scores = draw(st.permutations(range(5)).map(lambda order: [float(x) for x in order[:k]]))

    def law() -> list[float]:
        weights = draw(st.lists(st.sampled_from([1, 1, 2]), min_size=k, max_size=k))
        return [w / sum(weights) for w in weights]

    return Chained(
        law(),
        [law() for _ in range(k)],
        scores,
        [draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])) for _ in rungs],
        rungs,
        price=draw(st.sampled_from([0.5, 1.0, 2.0])),
        minimize=draw(st.booleans()),
    )


def race_moves(race: Race, model: Chained, curves: np.ndarray) -> list[tuple[int, int]]:
    """(run, until) of every move until it stops."""
    rows = [list(model.shown(states)) for states in curves]
    moves = []
    while (move := race.next()) is not None:
        run = race.started() if move.run is None else move.run
        assert run < len(curves)
        moves.append((run, move.until))
        for step, score, cost in rows[run]:
            if (race.runs[run].steps or [0])[-1] < step <= move.until:
                race.observe(run, step, score, cost)
    return moves


def policy_moves(model: Chained, curves: np.ndarray, outside: float) -> tuple[list, float, float]:
    """The same by a Search on as many lines side by side."""
    forest = weitzman.side_by_side([model.line] * len(curves)).changed(outside=outside)
    search = weitzman.Search(weitzman.solve(forest))
    moves, length = [], len(model.rungs)
    while (box := search.ask()) is not None:
        run, rung = divmod(box.number, length)
        moves.append((run, model.rungs[rung]))
        search.tell(box, f"state {curves[run, rung]}")
    return moves, search.best, search.spent


@given(chains(), st.integers(1, 4), st.integers(0, 2**32 - 1), st.sampled_from([-20.0, 0.0, 1.5]))
def test_moves_are_those_of_the_policy(model: Chained, runs: int, seed: int, outside: float):
    curves = model.curves(runs, np.random.default_rng(seed))
    race = Race(model, available=runs, outside=outside)
    moves = race_moves(race, model, curves)
    wanted, best, spent = policy_moves(model, curves, outside)
    assert moves == wanted
    assert race.best == pytest.approx(best)
    assert race.spent == pytest.approx(spent)
    assert race.done
    assert race.in_flight == []


@given(chains(), st.integers(1, 3), st.integers(0, 2**32 - 1), st.data())
def test_the_gain_is_what_a_search_may_still_expect(model, runs, seed, data):
    """Averaged over what a move may show, gain and payoff together stay what they were."""
    curves = model.curves(runs, np.random.default_rng(seed))
    race = Race(model, available=runs, outside=-20.0)
    for _ in range(data.draw(st.integers(0, 3))):
        if (move := race.next()) is None:
            break
        run = race.started() if move.run is None else move.run
        at = model.rungs.index(move.until)
        race.observe(run, move.until, model.scores[curves[run, at]], model.costs[at])
    before = race.payoff + race.expected_gain
    move = race.next()
    if move is None:
        assert race.expected_gain == pytest.approx(0, abs=1e-9)
        return
    at = model.rungs.index(move.until)
    law = model.first if at == 0 else model.then[model.scores.index(race.runs[move.run].scores[-1])]
    after = 0.0
    for state, chance in enumerate(law):
        copy = again(race, model)
        run = copy.started() if move.run is None else move.run
        copy.observe(run, move.until, model.scores[state], model.costs[at])
        after += chance * (copy.payoff + copy.expected_gain)
    assert after == pytest.approx(before, abs=1e-8)


def again(race: Race, model: Chained) -> Race:
    """The same race, told anew, its next move in flight."""
    copy = Race(model, available=int(race._left) + len(race.runs) + race._owed, outside=-20.0)
    for run in race.runs:
        number = copy.started()
        for row in zip(run.steps, run.scores, run.costs, strict=True):
            copy.observe(number, *row)
    copy.next()
    return copy


def test_of_equal_indices_the_run_started_first_goes_first():
    """Steps for nothing: every index is the highest score, whatever was seen."""
    free = Chained([0.5, 0.5], [[0.5, 0.5]] * 2, [0.0, 4.0], [0.0] * 3, [1, 2, 3])
    curves = np.zeros((3, 3), int)
    moves = race_moves(Race(free, available=3, outside=-20.0), free, curves)
    assert moves == [(run, step) for run in range(3) for step in (1, 2, 3)]
    assert moves == policy_moves(free, curves, -20.0)[0]


def test_of_equal_scores_that_of_the_first_run_counts_whichever_came_first():
    """As in a walk: a crash and a report in another order leave the same run the best."""
    race = Race(four_grades(), available=3)
    for _ in range(3):
        race.next()
        race.started()
    race.observe(2, 1, 7.0, 0.25)
    assert (race.best_run, race.best_step) == (2, 1)
    race.observe(0, 1, 4.0, 0.25)
    race.observe(0, 2, 7.0, 0.25)
    assert (race.best_run, race.best_step) == (0, 2)
    race.observe(0, 3, 7.0, 0.25)
    race.observe(1, 1, 7.0, 0.25)
    assert (race.best_run, race.best_step) == (0, 2)


def test_a_run_goes_before_a_candidate_and_a_candidate_before_a_new_run():
    """Steps for nothing: all indices are equal."""
    free = Chained([0.5, 0.5], [[0.5, 0.5]] * 2, [0.0, 4.0], [0.0] * 3, [1, 2, 3])
    race = Race(free, available=1)
    race.offer([{"rate": 1}, {"rate": 2}])
    order = []
    for _ in range(9):
        move = race.next()
        order.append((move.run, move.candidate))
        run = race.started(move.candidate) if move.run is None else move.run
        race.observe(run, move.until, 0.0, 0.0)
    assert [x for x in order if x[0] is None] == [(None, 0), (None, 1), (None, None)]
    assert order == [(None, 0), (0, None), (0, None), (None, 1), (1, None), (1, None),
                     (None, None), (2, None), (2, None)]  # fmt: skip
    assert [run.settings for run in race.runs] == [{"rate": 1}, {"rate": 2}, None]
    assert race.next() is None
    with pytest.raises(InvalidAnswer, match="no further run is available: 3 were started"):
        race.started()


def test_in_flight_moves_are_not_offered_again():
    race = Race(four_grades(), available=3)
    moves = [race.next() for _ in range(4)]
    assert [None if move is None else (move.run, move.until) for move in moves] == [
        (None, 1), (None, 1), (None, 1), None,
    ]  # fmt: skip
    assert not race.done
    runs = [race.started() for _ in range(3)]
    assert race.in_flight == runs == [0, 1, 2]
    race.observe(1, 1, 7.0, 0.25)
    move = race.next()
    assert move is not None
    assert (move.run, move.until) == (1, 3)
    assert race.next() is None
    race.observe(1, 2, 7.0, 0.25)  # between rungs: still in flight
    assert race.next() is None
    race.observe(1, 3, 7.0, 0.25)
    move = race.next()
    assert move is not None
    assert (move.run, move.until) == (1, 5)


def test_a_released_move_is_offered_first():
    race = Race(four_grades())
    for _ in range(2):
        race.next()
        race.started()
    race.observe(1, 1, 10.0, 0.25)  # a good one; yet the move begun comes first
    assert race.in_flight == [0]
    race.release(0)
    assert race.in_flight == []
    assert not race.done
    move = race.next()
    assert move is not None
    assert (move.run, move.until) == (0, 1)
    with pytest.raises(InvalidAnswer, match="run 1 is not running"):
        race.release(1)


def test_a_race_told_anew_stands_where_it_stood():
    """As after a crash: the rows in their order are all there is to know."""
    model = four_grades()
    curves = np.minimum(model.curves(6, np.random.default_rng(3)), 1)  # not good enough to stop
    whole = Race(model, available=6)
    race_moves(whole, model, curves)
    rows = whole_order(model, curves)
    assert len(rows) > 20
    for cut in range(len(rows)):
        race = Race(model, available=6)
        for run, *row in rows[:cut]:
            if run == len(race.runs):
                race.started()
            race.observe(run, *row)
        for run in race.in_flight:
            race.release(run)
        race_moves(race, model, curves)
        assert (race.runs, race.spent) == (whole.runs, whole.spent)


def whole_order(model: Chained, curves: np.ndarray) -> list[tuple[int, int, float, float]]:
    """All rows of a race in the order in which they are seen."""
    race, rows = Race(model, available=len(curves)), []
    while (move := race.next()) is not None:
        run = race.started() if move.run is None else move.run
        done = len(race.runs[run].steps)
        for row in list(model.shown(curves[run]))[done:]:
            if row[0] <= move.until:
                race.observe(run, *row)
                rows.append((run, *row))
    return rows


def test_a_diverged_run_is_left_and_does_not_count():
    race = Race(four_grades(), available=2)
    race.next()
    run = race.started()
    race.observe(run, 1, math.inf, 0.25)
    assert math.isnan(race.runs[0].scores[0])
    assert (race.best, race.best_run, race.best_score, race.best_step) == (-math.inf, *[None] * 3)
    assert race.next().run is None
    race.failed(race.started())
    assert race.next() is None
    assert race.done
    assert race.expected_gain == 0
    assert race.reason == "Stop: no run is left to advance or to start."


def test_a_run_that_ends_early_is_not_advanced():
    race = Race(four_grades(), available=1)
    race.next()
    race.observe(race.started(), 1, 7.0, 0.25)
    assert race.highest_index > 7
    race.ended(0)
    assert race.next() is None
    assert (race.best_run, race.best_step, race.best_score) == (0, 1, 7.0)
    with pytest.raises(InvalidAnswer, match=r"run 0 is over \(ended\): nothing can follow"):
        race.observe(0, 2, 7.0, 0.25)


def test_reports_nobody_asked_for_move_the_index():
    race = Race(four_grades(), available=1)
    race.next()
    race.observe(race.started(), 1, 7.0, 0.25)
    before = race.highest_index
    race.observe(0, 3, 0.0, 0.5)
    assert race.highest_index < before
    assert race.next() is None


def test_when_configurations_run_out():
    race = Race(four_grades())
    assert race.next().run is None
    race.exhausted()
    assert race.next() is None
    assert race.done
    with pytest.raises(InvalidAnswer, match="no further run is available: 0 were started"):
        race.started()


def test_another_model_on_the_way():
    race = Race(four_grades(), available=2)
    race.next()
    race.observe(race.started(), 1, 4.0, 0.25)
    dear = Chained(
        [0.7, 0.2, 0.1, 0.0], four_grades().then, [0.0, 4.0, 7.0, 10.0], [9.0, 9.0], [1, 4], price=2
    )
    race.change_model(dear)
    assert race.best == 8
    assert race.next() is None
    race.change_model(four_grades())
    assert race.best == 4
    assert race.next() is not None
    with pytest.raises(InvalidArgument, match="must minimize if and only if"):
        race.change_model(four_grades(minimize=True))


def test_reasons():
    race = Race(four_grades(), available=1)
    move = race.next()
    assert move.reason == "Start a run, and train it to step 1: nothing has been seen yet."
    race.observe(race.started(), 1, 7.0, 0.25)
    index = f"{race.model.next_index([1], [7.0]):.6g}"
    assert race.next().reason == (
        f"Advance run 0 to step 3: this pays as long as the best score is below {index} (now 7), "
        "longer than any other move."
    )
    assert race.reason == "Wait for 1 run: no other run is left to advance or to start."
    race.observe(0, 3, 0.0, 0.25)
    index = f"{race.model.next_index([3], [0.0]):.6g}"
    assert race.reason == (
        "Stop: no move is expected to improve on 7 by more than it costs. Continuing run 0 "
        f"would pay if the best were below {index}."
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((0, 1, 5.0, 0.1), "the steps of a run must rise, but run 0 showed step 1 after 1"),
        ((0, 2, 5.0, -0.1), "finite and not negative, but that of run 0, step 2 is -0.1"),
        ((0, 2, 5.0, math.nan), "finite and not negative"),
        ((3, 2, 5.0, 0.1), "there is no run 3: 1 were started"),
        ((-1, 2, 5.0, 0.1), "there is no run -1"),
    ],
)
def test_reports_that_cannot_be(row, message):
    race = Race(four_grades())
    race.observe(race.started(), 1, 4.0, 0.25)
    with pytest.raises(InvalidAnswer, match=message):
        race.observe(*row)
    assert race.spent == 0.25


def test_nothing_is_begun_once_the_budget_is_spent():
    model = four_grades()
    curves = model.curves(20, np.random.default_rng(3))
    free = race_moves(Race(model, available=20), model, curves)
    race = Race(model, available=20, budget=1.0)
    tight = race_moves(race, model, curves)
    assert tight == free[: len(tight)]
    assert 1.0 <= race.spent < 1.0 + max(model.costs)
    assert race.done
    assert race.reason == "Stop: the budget of 1 is spent."
    assert race.best == max(score for run in race.runs for score in run.scores)


def test_settings_that_cannot_be():
    with pytest.raises(InvalidArgument, match="`budget` must be a number above 0, but it is 0"):
        Race(four_grades(), budget=0)
    with pytest.raises(InvalidArgument, match="`available` must be a whole number from 0 on"):
        Race(four_grades(), available=-1)
    with pytest.raises(InvalidArgument, match="`outside` must be a number"):
        Race(four_grades(), outside=math.nan)
