"""The command ``weitzman convert``."""

from __future__ import annotations

import click

from .given_file import PATH, written_file
from .instance_file import read_instance, table_options
from .options import Options, command

_ABOUT = """\
Read a problem from one file and write it to another. The endings of the names
tell the formats.

\b
  .json     for people and programs; see weitzman schema
  .json.gz  the same, compressed
  .wz       compact columns with checksums, for millions of boxes
  .csv, .tsv, .xlsx
            a table: one row for each box, state of its parent, and own state
            (.xlsx needs pip install "weitzman[excel]")
  -         standard input; JSON to standard output"""


@command(_ABOUT, short="From one file format to another.")
@click.argument("file", metavar="FROM", type=PATH, help="File to read, or -.")
@click.argument("target", metavar="TO", type=PATH, help="File to write, replaced if there, or -.")
@table_options
def convert(options: Options) -> None:
    """Carry out the command."""
    from ..files.instances import save

    with written_file(options.target, options.file, suffix=".json") as target:
        save(read_instance(options), target)
