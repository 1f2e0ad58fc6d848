"""The problem that a command reads: a file, a table with options, or standard input."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from .given_file import PATH, given_file
from .options import F, Finite, Options, Outside

if TYPE_CHECKING:
    from ..files.tables import TableOptions
    from ..forest.model import Forest

FILE = "A problem: .json, .json.gz, .wz; a table: .csv, .tsv, .xlsx; - is standard input."


def instance_argument(command: F) -> F:
    """Add FILE, and the options that say what a table need not say itself."""
    return click.argument("file", metavar="FILE", type=PATH, help=FILE)(table_options(command))


def table_options(command: F) -> F:
    """Add the options that say what a table need not say itself."""
    for option in reversed(
        (
            click.option(
                "--outside", type=Outside(), metavar="X",
                help="Outside option: what can be taken without opening any box (default 0). "
                "none: some reward must be taken.",
            ),
            click.option(
                "--minimize", is_flag=True, default=None, help="Rewards of a table are losses."
            ),
            click.option(
                "--unit", metavar="U", help="Unit of rewards and costs: $, EUR, hours."
            ),
            click.option(
                "--rate", type=Finite(), metavar="R",
                help="Rate at which what comes later is discounted; for boxes with durations.",
            ),
            click.option(
                "--risk-tolerance", type=Finite(), metavar="T",
                help="Count certainty equivalents: a payoff z has the utility -exp(-z / T).",
            ),
            click.option(
                "--prizes", type=click.INT, metavar="K",
                help="Take up to K rewards, one from each tree.",
            ),
            click.option(
                "--decimal", type=click.Choice(("point", "comma")),
                help="Decimal mark of the numbers in a table.",
            ),
            click.option(
                "--sheet", metavar="NAME", help="Sheet of a workbook that holds the table."
            ),
        )
    ):  # fmt: skip
        command = option(command)
    return command


def read_instance(options: Options) -> Forest:
    """The forest of FILE, with the options in place of what it says."""
    with given_file(options.file) as path:
        return read_problem(path, options)


def read_problem(path: str, options: Options) -> Forest:
    """The forest of a file that has a name, with the options in place of what it says."""
    from ..files.instances import load
    from ..files.sheets import is_table

    said = _said(options)
    if is_table(path):
        return load(path, said)
    if said.minimize or said.comma is not None or said.sheet is not None:
        raise click.UsageError(
            "--minimize, --decimal and --sheet are for tables. Other files need none of them."
        )
    forest = load(path)
    outside = said.outside
    if outside is not None and math.isinf(outside):
        outside = math.inf if forest.minimize else -math.inf
    terms = said.terms()
    if outside is None and said.unit is None and not terms:
        return forest
    return forest.changed(outside=outside, unit=said.unit, **terms)  # type: ignore[arg-type]


def _said(options: Options) -> TableOptions:
    from ..files.cells import Comma
    from ..files.tables import TableOptions

    commas = {"point": Comma.THOUSANDS, "comma": Comma.DECIMAL, None: None}
    return TableOptions(
        options.outside, options.minimize, options.unit, commas[options.decimal], options.rate,
        options.risk_tolerance, options.prizes, options.sheet,
    )  # fmt: skip
