"""The command ``weitzman check``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..errors import WeitzmanError
from .console import print_lines
from .instance_file import add_instance, read_instance

_ABOUT = """\
Print ok and the size of the instance, or what is wrong with it.

--json prints one object: {"ok": true, "boxes": 3, "with copies": 3, "roots": 2,
...}, or {"ok": false, "error": ...} with the exit code 1."""


def add_check_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of the parser; :func:`check` carries it out."""
    parser = commands.add_parser("check", help="say whether a file is valid, and its size")
    parser.description = _ABOUT
    add_instance(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def check(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    from .._common.text import columns
    from ..show.layout import sizes, summary

    try:
        forest = read_instance(arguments)
    except WeitzmanError as error:
        if arguments.json:
            print(json.dumps({"ok": False, "error": str(error)}))
        raise
    if arguments.json:
        print(json.dumps({"ok": True, **sizes(forest)}))
        return
    print("ok")
    print_lines(columns(summary(forest)))
