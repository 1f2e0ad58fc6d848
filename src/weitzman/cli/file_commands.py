"""Commands about files: ``weitzman check``, ``convert``, ``template`` and ``schema``."""

from __future__ import annotations

import json
import math
import os
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import click

from .._common.numbers import whole
from ..errors import WeitzmanError
from .console import print_lines
from .given_file import PATH, instance_argument, read_instance, table_options, written_file
from .options import Options, command, json_option

if TYPE_CHECKING:
    from ..forest.model import Forest

_CHECK = """\
Print ok and the size of the problem, or what is wrong with its file.

\b
--json prints one object:
  {"ok": true, "boxes": 3, "with copies": 3, "roots": 2, ...}
or, with the exit code of the error:
  {"ok": false, "error": ...}"""

_CONVERT = """\
Read a problem from one file and write it to another. The endings of the names
decide the formats.

\b
  .json     for people and programs; see weitzman schema
  .json.gz  the same, compressed
  .wz       compact columns with checksums, for millions of boxes
  .csv, .tsv, .xlsx
            a table: one row for each box, state of its parent, and own state
            (.xlsx needs pip install "weitzman[excel]")
  -         standard input; JSON to standard output"""

_TEMPLATE = """\
Write a sheet to fill in: an example that can be solved as it stands, and notes.

\b
  weitzman template stages.xlsx     (needs pip install "weitzman[excel]")
  weitzman template stages.csv
  weitzman template -               the text of the .csv to standard output"""


@command(_CHECK, short="Whether a file is valid, and its size.")
@instance_argument
@json_option
def check(options: Options) -> None:
    """Carry out the command."""
    from .._common.text import columns

    try:
        forest = read_instance(options)
    except WeitzmanError as error:
        if options.json:
            print(json.dumps({"ok": False, "error": str(error)}))
        raise
    if options.json:
        print(json.dumps({"ok": True, **sizes(forest)}))
        return
    print("ok")
    print_lines(columns(summary(forest)))


@command(_CONVERT, short="From one file format to another.")
@click.argument("file", metavar="FROM", type=PATH, help="File to read, or -.")
@click.argument("target", metavar="TO", type=PATH, help="File to write or replace, or -.")
@table_options
def convert(options: Options) -> None:
    """Carry out the command."""
    from ..files.instances import save

    with written_file(options.target, options.file, suffix=".json") as target:
        save(read_instance(options), target)


@command(_TEMPLATE, short="A spreadsheet to fill in.")
@click.argument("target", metavar="TO", type=PATH, help="New file: .xlsx, .csv or .tsv; or -.")
def template(options: Options) -> None:
    """Carry out the command."""
    from ..files.written_tables import is_template, write_template

    name = options.target
    if name != "-" and not is_template(name):
        raise click.UsageError(f"a template ends in .xlsx, .csv or .tsv, but it is {name!r}.")
    if os.path.lexists(name):
        raise click.UsageError(f"{name} already exists. Choose another name.")
    with written_file(name, suffix=".csv") as path:
        write_template(path)
    if name != "-":
        print(f"{name}: fill it in, then weitzman solve {name}")


@command(
    "Print the JSON Schema (draft 2020-12) of the format weitzman/1.",
    short="The JSON Schema of problem files.",
)
def schema(options: Options) -> None:
    """Carry out the command."""
    print(files("weitzman.files").joinpath("instance.schema.json").read_text("utf-8").rstrip())


def sizes(forest: Forest) -> dict[str, Any]:
    """The size of a problem, for programs."""
    import numpy as np

    f = forest
    states = f.rewards.shape[f.reward, 1]
    return {
        "boxes": len(f),
        "with copies": f.boxes,
        "roots": int(f.roots.size),
        "states": [int(states.min()), int(states.max())],
        "distinct laws": len(np.unique(f.law)),
        "depth": _depth(f),
        "objective": "minimize" if f.minimize else "maximize",
        "outside": f.outside if math.isfinite(f.outside) else None,
        "unit": f.unit,
    }


def summary(forest: Forest) -> list[tuple[str, str]]:
    """The size of a problem."""
    found = sizes(forest)
    least, most = found["states"]
    must, outside = "something must be taken", found["outside"]
    rows = [(key, whole(found[key])) for key in ("boxes", "with copies", "roots")]
    rows.append(("states", f"{least}" if least == most else f"{least} to {most}"))
    rows += [(key, whole(found[key])) for key in ("distinct laws", "depth")]
    taken = must if outside is None else f"outside option {forest.amounts(outside)}"
    return [*rows, ("objective", f"{found['objective']}, {taken}")]


def _depth(f: Forest) -> int:
    """Boxes on the longest path down, found by doubling the number of steps taken at once."""
    import numpy as np

    n = len(f)
    up = np.append(np.where(f.parent < 0, n, f.parent), n)
    depth = np.append(np.ones(n, np.int64), 0)
    while (up < n).any():
        depth += depth[up]
        up = up[up]
    return int(depth.max())
