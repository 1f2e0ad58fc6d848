"""The command ``weitzman template``."""

from __future__ import annotations

import os

import click

from .given_file import PATH, written_file
from .options import Options, command

_ABOUT = """\
Write a sheet to fill in: an example that can be solved as it stands, and notes.

\b
  weitzman template stages.xlsx     (needs pip install "weitzman[excel]")
  weitzman template stages.csv
  weitzman template -               the text of the .csv to standard output"""


@command(_ABOUT, short="A spreadsheet to fill in.")
@click.argument("target", metavar="TO", type=PATH, help="New file: .xlsx, .csv or .tsv; or -.")
def template(options: Options) -> None:
    """Carry out the command."""
    from ..files.templates import is_template, write_template

    name = options.target
    if name != "-" and not is_template(name):
        raise click.UsageError(f"a template ends in .xlsx, .csv or .tsv, but it is {name!r}.")
    if os.path.lexists(name):
        raise click.UsageError(f"{name} is there already. Choose another name.")
    with written_file(name, suffix=".csv") as path:
        write_template(path)
    if name != "-":
        print(f"{name}: fill it in, then weitzman solve {name}")
