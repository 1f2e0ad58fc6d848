"""The command ``weitzman template``."""

from __future__ import annotations

import argparse
import os
from typing import Any

from .console import Misused

_ABOUT = """\
Write a sheet to fill in: an example that can be solved as it stands, and notes.

  weitzman template stages.xlsx     (needs pip install "weitzman[excel]")
  weitzman template stages.csv"""


def add_template_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of the parser; :func:`template` carries it out."""
    parser = commands.add_parser("template", help="write a spreadsheet to fill in")
    parser.description = _ABOUT
    parser.add_argument("target", metavar="TO", help="new file: .xlsx, .csv or .tsv")


def template(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    from ..files.templates import is_template, write_template

    path = arguments.target
    if not is_template(path):
        raise Misused(f"a template ends in .xlsx, .csv or .tsv, but it is {path!r}.")
    if os.path.lexists(path):
        raise Misused(f"{path} is there already. Choose another name.")
    write_template(path)
    print(f"{path}: fill it in, then weitzman solve {path}")
