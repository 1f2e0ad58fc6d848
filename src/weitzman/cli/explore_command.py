"""The command ``weitzman explore``."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import webbrowser
from typing import Any

_ABOUT = """\
Open a page in the browser on which boxes can be built and changed: add a box,
drag it under another, edit costs, states and chances. The value, the indices
and the box to open first show at once, and a stepper goes through the search:
say what was seen, and it shows what to open next, why, and what is still to be
expected.

The page is served by this program, to this machine only, at an address that
nobody else can guess; nothing is sent anywhere. Ctrl-C ends it.

FILE is read, and written when you press Save; it may be a new one. Without
FILE the page begins empty, or with an example, and offers a download."""

_EXAMPLES = """\
  weitzman explore
  weitzman demo --json > boxes.json
  weitzman explore boxes.json
  weitzman explore boxes.json --no-browser --port 8000"""

_LAST_PORT = 65_535


def add_explore_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of the parser; :func:`explore` carries it out."""
    parser = commands.add_parser("explore", help="build, change and try boxes in the browser")
    parser.description, parser.epilog = _ABOUT, _EXAMPLES
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="instance: .json, .json.gz or .wz; may be new"
    )
    parser.add_argument(
        "--port", type=_port, default=0, metavar="N", help="port (default: any free one)"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address and open no browser"
    )


def _port(text: str) -> int:
    from .option_types import whole

    port = whole(text, 1)
    if port > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"must be at most {_LAST_PORT}, not {text!r}")
    return port


def explore(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    from ..files.safely import explained
    from ..show.explore.server import Server
    from ..show.explore.workbench import Workbench

    path = arguments.file
    if path is not None and not os.path.lexists(path):
        with explained(path, "written"):
            _check_new(path)
        print(f"{path} does not exist yet: Save will write it.")
    with Server(Workbench(path), arguments.port) as server:
        threading.Thread(target=_warm_up, daemon=True).start()
        print(f"Exploring at {server.address}")
        print("Ctrl-C ends it.", flush=True)
        with server.door() as door:  # the address itself would show in the list of processes
            if not arguments.no_browser and not _open(door):
                print("No browser could be opened: open the address yourself.", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                print("\nEnded.")


def _check_new(path: str) -> None:
    """An error now rather than when the work is to be saved."""
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
