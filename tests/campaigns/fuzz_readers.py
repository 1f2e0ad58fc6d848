"""A campaign of damaged and hostile files against every reader, by the API and by the command.

    python tests/campaigns/fuzz_readers.py FOLDER SECONDS [SEED]

Each input is written to FOLDER (best a folder in memory) and given to a reader. What must not
happen: an error that is not ours, a warning, a traceback, exit code 70, more than 5 seconds, more
than a gigabyte. Inputs that do it are kept in FOLDER/bad, and the campaign goes on. Counts stand in
FOLDER/counts.json, which is written every few seconds and continued by the next start. Most
commands run in this process, some as processes of their own.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gzip
import hashlib
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from mutations import mutate_bytes, mutate_document
from specimens import Specimen, specimens

from weitzman import cli
from weitzman.errors import WeitzmanError

SLOWEST = 5.0  # seconds of computing for an input
MOST = 2**30  # bytes of memory that all inputs together may add at their peak
ALONE = 5000  # commands in this process for each one that is a process of its own
LATE = 60.0  # seconds on the clock after which a reader hangs


class Late(BaseException):
    """A reader took longer than LATE."""


class Way(NamedTuple):
    """What came of one input."""

    end: str  # "read", "refused", or what is wrong
    message: str = ""


def by_api(specimen: Specimen, path: Path) -> Way:
    """Give a file to the reader."""
    try:
        specimen.read(path)
    except WeitzmanError as error:
        return Way("refused", str(error))
    except Exception:
        return Way("error", traceback.format_exc())
    return Way("read")


def by_command(specimen: Specimen, path: Path, pick: random.Random) -> Way:
    """Give a file to a command in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    sys.stdin = io.StringIO("")  # whoever asks a question gets no answer
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([str(x) for x in pick.choice(specimen.commands)(path)])
    err.flush()
    return judged(code, err.buffer.getvalue().decode())  # type: ignore[attr-defined]


def by_process(specimen: Specimen, path: Path, pick: random.Random) -> Way:
    """Give a file to a command as people do."""
    command = [sys.executable, "-m", "weitzman", *map(str, pick.choice(specimen.commands)(path))]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=LATE, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return judged(done.returncode, done.stderr)


def judged(code: int, said: str) -> Way:
    """One line for a refusal, and nothing that looks like a fault of the program."""
    if code not in (0, 1, 2, 3) or "Traceback" in said or "Warning" in said:
        return Way("error", f"exit code {code}: {said}")
    if code and said.count("weitzman: error: ") != 1:
        return Way("error", f"exit code {code}, but it said {said!r}")
    return Way("refused" if code else "read", said)


