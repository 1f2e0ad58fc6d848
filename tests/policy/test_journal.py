"""Nothing is lost: resuming, sharing, damage, full disks and kills."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killing import look
from killing import policy as large_policy

from weitzman.engine.indices import Policy
from weitzman.engine.solver import solve
from weitzman.errors import InvalidAnswer, InvalidFile, InvalidForest, JournalError
from weitzman.files import event_log as _log
from weitzman.forest.builder import Builder
from weitzman.forest.model import Forest
from weitzman.policy.ledger import Record
from weitzman.policy.search import Search

KILLS = int(os.environ.get("WEITZMAN_KILLS", "40"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


def standing(search: Search) -> tuple[Any, ...]:
    """All that a search knows."""
    return (
        search.history, search.pending, search.available(None), search.best, search.best_box,
        search.spent, search.done,
    )  # fmt: skip


def model(cost: float = 5.0, *, order: str = "ABC") -> Policy:
    """Boxes A, B below A, and three copies of C, in this order."""
    built = Builder()
    for name in order:
        if name == "A":
            built.add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
        elif name == "B":
            below = {1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}}
            built.add("B", parent="A", cost=3, outcomes=below)
        else:
            built.add("C", cost=cost, outcomes={50: 0.5, 10: 0.5}, count=3)
    return solve(built.build()).policy()


def files(folder: Path) -> dict[str, bytes]:
    """Every file in a folder and what is in it."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def script(name: str, *args: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a script of this folder in a process of its own."""
    return subprocess.run(
        [*before, sys.executable, str(Path(__file__).parents[1] / "helpers" / name), *args],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


# -- resuming ----------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 100])
def test_resumed_anywhere_it_continues_as_if_nothing_had_happened(path: Path, steps: int) -> None:
    plain, search = Search(large_policy()), Search(large_policy(), journal=path)
    for i in range(100):
        if i == steps:
            before = standing(search)
            search.close()
            search = Search.resume(path)
            assert standing(search) == before
        box = search.ask()
        assert box == plain.ask()
        if box is None:
            break
        assert search.explain() == plain.explain()
        for run in (plain, search):
            run.tell(box, look(box))
    assert standing(search) == standing(plain)
    search.close()


def test_the_file_alone_is_the_search(path: Path, tmp_path: Path) -> None:
    with Search(model(), journal=path, rewards="nearest") as search:
        search.tell(search.ask(), reward=0.75, cost=19.5)
        (tmp_path / "elsewhere").mkdir()
        copied = shutil.copy(path, tmp_path / "elsewhere" / "copy #1?.db")
        assert sorted(os.listdir(tmp_path)) == ["elsewhere", "run.db"]
    with Search.resume(copied) as again:
        assert (again.best, again.spent) == (0.75, 19.5)
        again.tell("C#1", reward=49)
        assert again.history[1].state == "50"


def test_boxes_handed_out_are_handed_out_again_first(path: Path) -> None:
    search = Search(large_policy(), journal=path)
    out = search.ask(4)
    search.tell(out[1], look(out[1]))
    search.release(out[3])
    search.close()
    with Search.resume(path) as again:
        assert again.pending == [out[0], out[2]]
        assert again.ask() == again.ask() == out[0]
        boxes = again.ask(4)
        assert boxes[:2] == [out[0], out[2]]
        assert len(set(boxes)) == 4
        assert out[1] not in boxes
        assert again.ask(4) == boxes


def test_replacements_are_resumed_too(path: Path) -> None:
    with Search(model(), journal=path) as search:
        search.tell(search.ask(), 1)
        search.tell("C#2", 10)
        assert search.ask() == "C#1"
        search.replace(model(cost=1, order="CAB"))
        search.tell("C#3", 10)
        search.replace(model(cost=2, order="BCA"))
        before = standing(search)
        assert search.spent == 26
    with Search.resume(path) as again:
        assert standing(again) == before
        assert again.policy.forest.names == ("B", "C", "A")
        assert again.ask() == "C#1"


def test_a_replacement_that_does_not_fit_is_not_kept(path: Path) -> None:
    with Search(model(), journal=path) as search:
        search.tell("A", 1)
        with pytest.raises(InvalidForest, match="'A' is missing"):
            search.replace(model(order="C"))
        before = standing(search)
    with Search.resume(path) as again:
        assert standing(again) == before


def test_minimizing_and_infinities_come_back(path: Path) -> None:
    forest = Forest.from_arrays(
        parent=[-1, -1], cost=[0, 1], rewards=[3.0, 7.0], law=[[0.5, 0.5]] * 2, minimize=True,
        outside=np.inf,
    )  # fmt: skip
    with Search(solve(forest), journal=path) as search:
        search.ask()
        before = standing(search)
    with Search.resume(path) as again:
        assert standing(again) == before
        assert again.best == np.inf
        again.tell(0, reward=-0.0 + 3)
        assert again.payoff == 3


def test_odd_names_come_back(path: Path) -> None:
    names = ["<b>", "a\0b", "naïve 名", "'; DROP TABLE event; --"]
    forest = Forest.from_arrays(
        parent=[-1] * 4, cost=[1] * 4, rewards=[0, 9], law=[[0.5, 0.5]] * 4, names=names
    )
    with Search(solve(forest), journal=path) as search:
        for box in search.ask(4):
            search.tell(box, 0)
    with Search.resume(path) as again:
        assert [x.box for x in again.history] == names


def test_names_that_no_file_can_hold(path: Path) -> None:
    forest = Forest.from_arrays(
        parent=[-1], cost=[1], rewards=[0, 9], law=[[0.5, 0.5]], names=["\ud800"]
    )
    with pytest.raises(InvalidForest, match="names must be valid Unicode"):
        Search(solve(forest), journal=path)
    assert files(path.parent) == {}


# -- starting where there is something ---------------------------------------------------------


def test_a_journal_is_not_begun_twice(path: Path) -> None:
    Search(model(), journal=path).close()
    before = files(path.parent)
    with pytest.raises(JournalError, match=r"there is one\. Continue it with Search\.resume"):
        Search(model(), journal=path)
    assert files(path.parent) == before


@pytest.mark.parametrize("content", [b"", b"precious", b"SQLite format 3\0" + bytes(200)])
def test_no_file_is_replaced(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(JournalError, match="must not replace a file"):
        Search(model(), journal=path)
    assert files(path.parent) == {"run.db": content}


def test_two_that_start_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _log._publish

    def slowly(*args: Any) -> None:
        path.write_bytes(b"the other was faster")
        plain(*args)

    monkeypatch.setattr(_log, "_publish", slowly)
    with pytest.raises(JournalError, match="must not replace a file"):
        Search(model(), journal=path)
    assert files(path.parent) == {"run.db": b"the other was faster"}


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    with pytest.raises(JournalError):
        Search(model(), journal=tmp_path / "missing" / "run.db")
    with pytest.raises(JournalError):
        Search(model(), journal=tmp_path)
    for wrong in (tmp_path, tmp_path / "missing.db"):
        with pytest.raises(JournalError, match="cannot be used as a journal"):
            Search.resume(wrong)
    assert list(tmp_path.iterdir()) == []


def test_without_links_the_file_is_renamed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: Any) -> None:
        raise OSError("not here")

    monkeypatch.setattr(os, "link", no_links)
    Search(model(), journal=path).close()
    with pytest.raises(JournalError, match="must not replace"):
        Search(model(), journal=path)
    assert list(files(path.parent)) == ["run.db"]
    Search.resume(path).close()


# -- files that are no journals, or not any more -----------------------------------------------


def assert_refused(path: Path, message: str = "left as it is|damaged") -> None:
    """Neither resumed nor joined, and left as it was, with nothing beside it."""
    before = files(path.parent)
    for use in (Search.resume, Search.join):
        with pytest.raises(InvalidFile, match=message):
            use(path)
    assert files(path.parent) == before


def test_foreign_files(path: Path) -> None:
    for content in (b"", b"hello", b"x" * 5000, bytes(5000), os.urandom(9000)):
        path.write_bytes(content)
        assert_refused(path, "the file is empty|the file is not a journal")


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_foreign_databases(path: Path, mode: str) -> None:
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA journal_mode={mode}")
    db.execute("CREATE TABLE event (number INTEGER)")
    db.commit()
    assert_refused(path, "an SQLite database, but not a journal")
    db.close()
    assert_refused(path, "an SQLite database, but not a journal")


def test_a_newer_version(path: Path) -> None:
    Search(model(), journal=path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version={_log.VERSION + 1}")
    db.close()
    assert_refused(
        path, r"the version of the journal must be 3, but it is 4\. Another version of this"
    )


@pytest.fixture
def finished(tmp_path: Path) -> bytes:
    path = tmp_path / "finished.db"
    with Search(large_policy(), journal=path) as search:
        while (box := search.ask()) is not None:
            search.tell(box, look(box))
    content = path.read_bytes()
    path.unlink()
    return content


def test_a_file_cut_off_anywhere(path: Path, finished: bytes) -> None:
    size = len(finished)
    cuts = {*range(0, size, 997), *range(4096, size, 4096), 1, 15, 16, 99, 100, 101, size - 1}
    for cut in sorted(cuts):
        path.write_bytes(finished[:cut])
        assert_refused(path)
    path.write_bytes(finished + b"\0")
    assert_refused(path, "it must have")
    path.write_bytes(finished)
    Search.resume(path).close()


def test_a_damaged_file_is_rejected_or_makes_no_difference(path: Path, finished: bytes) -> None:
    path.write_bytes(finished)
    with Search.join(path) as search:
        wanted = standing(search)
    rng, found = random.Random(3), 0
    for _ in range(150):
        flawed = bytearray(finished)
        flawed[rng.randrange(len(flawed))] ^= 1 << rng.randrange(8)
        path.write_bytes(flawed)
        try:
            with Search.join(path) as search:
                assert standing(search) == wanted
        except InvalidFile:
            found += 1
    assert found > 20  # the others fell on space that is not in use


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("UPDATE event SET content = '{}' WHERE number = 2", "event 2 is missing or was changed"),
        ("DELETE FROM event WHERE number = 2", "event 2 is missing or was changed"),
        ("DELETE FROM event WHERE number < 4", "event 1 is missing or was changed"),
        ("DELETE FROM event WHERE number > 4", "it had 7 events before and has 4 now"),
        ("DELETE FROM piece WHERE part = 'index'", "model 0 cannot be read"),
        ("UPDATE piece SET data = zeroblob(10)", "was changed"),
        ("DROP TABLE setting", "no such table"),
        ("DELETE FROM setting", "not that of a search"),
        ("DELETE FROM setting WHERE name = 'rewards'", "the settings are damaged"),
        ("UPDATE setting SET value = '[1, 2]'", "the setting '.*' was changed"),
        ("UPDATE event SET worker = x'ff' WHERE number = 1", "event 1 is missing or was changed"),
    ],
)
def test_a_journal_that_was_tampered_with(path: Path, sql: str, message: str) -> None:
    with Search(model(), journal=path) as search:
        for state in (1, 10, 10):
            search.tell(search.ask(), state)
        search.ask()
    with sqlite3.connect(path) as db:
        db.execute(sql)
    db.close()
    assert_refused(path, message)


