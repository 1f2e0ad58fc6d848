"""How commands are declared, and the options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar

import click

from .._common.numbers import typed_number

Options = SimpleNamespace  # what was said on the command line, by name
F = TypeVar("F", bound=Callable[..., Any])

WHOLE, COUNT = click.IntRange(min=0), click.IntRange(min=1)


class ProblemOption(click.Option):
    """An option about the problem itself, the same for all commands that read one."""


class ProblemCommand(click.Command):
    """A command whose function takes all options as one object."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of the command first, and those about the problem below them."""
        own, about = list[tuple[str, str]](), list[tuple[str, str]]()
        for option in self.get_params(ctx):
            record = None if isinstance(option, click.Argument) else option.get_help_record(ctx)
            if record is not None:
                (about if isinstance(option, ProblemOption) else own).append(record)
        for title, records in (("Options", own), ("About the problem", about)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        assert self.callback is not None
        return ctx.invoke(self.callback, Options(**ctx.params))


def command(
    *, short: str, epilog: str | None = None
) -> Callable[[Callable[[Options], None]], click.Command]:
    """Declare a command: its name is that of the function, its help the docstring."""
    return click.command(cls=ProblemCommand, short_help=short, epilog=epilog)


class Finite(click.ParamType[float]):
    """A number as people write it: 250,000, 10%, $2M; perhaps one above a bound, or a word."""

    name = "number"

    def __init__(self, *, above: float = -math.inf, words: Mapping[str, float] | None = None):
        self._above, self._words = above, words or {}

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if value in self._words:
            return self._words[value]
        try:
            x = float(value) if isinstance(value, int | float) else typed_number(value).value
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if x <= self._above:
            self.fail(f"{value} is not above {self._above:g}.", param, ctx)
        return x


class Several(click.ParamType[list[float]]):
    """Values with commas between them."""

    name = "list"

    def __init__(self, one: Finite) -> None:
        self._one = one

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[float]:
        return [self._one.convert(part.strip(), param, ctx) for part in str(value).split(",")]


NUMBER, POSITIVE = Finite(), Finite(above=0.0)


json_option = click.option("--json", is_flag=True, help="Print JSON, for programs.")
threads_option = click.option(
    "--threads", type=COUNT, metavar="N", help="Threads to use (default: all cores)."
)


def limit_option(what: str, default: int = 40) -> Callable[[F], F]:
    """Add ``--limit``."""
    return click.option(
        "--limit", type=WHOLE, default=default, metavar="N",
        help=f"{what} (default {default}; 0: all).",
    )  # fmt: skip


def output_option(about: str, *, required: bool = True) -> Callable[[F], F]:
    """Add ``-o``."""
    return click.option(
        "-o", "--output", metavar="OUT", type=click.Path(allow_dash=True), required=required,
        help=about,
    )  # fmt: skip
