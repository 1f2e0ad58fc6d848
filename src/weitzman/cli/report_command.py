"""The command ``weitzman report``."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from .console import killable, progress_bar
from .given_file import PATH, STDIN, given_file, read_problem, table_options, written_file
from .options import COUNT, Options, command

if TYPE_CHECKING:
    from ..engine.plan import Progress
    from ..show.report import Source

_ENDINGS = (".html", ".htm", ".xlsx", ".svg", ".csv")

_ABOUT = """\
Write a report that can be sent: one HTML file that opens from disk, needs no
network and no program but a browser, and prints well.

The report begins with the decision in plain words: what to open, what to
expect, when to stop. Then follow a stepper (say what was seen, and it shows the
next box and why), a drawing, a table of all boxes to sort and search, the
effect of other costs, other strategies, and how sure all this is.

\b
FILE may be
  a problem or a table;
  the journal of a search under way (weitzman run --journal): the report
    says how the search stands and what to do next;
  a model fitted to past runs: how to search among new runs;
  the output of weitzman backtest --json: which method to use;
  -, any of these from standard input.

FILE is only read."""

_EXAMPLES = """\
\b
  weitzman demo --json > boxes.json
  weitzman report boxes.json -o report.html
  weitzman report run.db -o so-far.html --title "Survey, as of Friday\""""

_SQLITE = b"SQLite format 3\0"
_SUMMARY, _HEAD = b'"summary"', 2**20  # what marks a back-test stands near its beginning


@command(_ABOUT, short="One HTML file to read, try out and send.", epilog=_EXAMPLES)
@click.argument(
    "file", metavar="FILE", type=PATH, help="A problem, table, journal, model or back-test, or -."
)
@click.option(
    "-o", "--output", metavar="OUT", type=PATH, required=True,
    help="File to write: .html, .xlsx; .svg, .csv: the decisions; -: standard output.",
)  # fmt: skip
@click.option("--title", help="What the report is about (default: the name of FILE).")
@click.option(
    "--top", type=COUNT, default=300, metavar="N",
    help="Show at most N boxes, those opened most often (default 300).",
)  # fmt: skip
@click.option(
    "--runs", type=COUNT, default=20, metavar="N",
    help="Runs that may be started, if FILE is a fitted model (default 20).",
)  # fmt: skip
@table_options
def report(options: Options) -> None:
    """Carry out the command."""
    name = options.output
    if name != "-" and not name.lower().endswith(_ENDINGS):
        raise click.UsageError(f"a report ends in .html, .xlsx, .svg or .csv, but it is {name!r}.")
    with written_file(name, options.file, suffix=".html") as path:
        with given_file(options.file) as source, progress_bar("computing") as progress, killable():
            _write(source, options, path, progress)
        if name != "-":
            print(f"{path}: {os.path.getsize(path) / 1000:.0f} kB")


def _write(file: str, options: Options, path: str, progress: Progress | None) -> None:
    from ..show.report import write_report

    source = _source(file, options)
    name = STDIN if options.file == "-" else os.path.basename(file)
    write_report(
        source, path, title=name if options.title is None else options.title, top=options.top,
        runs=options.runs, progress=progress,
    )  # fmt: skip


class _Printed:
    """What was printed by a back-test."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def document(self) -> dict[str, Any]:
        return self._document


def _source(path: str, options: Options) -> Source:
    """What a file holds, recognized by its first bytes."""
    from ..learn import model_files
    from ..policy.search import Search

    head, text = _head(path), path.lower().endswith(".json")
    if head.startswith(_SQLITE):
        with Search.look(path) as search:
            return search
    if text and model_files.FORMAT.rpartition("/")[0].encode() in head:
        return model_files.load(path)
    found = _backtest(path) if text and _SUMMARY in head else None
    return read_problem(path, options) if found is None else _Printed(found)


def _backtest(path: str) -> dict[str, Any] | None:
    """The document in a file if it is a back-test; None: read the file as a problem."""
    from ..show.report.replayed import is_backtest

    try:
        with open(path, "rb") as file:
            document = json.loads(file.read().decode("utf-8"))
        return document if is_backtest(document) else None
    except (OSError, ValueError, RecursionError):
        return None


def _head(path: str) -> bytes:
    """The beginning of a file; empty if it cannot be read: reading the file will say why."""
    if not os.path.isfile(path):
        return b""
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""