def test_events_that_cannot_be(path: Path) -> None:
    with Search(model(), journal=path) as search:
        search.tell(search.ask(), 1)
        forged = search._record.ledger.answer("B", 21, None, None)
        assert forged is not None
        search._record.ledger.answers.clear()
        with pytest.raises(InvalidAnswer, match="was not opened"):
            search.tell("B", 21)
    with sqlite3.connect(path) as db:  # an answer for a box whose parent is closed
        db.execute("DELETE FROM event WHERE number > 1")
        db.execute("UPDATE sqlite_sequence SET seq = 1")
        db.execute("UPDATE event SET content = replace(content, '\"A\"', '\"Z\"')")
        row = db.execute("SELECT worker, content FROM event").fetchone()
        db.execute("UPDATE event SET crc = ?", (_log.checksum(f"{row[0]} {row[1]}"),))
    db.close()
    assert_refused(path, "what it says of box 'Z' cannot be")


# -- trouble while it runs ---------------------------------------------------------------------


@contextmanager
def small_disk(monkeypatch: pytest.MonkeyPatch, path: Path) -> Iterator[None]:
    """SQLite may not make the file any longer."""
    plain = _log.connect

    def connect(where: str, mode: str = "rw", until: float = 0.0) -> sqlite3.Connection:
        db = plain(where, mode, until)
        db.execute("PRAGMA max_page_count=1")  # as many as there are
        return db

    with monkeypatch.context() as patch:
        patch.setattr(_log, "connect", connect)
        yield


