"""Journals of searches and of tuners: locks of others, interrupts anywhere, clocks that jump."""

from __future__ import annotations

import dis
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from faulty_disk import model
from interrupts import Interrupt, interrupted
from tuning_worlds import four_grades, slow_starters

from weitzman import tune
from weitzman.errors import JournalError
from weitzman.files import event_log
from weitzman.policy.search import Search
from weitzman.tune.run_store import Journal

# at how many instructions an interrupt comes: every one with WEITZMAN_STRIDE=1
STRIDE = int(os.environ.get("WEITZMAN_STRIDE", "97"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """In memory where that is possible: what is synced to a disk is tested elsewhere."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        return tmp_path
    link = tmp_path / "in memory"
    place = memory / f"weitzman-{os.getpid()}-{time.monotonic_ns()}"
    place.mkdir()
    link.symlink_to(place)
    return link


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path: Path) -> Iterator[None]:
    yield
    for link in tmp_path.glob("in memory"):
        for file in link.iterdir():
            file.unlink()
        link.resolve().rmdir()


def start(run: int) -> dict[str, Any]:
    return {"event": "start", "run": run, "config": str(run)}


def runs(path: Path) -> list[int]:
    """Runs in the journal of a tuner."""
    journal = Journal(path, minimize=False)
    try:
        return [entry.content["run"] for entry in journal.entries]
    finally:
        journal.close()


# -- a lock that another process holds -----------------------------------------------------------

HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
"""


def held(path: Path) -> subprocess.Popen[str]:
    """A process that keeps a journal locked."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def search_calls(path: Path) -> tuple[Callable[[], object], Callable[[], None]]:
    search = Search(model(), journal=path)

    def after() -> None:
        search.close()
        with Search.resume(path) as again:
            assert [str(x.box) for x in again.history] == ["A"]

    return lambda: search.tell("A", 1), after


def tuner_calls(path: Path) -> tuple[Callable[[], object], Callable[[], None]]:
    journal = Journal(path, minimize=False)

    def after() -> None:
        journal.close()
        assert runs(path) == [0]

    return lambda: journal.add(start(0)), after


@pytest.mark.parametrize("calls", [search_calls, tuner_calls])
@pytest.mark.parametrize("killed", [False, True])
def test_a_journal_that_stays_locked_says_by_whom(
    calls: Any, killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call waits for the patience that is set, names the process, and can be repeated."""
    path = tmp_path / "run.db"
    call, after = calls(path)
    other = held(path)
    monkeypatch.setattr(event_log, "PATIENCE", 0.4)
    began = time.monotonic()
    with pytest.raises(JournalError) as refusal:
        call()
    assert 0.4 <= time.monotonic() - began < 20
    assert "kept it locked for 0.4 seconds" in str(refusal.value)
    assert "end that process, or wait until it is done, and repeat the call" in str(refusal.value)
    if sys.platform.startswith("linux"):
        assert f"process {other.pid} on " in str(refusal.value)
    monkeypatch.setattr(event_log, "PATIENCE", 600.0)
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(call()))
    thread.start()
    time.sleep(0.3)
    assert thread.is_alive()  # it waits for minutes if need be
    if killed:
        other.kill()
    other.communicate("go on\n" if not killed else None)
    thread.join(60)
    assert len(done) == 1
    after()


# -- interrupts ----------------------------------------------------------------------------------


def is_none(step: dis.Instruction) -> bool:
    return step.opname == "LOAD_CONST" and step.argval is None


class Everywhere(Interrupt):
    """Raises KeyboardInterrupt at the n-th instruction of the package at which one can come.

    None can come between the end of a ``with`` block and its ``__exit__``: Python looks for signals
    after calls and at jumps back, and between the two there is only ``None``, three times, to load.
    """

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.exits: dict[CodeType, set[int]] = {}

    def may_come(self, frame: FrameType, event: str) -> bool:
        return event == "opcode" and not self.leaves_a_block(frame)

    def leaves_a_block(self, frame: FrameType) -> bool:
        """Whether the next instruction is one of those that call ``__exit__`` after a block."""
        if frame.f_code not in self.exits:
            steps = [x for x in dis.get_instructions(frame.f_code) if x.opname != "CACHE"]
            self.exits[frame.f_code] = {
                x.offset
                for first in range(len(steps) - 3)
                if all(
                    x.opname == "LOAD_CONST" and x.argval is None for x in steps[first : first + 3]
                )
                for x in steps[first : first + 5]
                if x.opname in {"LOAD_CONST", "PRECALL", "CALL"}
            }
        return frame.f_lasti in self.exits[frame.f_code]


def elsewhere(do: Callable[[], object]) -> None:
    """Do something in another thread: it must not wait for what an interrupt left behind."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            do()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failed == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["tell", "replace", "ask", "undo"])
def test_an_interrupt_at_any_instruction_leaves_all_or_nothing(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "PATIENCE", 3.0)
    old, new, newer = model(), model(3.0), model(4.0)
    for at in range(1, 10**6, STRIDE):
        path = folder / f"{at}.db"
        search = Search(old, journal=path)
        search.tell("A", 1)
        call: Callable[[], object] = {
            "tell": lambda s=search: s.tell("C", 50), "replace": lambda s=search: s.replace(new),
            "ask": search.ask, "undo": search.undo,
        }[kind]  # fmt: skip
        over = not interrupted(call, Everywhere(at))
        told = [str(x.box) for x in search.history]
        assert told in (["A"], {"tell": ["A", "C"], "undo": []}.get(kind, ["A"]))
        elsewhere(search.ask)
        search.replace(newer)
        search.tell("A", 1)
        search.tell("C", 50)
        search.close()
        with Search.resume(path) as again:
            assert again.history == search.history
            assert again.available() == search.available()
        path.unlink()
        if over:
            break
    assert at > 500


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("share", [False, True])
def test_an_interrupted_tuner_continues(
    folder: Path, share: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was being written when an interrupt came is there as a whole or not at all."""
    monkeypatch.setattr(event_log, "PATIENCE", 3.0)
    for at in range(1, 10**6, max(1, STRIDE // 8)):
        path = folder / f"{at}.db"
        journal = Journal(path, minimize=False, share=share)

        def add(run: int, journal: Journal = journal) -> None:
            journal.turn(list, lambda: journal.add(start(run)))

        add(0)
        over = not interrupted(lambda: add(1), Everywhere(at))
        elsewhere(lambda: add(2))
        add(3)
        journal.close()
        assert runs(path) in ([0, 1, 2, 3], [0, 2, 3])
        path.unlink()
        if over:
            break
    assert at > 200


# -- clocks --------------------------------------------------------------------------------------


def jumping() -> Callable[[], float]:
    """A clock of the day that goes forwards and backwards, by years."""
    times = iter([1e9, 4e9, -1e9, 0.0, 1e12, 2e9, 1e-3] * 10_000)
    return lambda: next(times)


def test_clocks_may_jump_under_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def follow(path: Path) -> tuple[Any, ...]:
        with Search(model(), journal=path) as search:
            search.ask()
            search.tell("A", 1)
            search.replace(model(4.0))
            search.tell("C", 50)
            search.undo()
        with Search.resume(path) as again, Search.join(path, worker="other") as other:
            again.tell("C", 10)
            other.beat()
            return again.history, again.available(), other.available(), again.best

    expected = follow(tmp_path / "steady.db")
    monkeypatch.setattr(time, "time", jumping())
    assert follow(tmp_path / "jumping.db") == expected


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("way", ["generator", "paced"])
def test_clocks_may_jump_under_a_tuner(
    way: str, share: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what runs cost, nor a timeout, nor who is alive depends on the time of day."""
    world = four_grades()
    curves = [[row[1:] for row in world.shown(states)] for states in slow_starters(world)]

    def begin(run: int, past: Any) -> Any:
        yield from curves[run][past.step :]

    def train(run: int, report: Any) -> None:
        for row in curves[run][report.past.step :]:
            report(*row)

    def found(path: Path) -> tuple[Any, ...]:
        options: dict[str, Any] = {"journal": path, "timeout": 500.0, "share": share}
        made = begin if way == "generator" else tune.paced(train, resumes=True)
        result = tune.optimize(made, list(range(len(curves))), world, **options)
        again = tune.optimize(made, list(range(len(curves))), world, **options)
        return [
            (x.best_score, x.spent, [list(run.steps) for run in x.runs]) for x in (result, again)
        ], result.reason

    expected = found(tmp_path / "steady.db")
    monkeypatch.setattr(time, "time", jumping())
    assert found(tmp_path / "jumping.db") == expected


def test_a_clock_of_the_user_that_goes_backwards_costs_nothing(tmp_path: Path) -> None:
    """Time cannot be earned: a step that ends before it began has cost nothing."""
    clock = iter([5.0, 1.0, 3.0, 2.0, 2.5, 9.0, 0.0, 4.0] * 1000)
    world = four_grades()
    curves = [[row[1] for row in world.shown(states)] for states in slow_starters(world)]
    result = tune.optimize(
        lambda run: iter(curves[run]), list(range(len(curves))), world,
        clock=lambda: next(clock), journal=tmp_path / "run.db",
    )  # fmt: skip
    costs = [cost for run in result.runs for cost in run.costs]
    assert costs
    assert min(costs) == 0
    assert sum(costs) == pytest.approx(result.spent)
