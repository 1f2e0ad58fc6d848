"""The commands ``weitzman report`` and ``weitzman explore``."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from ..errors import InvalidArgument
from . import common
from .common import Options, command

if TYPE_CHECKING:
    from ..files.tables import TableReading
    from ..show.explore.workbench import Workbench
    from ..show.report import Source

_REPORTS = """\
\b
  weitzman demo --json > boxes.json
  weitzman report boxes.json -o report.html
  weitzman report run.db -o so-far.html --title "Survey, as of Friday\""""

_SQLITE = b"SQLite format 3\0"


def _two_words(text: str) -> tuple[str, str]:
    box, comma, verb = (x.strip() for x in text.partition(","))
    if not (comma and box.isalpha() and verb.isalpha()):
        raise ValueError(f"give two words, such as stage,run, not {text!r}.")
    return box, verb


_words_option = click.option(
    "--words", type=common.ReadAs("words", _two_words), metavar="BOX,OPEN",
    help="What a box is called, and what is done with it: stage,run.",
)  # fmt: skip


@command(short="One HTML file to read, try out and send.", epilog=_REPORTS)
@click.argument(
    "file", metavar="FILE", type=common.PATH,
    help="A problem, table, journal or model, or -.",
)  # fmt: skip
@common.output_option(
    "File to write: .html, .pptx, .xlsx; .svg, .csv: the decisions; -: standard output."
)
@click.option("--title", help="What the report is about (default: the name of FILE).")
@common.limit_option("Boxes to show, those opened most often", 300)
@_words_option
@common.table_options
def report(options: Options) -> None:
    """Write a report that can be sent: one HTML file that opens from disk, needs no
    network and no program but a browser, and prints well.

    The report begins with the decision in plain words: what to open, what to
    expect, when to stop. Then follow a stepper (say what was seen, and it shows the
    next box and why), a drawing, a table of all boxes to sort and search, the
    effect of other costs, other strategies, and how sure all this is.

    \b
    FILE may be
      a problem or a table;
      the journal of a search under way (weitzman search --journal): the report
        says how the search stands and what to do next;
      -, any of these from standard input.

    FILE is only read.
    """
    from ..show.report import ending, write_report

    if (name := options.output) != "-":
        try:
            ending(name)
        except InvalidArgument as error:
            raise click.UsageError(str(error)) from None
    with common.written_file(name, options.file, suffix=".html") as path:
        with (
            common.given_file(options.file) as file,
            common.progress_bar("computing") as progress,
            common.killable(),
        ):
            source, table = _source(file, options)
            title, words, ranges = None, options.words or ("box", "open"), None
            if table is not None:
                words = (*(options.words or table.words), table.time)
                title, ranges = table.title, table.ranges
            title = title or (common.STDIN if options.file == "-" else os.path.basename(file))
            write_report(
                source, path, title=title if options.title is None else options.title,
                limit=options.limit or sys.maxsize, ranges=ranges, words=words,
                progress=progress,
            )  # fmt: skip
        if name != "-":
            print(f"{path}: {os.path.getsize(path) / 1000:.0f} kB")


def _source(path: str, options: Options) -> tuple[Source, TableReading | None]:
    """What a file holds, recognized by its first bytes, and what a table says besides."""
    head = b""
    with suppress(OSError):  # reading the file as a problem will say why it cannot be read
        if os.path.isfile(path):
            with open(path, "rb") as file:
                head = file.read(len(_SQLITE))
    if head.startswith(_SQLITE):
        from ..policy.search import Search

        with Search.look(path) as search:
            return search, None
    reading = common.read_file(path, options)
    return reading.forest, reading


_PATIENCE = 16  # times the usual size up to which nobody has to wait for a compiler
_EXPLORED = """\
\b
  weitzman explore
  weitzman explore stages.xlsx --unit EUR
  weitzman demo --json | weitzman explore -
  weitzman explore boxes.json --no-browser --port 8000"""


@command(short="Build, change and try boxes in the browser.", epilog=_EXPLORED)
@click.argument(
    "file", metavar="[FILE]", type=common.PATH, required=False,
    help="A problem or a table, also a new one; - is standard input.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(1, 65_535), default=None, metavar="N",
    help="Port (default: any free port).",
)  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Print the address and open no browser.")
@_words_option
@common.table_options
def explore(options: Options) -> None:
    """Open a page in the browser on which boxes can be built and changed: add a box,
    drag it under another box, edit costs, states and chances. The page shows the
    value, the indices and the box to open first at once. A stepper goes through the
    search: say what was seen, and it shows what to open next, why, and what is
    still to be expected.

    The page is served by this program, to this machine only, at an address that
    nobody else can guess. Nothing is sent anywhere. Ctrl-C ends the program.

    FILE is read, and written when you press Save. FILE may be new. Without FILE, and
    for -, the page offers a download.
    """
    from ..engine.solver import avoid_compiling
    from ..show.explore import Server

    with avoid_compiling(_PATIENCE), Server(_workbench(options), options.port or 0) as server:
        print(f"Exploring at {server.address}")
        print("Ctrl-C ends it.", flush=True)
        with server.door() as door:  # the address itself would show in the list of processes
            if not options.no_browser and not _open(door):
                print("No browser could be opened: open the address yourself.", flush=True)
            with suppress(KeyboardInterrupt):
                server.serve_forever()
            print("\nEnded.")


def _workbench(options: Options) -> Workbench:
    """What the page works on: a file, or standard input."""
    from ..files.documents import explained
    from ..files.instances import format_of
    from ..files.sheets import is_table
    from ..show.explore.workbench import Workbench

    path, words = options.file, options.words
    read: Callable[[], TableReading] = partial(common.read_all, options)
    if path == "-":
        reading, path, read = read(), None, lambda: reading
        print("The page offers a download of what is changed.")
    elif path is not None:
        if not os.path.lexists(path):
            with explained(path, "written"):  # an error now rather than when the work is saved
                format_of(path)
                if not os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
                    raise PermissionError(13, "its folder is not there or cannot be written to")
            print(f"{path} does not exist yet: Save will write it.")
        elif words is None and is_table(path):
            words = common.read_file(path, options, notes=False).words
    return Workbench(path, read=read if options.file else None, words=words or ("box", "open"))


def _open(address: str) -> bool:
    """Open a window of a browser; one that would take over the terminal does not count."""
    shown = {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & set(os.environ)
    if sys.platform not in ("win32", "darwin") and not shown:
        return False
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
