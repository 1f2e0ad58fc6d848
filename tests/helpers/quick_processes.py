"""Fresh processes that start at once: forked from one that has imported NumPy and warmed up Numba.

A process imports these for a second, and Numba takes another third of a second for the first
function that it compiles. What is under test is not imported before the fork.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from typing import Any, NamedTuple


class Ended(NamedTuple):
    """What a process has left."""

    returncode: int
    out: str
    err: str


class Starter:
    """Starts processes; used by one thread."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-B", __file__], stdin=subprocess.PIPE, text=True
        )

    def start(self, code: str, env: dict[str, str], *, longest_file: int | None = None) -> Any:
        """Begin to run code; gives a function that waits for its end."""
        assert self._server.stdin is not None
        read, write = os.pipe()
        request = {"code": code, "env": env, "longest": longest_file}
        # the server opens the other end of the pipe by its name, while this process holds it
        request["answer"] = f"/proc/{os.getpid()}/fd/{write}"
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()

        def wait() -> Ended:
            with open(read) as file:
                answer = file.readline()
            os.close(write)
            return Ended(*json.loads(answer))

        return wait

    def close(self) -> None:
        self._server.communicate()


def run(request: dict[str, Any]) -> int:
    """The child: as a new interpreter would, but for what is imported."""
    import resource

    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[:0] = request["env"].get("PYTHONPATH", "").split(os.pathsep)
    if request["longest"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["longest"],) * 2)
    try:
        exec(compile(request["code"], "<code>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def watch(request: dict[str, Any]) -> None:
    """One process between the server and each child collects what the child prints."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pipes = [os.pipe(), os.pipe()]
    child = os.fork()
    if child == 0:
        for target, (_, write) in enumerate(pipes, 1):
            os.dup2(write, target)
        code = run(request)
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    texts = ["", ""]

    def collect(i: int) -> None:
        os.close(pipes[i][1])
        with open(pipes[i][0]) as file:
            texts[i] = file.read()

    readers = [threading.Thread(target=collect, args=(i,)) for i in (0, 1)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    _, status = os.waitpid(child, 0)
    with open(request["answer"], "w") as file:
        file.write(json.dumps([os.waitstatus_to_exitcode(status), *texts]) + "\n")


def serve() -> None:
    """Fork for every request."""
    import numba
    import numpy as np

    numba.njit(lambda x: x[0])(np.zeros(1))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            watch(json.loads(line))
            os._exit(0)


if __name__ == "__main__":
    serve()
