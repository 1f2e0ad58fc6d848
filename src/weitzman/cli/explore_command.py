"""The command ``weitzman explore``."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from .given_file import PATH, read_instance, table_options
from .options import Options, command

if TYPE_CHECKING:
    from ..show.explore.workbench import Workbench

_ABOUT = """\
Open a page in the browser on which boxes can be built and changed: add a box,
drag it under another box, edit costs, states and chances. The page shows the
value, the indices and the box to open first at once. A stepper goes through the
search: say what was seen, and it shows what to open next, why, and what is
still to be expected.

The page is served by this program, to this machine only, at an address that
nobody else can guess. Nothing is sent anywhere. Ctrl-C ends the program.

FILE is read, and written when you press Save. FILE may be new. Without FILE, and
for -, the page offers a download."""

_EXAMPLES = """\
\b
  weitzman explore
  weitzman explore stages.xlsx --unit EUR
  weitzman demo --json | weitzman explore -
  weitzman explore boxes.json --no-browser --port 8000"""


@command(_ABOUT, short="Build, change and try boxes in the browser.", epilog=_EXAMPLES)
@click.argument(
    "file", metavar="[FILE]", type=PATH, required=False,
    help="A problem or a table, also a new one; - is standard input.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(1, 65_535), default=None, metavar="N",
    help="Port (default: any free port).",
)  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Print the address and open no browser.")
@table_options
def explore(options: Options) -> None:
    """Carry out the command."""
    from ..show.explore.server import Server

    with Server(_workbench(options), options.port or 0) as server:
        threading.Thread(target=_warm_up, daemon=True).start()
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
    from ..files.safely import explained
    from ..show.explore.workbench import Workbench

    path = options.file
    if path == "-":
        forest = read_instance(options)
        print("The page offers a download of what is changed.")
        return Workbench(read=lambda: forest)
    if path is not None and not os.path.lexists(path):
        with explained(path, "written"):
            _check_new(path)
        print(f"{path} does not exist yet: Save will write it.")
    return Workbench(path, read=None if path is None else lambda: read_instance(options))


def _check_new(path: str) -> None:
    """Raise an error now rather than when the work is saved."""
    from ..files.instances import _suffix

    _suffix(path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "its folder is not there or cannot be written to")


def _open(address: str) -> bool:
    """Open a window of a browser; one that would take over the terminal does not count."""
    shown = {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & set(os.environ)
    if sys.platform not in ("win32", "darwin") and not shown:
        return False
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False


def _warm_up() -> None:
    """Load or compile what the first question would otherwise wait for."""
    from ..engine.evaluation import evaluate
    from ..engine.solver import solve
    from ..forest.builder import line

    evaluate(solve(line([[0.5, 0.5]], rewards=[0, 10], cost=1)))
