"""What must hold when things go wrong around a journal: forks, locks, interrupts, hostile files."""

from __future__ import annotations

import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from interrupts import Interrupt, interrupted
from killing import look
from killing import policy as large_policy

from weitzman.engine.solver import solve
from weitzman.errors import InvalidFile, JournalError
from weitzman.files import event_log
from weitzman.files.instances import load, save
from weitzman.forest.builder import Builder
from weitzman.policy.search import Search

HELPERS = Path(__file__).parents[1] / "helpers"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


def model(cost: float = 5.0) -> Any:
    boxes = Builder().add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
    boxes.add("B", parent="A", cost=3, outcomes={1: {21: 0.5, -9: 0.5}, 900: {920: 1.0}})
    return solve(boxes.add("C", cost=cost, outcomes={50: 0.5, 10: 0.5}).build()).policy()


def python(code: str, *args: object, **options: Any) -> subprocess.Popen[str]:
    """A process of its own that runs some lines."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(HELPERS)])}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)], env=env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


HOLD = """
import sys
from weitzman.policy.search import Search
path, *worker = sys.argv[1:]
search = Search.join(path, worker=worker[0]) if worker else Search.resume(path)
print(search.ask(), flush=True)
sys.stdin.readline()
"""


# -- who uses the journal ----------------------------------------------------------------------


def test_a_second_process_is_rejected_and_the_first_is_named(path: Path) -> None:
    Search(model(), journal=path).close()
    first = python(HOLD, path)
    assert first.stdout is not None
    assert first.stdout.readline() == "A\n"
    with pytest.raises(JournalError, match=rf"process {first.pid} on .* is using the journal"):
        Search.resume(path)
    with Search.join(path) as helper:
        assert helper.ask() == "C"
    first.kill()
    first.communicate()
    with Search.resume(path) as search:  # it is gone
        assert search.ask(2) == ["A", "C"]


def test_the_box_of_a_dead_worker_goes_to_the_others_at_once(path: Path) -> None:
    Search(model(), journal=path).close()
    other = python(HOLD, path, "left")
    assert other.stdout is not None
    assert other.stdout.readline() == "A\n"
    with Search.join(path, worker="right") as right:
        assert right.ask(2) == ["C"]
        right.tell("C", 10)
        assert right.ask() is None
        with pytest.raises(JournalError, match="worker 'left', process"):
            Search.join(path, worker="left")
        other.kill()
        other.communicate()
        assert right.ask() == "A"


def test_workers_on_other_machines_have_an_hour(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Search(model(), journal=path) as here, Search.join(path, worker="far") as far:
        assert (far.ask(), here.ask()) == ("A", "C")
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE worker SET host = 'elsewhere' WHERE token = 'far'")
            db.commit()
        now, clock, lease = time.monotonic(), event_log.time, event_log.LEASE
        assert here.ask(2) == ["C"]
        monkeypatch.setattr(clock, "monotonic", lambda: now + lease / 2)
        monkeypatch.setattr(clock, "time", lambda: 1e12)  # clocks may jump
        assert here.ask(2) == ["C"]
        far.beat()
        monkeypatch.setattr(event_log.time, "monotonic", lambda: now + 1.2 * event_log.LEASE)
        assert here.ask(2) == ["C"]
        monkeypatch.setattr(event_log.time, "monotonic", lambda: now + 2.4 * event_log.LEASE)
        assert here.ask(2) == ["A", "C"]
        with pytest.raises(JournalError, match="on elsewhere was using, as far as is known"):
            Search.resume(path)
        with Search.resume(path, take_over=True) as taken:
            assert taken.ask() == "A"


# -- forks, threads, locks ---------------------------------------------------------------------

FORK = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from killing import look, policy
from weitzman.errors import JournalError
from weitzman.policy.search import Search

search, memory, over = Search(policy(), journal=sys.argv[1]), Search(policy()), []
def work(search):
    while not over:
        search.release(search.ask())
        time.sleep(0.001)
threads = [threading.Thread(target=work, args=[s]) for s in (search, memory)]
for thread in threads:
    thread.start()
wrong = 0
for _ in range(12):
    child = os.fork()
    if child == 0:
        try:
            search.ask()
        except JournalError:
            memory.release(memory.ask(9)[-1])
            memory.available()
            sys.exit(0)  # with all that an interpreter does at its end
        os._exit(1)
    end = time.monotonic() + 30
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.005)
    if done[0] == 0:
        os.kill(child, 9)
        os.waitpid(child, 0)
    wrong += done[0] == 0 or done[1] != 0
over.append(1)
for thread in threads:
    thread.join()
search.close()
Search.resume(sys.argv[1]).close()
print(wrong)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_threads_use_a_search_does_not_hang(path: Path) -> None:
    out, err = python(FORK, path).communicate(timeout=600)
    assert (out, err) == ("0\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(("seconds", "waits"), [(0.3, True), (3.0, False)])
def test_a_fork_waits_a_little_for_threads_that_write(
    path: Path, seconds: float, waits: bool
) -> None:
    """SQLite has locks for the whole process: a child made while they are held opens no journal."""
    search = Search(model(), journal=path)
    log, writing, written = search._record._log, threading.Event(), threading.Event()

    def write(_: sqlite3.Connection) -> None:
        writing.set()
        time.sleep(seconds)
        written.set()

    assert log is not None
    thread = threading.Thread(target=log.transact, args=[write])
    thread.start()
    writing.wait()
    child = os.fork()
    if child == 0:
        os._exit(int(written.is_set()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == waits
    thread.join()
    assert search.ask() == "A"  # the turn was given back
    search.close()


def test_a_locked_journal_stalls_no_other_and_hears_interrupts(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, free = Search(model(), journal=path), Search(model(), journal=tmp_path / "free.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        heard: list[BaseException] = []

        def wait() -> None:
            try:
                locked.ask()
            except BaseException as error:
                heard.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.2)
        assert free.ask() == "A"
        assert thread.is_alive()
        other.execute("COMMIT")
        thread.join()
        assert heard == []
        other.execute("BEGIN EXCLUSIVE")

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        began = time.monotonic()
        try:
            with pytest.raises(KeyboardInterrupt):
                locked.tell("A", 1)
        finally:
            signal.signal(signal.SIGALRM, before)
        assert time.monotonic() - began < event_log.PATIENCE / 2
        other.execute("COMMIT")
    locked.tell("A", 1)
    for search in (locked, free):
        search.close()


# -- interrupts --------------------------------------------------------------------------------


# a generator that is closed while it is interrupted cannot raise: Python tells it as a warning
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["tell", "replace", "ask", "undo"])
@pytest.mark.parametrize("kept", [True, False])
def test_an_interrupt_anywhere_leaves_all_or_nothing(tmp_path: Path, kind: str, kept: bool) -> None:
    """Then the next call works, and a search resumed from the journal stands where it does."""
    new, places = model(3.0), 0
    for at in range(1, 100_000, 7):
        path = tmp_path / f"{at}.db"
        search = Search(model(), journal=path) if kept else Search(model())
        search.tell("A", 1)
        call = {
            "tell": lambda s=search: s.tell("C", 50), "replace": lambda s=search: s.replace(new),
            "ask": search.ask, "undo": search.undo,
        }[kind]  # fmt: skip
        if not interrupted(call, Interrupt(at, opcodes=not kept)):
            search.close()
            break
        places += 1
        told = [x.box for x in search.history]
        assert told in (["A"], ["A", "C"] if kind == "tell" else [] if kind == "undo" else ["A"])
        search.replace(model(4.0))
        search.tell("A", 1)
        search.tell("C", 50)
        assert search.best == 50
        if kept:
            search.close()
            with Search.resume(path) as again:
                assert again.history == search.history
                assert again.available() == search.available()
            path.unlink()
    assert places > 10


# -- hostile files and file systems ------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM setting; END",
        "CREATE VIEW v AS SELECT load_extension('x')",
        "CREATE TABLE extra (x)",
        "CREATE INDEX i ON event (hex(worker))",
    ],
)
def test_sql_that_was_planted_is_rejected(path: Path, sql: str) -> None:
    Search(model(), journal=path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(sql)
        db.commit()
    before = path.read_bytes()
    with pytest.raises(InvalidFile, match="must hold tables of this program alone"):
        Search.resume(path)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_synced_is_left_without_a_journal(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain_open, plain_sync = os.open, os.fsync

    def no_folder(name: Any, *args: Any, **options: Any) -> int:
        if os.path.isdir(name):
            raise PermissionError(errno.EACCES, "Permission denied")
        return plain_open(name, *args, **options)

    def no_sync(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    for name, broken in (("open", no_folder), ("fsync", no_sync)):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, broken)
            with pytest.raises(JournalError, match=r"cannot be read, so that|Input/output error"):
                Search(model(), journal=path)
        assert list(path.parent.iterdir()) == []
    assert plain_sync is os.fsync
    Search(model(), journal=path).close()


def test_saving_waits_for_the_name_to_be_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    plain = os.fsync

    def sync(handle: int) -> None:
        synced.append(os.path.isdir(f"/proc/self/fd/{handle}"))
        plain(handle)

    monkeypatch.setattr(os, "fsync", sync)
    save(model().forest, tmp_path / "boxes.json")
    assert len(load(tmp_path / "boxes.json")) == 3
    if os.path.isdir("/proc/self/fd"):
        assert synced == [False, True]


@pytest.mark.parametrize("code", ["SQLITE_PROTOCOL", "SQLITE_IOERR_LOCK", "SQLITE_NOLFS"])
def test_a_file_system_without_locks_is_named(path: Path, code: str) -> None:
    with Search(model(), journal=path) as search:
        log = search._record._log
        assert log is not None
        error = sqlite3.OperationalError("locking protocol")
        error.sqlite_errorname = code
        said = str(log._explanation(error))
    assert "the file system does not lock files" in said
    assert "damaged" not in said


def test_a_long_search_is_small(path: Path) -> None:
    with Search(large_policy(), journal=path) as search:
        before = path.stat().st_size
        while (box := search.ask()) is not None:
            search.tell(box, look(box))
        events = 2 * len(search.history)
    assert path.stat().st_size - before < 400 * events


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_or_a_name_that_no_file_can_have_is_rejected_at_once(path: Path) -> None:
    os.mkfifo(path)
    for use in (Search.resume, Search.join, Search.look):
        with pytest.raises(JournalError, match="it is a pipe or a device"):
            use(path)
    with pytest.raises(JournalError, match="the character NUL"):
        Search(model(), journal="a\0b")
    with pytest.raises(JournalError, match="the character NUL"):
        Search.resume("a\0b")


def test_a_worker_name_is_taken_once_in_one_process(path: Path) -> None:
    Search(model(), journal=path).close()
    with Search.join(path, worker="left") as left:
        with pytest.raises(JournalError, match=r"worker 'left', process .* is using the journal"):
            Search.join(path, worker="left")
        assert left.ask() == "A"
        with Search.join(path, worker="right") as right:
            assert right.ask() == "C"
    with Search.join(path, worker="left") as left:  # it was closed
        assert left.ask() == "A"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX")
def test_permissions_lost_in_the_middle_of_a_search(path: Path) -> None:
    """The call is refused and changes nothing; with the permissions back it can be repeated."""
    folder = path.parent / "private"
    folder.mkdir()
    root = os.geteuid() == 0
    with Search(model(), journal=folder / "run.db") as search:
        search.tell("A", 1)
        folder.chmod(0o500)
        try:
            if root:  # whom no permission stops
                os.chown(folder, 65534, 65534)
                os.chown(folder / "run.db", 65534, 65534)
                os.seteuid(65534)
            with pytest.raises(JournalError, match=r"cannot be (written|used)"):
                search.tell("C", 50)
            assert [x.box for x in search.history] == ["A"]
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o700)
        search.tell("C", 50)
        before = search.history
    with Search.resume(folder / "run.db") as again:
        assert again.history == before


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs POSIX signals")
def test_a_suspended_worker_loses_nothing_and_shares_nothing(tmp_path: Path) -> None:
    """A few of the pauses of tests/campaigns/pause_searches.py."""
    script = HELPERS.parent / "campaigns" / "pause_searches.py"
    code = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    done = python(code, script, tmp_path, 733)
    out, err = done.communicate(timeout=300)
    assert (done.returncode, err) == (0, "")
    found = json.loads(out)
    assert found["wrong"] == []
    assert found["pauses"] > 3