class Campaign:
    """Counts, and what was wrong."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.bad = folder, folder / "bad"
        self.bad.mkdir(parents=True, exist_ok=True)
        self.pick = random.Random(seed)
        self.known = specimens(folder)
        self.counts: Counter[str] = Counter()
        self.slowest = 0.0
        with contextlib.suppress(FileNotFoundError):
            past = json.loads((folder / "counts.json").read_text())
            self.counts, self.slowest = Counter(past["counts"]), past["slowest"]
        self.before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def run(self, seconds: float) -> None:
        """Inputs of all kinds by turns, each kind as often as it is quick."""
        end, told = time.monotonic() + seconds, 0.0
        turns = [x for x in self.known for _ in range(x.share)]
        while time.monotonic() < end:
            self.pick.shuffle(turns)
            faulthandler.dump_traceback_later(20 * LATE, exit=True)
            for specimen in turns:
                self.one(specimen)
                if time.monotonic() > min(end, told + 10):
                    self.tell()
                    told = time.monotonic()
        self.tell()
        faulthandler.cancel_dump_traceback_later()

    def one(self, specimen: Specimen) -> None:
        """One input, by one way."""
        data = damaged(specimen, self.pick)
        kind = "command" if specimen.commands and self.pick.random() < specimen.told else "api"
        way, took = self.given(specimen, kind, data, time.perf_counter)
        if took > SLOWEST:  # perhaps the machine was busy: once more, by the time of the processor
            way, took = self.given(specimen, kind, data, time.process_time)
            if took > SLOWEST:
                way = Way("slow", f"{took:.1f} seconds; {way}")
        self.slowest = max(self.slowest, took)
        if self.counts.total() % 16 == 0 and self.grown() > MOST:
            text = f"{self.grown()} bytes, for this one or one of the fifteen before; {way}"
            way, self.before = Way("large", text), self._peak()
        self.counts[f"{specimen.name} by {kind}: {way.end}"] += 1
        if way.end not in ("read", "refused"):
            self.keep(specimen, kind, data, way)

    def given(
        self, specimen: Specimen, kind: str, data: bytes, clock: Callable[[], float]
    ) -> tuple[Way, float]:
        """What comes of an input, and the time that it takes."""
        path = self.folder / f"input{specimen.suffix}"
        path.write_bytes(data)
        began = clock()
        try:
            with alarm(LATE):
                if kind == "api":
                    way = by_api(specimen, path)
                elif self.counts.total() // ALONE > self.counts["processes"]:
                    self.counts["processes"] += 1
                    way = by_process(specimen, path, self.pick)
                else:
                    way = by_command(specimen, path, self.pick)
        except (Late, subprocess.TimeoutExpired):
            way = Way("late", "no answer")
        return way, clock() - began

    def keep(self, specimen: Specimen, kind: str, data: bytes, way: Way) -> None:
        name = f"{specimen.name}-{kind}-{hashlib.sha256(data).hexdigest()[:10]}".replace(" ", "_")
        (self.bad / f"{name}{specimen.suffix}").write_bytes(data)
        (self.bad / f"{name}.txt").write_text(f"{way.end}: {way.message}")

    def grown(self) -> int:
        return (self._peak() - self.before) * 1024

    @staticmethod
    def _peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def tell(self) -> None:
        """Write the counts, whole or not at all."""
        found = {"counts": dict(sorted(self.counts.items())), "slowest": self.slowest}
        new = self.folder / "counts.json.new"
        new.write_text(json.dumps({**found, "megabytes": self.grown() // 10**6}, indent=1))
        new.replace(self.folder / "counts.json")


def damaged(specimen: Specimen, pick: random.Random) -> bytes:
    """A valid file with some damage; where it is packed, at times within."""
    if specimen.own is not None and pick.random() < 0.7:
        return specimen.own(pick)
    if specimen.documents and pick.random() < 0.6:
        data = json.dumps(mutate_document(pick.choice(specimen.documents), pick)).encode()
        return gzip.compress(data, 1) if specimen.suffix.endswith(".gz") else data
    data, other = pick.choice(specimen.valid), pick.choice(specimen.valid)
    if specimen.suffix.endswith(".gz") and pick.random() < 0.5:
        inside = mutate_bytes(gzip.decompress(data), pick, gzip.decompress(other))
        return gzip.compress(inside, 1)
    return mutate_bytes(data, pick, other)


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise Late after so many seconds."""

    def late(*_: Any) -> None:
        raise Late

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main(folder: Path, seconds: float, seed: int) -> int:
    """Run a campaign; the number of inputs that went wrong."""
    warnings.simplefilter("error")
    os.environ["MPLBACKEND"] = "Agg"
    campaign = Campaign(folder, seed)
    campaign.run(seconds)
    wrong = len(list(campaign.bad.glob("*.txt")))
    total = campaign.counts.total() - campaign.counts["processes"]
    sys.stdout.write(
        f"{total:,} inputs, {campaign.counts['processes']:,} of them to processes of their own; "
        f"{wrong} went wrong; slowest {campaign.slowest:.2f} s\n"
    )
    return wrong


if __name__ == "__main__":
    start = int(sys.argv[3]) if len(sys.argv) > 3 else time.time_ns()
    sys.exit(min(main(Path(sys.argv[1]), float(sys.argv[2]), start), 100))
