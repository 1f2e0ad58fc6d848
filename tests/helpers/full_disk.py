"""A journal on a disk that is really full: ``unshare -rm python full_disk.py FOLDER``.

The disk is mounted in a namespace of its own and is gone with this process. Exit code 77: no right
to mount one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from killing import look, policy

from weitzman.errors import JournalError
from weitzman.policy.search import Search


def refusal(call: Callable[[], object]) -> str:
    """What a call complains of."""
    try:
        call()
    except JournalError as error:
        return str(error)
    raise AssertionError("the disk was not full")


def main(disk: Path) -> None:
    """Fill the disk in the middle of a search, and make space again."""
    search = Search(policy(), journal=disk / "run.db")
    box = search.ask()
    assert box is not None
    with suppress(OSError), open(disk / "filler", "wb", buffering=0) as filler:
        while filler.write(bytes(512)):
            pass
    message = refusal(lambda: search.tell(box, look(box)))
    assert "disk is full" in message or "I/O error" in message, message
    assert (search.pending, search.history) == ([box], [])
    refusal(lambda: Search(policy(), journal=disk / "other.db"))
    assert sorted(p.name for p in disk.iterdir()) == ["filler", "run.db"]
    (disk / "filler").unlink()
    search.tell(box, look(box))
    while (box := search.ask()) is not None:
        search.tell(box, look(box))
    with Search.join(disk / "run.db") as again:
        assert again.history == search.history


if __name__ == "__main__":
    command = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", sys.argv[1]]
    if subprocess.run(command, capture_output=True).returncode:
        sys.exit(77)
    main(Path(sys.argv[1]))
