"""Files that a command reads and writes: by name, or - for standard input and output."""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from .._common.numbers import typed_rate
from ..errors import WeitzmanError
from .options import COUNT, NUMBER, F, Finite, Options, ProblemOption

if TYPE_CHECKING:
    from ..files.tables import TableReading
    from ..forest.model import Forest

STDIN = "standard input"
PATH = click.Path(allow_dash=True)

_MOST = 2**29  # bytes of standard input

FILE = "A problem: .json, .json.gz, .wz; a table: .csv, .tsv, .xlsx; - is standard input."


@contextmanager
def given_file(path: str, suffix: str | None = None) -> Iterator[str]:
    """The file to read; for - a copy of standard input, with a suffix that fits its contents."""
    if path != "-":
        yield path
        return
    data = sys.stdin.buffer.read(_MOST + 1)
    if len(data) > _MOST:
        raise click.UsageError(f"standard input must have at most {_MOST:,} bytes. Save it first.")
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, f"instance{suffix or suffix_of(data)}")
        with open(copy, "wb") as file:
            file.write(data)
        try:
            yield copy
        except WeitzmanError as error:
            raise type(error)(str(error).replace(copy, STDIN)) from error.__cause__


def suffix_of(data: bytes) -> str:
    """The ending of a file with these contents."""
    if data.startswith(b"SQLite format 3\0"):  # a log
        return ".db"
    from ..files.instances import suffix_of as of_problem

    return of_problem(data)


@contextmanager
def written_file(path: str, *inputs: str, suffix: str) -> Iterator[str]:
    """The file to write; what is written for - is copied to standard output."""
    if path != "-":
        for name in inputs:
            _refuse_same(path, name)
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, f"output{suffix}")
        yield target
        sys.stdout.flush()
        with open(target, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()


def _refuse_same(path: str, name: str) -> None:
    """Refuse to write over a file that is read."""
    try:
        same = os.path.samestat(os.stat(path), _status(name))
    except (OSError, ValueError):  # one of them is not there, or is no file: reading will tell
        same = name != "-" and os.path.realpath(path) == os.path.realpath(name)
    if same:
        raise click.UsageError(
            f"{path} is the file to be read: writing would replace it. Choose another name."
        )


def _status(name: str) -> os.stat_result:
    """The status of a file that is read; for -, of the file behind standard input."""
    return os.fstat(sys.stdin.fileno()) if name == "-" else os.stat(name)


def instance_argument(command: F) -> F:
    """Add FILE, and the options for what a table does not say itself."""
    return click.argument("file", metavar="FILE", type=PATH, help=FILE)(table_options(command))


class _RateType(click.ParamType[str]):
    """A rate as people write it, which is left as it is: a table may give its unit of time."""

    name = "rate"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        try:
            typed_rate(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


_ABOUT: dict[str, dict[str, Any]] = {  # options for what a table does not say itself
    "outside": {
        "type": Finite(words={"none": math.inf}), "metavar": "X",
        "help": "Outside option: what can be taken without opening any box (default 0). none: "
        "some reward must be taken.",
    },
    "minimize": {"is_flag": True, "default": None, "help": "Rewards of a table are losses."},
    "unit": {"metavar": "U", "help": "Unit of rewards and costs: $, EUR, hours."},
    "rate": {
        "type": _RateType(), "metavar": "R",
        "help": "Rate at which what comes later is discounted; for boxes with durations. 10% "
        "compounds once a year, 0.1 is the r of exp(-r time), and so is 10% continuous.",
    },
    "risk-tolerance": {
        "type": NUMBER, "metavar": "T",
        "help": "Count certainty equivalents: a payoff z has the utility -exp(-z / T).",
    },
    "prizes": {
        "type": COUNT, "metavar": "K", "help": "Take up to K rewards, one from each tree.",
    },
    "decimal": {
        "type": click.Choice(("point", "comma")),
        "help": "Decimal mark of the numbers in a table.",
    },
    "sheet": {"metavar": "NAME", "help": "Sheet of a workbook that holds the table."},
}  # fmt: skip


def table_options(command: F) -> F:
    """Add the options for what a table does not say itself."""
    for name, how in reversed(_ABOUT.items()):
        command = click.option(f"--{name}", cls=ProblemOption, **how)(command)
    return command


def read_instance(options: Options) -> Forest:
    """The forest of FILE; options override what the file says."""
    with given_file(options.file) as path:
        return read_file(path, options).forest


def read_file(path: str, options: Options, *, notes: bool = True) -> TableReading:
    """The forest of a named file, and what a table says besides; options override the file."""
    from .._common.numbers import Comma
    from ..files.instances import load
    from ..files.sheets import is_table
    from ..files.tables import TableOptions, TableReading, table_reading

    commas = {"point": Comma.THOUSANDS, "comma": Comma.DECIMAL, None: None}
    outside = options.outside
    stated = TableOptions(
        outside, options.minimize, options.unit, commas[options.decimal], options.rate,
        options.risk_tolerance, options.prizes, options.sheet,
    )  # fmt: skip
    if is_table(path):
        reading = table_reading(path, stated)
        for line in reading.lines if notes else ():  # what was left out; the rest by `check`
            if line.startswith("columns not read") or "cannot be opened" in line:
                click.echo(f"note: {line}", err=True)
        return reading
    if stated.minimize or stated.comma is not None or stated.sheet is not None:
        raise click.UsageError(
            "--minimize, --decimal and --sheet are for tables. Other files need none of them."
        )
    forest = load(path)
    if outside is not None and math.isinf(outside):
        outside = math.inf if forest.minimize else -math.inf
    terms: dict[str, Any] = {"outside": outside, "unit": stated.unit, **stated.terms()}
    terms = {name: x for name, x in terms.items() if x is not None}
    return TableReading(forest.changed(**terms) if terms else forest)
