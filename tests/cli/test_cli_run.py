"""A search at the terminal."""

from __future__ import annotations

import io
from pathlib import Path

import click
import pytest

import weitzman
from weitzman.cli import program
from weitzman.cli.search_command import talk
from weitzman.engine.solver import solve
from weitzman.errors import InvalidAnswer, InvalidFile, UnknownName
from weitzman.files.instances import save
from weitzman.forest.builder import Builder
from weitzman.forest.model import Forest
from weitzman.policy.search import Search


def forest(cost: float = 5.0, *, minimize: bool = False) -> Forest:
    boxes = Builder(outside=0.0, minimize=minimize)
    boxes.add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
    below = {1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}}
    boxes.add("B", parent="A", cost=3, outcomes=below)
    return boxes.add("C", cost=cost, outcomes={50: 0.5, 10: 0.5}, count=5).build()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    save(forest(), tmp_path / "boxes.json")
    return tmp_path


class Command:
    """``weitzman search`` in a folder, with answers for input."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.monkeypatch = place, monkeypatch

    def __call__(self, options: str, answers: str) -> str:
        out = io.StringIO()
        with self.monkeypatch.context() as patch:
            patch.chdir(self.place)
            patch.setattr("sys.stdin", io.StringIO(answers))
            patch.setattr("sys.stdout", out)
            with program.make_context("weitzman", ["search", *options.split()]) as context:
                program.invoke(context)
        return out.getvalue()


@pytest.fixture
def command(place: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(place, monkeypatch)


WHOLE = """\
Open A (cost 20): its index 707 is above the best so far (0, the outside option), and no box that \
can be opened has a higher one.
  best 0 (outside option), spent 0, payoff 0; also available: C#1 (index 40), C#2 (index 40), C#3 \
(index 40), ...
What did A show? (1, 900; =REWARD; undo; quit) 900
Open B (cost 3): its index 914 is above the best so far (900 from A), and no box that can be \
opened has a higher one.
  best 900 (from A), spent 20, payoff 880; also available: C#1 (index 40), C#2 (index 40), C#3 \
(index 40), ...
What did B show? (890, 920; =REWARD; undo; quit) 890
Stop and take 900 from A: no box that can be opened has an index above that; the highest is 40, \
of C#1.
  best 900 (from A), spent 23, payoff 877
