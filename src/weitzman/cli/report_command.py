"""The command ``weitzman report``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..show.report import Source

_ABOUT = """\
Write a report that one can send: one HTML file that opens from disk, needs no
network and no program but a browser, and prints well.

It begins with the decision in plain words: what to open, what to expect, when
to stop. Then come a stepper (say what was seen, and it shows the next box and
why), a drawing, a table of all boxes to sort and search, what if costs were
different, other strategies, and how sure all this is.

FILE is an instance; or the journal of a search under way (weitzman run
--journal), and the report says how the search stands and what to do next; or a
model fitted to past runs, and it says how to search among new ones; or what
weitzman replay --json printed, and it says which method to use. The file is
only read."""

_EXAMPLES = """\
  weitzman demo --json > boxes.json
  weitzman report boxes.json -o report.html
  weitzman report run.db -o so-far.html --title "Survey, as of Friday\""""

_SQLITE = b"SQLite format 3\0"
_SUMMARY, _HEAD = b'"summary"', 2**20  # what marks a replay stands near its beginning


def add_report_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of the parser; :func:`report` carries it out."""
    from .option_types import whole

    parser = commands.add_parser("report", help="one HTML file to read, try out and send")
    parser.description, parser.epilog = _ABOUT, _EXAMPLES
    parser.add_argument(
        "file", metavar="FILE", help="instance (.json, .json.gz or .wz), journal, model, or replay"
    )
    parser.add_argument(
        "-o", "--output", metavar="HTML", required=True,
        help="file to write; it is replaced if it exists",
    )  # fmt: skip
    parser.add_argument("--title", help="what it is about (default: the name of FILE)")
    parser.add_argument(
        "--top", type=partial(whole, least=1), default=300, metavar="N",
        help="show at most N boxes, those opened most often (default 300)",
    )  # fmt: skip
    parser.add_argument(
        "--runs", type=partial(whole, least=1), default=20, metavar="N",
        help="runs that may be started, if FILE is a fitted model (default 20)",
    )  # fmt: skip


def report(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    from ..show.report import write_report
    from .console import killable, progress_bar

    title = os.path.basename(arguments.file) if arguments.title is None else arguments.title
    with progress_bar(sys.stderr, "computing") as progress, killable():
        source = _source(arguments.file)
        write_report(
            source, arguments.output, title=title, top=arguments.top, runs=arguments.runs,
            progress=progress,
        )  # fmt: skip
    print(f"{arguments.output}: {os.path.getsize(arguments.output) / 1000:.0f} kB")


class _Printed:
    """What was printed by a replay."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def document(self) -> dict[str, Any]:
        return self._document


def _source(path: str) -> Source:
    """What a file holds, told by how it begins."""
    from ..files.instances import load
    from ..policy.search import Search
    from ..show.report import learnt

    head, text = _head(path), path.lower().endswith(".json")
    if head.startswith(_SQLITE):
        with Search.join(path) as search:
            return search
    if text and learnt.FORMAT in head:
        return learnt.load(path)
    replay = _replay(path) if text and _SUMMARY in head else None
    return load(path) if replay is None else _Printed(replay)


def _replay(path: str) -> dict[str, Any] | None:
    """The document in a file, if it is of a replay; reading it as an instance tells the rest."""
    from ..show.report.replayed import is_replay

    try:
        with open(path, "rb") as file:
            document = json.loads(file.read().decode("utf-8"))
        return document if is_replay(document) else None
    except (OSError, ValueError, RecursionError):
        return None


def _head(path: str) -> bytes:
    """The beginning of a file; nothing if there is none: reading it will tell why."""
    if not os.path.isfile(path):
        return b""
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""
