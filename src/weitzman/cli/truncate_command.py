"""The command ``weitzman truncate``: keep the levels that matter."""

from __future__ import annotations

import argparse
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..bounds.truncation import Truncation

from .._common.numbers import about, ends
from .instance_file import add_instance, read_instance
from .output_file import refuse_same

_ABOUT = """\
Cut lines and trees at a depth that is certified to lose no more than
--gap, and say what is kept and what the whole is worth.

  lower   what searching the boxes kept earns at least
  upper   what searching all boxes could earn at most
Between them lies the value of the whole; their difference is all that is lost
by never looking deeper. (When minimizing it is upper that is reached.)

With -o the boxes kept are written to a file, which solve, run and all other
commands take. Boxes keep their names; where they have none and their numbers
change, the old numbers become names."""

_JSON = """\
--json prints one object:
  {"depth": 25, "kept": 25, "of": 100000, "lower": 9.3, "upper": 9.301,
   "gap": 0.001}
kept and of count boxes as they are described, without copies."""


def add_truncate_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``truncate`` to the commands of the parser."""
    parser = commands.add_parser("truncate", help="cut off what lies too deep to matter")
    parser.description, parser.epilog = _ABOUT, _JSON
    add_instance(parser)
    parser.add_argument(
        "--gap", type=positive, required=True, metavar="G",
        help="the most that may be lost, in the unit of the rewards",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="OUT",
        help="write the boxes kept to a file: .json, .json.gz or .wz; it is replaced if it exists",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def positive(text: str) -> float:
    try:
        x = float(text)
    except ValueError:
        x = math.nan
    if not 0 < x < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, but it is {text!r}")
    return x


def truncate(arguments: argparse.Namespace) -> None:
    """Carry the command out."""
    from .._common.text import columns
    from ..bounds.truncation import truncate as run
    from ..files.instances import save

    if arguments.output is not None:
        refuse_same(arguments.output, arguments.file)
    cut = run(read_instance(arguments), gap=arguments.gap)
    if arguments.output is not None:
        save(cut.forest, arguments.output)
    if arguments.json:
        keys = ("depth", "kept", "of", "lower", "upper", "gap")
        found = {key: getattr(cut, key) for key in keys}
        print(json.dumps({**found, "of": None if cut.of == math.inf else cut.of}))
        return
    for line in columns(_rows(cut)):
        print(line)


def _rows(cut: Truncation) -> list[tuple[str, str]]:
    low, high = ends(cut.lower, cut.upper)
    share = "all" if cut.kept == cut.of else f"{about(cut.kept / cut.of)} of them"
    of = f"{cut.of}   ({share})" if cut.of < math.inf else "endlessly many"
    return [
        ("depth", f"{cut.depth}"),
        ("boxes kept", f"{cut.kept} of {of}"),
        ("lower", low),
        ("upper", high),
        ("lost", f"at most {about(cut.gap)}"),
    ]
