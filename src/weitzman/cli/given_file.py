"""The files that a command reads and writes: names, and - for standard input and output."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import click

from ..errors import WeitzmanError

STDIN = "standard input"
PATH = click.Path(allow_dash=True)

_MOST = 2**29  # bytes of standard input


@contextmanager
def given_file(path: str, suffix: str | None = None) -> Iterator[str]:
    """The file to read; for - a copy of standard input, named by its contents or as told."""
    if path != "-":
        yield path
        return
    data = sys.stdin.buffer.read(_MOST + 1)
    if len(data) > _MOST:
        raise click.UsageError(f"standard input must have at most {_MOST:,} bytes. Save it first.")
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, f"instance{suffix or suffix_of(data)}")
        with open(copy, "wb") as file:
            file.write(data)
        try:
            yield copy
        except WeitzmanError as error:
            raise type(error)(str(error).replace(copy, STDIN)) from error.__cause__


def suffix_of(data: bytes) -> str:
    """The ending of a file with these contents."""
    if data.startswith(b"\x1f\x8b"):
        return ".json.gz"
    if data.startswith(b"PK\x03\x04"):
        return ".xlsx"
    if data.startswith(b"SQLite format 3\0"):
        return ".db"
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[", b""):
        return ".json"
    from ..files.binary import MAGIC

    return ".wz" if data.startswith(MAGIC) else ".csv"


@contextmanager
def written_file(path: str, *inputs: str, suffix: str) -> Iterator[str]:
    """The file to write; what is written for - is copied to standard output."""
    if path != "-":
        for name in inputs:
            _refuse_same(path, name)
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, f"output{suffix}")
        yield target
        sys.stdout.flush()
        with open(target, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()


def _refuse_same(path: str, name: str) -> None:
    """Refuse to write over a file that is read."""
    try:
        same = os.path.samestat(os.stat(path), _status(name))
    except (OSError, ValueError):  # one of them is not there, or is no file: reading will tell
        same = name != "-" and os.path.realpath(path) == os.path.realpath(name)
    if same:
        raise click.UsageError(
            f"{path} is the file to be read: writing would replace it. Choose another name."
        )


def _status(name: str) -> os.stat_result:
    """What the system knows of a file that is read, also of one that is sent to standard input."""
    return os.fstat(sys.stdin.fileno()) if name == "-" else os.stat(name)