@contextmanager
def small_files(monkeypatch: pytest.MonkeyPatch, path: Path) -> Iterator[None]:
    """The system lets no file grow longer than the journal is."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("trouble", [small_disk, small_files])
def test_a_full_disk(trouble: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, search = Search(large_policy()), Search(large_policy(), journal=path)
    refusals = []

    def repeated(call: Any, *args: Any) -> Any:
        """The call with a full disk and, if that fails, without."""
        before = standing(search)
        try:
            with trouble(monkeypatch, path):
                search._record._log._drop()  # type: ignore[union-attr]  # connect once more
                return call(*args)
        except JournalError as error:
            refusals.append(str(error))
            assert standing(search) == before
        finally:
            search._record._log._drop()  # type: ignore[union-attr]
        return call(*args)

    while (box := plain.ask()) is not None:
        plain.tell(box, look(box))
        assert repeated(search.ask) == box
        repeated(search.tell, box, look(box))
    assert refusals
    assert all("This call changed nothing and all before it is safe" in x for x in refusals)
    assert standing(search) == standing(plain)
    search.close()
    with Search.resume(path) as again:
        assert standing(again) == standing(plain)


def test_after_a_rejection_the_file_is_opened_afresh(path: Path) -> None:
    with Search(large_policy(), journal=path) as search:
        search.ask()
        journal = search._record._log
        assert journal is not None
        assert journal._db is not None
        journal._db.execute("PRAGMA max_page_count=1")
        with pytest.raises(JournalError, match="database or disk is full"):
            search.replace(large_policy())
        assert journal._db is None
        search.replace(large_policy())
        before = standing(search)
    with Search.join(path) as again:
        assert standing(again) == before


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs Linux")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    done = script("full_disk.py", str(tmp_path), before=["unshare", "-rm"])
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("needs the right to mount a small disk")
    assert done.returncode == 0, done.stderr


def test_a_journal_that_others_hold(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_log, "PATIENCE", 0.05)
    with Search(model(), journal=path) as search:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(JournalError, match=r"another process kept it locked for 0\.05 s"):
            search.ask()
        other.execute("COMMIT")
        other.close()
        assert search.ask() == "A"


def test_a_journal_that_was_moved_or_put_back(path: Path, tmp_path: Path) -> None:
    with Search(model(), journal=path) as search:
        search.ask()
        older = path.read_bytes()
        search.tell("A", 1)
        path.rename(tmp_path / "moved.db")
        with pytest.raises(JournalError, match="No such file"):
            search.tell("B", 21)
        path.write_bytes(older)
        with pytest.raises(JournalError, match="another file has taken the place"):
            search.tell("B", 21)
        path.unlink()
        (tmp_path / "moved.db").rename(path)
        search.tell("B", 21)
        newer = path.read_bytes()
        path.write_bytes(older)
        with pytest.raises(InvalidFile, match="it had 3 events before and has 1 now"):
            search.tell("C#1", 10)
        path.write_bytes(newer)
        search.tell("C#1", 10)
        assert search.spent == 28


def test_an_interrupt_after_writing_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with Search(model(), journal=path) as search:
        for step in range(2):
            with monkeypatch.context() as patch:
                patch.setattr(Record, "_apply", interrupt)
                with pytest.raises(KeyboardInterrupt):
                    search.ask() if step == 0 else search.tell("A", 1)
        assert [x.box for x in search.history] == ["A"]  # it was written, and is read again
        search.tell("A", 1)
        assert [x.box for x in search.history] == ["A"]
        with monkeypatch.context() as patch:
            patch.setattr(Record, "_apply", interrupt)
            with pytest.raises(KeyboardInterrupt):
                search.ask()
        assert search.ask() == "C#1"  # the one that was handed out and never arrived
        assert search.ask(2) == ["C#1", "C#2"]


def test_an_interrupt_before_writing_leaves_all_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with Search(model(), journal=path) as search:
        with monkeypatch.context() as patch:
            patch.setattr(_log.EventLog, "add", interrupt)
            with pytest.raises(KeyboardInterrupt):
                search.ask()
        assert (search.pending, search.ask()) == ([], "A")


def test_closed_and_forked_searches(path: Path) -> None:
    with Search(model(), journal=path) as search:
        search._record._log._process += 1  # type: ignore[union-attr]
        with pytest.raises(JournalError, match=r"opened in another process\. Use Search\.join"):
            search.ask()
        search._record._log._process -= 1  # type: ignore[union-attr]
    with pytest.raises(JournalError, match="the search was closed"):
        search.ask()


# -- several processes -------------------------------------------------------------------------


def test_workers_share_a_search(path: Path) -> None:
    with Search(large_policy(), journal=path) as left, Search.join(path) as right:
        first, second = left.ask(), right.ask()
        assert first != second
        right.tell(second, look(second))
        left.tell(first, look(first))
        right.release(right.ask())
        left.tell("box 3#2", 1)
        assert right.ask(5) != left.ask(5)
        left.ask()
        assert standing(left)[:2] != standing(right)[:2]
        right.tell("box 3#2", 1)  # the same answer; sees what the other did
        assert standing(left) == standing(right)
        with pytest.raises(InvalidAnswer, match="answered before"):
            right.tell("box 3#2", 2)


def test_a_replacement_reaches_the_others(path: Path) -> None:
    with Search(model(), journal=path) as left, Search.join(path) as right:
        left.replace(model(order="CAB"))
        right.tell("A", 900)
        left.replace(model(order="BCA"))
        assert right.ask() == "B"
        assert right.policy.forest.names == ("B", "C", "A")


def test_a_named_worker_gets_its_boxes_back(path: Path) -> None:
    Search(model(), journal=path).close()
    with Search.join(path, worker="left") as left, Search.join(path) as right:
        mine, other = left.ask(), right.ask()
        left.release(mine)
        assert left.ask() == mine
    with Search.join(path, worker="left") as left:
        assert left.pending == [other, mine]
        assert left.ask() == mine
        assert left.ask(2) == [other, mine]  # whose worker is gone
        left.release(other)
        assert other in [box for box, _ in left.available()]


def test_who_resumes_takes_over(path: Path) -> None:
    with Search(model(), journal=path) as old:
        box = old.ask()
        with Search.resume(path) as new:
            assert new.ask() == box
            with pytest.raises(JournalError, match="another process has resumed the search"):
                old.ask()
            old.tell(box, 1)  # what it knows is welcome
            new.tell(box, 1)
            assert len(new.history) == 1
            with Search.join(path) as helper:
                assert helper.ask() != new.ask()


def test_threads_with_a_search_each(path: Path) -> None:
    Search(large_policy(), journal=path).close()
    opened: list[str] = []

    def work() -> None:
        with Search.join(path) as search:
            while not search.done:
                if (box := search.ask()) is not None:
                    opened.append(box)
                    search.tell(box, look(box))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Search.join(path) as search:
        assert sorted(opened) == sorted(x.box for x in search.history)
        assert search.done


# -- kills -------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork") or not hasattr(signal, "SIGKILL"), reason="needs fork")
def test_processes_killed_at_any_instant(tmp_path: Path) -> None:
    done = script("killing.py", str(tmp_path), str(KILLS), "1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] >= KILLS
    assert found["wrong"] == {"different": [], "lost": [], "failed": [], "twice": []}


def test_what_is_undone_after_a_resume_is_handed_out_to_who_resumed(path: Path) -> None:
    """It went to the worker before, so it stayed out when the answer before it was undone too."""
    pair = Builder().add("A", cost=0.5, outcomes={1: 1.0}).add("B", cost=0.5, outcomes={1: 1.0})
    search = Search(solve(pair.build()), journal=path)
    first, second = search.ask(2)
    search.tell(first, reward=1)
    search.tell(second, reward=1)
    search.close()
    with Search.resume(path) as search:
        search.undo()
        assert search.pending == [second]
        search.undo()
        assert search.pending == [first]
        assert search.ask(2) == [first, second]
