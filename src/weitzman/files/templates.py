"""A sheet to fill in: an example that can be solved as it stands, and notes."""

from __future__ import annotations

import csv
import io

from .._common.disk import replacing
from .safely import explained
from .sheets import TEXT, WORKBOOK
from .workbooks import Block, money_format, write_blocks

_HEAD = ("box", "parent", "parent_state", "state", "reward", "probability", "cost")
_SETTINGS = (
    ("A search with two stages at each of two sites (change it to yours)",),
    ("objective", "maximize"),
    ("outside option", 0),
    ("unit", "$"),
)
_ROWS = (
    ("Survey North", None, None, "promising", None, 0.4, 20_000),
    (None, None, None, "poor", None, 0.6, None),
    ("Drill North", "Survey North", "promising", "dry", 0, 0.5, 80_000),
    (None, None, None, "oil", 400_000, 0.5, None),
    (None, None, "poor", "dry", 0, 0.95, None),
    (None, None, None, "oil", 400_000, 0.05, None),
    ("Survey South", None, None, "promising", None, 0.3, 10_000),
    (None, None, None, "poor", None, 0.7, None),
    ("Drill South", "Survey South", "promising", "dry", 0, 0.4, 90_000),
    (None, None, None, "oil", 350_000, 0.6, None),
    (None, None, "poor", "dry", 0, 0.9, None),
    (None, None, None, "oil", 350_000, 0.1, None),
)
_NOTES = (
    (
        "box",
        "What can be opened: a stage, a test, a candidate. Blank: the box above.",
    ),
    ("parent", "The box that must be opened first. Blank for a box that can be opened at once."),
    ("parent_state", "What the parent showed. Each state of the parent needs rows of its own."),
    ("state", "What the box may show, in a word or a number."),
    ("reward", "What can be taken once the box has shown this. Blank: nothing can be taken."),
    (
        "probability",
        "How likely the state is: 0.4, 40% or 2/5. Sums to 1 for each parent_state.",
    ),
    ("cost", "What opening the box costs, in the unit of the rewards. Blank: as in the row above."),
    ("count", "A column that may be added: how many copies of the box there are."),
    ("outside option", "What you have if you open nothing; none: something must be taken."),
    ("objective", "maximize rewards, or minimize losses."),
    ("unit", "$, EUR, hours: shown with every amount."),
    ("then", "weitzman solve FILE, or weitzman report FILE -o report.html"),
)


def write_template(path: str) -> None:
    """Write a sheet to fill in, ``.xlsx``, ``.csv`` or ``.tsv``."""
    columns = {name: [row[i] for row in _ROWS] for i, name in enumerate(_HEAD)}
    with explained(path, "written"), replacing(path) as file:
        if path.lower().endswith(WORKBOOK):
            money = money_format("$")
            formats = {"reward": money, "cost": money, "probability": "0%"}
            notes = {"column": [a for a, _ in _NOTES], "what to fill in": [b for _, b in _NOTES]}
            write_blocks(
                [Block("boxes", _SETTINGS, columns, formats), Block("notes", (), notes)], file
            )
            return
        text = io.StringIO(newline="")
        rows = csv.writer(text, delimiter="\t" if path.lower().endswith(".tsv") else ",")
        rows.writerows([*_SETTINGS, _HEAD, *_ROWS])
        file.write(text.getvalue().encode())


def is_template(path: str) -> bool:
    """Whether a sheet to fill in can be written under a name."""
    return path.lower().endswith((*(s for s in TEXT if not s.endswith(".gz")), WORKBOOK))
