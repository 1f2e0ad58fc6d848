"""The command ``weitzman convert``."""

from __future__ import annotations

import argparse
from typing import Any

from .instance_file import add_table_options, read_instance
from .output_file import output

_ABOUT = """\
Read an instance from one file and write it to another; the endings of the
names tell how.

  .json     for people and programs; see weitzman schema
  .json.gz  the same, compressed
  .wz       compact columns with checksums, for millions of boxes
  .csv, .tsv, .xlsx
            a table with a row for each box, state of its parent and own state
            (.xlsx needs pip install "weitzman[excel]")
  -         standard input, or JSON to standard output"""


def add_convert_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of the parser; :func:`convert` carries it out."""
    parser = commands.add_parser("convert", help="from one file format to another")
    parser.description = _ABOUT
    parser.add_argument("file", metavar="FROM", help="file to read, or -")
    parser.add_argument(
        "target", metavar="TO", help="file to write, or -; it is replaced if it exists"
    )
    add_table_options(parser)


def convert(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    from ..files.instances import save

    with output(arguments.target, arguments.file, suffix=".json") as target:
        save(read_instance(arguments), target)
