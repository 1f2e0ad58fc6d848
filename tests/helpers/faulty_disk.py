"""Searches on a disk that fails, below SQLite: ``LD_PRELOAD=faulty_disk.so python faulty_disk.py``.

    faulty_disk.py FOLDER faults    the n-th write or sync fails, for every n
    faulty_disk.py FOLDER cuts      the power is cut after every write, with any of the writes that
                                    were not synced on the disk or not
    faulty_disk.py FOLDER locks     no file can be locked

Prints a JSON object with counts and with what went wrong.
"""

from __future__ import annotations

import ctypes
import errno
import json
import random
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from weitzman.engine.solver import solve
from weitzman.errors import JournalError, WeitzmanError
from weitzman.files.event_log import EventLog
from weitzman.forest.builder import Builder
from weitzman.policy.search import Search
from weitzman.tune.run_store import Journal

SHIM = ctypes.CDLL(None)
KINDS = ("I/O error", "full disk", "short write", "failed sync")


def model(cost: float = 5.0) -> Any:
    boxes = Builder().add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
    boxes.add("B", parent="A", cost=3, outcomes={1: {21: 0.5, -9: 0.5}, 900: {920: 1.0}})
    return solve(boxes.add("C", cost=cost, outcomes={50: 0.5, 10: 0.5}).build()).policy()


def search_calls(path: Path, promised: list[str]) -> Callable[[], None]:
    """Tells and a replacement; what returned was promised. A call that fails is repeated once."""
    search = Search(model(), journal=path)

    def told(box: str, state: object) -> None:
        for _ in range(2):
            try:
                search.tell(box, state)
            except WeitzmanError:
                continue
            promised.append(box)
            SHIM.fault_note(len(promised))
            return

    def run() -> None:
        told("A", 1)
        for _ in range(2):
            try:
                search.replace(model(4.0))
                break
            except WeitzmanError:
                continue
        told("C", 50)
        told("B", 21)
        search.close()

    return run


def search_holds(path: Path) -> list[str]:
    with Search.resume(path, take_over=True) as search:
        return [str(x.box) for x in search.history]


def tuner_calls(path: Path, promised: list[str]) -> Callable[[], None]:
    journal = Journal(path, minimize=False)

    def run() -> None:
        for i in range(3):
            for _ in range(2):
                try:
                    journal.add({"event": "start", "run": i, "config": str(i)})
                except WeitzmanError:
                    continue
                promised.append(str(i))
                SHIM.fault_note(len(promised))
                break
        journal.close()

    return run


def tuner_holds(path: Path) -> list[str]:
    log = EventLog.open(path, "tuner", "reader")  # without taking it over: its owner is alive
    found = log.transact(lambda db: [entry.content["config"] for entry in log.news(db)])
    log.close()
    return found


OWNERS = {"search": (search_calls, search_holds), "tuner": (tuner_calls, tuner_holds)}


def faults(folder: Path) -> dict[str, Any]:
    """Each call below SQLite fails once; everything promised is there, and nothing else is lost."""
    tried, wrong, refused = 0, list[str](), 0
    for owner, (calls, holds) in OWNERS.items():
        for kind, name in enumerate(KINDS):
            for n in range(1, 10_000):
                path = folder / f"{owner}{kind}-{n}.db"
                promised: list[str] = []
                run = calls(path, promised)
                SHIM.fault_arm(n, kind)
                run()
                fired = SHIM.fault_fired()
                SHIM.fault_arm(0, 0)
                found = holds(path)
                if found != promised or not promised:
                    wrong.append(f"{owner}, {name} {n}: promised {promised}, found {found}")
                if not fired:
                    break
                tried += 1
                refused += len(promised) < 3
    return {"tried": tried, "wrong": wrong, "refused": refused}


def read(record: Path) -> list[tuple[str, str, int, bytes]]:
    data, at, found = record.read_bytes(), 0, []
    while at < len(data):
        what, place, size = struct.unpack_from("<qqq", data, at)
        name = data[at + 24 : at + 280].rstrip(b"\0").decode()
        at += 280
        body = data[at : at + size] if chr(what) == "w" else b""
        at += len(body)
        found.append((chr(what), name, place, body))
    return found


