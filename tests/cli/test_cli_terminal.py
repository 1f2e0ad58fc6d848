"""``weitzman search`` in a real terminal, by keyboard: confirm, refuse, take back, leave, go on."""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import weitzman

PATIENCE = 60.0  # seconds without a word
SOURCE = str(Path(weitzman.__file__).parents[1])

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a terminal")


def typed(folder: Path, keys: str) -> str:
    """What the terminal shows of a run while keys are pressed."""
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["PYTHONPATH"] = SOURCE
        os.chdir(folder)
        command = [sys.executable, "-m", "weitzman", "search", "boxes.json", "--journal", "run.db"]
        os.execv(sys.executable, command)
    os.write(terminal, keys.encode())
    text = b""
    try:
        while select.select([terminal], [], [], PATIENCE)[0] and (chunk := os.read(terminal, 4096)):
            text += chunk
    except OSError:  # the other end was closed
        pass
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # it should have ended
    os.waitpid(pid, 0)
    return text.decode().replace("\r\n", "\n")


def test_a_run_by_keyboard(tmp_path):
    boxes = weitzman.Builder(prizes=2)
    for name in "ABC":
        boxes.add(name, cost=1, outcomes={0: 0.5, 10: 0.5})
    weitzman.save(boxes.build(), tmp_path / "boxes.json")
    text = typed(tmp_path, "0\nn\n10\n\n0\n\nundo\nquit\n")
    assert text.count("Right? [Y/n]") == 3
    assert "A showed 0. Right?" in text  # refused, and asked again
    assert "Take 10 from A for good" in text
    assert "Took back 0 from B" in text
    assert "spent 1, payoff 9; also available: C (index 8)" in text.split("Took back")[1]  # not out
    assert "Stopped for now. Run it again to continue." in text
    search = weitzman.Search.look(tmp_path / "run.db")
    assert [(str(s.box), s.reward) for s in search.history] == [("A", 10.0)]
    text = typed(tmp_path, "10\n\n\n")
    assert "prizes taken: 10 from A, 10 from B; spent 2, payoff 18" in text
    assert "Traceback" not in text
