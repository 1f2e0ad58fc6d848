"""What commands share: how they are declared, their options, the files they read, and output."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .._common.numbers import typed_number, typed_rate
from ..errors import WeitzmanError

if TYPE_CHECKING:
    from ..files.tables import TableReading
    from ..forest.model import Forest

Options = SimpleNamespace  # what was said on the command line, by name
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

WHOLE, COUNT = click.IntRange(min=0), click.IntRange(min=1)
PATH = click.Path(allow_dash=True)
STDIN = "standard input"
FILE = "A problem: .json, .json.gz, .wz; a table: .csv, .tsv, .xlsx; - is standard input."

_MOST = 2**29  # bytes of standard input
_PATIENCE = 2.0  # seconds without a sign of life before the user is told why
_SOON, _OFTEN = 1.0, 0.1  # seconds before a bar is drawn, and between two drawings

_SAID = {
    'start the search with rewards="nearest" or with edges of bins': (
        "start the search with --rewards nearest, or with edges of bins such as --rewards 0,10,20"
    ),
    "End it first, or share the search with Search.join under another name; if it is gone, use "
    "take_over=True": "End it first",
}


# -- commands and options ----------------------------------------------------------------------


class ProblemOption(click.Option):
    """An option about the problem itself, the same for all commands that read one."""


class ProblemCommand(click.Command):
    """A command whose function takes all options as one object."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of the command first, and those about the problem below them."""
        lists: dict[str, list[tuple[str, str]]] = {"Options": [], "About the problem": []}
        for option in self.get_params(ctx):
            record = None if isinstance(option, click.Argument) else option.get_help_record(ctx)
            if record is not None:
                about = isinstance(option, ProblemOption)
                lists["About the problem" if about else "Options"].append(record)
        for title, records in lists.items():
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


class ReadAs(click.ParamType[T]):
    """What a function makes of a text; its ValueError becomes the message."""

    def __init__(self, name: str, read: Callable[[str], T]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        if not isinstance(value, str):  # a default
            return value  # type: ignore[no-any-return]
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _number(text: str) -> float:
    return typed_number(text).value


def _positive(text: str) -> float:
    if (x := _number(text)) <= 0:
        raise ValueError(f"{text} is not above 0.")
    return x


def _rate(text: str) -> str:
    typed_rate(text)  # and left as it is: a table may give its unit of time
    return text


NUMBER, POSITIVE = ReadAs("number", _number), ReadAs("number", _positive)
POSITIVES = ReadAs("list", lambda text: [_positive(part.strip()) for part in text.split(",")])

json_option = click.option("--json", is_flag=True, help="Print JSON, for programs.")
threads_option = click.option(
    "--threads", type=COUNT, metavar="N", help="Threads to use (default: all cores)."
)


def number_option(
    name: str, what: str, default: int, kind: click.IntRange = COUNT, more: str = ""
) -> Callable[[F], F]:
    """Add an option for a whole number."""
    text = f"{what} (default {default}{more})."
    return click.option(name, type=kind, default=default, metavar="N", help=text)


def limit_option(what: str, default: int = 40) -> Callable[[F], F]:
    """Add ``--limit``."""
    return number_option("--limit", what, default, WHOLE, "; 0: all")


def output_option(about: str, *, required: bool = True) -> Callable[[F], F]:
    """Add ``-o``."""
    return click.option("-o", "--output", metavar="OUT", type=PATH, required=required, help=about)


_ABOUT: dict[str, dict[str, Any]] = {  # options for what a table does not say itself
    "outside": {
        "type": ReadAs("number", lambda text: math.inf if text == "none" else _number(text)),
        "metavar": "X",
        "help": "Outside option: what can be taken without opening any box (default 0). none: "
        "some reward must be taken.",
    },
    "minimize": {"is_flag": True, "default": None, "help": "Rewards of a table are losses."},
    "unit": {"metavar": "U", "help": "Unit of rewards and costs: $, EUR, hours."},
    "rate": {
        "type": ReadAs("rate", _rate), "metavar": "R",
        "help": "Rate at which what comes later is discounted; for boxes with durations. 10% "
        "compounds once a year, 0.1 is the r of exp(-r time), and so is 10% continuous.",
    },
    "risk-tolerance": {
        "type": NUMBER, "metavar": "T",
        "help": "Count certainty equivalents: a payoff z has the utility -exp(-z / T).",
    },
    "prizes": {"type": COUNT, "metavar": "K", "help": "Take up to K rewards, one from each tree."},
    "decimal": {
        "type": click.Choice(("point", "comma")), "help": "Decimal mark of the numbers in a table.",
    },
    "sheet": {"metavar": "NAME", "help": "Sheet of a workbook that holds the table."},
}  # fmt: skip


def table_options(command: F) -> F:
    """Add the options for what a table does not say itself."""
    for name, how in reversed(_ABOUT.items()):
        command = click.option(f"--{name}", cls=ProblemOption, **how)(command)
    return command


def instance_argument(command: F) -> F:
    """Add FILE, and the options for what a table does not say itself."""
    return click.argument("file", metavar="FILE", type=PATH, help=FILE)(table_options(command))


# -- files: by name, or - for standard input and output ------------------------------------------


@contextmanager
def given_file(path: str, suffix: str | None = None) -> Iterator[str]:
    """The file to read; for - a copy of standard input, with a suffix that fits its contents."""
    if path != "-":
        yield path
        return
    data = sys.stdin.buffer.read(_MOST + 1)
    if len(data) > _MOST:
        raise click.UsageError(f"standard input must have at most {_MOST:,} bytes. Save it first.")
    if suffix is None:
        from ..files.instances import suffix_of

        suffix = ".db" if data.startswith(b"SQLite format 3\0") else suffix_of(data)
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, f"instance{suffix}")
        Path(copy).write_bytes(data)
        try:
            yield copy
        except WeitzmanError as error:
            raise type(error)(str(error).replace(copy, STDIN)) from error.__cause__


