"""The file that a command writes: never one that it reads, and - for standard output."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from .console import Misused


@contextmanager
def output(path: str, *inputs: str, suffix: str) -> Iterator[str]:
    """The file to write; what is written for - is copied to standard output."""
    if path != "-":
        for name in inputs:
            refuse_same(path, name)
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, f"output{suffix}")
        yield target
        sys.stdout.flush()
        with open(target, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()


def refuse_same(path: str, name: str) -> None:
    """Refuse to write over a file that is read."""
    try:
        same = os.path.samefile(path, name)
    except OSError:  # one of them is not there, or cannot be looked at: reading will tell
        same = os.path.realpath(path) == os.path.realpath(name)
    if same and name != "-":
        raise Misused(f"{path} is the file to be read: writing would replace it. Choose another.")
