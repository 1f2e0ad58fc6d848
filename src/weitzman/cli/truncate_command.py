"""The command ``weitzman truncate``: keep the levels that matter."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING

import click

from .._common.numbers import about, ends, with_unit
from .given_file import PATH, instance_argument, read_instance, written_file
from .options import POSITIVE, Options, command, json_option

if TYPE_CHECKING:
    from ..bounds.truncation import Truncation

_ABOUT = """\
Cut lines and trees at a depth that is certified to lose no more than --gap, and
print what is kept and what the whole search is worth.

\b
  lower   what searching the kept boxes earns at least
  upper   what searching all boxes could earn at most

The value of the whole search lies between lower and upper. Their difference is
all that is lost by never looking deeper. (When minimizing, upper is reached.)

With -o the kept boxes are written to a file for solve, run and all other
commands. Boxes keep their names. Boxes without names whose numbers change are
named by their old numbers."""

_JSON = """\
\b
--json prints one object:
  {"depth": 25, "kept": 25, "of": 100000, "lower": 9.3, "upper": 9.301,
   "gap": 0.001}

kept and of count boxes as they are described, without copies."""


@command(_ABOUT, short="Cut off what lies too deep to matter.", epilog=_JSON)
@instance_argument
@click.option(
    "--gap", type=POSITIVE, required=True, metavar="G",
    help="The most that may be lost, in the unit of the rewards.",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="OUT", type=PATH,
    help="File for the kept boxes, replaced if it exists. - is standard output, in place of the "
    "table.",
)  # fmt: skip
@json_option
def truncate(options: Options) -> None:
    """Carry out the command."""
    from .._common.text import columns
    from ..bounds.truncation import truncate as run
    from ..files.instances import save

    with written_file(options.output or "", options.file, suffix=".json") as path:
        cut = run(read_instance(options), gap=options.gap)
        if path:
            save(cut.forest, path)
    out = sys.stderr if options.output == "-" else sys.stdout
    if options.json:
        keys = ("depth", "kept", "of", "lower", "upper", "gap")
        found = {key: getattr(cut, key) for key in keys}
        print(json.dumps({**found, "of": None if cut.of == math.inf else cut.of}), file=out)
        return
    for line in columns(_rows(cut)):
        print(line, file=out)


def _rows(cut: Truncation) -> list[tuple[str, str]]:
    unit = cut.forest.unit
    low, high = (with_unit(text, unit) for text in ends(cut.lower, cut.upper))
    share = "all" if cut.kept == cut.of else f"{about(cut.kept / cut.of)} of them"
    of = f"{cut.of}   ({share})" if cut.of < math.inf else "endlessly many"
    return [
        ("depth", f"{cut.depth}"),
        ("boxes kept", f"{cut.kept} of {of}"),
        ("lower", low),
        ("upper", high),
        ("lost", f"at most {with_unit(about(cut.gap), unit)}"),
    ]
