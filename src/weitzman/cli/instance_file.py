"""The instance that a command reads: a file, a table with options, or standard input."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from typing import TYPE_CHECKING

from ..errors import WeitzmanError
from .console import Misused
from .option_types import outside_option

if TYPE_CHECKING:
    from ..files.tables import TableOptions
    from ..forest.model import Forest

FILE = "instance: .json, .json.gz, .wz; a table: .csv, .tsv, .xlsx; or - for standard input"
STDIN = "standard input"
_MOST = 2**29  # bytes of standard input


def add_instance(parser: argparse.ArgumentParser) -> None:
    """Add FILE, and the options that say what a table need not say itself."""
    parser.add_argument("file", metavar="FILE", help=FILE)
    add_table_options(parser)


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what a table need not say itself."""
    group = parser.add_argument_group("what FILE may leave open")
    group.add_argument(
        "--outside", type=outside_option, metavar="X",
        help="what is there without opening anything (default 0); none: something must be taken",
    )  # fmt: skip
    group.add_argument(
        "--minimize", action="store_true", default=None, help="rewards of a table are losses"
    )
    group.add_argument("--unit", metavar="U", help="unit of rewards and costs: $, EUR, hours")
    group.add_argument(
        "--decimal", choices=("point", "comma"), help="how the numbers of a table are written"
    )


def read_instance(arguments: argparse.Namespace, path: str | None = None) -> Forest:
    """The forest of FILE, with the options in place of what it says."""
    from ..files.instances import load
    from ..files.sheets import is_table

    path = arguments.file if path is None else path
    if path == "-":
        return _read_stdin(arguments)
    options = _options(arguments)
    if is_table(path):
        return load(path, options)
    if options.minimize or options.comma is not None:
        raise Misused("--minimize and --decimal are for tables; other files say it themselves.")
    forest = load(path)
    if options.outside is None and options.unit is None:
        return forest
    must = float("inf") if forest.minimize else -float("inf")
    outside = options.outside
    if outside is not None and abs(outside) == float("inf"):
        outside = must
    return forest.changed(outside=outside, unit=options.unit)


def _options(arguments: argparse.Namespace) -> TableOptions:
    from ..files.cells import Comma
    from ..files.tables import TableOptions

    commas = {"point": Comma.THOUSANDS, "comma": Comma.DECIMAL, None: None}
    return TableOptions(
        arguments.outside, arguments.minimize, arguments.unit, commas[arguments.decimal]
    )


def _read_stdin(arguments: argparse.Namespace) -> Forest:
    """What comes in, as the file that its first bytes show it to be."""
    data = sys.stdin.buffer.read(_MOST + 1)
    if len(data) > _MOST:
        raise Misused(f"standard input must have at most {_MOST:,} bytes. Save it as a file.")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"instance{suffix_of(data)}")
        with open(path, "wb") as file:
            file.write(data)
        try:
            return read_instance(arguments, path)
        except WeitzmanError as error:
            raise type(error)(str(error).replace(path, STDIN)) from error.__cause__


def suffix_of(data: bytes) -> str:
    """The ending of a file with these contents."""
    if data.startswith(b"\x1f\x8b"):
        return ".json.gz"
    if data.startswith(b"PK\x03\x04"):
        return ".xlsx"
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[", b""):
        return ".json"
    from ..files.binary import MAGIC

    return ".wz" if data.startswith(MAGIC) else ".csv"