"""


def test_a_whole_search(command: Command) -> None:
    assert command("boxes.json", "900\n890\n") == WHOLE


def test_stopped_and_resumed_after_every_answer(command: Command, place: Path) -> None:
    answers = ["1", "=10", "10@4.5", "=10 @ 0", "10", "10", "-9"]
    for i, answer in enumerate(answers):
        out = command("boxes.json --journal run.db", f"{answer}\n")
        assert ("Resuming run.db" in out) == (i > 0)
        assert f"Boxes opened so far: {i}." in out or i == 0
        if i < len(answers) - 1:
            assert out.endswith("\nStopped for now. Run it again to continue.\n")
    assert out.endswith(
        "Stop and take 10 from C#1: no box is left to open.\n"
        "  best 10 (from C#1), spent 42.5, payoff -32.5\n"
    )
    with Search.resume(place / "run.db") as search:
        assert search.spent == 20 + 5 + 4.5 + 0 + 5 + 5 + 3
        assert search.done


def test_quit_and_no_file_needed(command: Command) -> None:
    command("boxes.json --journal run.db", "1\nquit\n900\n")
    out = command("--journal run.db", "\n  \n10\nquit\n")
    assert "Boxes opened so far: 1." in out
    assert out.count("What did C#1 show?") == 3
    assert "What did C#2 show?" in out
    assert command("boxes.json", "quit\n").endswith("Stopped for now. Nothing is kept.\n")


def test_a_file_that_changed(command: Command, place: Path) -> None:
    command("boxes.json --journal run.db", "1\n")
    save(forest(cost=1.0), place / "boxes.json")
    assert "--replace would use the new one" in command("boxes.json --journal run.db", "")
    out = command("boxes.json --journal run.db --replace", "10\n")
    assert "Open C#1 (cost 1): its index 48 is" in out
    assert "boxes.json was changed" not in command("boxes.json --journal run.db", "")


def test_answers_that_cannot_be(command: Command) -> None:
    with pytest.raises(UnknownName, match="box 'A' has no state 'red'; its states are 1, 900"):
        command("boxes.json --journal run.db", "red\n900\n")
    with pytest.raises(InvalidAnswer, match="899 is not among the rewards"):
        command("boxes.json --journal run.db", "=899\n")
    with pytest.raises(UnknownName, match="no state '=x'"):
        command("boxes.json --journal run.db", "=x\n")
    assert "Boxes opened so far: 0." in command("--journal run.db", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_at_a_terminal_one_can_try_again() -> None:
    search, out = Search(solve(forest())), io.StringIO()
    talk(search, Terminal("red\n=899\ny\n900@-1\n\n900\nn\n1\nyes\n50\n\n"), out, kept=False)
    assert out.getvalue().count("What did A show?") == 5
    assert "  A showed 900 and cost -1. Right? [Y/n] " in out.getvalue()
    assert "box 'A' has no state 'red'" in out.getvalue()
    assert "a cost must not be negative" in out.getvalue()
    assert [x.reward for x in search.history] == [1.0, 50.0]


def test_an_answer_that_ended_the_search_is_undone() -> None:
    """The program ended at once, also when it was run again, and the answer stood for good."""
    search, out = Search(solve(forest())), io.StringIO()
    talk(search, Terminal("900\ny\n920\ny\nundo\n890\ny\n\n"), out, kept=False)
    assert "Stop and take 920 from B" in out.getvalue()
    assert "undo removes the last answer: Took back 920 from B." in out.getvalue()
    assert [x.reward for x in search.history] == [900.0, 890.0]
    assert out.getvalue().count("Enter ends the search here") == 2


def test_what_is_neither_yes_nor_no_is_asked_again() -> None:
    """It counted as no, and the answer was lost without a word."""
    search, out = Search(solve(forest())), io.StringIO()
    talk(search, Terminal("1\n900\ny\n"), out, kept=False)
    assert "  Type y (yes) or n (no).\n  A showed 1. Right? [Y/n] " in out.getvalue()
    assert [x.reward for x in search.history] == [1.0]


def test_a_cost_that_is_no_number_is_named() -> None:
    """The message was that the box has no state '1@free'."""
    out = io.StringIO()
    talk(Search(solve(forest())), Terminal("1@free\n"), out, kept=False)
    assert "a cost after @ must be a number such as 3.5, but got 'free'." in out.getvalue()


def test_rules_for_rewards(command: Command) -> None:
    assert "best 899.5 (from A)" in command("boxes.json --rewards nearest", "=899.5\n")
    assert "best 99 (from A)" in command("boxes.json --rewards 100,1000", "=99\n")
    command("boxes.json --rewards nearest --journal run.db", "")
    out = command("boxes.json --rewards refuse --journal run.db", "=898\n")
    assert "--rewards stays what it was when the search began" in out
    assert "best 898 (from A)" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "give a FILE, or the --journal of a search that was begun"),
        ("--journal new.db", "give a FILE, or the --journal of a search that was begun"),
        ("boxes.json --rewards far", "--rewards must be refuse, nearest or numbers"),
    ],
)
def test_misuse(command: Command, options: str, message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        command(options, "")


def test_a_journal_that_is_none(command: Command, place: Path) -> None:
    (place / "run.db").write_text("precious")
    with pytest.raises(InvalidFile, match="not a journal"):
        command("boxes.json --journal run.db", "")
    assert (place / "run.db").read_text() == "precious"


def test_losses_and_names_that_are_numbers_or_words_of_the_command() -> None:
    boxes = Forest.from_arrays(
        parent=[-1, -1], cost=[1, 1], rewards=[3.0, 6.0], law=[[0.5, 0.5]] * 2, outside=9,
        minimize=True, states=[["007", "quit"], ["1", "0"]], names=["a\tb", "c"],
    )  # fmt: skip
    search, out = Search(solve(boxes)), io.StringIO()
    talk(search, io.StringIO("quit\n0\n"), out, kept=False)
    assert [(x.state, x.reward) for x in search.history] == [("quit", 6.0), ("0", 6.0)]
    again = Search(solve(boxes))
    talk(again, io.StringIO("007\n"), io.StringIO(), kept=False)
    assert again.history[0].reward == 3.0
    assert "What did a\\tb show? (007, quit; =REWARD; undo; quit)" in out.getvalue()
    assert out.getvalue().endswith("  least loss 6 (from a\\tb), spent 2, in all 8\n")


def test_states_without_names() -> None:
    boxes = Forest.from_arrays(parent=[-1], cost=[1], rewards=[3.0, 5.0], law=[[0.5, 0.5]])
    search, out = Search(solve(boxes)), io.StringIO()
    talk(search, io.StringIO("2\n"), out, kept=False)
    assert "What did 0 show? (1: reward 3, 2: reward 5; =REWARD; undo; quit) 2" in out.getvalue()
    assert search.best == 5.0
    with pytest.raises(InvalidAnswer, match="a number from 1 to 2, but got 0"):
        talk(Search(solve(boxes)), io.StringIO("0\n"), io.StringIO(), kept=False)


def test_states_are_numbered_from_one_as_they_are_on_screen() -> None:
    boxes = Forest.from_arrays(
        parent=[-1], cost=[1], rewards=[3.0, 5.0, 7.0], law=[[0.5, 0.0, 0.5]],
        states=[["poor", "fair", "good"]],
    )  # fmt: skip
    for typed in ("2", "good"):
        search, out = Search(solve(boxes)), io.StringIO()
        talk(search, io.StringIO(f"{typed}\n"), out, kept=False)
        assert "(1: poor, 2: good; =REWARD; undo; quit)" in out.getvalue()
        assert search.history[0].state == "good"


def test_an_answer_is_undone(command: Command, place: Path) -> None:
    out = command("boxes.json --journal run.db", "900\nundo\n1\nquit\n")
    assert (
        "Took back 900 from A. The best so far is 0 (the outside option) instead of 900, and 0 is "
        "spent instead of 20. Not handed out any more: B."
    ) in out
    assert out.count("What did A show?") == 2
    with Search.resume(place / "run.db") as search:
        assert [x.state for x in search.history] == ["1"]
    with pytest.raises(InvalidAnswer, match="there is no answer to undo"):
        command("boxes.json", "undo\n")


def test_an_answer_is_undone_in_the_words_of_the_problem():
    """It said "0 is spent instead of 10000" where all else was in dollars."""
    boxes = weitzman.Builder()
    boxes.add(
        "survey", cost=10_000, outcomes={"good": 0.5, "bad": 0.5}, rewards={"good": 1e6, "bad": 0}
    )
    search = weitzman.Search(weitzman.solve(boxes.build().changed(unit="$")))
    search.tell(search.ask(), "good")
    said = search.undo()
    assert "$0 (the outside option) instead of $1,000,000" in said
    assert "$0 is spent instead of $10,000" in said
