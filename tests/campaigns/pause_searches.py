"""Pause processes that share a search at every instruction, and see what the others may do.

Run as a script: ``python pause_searches.py FOLDER [STRIDE]``. A worker asks and tells, and stops
itself (SIGSTOP) at one instruction, every STRIDE-th in turn. While it stands still, another worker
asks and tells; then the first continues (SIGCONT). A paused worker is alive, however long it takes:
no box goes to both, no answer is lost, and the other gets a box or is told who holds the file.
Prints a JSON object with what it saw. A script, since a process with threads must not fork.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from interrupts import Interrupt
from killing import look, policy

from weitzman.errors import JournalError
from weitzman.files import event_log
from weitzman.policy.search import Search

LONGEST = 1_000_000  # instructions of one ask and one tell, at most
PATIENCE = 0.1  # seconds that the other worker waits for the file


class Pause(Interrupt):
    """Stops this process at the n-th instruction of the package."""

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        try:
            return super().__call__(frame, event, arg)
        except KeyboardInterrupt:
            sys.settrace(None)
            os.kill(os.getpid(), signal.SIGSTOP)
            return None


def paused(path: str, at: int, out: int) -> None:
    """A worker that asks and tells, and stands still once."""
    search = Search.join(path, worker="paused")
    sys.settrace(Pause(at))
    box = search.ask()
    if box is not None:
        search.tell(box, look(box))
    sys.settrace(None)
    os.write(out, str(box).encode())
    search.close()


def beside(path: str) -> list[str]:
    """What another worker opens meanwhile; it may find the file locked."""
    event_log.PATIENCE = PATIENCE
    try:
        with Search.join(path, worker="other") as search:
            box = search.ask()
            if box is None:
                return []
            event_log.PATIENCE = 60.0  # what was handed out will be told
            search.tell(box, look(box))
            return [str(box)]
    except JournalError as error:
        return [] if "kept it locked for" in str(error) else [f"failed: {error}"]
    finally:
        event_log.PATIENCE = 60.0


def main(folder: Path, stride: int) -> dict[str, object]:
    """Pause at every instruction, one after the other, until a worker is through before."""
    wrong: list[str] = []
    pauses = locked = 0
    for at in range(1, LONGEST, stride):
        path = str(folder / f"{at}.db")
        Search(policy(), journal=path).close()
        ready, out = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                paused(path, at, out)
                os._exit(0)
            except BaseException as error:
                os.write(out, f"failed: {error!r}".encode())
                os._exit(1)
        os.close(out)
        _, status = os.waitpid(child, os.WUNTRACED)
        stopped = os.WIFSTOPPED(status)
        others: list[str] = []
        if stopped:
            pauses += 1
            others = beside(path)
            locked += not others
            os.kill(child, signal.SIGCONT)
            _, status = os.waitpid(child, 0)
        mine = os.read(ready, 10_000).decode()
        os.close(ready)
        with Search.resume(path) as search:
            told = sorted(str(x.box) for x in search.history)
        if status != 0 or mine in others or told != sorted([mine, *others]):
            wrong.append(f"at {at}: {mine!r} beside {others}, {told} in the journal")
        os.unlink(path)
        if not stopped:
            break
    return {"wrong": wrong, "pauses": pauses, "locked": locked}


if __name__ == "__main__":
    stride = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), stride)))
