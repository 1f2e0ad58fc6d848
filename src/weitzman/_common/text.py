"""Text for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_WIDEST = 40  # characters of a name in a table


def printable(text: str) -> str:
    """Text that cannot disturb a terminal: what is not printable is shown as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def cell(text: str) -> str:
    """A name as it stands in a table: printable, and marked where it is cut."""
    text = printable(text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def columns(rows: Sequence[Sequence[str]], right: int = 10) -> Iterator[str]:
    """Aligned text; columns from number ``right`` on are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            text.rjust(width) if i >= right else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "   ".join(cells).rstrip()