class Disk:
    """What is safely on a disk, and what was written since."""

    def __init__(self, safe: dict[str, bytes]) -> None:
        self.safe, self.later = safe, list[tuple[str, str, int, bytes]]()

    def add(self, call: tuple[str, str, int, bytes]) -> None:
        what, name, _, _ = call
        if what == "s":
            done = [x for x in self.later if x[1] == name and x[0] != "u"]
            self.safe = apply(self.safe, done)
            self.later = [x for x in self.later if x not in done]
        elif what == "d":
            self.safe, self.later = (
                apply(self.safe, [x for x in self.later if x[0] == "u"]),
                [x for x in self.later if x[0] != "u"],
            )
        elif what in "wtu":
            self.later.append(call)

    def after_a_cut(self, pick: random.Random) -> dict[str, bytes]:
        """What may be there: of the writes that were not synced any, whole or half."""
        kept = []
        for what, name, at, body in self.later:
            if pick.random() < 0.5:
                half = what == "w" and len(body) > 512 and pick.random() < 0.3
                kept.append((what, name, at, body[: len(body) // 1024 * 512] if half else body))
        return apply(self.safe, kept)


def apply(files: dict[str, bytes], calls: list[tuple[str, str, int, bytes]]) -> dict[str, bytes]:
    files = dict(files)
    for what, name, at, body in calls:
        old = files.get(name, b"")
        if what == "u":
            files.pop(name, None)
        elif what == "t":
            files[name] = old[:at].ljust(at, b"\0")
        else:
            files[name] = old[:at].ljust(at, b"\0") + body + old[at + len(body) :]
    return files


def cuts(folder: Path, worlds: int = 3) -> dict[str, Any]:
    """After any cut the journal opens, with all that was promised before it."""
    tried, wrong, pick = 0, list[str](), random.Random(5)
    for owner, (calls, holds) in OWNERS.items():
        path, promised = folder / f"{owner}.db", list[str]()
        run = calls(path, promised)
        safe = {str(path): path.read_bytes()}
        SHIM.fault_record(str(folder / f"{owner}.record").encode())
        run()
        SHIM.fault_record(b"")
        disk, sure = Disk(safe), 0
        for i, call in enumerate(read(folder / f"{owner}.record")):
            if call[0] == "n":
                sure = call[2]
                continue
            disk.add(call)
            for world in range(worlds):
                place = folder / f"{owner}-{i}-{world}"
                place.mkdir()
                for name, body in disk.after_a_cut(pick).items():
                    (place / Path(name).name).write_bytes(body)
                tried += 1
                try:
                    found = holds(place / path.name)
                except WeitzmanError as error:
                    wrong.append(f"{owner}, cut {i}: {error}")
                    continue
                if found[:sure] != promised[:sure] or found != promised[: len(found)]:
                    wrong.append(f"{owner}, cut {i}: promised {promised[:sure]}, found {found}")
    return {"tried": tried, "wrong": wrong}


def locks(folder: Path) -> dict[str, Any]:
    """A file system without locks is refused at once, and nothing there is touched."""
    tried, wrong = 0, list[str]()
    for owner, (calls, holds) in OWNERS.items():
        path, promised = folder / f"{owner}.db", list[str]()
        calls(path, promised)()
        listed = sorted(folder.iterdir())
        for error in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            before = path.read_bytes()
            SHIM.fault_locks(error)
            for call in (partial(holds, path), partial(calls, folder / "new.db", [])):
                began, said = time.monotonic(), "nothing"
                try:
                    call()
                except JournalError as refusal:
                    said = str(refusal)
                tried += 1
                if "the file system does not lock files" not in said:
                    wrong.append(f"{owner}, error {error}: {said}")
                if time.monotonic() - began > 10 or before != path.read_bytes():
                    wrong.append(f"{owner}, error {error}: after a long time, or it was changed")
            SHIM.fault_locks(0)
            if sorted(folder.iterdir()) != listed or holds(path) != promised:
                wrong.append(f"{owner}, error {error}: something was left or lost")
    return {"tried": tried, "wrong": wrong}


if __name__ == "__main__":
    result = {"faults": faults, "cuts": cuts, "locks": locks}[sys.argv[2]](Path(sys.argv[1]))
    sys.stdout.write(json.dumps(result))
