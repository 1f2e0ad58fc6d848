"""Time, risk and several prizes in reports and in the explorer; and the answers both pages give."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from html import unescape

import exact_questions
import numpy as np
import pytest
import random_problems
from forests_with_terms import careful, hires, projects
from hypothesis import given, settings
from plain_forests import forest_of

import weitzman
from weitzman import Search, evaluate, questions, solve
from weitzman.show.explore.workbench import Workbench, document, forest
from weitzman.show.report import render
from weitzman.show.report.decision_tree import decisions, table
from weitzman.show.report.findings import answers, content
from weitzman.show.report.sections import brief


def text_of(html: str) -> str:
    """The words of a page, without its style and script."""
    bare = re.sub(r"(?s)<(style|script).*?</\1>", "", html)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", bare)))


FORESTS = {"time": projects, "risk": careful, "prizes": hires}


def test_discounted_amounts_are_said_to_be_so():
    words = text_of(render(content(projects())))
    e = evaluate(solve(projects()))
    assert "Expected value56.3discounted to the start; doing nothing: 0" in words
    assert f"opened on average, {e.time:.3g} units of time" in words
    assert "Strategies compared" in words
    assert "Left outRisk attitude: a risk sweep" in words
    assert "no index. Give one of the two.Made with" in words  # the last words of the page


def test_a_certainty_equivalent_is_called_one():
    words = text_of(render(content(careful())))
    value = brief(careful().amounts, solve(careful()).value)
    assert "Start with steady: " in words
    assert f"Certainty equivalent{value}doing nothing" in words
    assert "Value, per unit of cost" not in words  # its derivatives are no chances


def test_several_prizes():
    words = text_of(render(content(hires())))
    assert "take it for good and close its tree" in words
    assert "Taken as prizes: Ada (50%), Ben (40%), Cleo" in words
    assert "places stay empty on average" in words
    assert "take 10 from Ada for good, then open Ben" in words


def test_a_search_for_prizes_under_way():
    search = Search(solve(hires()))
    search.tell("Ada", reward=10)
    found = content(search)
    assert found.advice is not None
    assert "Take a prize." in text_of(render(found))
    search.take("Ada")
    found = content(search)
    words = text_of(render(found))
    assert "Continue." in words
    assert "Taken for good, 1 of 2 prizes: Ada (10)." in words
    assert found.now == search.payoff == 9
    assert found.expected == pytest.approx(search.expected)
    data = json.loads(re.search(r'id="data">(.*?)</script>', render(found))[1])
    assert data["told"] == [[0, [], 1, 10.0, 1.0], [0, []]]


@pytest.mark.parametrize("kind", FORESTS)
def test_a_search_under_way_says_what_stopping_and_going_on_bring(kind):
    search = Search(solve(FORESTS[kind]()))
    box = search.ask()
    search.tell(box, search.policy.forest.states(box.number)[0])
    found = content(search)
    assert found.now == pytest.approx(search.payoff)
    assert found.expected == pytest.approx(search.expected)
    assert "Stopping now gives a payoff" in text_of(render(found))


@pytest.mark.parametrize("kind", FORESTS)
def test_the_runner_up_is_weighed_by_the_terms(kind):
    """No other beginning earns more; the second best is worth what its outcomes are, weighed."""
    found = content(FORESTS[kind]())
    assert found.runner_up is not None
    assert found.runner_up[1] <= found.solution.value + 1e-9
    if kind == "risk":
        bold, plain = (content(careful(t)).runner_up[1] for t in (1e7, None))
        assert bold == pytest.approx(plain, abs=1e-4)


def test_decisions_tell_which_prizes_are_taken():
    found = decisions(solve(hires()).policy())
    by = {(d.level, d.seen, d.action): d for d in found}
    assert by[1, "10", "open"].taken == ("Ada",)
    assert by[1, "10", "open"].box == "Ben"
    ends = [d for d in found if d.action == "stop"]
    assert sum(d.reached for d in ends) == pytest.approx(1)
    value = sum(d.reached * d.best for d in ends)
    e = evaluate(solve(hires()))
    assert value == pytest.approx(e.reward)
    assert table(found).splitlines()[0].startswith("after,probability,take,action")


# -- answers -------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(problem=random_problems.forests(max_boxes=3, max_states=2, outside="any"))
def test_answers_against_the_oracle(problem):
    f = forest_of(problem)
    solution = solve(f)
    found = answers(solution, e := evaluate(solution))
    value = float(exact_questions.value_knowing(problem, []))
    assert solution.value == pytest.approx(value, abs=1e-9)
    for row in found["knowing"]:
        known = float(exact_questions.value_knowing(problem, [f.box(row["box"])]))
        assert row["worth"] == pytest.approx(known - value, abs=1e-9)
    if found["budget"] is not None:
        frontier = exact_questions.spend_frontier(problem)
        b = found["budget"]
        for spend, reward in zip(b["x"], b["value"], strict=True):
            most = exact_questions.reward_within(frontier, Fraction(spend))
            assert reward == pytest.approx(float(most), abs=1e-6)
        assert b["value"][b["now"]] - b["x"][b["now"]] <= solution.value + 1e-9
    for row in found["swings"]["rows"]:
        low, high = sorted((row["low"], row["high"]))
        assert low - 1e-9 <= solution.value <= high + 1e-9 or row["number"] == "chance"
    c = found["careful"]
    assert c["x"] == sorted(c["x"])
    assert c["bold"] == pytest.approx(e.value, abs=1e-9)


def test_boxes_without_any_reward_have_answers():
    f = weitzman.Forest.from_arrays(parent=[-1], cost=[0], rewards=[-np.inf], law=[[1.0]])
    solution = solve(f)
    careful = answers(solution, evaluate(solution))["careful"]
    assert careful["bold"] == 0
    assert set(careful["value"]) == {0}


def test_what_does_not_go_together_is_left_out_by_name():
    def left_out(f):
        solution = solve(f)
        return answers(solution, evaluate(solution))["leftOut"]

    assert set(left_out(careful())) == {"budget"}
    assert "risk tolerance" in left_out(careful())["budget"]
    assert "`" not in left_out(careful())["budget"]  # options of Python are not quoted
    assert set(left_out(projects())) == {"careful"}
    assert set(left_out(hires())) == {"careful"}
    many = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3)
    assert set(left_out(many)) == {"knowing"}


def test_the_tolerance_of_the_forest_is_on_the_curve():
    solution = solve(careful())
    c = answers(solution, evaluate(solution))["careful"]
    assert (c["x"][c["now"]], c["value"][c["now"]]) == (8.0, solution.value)
    assert [r["first"] for r in c["ranges"]] == ["long shot", "steady"]
    (turn,) = questions.risk_sweep(careful()).turns
    assert c["ranges"][0]["low"] == pytest.approx(turn, rel=1e-9)


# -- explorer ------------------------------------------------------------------------------------


def ask(bench, question, /, **request):
    answer = bench.answer(question, json.dumps(request).encode())
    assert answer["ok"], answer
    return answer


@pytest.mark.parametrize("kind", FORESTS)
def test_the_explorer_solves_and_follows_the_terms(kind):
    f, bench = FORESTS[kind](), Workbench()
    assert forest(document(f)) == f
    solved = ask(bench, "solve", document=document(f))
    solution = solve(f)
    assert solved["value"] == solution.value
    assert solved["risk"] == f.risk_tolerance
    assert solved["prizes"] == f.prizes
    assert solved["amounts"]["unit"] == f.unit
    assert (solved["factors"] is None) == (f.factors is None)
    search = Search(solution)
    box = search.ask()
    search.tell(box, f.states(box.number)[0])
    steps = [[box.number, [], 0]]
    assert ask(bench, "expect", id=solved["id"], steps=steps)["value"] == search.expected


def test_the_explorer_takes_prizes():
    bench, search = Workbench(), Search(solve(hires()))
    number = ask(bench, "solve", document=document(hires()))["id"]
    search.tell("Ada", reward=10)
    search.take("Ada")
    steps = [[0, [], 1], [0, []]]
    assert ask(bench, "expect", id=number, steps=steps)["value"] == search.expected
    for wrong in ([[0, []]], [[0, [], 0], [1, []]], [[0]], [[0, [], 1, 2]]):
        answer = bench.answer("expect", json.dumps({"id": number, "steps": wrong}).encode())
        assert not answer["ok"]


@pytest.mark.parametrize(
    ("kind", "what"), [("time", "rate"), ("time", "duration"), ("risk", "risk_tolerance")]
)
def test_curves_of_the_terms(kind, what):
    f = FORESTS[kind]()
    found = ask(Workbench(), "curve", document=document(f), box=0, what=what, row=0, state=0)
    x, value, now = found["x"], found["value"], found["now"]
    assert value[now] == solve(f).value
    assert x[now] == {"rate": f.rate, "duration": 1, "risk_tolerance": 8.0}[what]
    assert x == sorted(x)
    rising = np.diff(value) >= -1e-9
    assert rising.all() if what == "risk_tolerance" else (np.diff(value) <= 1e-9).all()
    if what == "rate":
        assert value[0] == pytest.approx(solve(f.changed(rate=0.0)).value)


def test_a_curve_of_what_is_not_there_is_rejected():
    for what in ("rate", "risk_tolerance", "duration", "factor"):
        request = {"document": document(hires()), "box": 0, "what": what, "row": 0, "state": 0}
        answer = Workbench().answer("curve", json.dumps(request).encode())
        assert not answer["ok"]
        assert "to change" in answer["message"]
    factors = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, factor=0.9)
    found = ask(
        Workbench(), "curve", document=document(factors), box=0, what="factor", row=0, state=0
    )
    assert found["value"][-1] == pytest.approx(4)
    assert found["x"][found["now"]] == 0.9


def test_more_questions_are_answered():
    found = ask(Workbench(), "answers", document=document(careful()))
    assert found["careful"]["ranges"][1]["first"] == "steady"
    assert found["budget"] is None