@contextmanager
def written_file(path: str, given: str = "", *, suffix: str) -> Iterator[str]:
    """The file to write, never the file that is read; for -, a file for standard output."""
    if path != "-":
        try:
            read = os.fstat(sys.stdin.fileno()) if given == "-" else os.stat(given)
            same = os.path.samestat(os.stat(path), read)
        except (OSError, ValueError):  # one of them is not there, or is no file
            same = given not in ("-", "") and os.path.realpath(path) == os.path.realpath(given)
        if same:
            raise click.UsageError(
                f"{path} is the file to be read: writing would replace it. Choose another name."
            )
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, f"output{suffix}")
        yield target
        sys.stdout.flush()
        with open(target, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()


def read_instance(options: Options) -> Forest:
    """The forest of FILE; options override what the file says."""
    return read_all(options).forest


def read_all(options: Options, *, notes: bool = True) -> TableReading:
    """All that FILE says; options override it."""
    with given_file(options.file) as path:
        return read_file(path, options, notes=notes)


def read_file(path: str, options: Options, *, notes: bool = True) -> TableReading:
    """The forest of a named file, and what it says besides; options override the file."""
    from .._common.numbers import Comma
    from ..files.instances import read_table
    from ..files.sheets import is_table
    from ..files.tables import TableOptions

    commas = {"point": Comma.THOUSANDS, "comma": Comma.DECIMAL, None: None}
    outside = options.outside
    stated = TableOptions(
        outside, options.minimize, options.unit, commas[options.decimal], options.rate,
        options.risk_tolerance, options.prizes, options.sheet,
    )  # fmt: skip
    if is_table(path):
        reading = read_table(path, stated)
        for line in reading.lines if notes else ():  # what was left out; the rest by `check`
            if " not read: " in line or "cannot be opened" in line:
                click.echo(f"note: {line}", err=True)
        return reading
    if stated.minimize or stated.comma is not None or stated.sheet is not None:
        raise click.UsageError(
            "--minimize, --decimal and --sheet are for tables. Other files need none of them."
        )
    reading = read_table(path)
    forest = reading.forest
    if outside is not None and math.isinf(outside):
        outside = math.inf if forest.minimize else -math.inf
    terms: dict[str, Any] = {"outside": outside, "unit": stated.unit, **stated.terms()}
    terms = {name: x for name, x in terms.items() if x is not None}
    return reading._replace(forest=forest.changed(**terms)) if terms else reading


# -- output ------------------------------------------------------------------------------------


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def as_json(x: Any) -> str:
    """JSON with null in place of numbers that are not finite."""
    from ..show.page import finite

    return json.dumps(finite(x), allow_nan=False)


def for_the_shell(message: str) -> str:
    """A message with options of the command in place of those of Python."""
    for python, shell in _SAID.items():
        message = message.replace(python, shell)
    return message


@contextmanager
def progress_bar(word: str = "solving") -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal once a second has passed, wiped at the end; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    drawn = _Drawn(word)
    try:
        yield drawn.show
    finally:
        drawn.silence.cancel()
        if drawn.longest:
            drawn.draw("")
            sys.stderr.write("\r")


class _Drawn:
    """A bar of Click, drawn by hand: Click hides the cursor, and Ctrl-C would not bring it back."""

    def __init__(self, word: str) -> None:
        self._bar, self.longest = _bar(word), 0
        self._start = self._last = time.monotonic()
        text = "compiling for this machine, the first time only ..."
        self.silence = threading.Timer(_PATIENCE, lambda: self.draw(text))
        self.silence.daemon = True
        self.silence.start()

    def show(self, done: int, total: int) -> None:
        self.silence.cancel()
        bar, now = self._bar, time.monotonic()
        if done < bar.pos // 2:  # solving starts again if the error was guessed too large
            bar = self._bar = _bar("refining")
        bar.length = max(total, 1)
        bar.update(max(done - bar.pos, 0))
        if now - self._start > _SOON and now - self._last > _OFTEN:
            self._last = now
            self.draw(bar.format_progress_line())

    def draw(self, text: str) -> None:
        self.longest = max(self.longest, len(text))
        sys.stderr.write(f"\r{text:<{self.longest}}")
        sys.stderr.flush()


def _bar(word: str) -> Any:
    return click.progressbar(length=1, label=word, file=sys.stderr, hidden=True, width=30)


@contextmanager
def killable() -> Iterator[None]:
    """Let Ctrl-C end the process at once: compiled code would not notice it for a while."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
