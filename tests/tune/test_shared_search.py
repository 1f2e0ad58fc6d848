"""Several processes on one search: the plain driver through its journal."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from journal_events import events_in
from test_tune import CONFIGS, CURVES, HELPERS, MODEL, forgetful, train

from weitzman import tune
from weitzman.errors import InvalidArgument, JournalError

PROCESS = """
import json, os, sys, time
sys.path[:0] = sys.argv[3:]
from test_tune import CONFIGS, MODEL, train
from weitzman import tune

log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def start(config, past):
    for step, row in enumerate(train(config, past), past.step + 1):
        time.sleep(0.02)
        os.write(log, f"{past.run} {step} {os.getpid()}\\n".encode())
        yield row

print("ready", flush=True)
sys.stdin.readline()
result = tune.optimize(start, CONFIGS, MODEL, journal=sys.argv[1], share=True)
print(json.dumps([result.best_score, result.best_config, len(result.runs), result.spent]))
"""


def processes(count: int, *arguments: object) -> list[subprocess.Popen[str]]:
    """Processes that wait for a line before they begin."""
    made = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, *map(str, arguments), *sys.path], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(count)
    ]  # fmt: skip
    for process in made:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    return made


def test_two_processes_share_a_search(tmp_path: Path):
    """Each step is trained once, both tell the same result, and it can be looked at later."""
    path, log = tmp_path / "journal", tmp_path / "log"
    told = []
    for process in (both := processes(2, path, log)):
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in both:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        told.append(json.loads(out))
    assert told[0][:3] == told[1][:3]
    assert told[0][3] == pytest.approx(told[1][3])
    steps = [line.split() for line in log.read_text().splitlines()]
    assert max(Counter((run, step) for run, step, _ in steps).values()) == 1
    assert len({pid for *_, pid in steps}) == 2
    events = events_in(path)
    starts = [e["run"] for e in events if e["event"] == "start"]
    assert starts == list(range(len(starts)))
    assert sorted((e["run"], e["step"]) for e in events if e["event"] == "seen") == sorted(
        (int(run), int(step)) for run, step, _ in steps
    )

    def never(config, past):
        raise AssertionError("all is known")

    again = tune.optimize(never, CONFIGS, MODEL, journal=path)
    assert [again.best_score, again.best_config, len(again.runs)] == told[0][:3]


def test_killed_processes_leave_their_runs_to_the_others(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, str(HELPERS / "tune_killing.py"), tmp_path, "12", "4", "2"],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["kills"] >= 12


def test_one_process_that_shares_does_what_it_does_alone(tmp_path: Path):
    alone = tune.optimize(train, CONFIGS, MODEL, journal=tmp_path / "alone")
    shared = tune.optimize(train, CONFIGS, MODEL, journal=tmp_path / "shared", share=True)
    assert shared == alone
    kinds = {e["event"] for e in events_in(tmp_path / "shared")}
    assert kinds - {e["event"] for e in events_in(tmp_path / "alone")} == {"take"}
    assert tune.optimize(train, CONFIGS, MODEL, journal=tmp_path / "shared") == alone


@pytest.mark.parametrize("share", [False, True])
def test_a_search_is_shared_by_all_or_by_none(tmp_path: Path, share: bool):
    """One that shares does not let one in that does not, and the other way round."""
    path = tmp_path / "journal"

    def nested(config, past):
        before = path.read_bytes()
        with pytest.raises(JournalError, match=rf"process {os.getpid()} on .*`share=True`"):
            tune.optimize(train, CONFIGS, MODEL, journal=path, share=not share)
        assert path.read_bytes() == before
        yield 10.0, 0.1

    assert tune.optimize(nested, [1], MODEL, journal=path, share=share).best_score == 10


def test_a_process_that_was_taken_for_gone_does_no_harm(tmp_path: Path):
    """What it shows of a run that another has taken over does not count."""
    path = tmp_path / "journal"
    begun, go_on = threading.Event(), threading.Event()
    results: list[tune.Result] = []

    def slow(config, past):
        for row in train(config, past):
            begun.set()
            assert go_on.wait(60)
            yield row

    first = threading.Thread(
        target=lambda: results.append(tune.optimize(slow, CONFIGS, MODEL, journal=path, share=True))
    )
    first.start()
    assert begun.wait(60)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM worker")
    whole = tune.optimize(train, CONFIGS, MODEL, journal=path, share=True)
    go_on.set()
    first.join(60)
    assert results[0].runs == whole.runs
    rows = Counter((e["run"], e["step"]) for e in events_in(path) if e["event"] == "seen")
    assert max(rows.values()) == 1


def test_configurations_of_an_iterator_are_counted_by_all(tmp_path: Path):
    """A process skips what the others have started."""
    path = tmp_path / "journal"
    tune.optimize(train, iter(CONFIGS), MODEL, journal=path, share=True, budget=0.01)
    whole = tune.optimize(train, iter(CONFIGS), MODEL, journal=path, share=True)
    assert [run.config for run in whole.runs] == CONFIGS[: len(whole.runs)]
    assert len(whole.runs) > 1
    assert len(CURVES) >= len(whole.runs)


def test_what_sharing_needs(tmp_path: Path):
    with pytest.raises(InvalidArgument, match="through its `journal`, but there is none"):
        tune.optimize(train, CONFIGS, MODEL, share=True)
    with pytest.raises(InvalidArgument, match=r"in a shared search.*must take a parameter `past`"):
        tune.optimize(forgetful, CONFIGS, MODEL, journal=tmp_path / "journal", share=True)
    assert not (tmp_path / "journal").exists()
    replayed = tune.optimize(
        forgetful,
        CONFIGS,
        MODEL,
        journal=tmp_path / "journal",
        share=True,
        on_missing_checkpoint="replay",
    )
    assert replayed.best_score is not None


@pytest.mark.parametrize("configs", [CONFIGS, list(range(12))], ids=["candidates", "numbers"])
def test_a_search_is_taken_up_with_fewer_configurations(tmp_path: Path, configs):
    def start(config, past):
        return train({"curve": config} if isinstance(config, int) else config, past)

    path = tmp_path / "journal"
    whole = tune.optimize(start, configs, MODEL, journal=path, outside=0.0)
    assert len(whole.runs) > 2
    again = tune.optimize(start, configs[:2], MODEL, journal=path, outside=0.0)
    assert again.runs == whole.runs
    with pytest.raises(InvalidArgument, match="the journal is of other configurations"):
        tune.optimize(start, configs[1:3], MODEL, journal=path)
