"""Phrases that readers stumble over stay out of the first page and the guides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BANNED = (
    r"(is|are) refused", r"to the last bit", r"same bits", r"go(es)? on\b", r"going on\b",
    r"went on\b", r"gone on\b", r"given back", r"taken back", r"know beforehand", r"three doors",
)  # fmt: skip


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_has_no_banned_phrase(path: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text("utf-8"), flags=re.DOTALL)
    found = [m[0] for phrase in BANNED for m in re.finditer(phrase, text, re.IGNORECASE)]
    assert found == []
