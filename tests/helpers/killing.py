"""Kill processes that run a search, at random instants, and see what is left.

Run as a script: ``python killing.py FOLDER KILLS SEED``. It forks workers, kills them with SIGKILL,
starts others in their place until the search is over, and so on until there were enough kills. It
prints a JSON object with what it saw. A script, since a process with threads must not fork.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from weitzman.engine.indices import Policy
from weitzman.forest.model import Forest
from weitzman.policy.frontier import Box
from weitzman.policy.search import Search

STATES = 3


def policy() -> Policy:
    """Twelve roots and two generations of copies below; whatever is seen, much is opened."""
    rng = np.random.default_rng(7)
    parent = [-1] * 12 + list(range(12)) + list(range(12, 24))
    n = len(parent)
    law = np.full((STATES, STATES), 1 / STATES)
    forest = Forest.from_arrays(
        parent=parent,
        cost=[float(c) for c in rng.integers(1, 9, n)],
        rewards=[0.0, 5.0, 9.0],
        law=[law[0] if p < 0 else law for p in parent],
        count=[2 if v % 3 == 0 else 1 for v in range(n)],
        names=[f"box {v}" for v in range(n)],
    )
    rows = np.array([1 if p < 0 else STATES for p in parent])
    return Policy.of(forest, np.cumsum(rows) - rows, rng.integers(3, 40, rows.sum()).astype(float))


def look(box: Box) -> int:
    """What is in a box: always the same."""
    return zlib.crc32(box.encode()) % STATES


class Log:
    """Lines that several processes add to a file, each in one write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, *words: str) -> None:
        os.write(self.file, ("\t".join(words) + "\n").encode())

    def lines(self) -> list[list[str]]:
        return [line.split("\t") for line in self.path.read_text().splitlines()]


def work(opening: Callable[[], Search], name: str, log: Log) -> None:
    """Open boxes until the search is over."""
    told = {box for kind, _, box in log.lines() if kind == "told"}
    search = opening()
    for box in told.difference(x.box for x in search.history):
        log.add("lost", name, box)
    while not search.done:
        box = search.ask()
        if box is None:  # others are busy
            time.sleep(0.0005)
            continue
        log.add("opened", name, box)
        search.tell(box, look(box))
        log.add("told", name, box)
    log.add("over", name, "")


def alone(path: str, name: str, log: Log) -> None:
    """The only worker, which starts the search if nobody has."""

    def opening() -> Search:
        return Search.resume(path) if os.path.exists(path) else Search(policy(), journal=path)

    work(opening, name, log)


def together(path: str, name: str, log: Log) -> None:
    """One of several workers."""
    work(lambda: Search.join(path, worker=name), name, log)


def fork(task: Callable[[str, str, Log], None], path: str, name: str, log: Log) -> int:
    """Do a task in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            task(path, name, log)
        except BaseException as error:
            log.add("failed", name, repr(error).replace("\n", " "))
        finally:
            os._exit(0)
    return child


def over(log: Log, name: str) -> bool:
    return any(kind in ("over", "failed") and who == name for kind, who, _ in log.lines())


class Reaper:
    """Gives each process a random time to live, such that about every other one gets a box told."""

    def __init__(self, seed: int) -> None:
        self._rng, self._longest, self.kills = random.Random(seed), 0.03, 0

    def slay(
        self, task: Callable[[str, str, Log], None], path: str, names: list[str], log: Log
    ) -> None:
        """Run workers to the end of the search, killing them again and again."""
        alive = {name: (fork(task, path, name, log), self._soon()) for name in names}
        told = 0
        while alive:
            name = min(alive, key=lambda name: alive[name][1])
            child, end = alive.pop(name)
            time.sleep(max(0.0, end - time.monotonic()))
            log.add("killing", name, "")
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            log.add("killed", name, "")
            self.kills += os.WIFSIGNALED(status)
            if not over(log, name):
                alive[name] = fork(task, path, name, log), self._soon()
            before, told = told, sum(kind == "told" for kind, _, _ in log.lines())
            self._longest *= 0.9 if told > before else 1.1

    def _soon(self) -> float:
        return time.monotonic() + self._longest * self._rng.random()


def ending(path: str) -> list[list[object]]:
    """Everything about a search that is over."""
    with Search.join(path) as search:
        assert search.done
        rows = [[x.box, x.state, x.reward, x.cost, x.best, x.spent] for x in search.history]
        return [*rows, [search.best, search.best_box, search.spent]]


def opened_twice(log: Log) -> list[str]:
    """Boxes that a worker opened while another, which had opened them before, was alive."""
    lines = log.lines()
    found = []
    for i, (kind, who, box) in enumerate(lines):
        for j, (other_kind, other, other_box) in enumerate(
            lines[i + 1 :] if kind == "opened" else ()
        ):
            if (other_kind, other_box) == ("opened", box) and other != who:
                found += [] if _killed_between(lines, who, i, i + 1 + j) else [box]
    return found


def _killed_between(lines: list[list[str]], who: str, i: int, j: int) -> bool:
    begun = [k for k, line in enumerate(lines) if line[:2] == ["killing", who]]
    over = [k for k, line in enumerate(lines) if line[:2] == ["killed", who]]
    return any(start < j and i < end for start, end in zip(begun, over, strict=False))


def main(folder: Path, wanted: int, seed: int) -> dict[str, object]:
    """Kill until there were enough kills, a worker alone and several workers by turns."""
    reaper, searches = Reaper(seed), 0
    alone(str(folder / "quiet.db"), "quiet", Log(folder / "quiet.log"))
    end = ending(str(folder / "quiet.db"))
    different: list[str] = []
    lost: list[list[str]] = []
    failed: list[list[str]] = []
    twice: list[str] = []
    while reaper.kills < wanted or searches < 2:
        searches += 1
        path, log = str(folder / f"{searches}.db"), Log(folder / f"{searches}.log")
        if searches % 2:
            reaper.slay(alone, path, ["one"], log)
            different += [path] if ending(path) != end else []
        else:
            Search(policy(), journal=path).close()
            reaper.slay(together, path, ["left", "right"], log)
            ending(path)
        lost += [line for line in log.lines() if line[0] == "lost"]
        failed += [line for line in log.lines() if line[0] == "failed"]
        twice += opened_twice(log)
    wrong = {"different": different, "lost": lost, "failed": failed, "twice": twice}
    return {"wrong": wrong, "kills": reaper.kills, "searches": searches, "boxes": len(end) - 1}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
