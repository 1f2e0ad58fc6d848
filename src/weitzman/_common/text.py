"""Text for terminals and notebooks: results look the same in all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Any

from .numbers import counted
from .optional import need

if TYPE_CHECKING:
    import pandas as pd

_WIDEST = 40  # characters of a name in a table

ROWS = 200  # of a table, at most


def printable(text: str, keep: str = "") -> str:
    """Text that cannot disturb a terminal: what is not printable is shown as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c in keep or c.isprintable() else repr(c)[1:-1] for c in text)


def clean(text: str) -> str:
    """Text of several lines that cannot disturb a terminal: line breaks and tabs stay."""
    return printable(text, "\n\t")


def cell(text: str) -> str:
    """A name as a table shows it: printable, and marked where it is cut."""
    text = printable(text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def shortened(text: str, most: int) -> str:
    """A text without its middle if it is long: the ends of two names often tell them apart."""
    text = printable(text)
    back = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - back]}…{text[-back:]}"


def columns(rows: Sequence[Sequence[str]], right: int = 10) -> Iterator[str]:
    """Aligned text; columns from number ``right`` on are aligned to the right."""
    shown = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = [
            text.rjust(width) if i >= right else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "   ".join(cells).rstrip()


def as_html(result: Any) -> str:
    """A result as HTML: the first line of its text, then its columns or its plain numbers.

    Assign it to ``_repr_html_`` in the class of a result. ``columns()`` of the result gives the
    table, one list for each heading.
    """
    head = str(result).splitlines()[0]
    if hasattr(result, "columns"):
        return columns_html(head, result.columns())
    found = _plain(result)
    if not found:
        return f"<p>{escape(clean(head))}</p>"
    return columns_html(head, {"": list(found), "value": list(found.values())})


def _plain(result: Any) -> dict[str, Any]:
    """The plain numbers and texts of a dataclass, by name."""
    plain = (str, bool, int, float, Enum, type(None))
    found = {f.name: getattr(result, f.name) for f in fields(result) if f.name[0] != "_"}
    return {name: x for name, x in found.items() if isinstance(x, plain)}


class ResultTable:
    """A mixin for results that are tables: text, pandas and HTML from one set of columns.

    A class that uses it may have its own ``columns()``, ``headline()`` and ``cells()``.
    """

    __slots__ = ()

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """One list for each heading; by default one row, the plain numbers of a dataclass."""
        return {name: [x] for name, x in _plain(self).items()}

    def headline(self) -> str:
        """What stands above the table; nothing by default."""
        return ""

    def cells(self) -> list[list[str]]:
        """The table as text, the headings first."""
        found = self.columns()
        return [
            list(found),
            *([_cell(x) for x in row] for row in zip(*found.values(), strict=True)),
        ]

    def table(self) -> str:
        """The table as text."""
        head = self.headline()
        return "\n".join([*([clean(head)] if head else []), *columns(self.cells(), right=1)])

    def to_pandas(self) -> pd.DataFrame:
        """The columns as a data frame."""
        frame: pd.DataFrame = need("pandas", "table").DataFrame(self.columns())
        return frame

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        shown = self.cells()
        head = self.headline() or repr(self)
        if "array(" in head:  # of a result without words of its own
            head = type(self).__name__
        return cells_html(head.splitlines(), shown[: ROWS + 1], len(shown) - 1 - ROWS)


def columns_html(head: str, columns: Mapping[str, Sequence[Any]], rows: int | None = None) -> str:
    """A headline and a table; ``rows`` is the number of rows if not all are given."""
    found = list(zip(*columns.values(), strict=True))
    shown = [list(columns), *([_cell(x) for x in row] for row in found[:ROWS])]
    return cells_html([head], shown, (len(found) if rows is None else rows) - ROWS)


def cells_html(paragraphs: Sequence[str], cells: Sequence[Sequence[str]], more: int = 0) -> str:
    """Paragraphs and a table of text; its first row is the head."""
    head, *body = (
        "<tr>" + "".join(f"<{tag}>{escape(clean(text))}</{tag}>" for text in row) + "</tr>"
        for tag, row in zip(["th"] + ["td"] * (len(cells) - 1), cells, strict=True)
    )
    said = "".join(f"<p>{escape(clean(line))}</p>" for line in paragraphs)
    rest = f"<p>… and {counted(more, 'more row')}</p>" if more > 0 else ""
    return f"{said}<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>{rest}"


def _cell(x: object) -> str:
    if x is None:
        return ""
    if isinstance(x, Enum):
        return str(x.value)
    return f"{x:.8g}" if isinstance(x, float) else str(x)
