"""The command ``weitzman report``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from .console import Misused
from .instance_file import add_table_options, read_instance
from .option_types import whole
from .output_file import output

if TYPE_CHECKING:
    from ..engine.plan import Progress
    from ..show.report import Source

_ENDINGS = (".html", ".htm", ".xlsx", ".svg", ".tex", ".csv")

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
    parser = commands.add_parser("report", help="one HTML file to read, try out and send")
    parser.description, parser.epilog = _ABOUT, _EXAMPLES
    parser.add_argument("file", metavar="FILE", help="instance, table, journal, model, or replay")
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True,
        help="file to write: .html, .xlsx; .svg, .tex, .csv: the decisions; -: standard output",
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
    add_table_options(parser)


def report(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    from .console import killable, progress_bar

    name = arguments.output
    if name != "-" and not name.lower().endswith(_ENDINGS):
        raise Misused(f"a report ends in .html, .xlsx, .svg, .tex or .csv, but it is {name!r}.")
    with output(name, arguments.file, suffix=".html") as path:
        with progress_bar(sys.stderr, "computing") as progress, killable():
            _write(arguments, path, progress)
        if name != "-":
            print(f"{path}: {os.path.getsize(path) / 1000:.0f} kB")


def _write(arguments: argparse.Namespace, path: str, progress: Progress | None) -> None:
    from ..forest.model import Forest
    from ..show.report import write_report
    from ..show.report_workbook import write_workbook

    source = _source(arguments)
    if path.lower().endswith(".xlsx"):
        if not isinstance(source, Forest):
            raise Misused("a workbook is made of an instance; of other files write .html.")
        write_workbook(source, path, progress)
        return
    title = os.path.basename(arguments.file) if arguments.title is None else arguments.title
    write_report(
        source, path, title=title, top=arguments.top, runs=arguments.runs, progress=progress
    )


class _Printed:
    """What was printed by a replay."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def document(self) -> dict[str, Any]:
        return self._document


def _source(arguments: argparse.Namespace) -> Source:
    """What a file holds, told by how it begins."""
    from ..policy.search import Search
    from ..show.report import learnt

    path = arguments.file
    head, text = _head(path), path.lower().endswith(".json")
    if head.startswith(_SQLITE):
        with Search.look(path) as search:
            return search
    if text and learnt.FORMAT in head:
        return learnt.load(path)
    replay = _replay(path) if text and _SUMMARY in head else None
    return read_instance(arguments) if replay is None else _Printed(replay)


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
