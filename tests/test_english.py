"""Phrases that readers stumble over stay out of the pages, and the worst ones out of the source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
SOURCES = sorted(
    path
    for folder in ("src", "examples")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".js", ".css", ".csv", ".json", ".txt")
)
EVERYWHERE = (
    r"(is|are) refused", r"to the last bit", r"same bits", r"gone on", r"given back",
    r"taken back", r"goes on\b", r"went on\b", r"of highest index",
)  # fmt: skip
ON_PAGES = (
    *EVERYWHERE, r"\bgo on\b", r"going on\b", r"refused", r"know beforehand", r"three doors",
    r"of (the )?(highest|lowest) index", r"\btold apart\b", r"without a word", r"\bbeside\b",
    r"beforehand", r"in one go", r"as good as none", r"\bhabit", r"comes late\b",
)  # fmt: skip
IN_TEST_NAMES = r"refus|go(es)?_on(_|$)|went_on|given_back|taken_back|same_bits|told_apart|last_bit"


def found(phrases: tuple[str, ...], text: str) -> list[str]:
    return [m[0] for phrase in phrases for m in re.finditer(phrase, text, re.IGNORECASE)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_has_no_banned_phrase(path: Path) -> None:
    whole = path.read_text("utf-8")
    text = re.sub(r"```.*?```|`[^`]*`", "", whole, flags=re.DOTALL)
    assert found(ON_PAGES, text) + found(EVERYWHERE, whole) == []


def test_the_source_has_none_of_the_worst_phrases() -> None:
    hits = {path: found(EVERYWHERE, path.read_text("utf-8")) for path in SOURCES}
    assert {path: hit for path, hit in hits.items() if hit} == {}


def test_the_names_of_tests_have_none_either() -> None:
    names = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
    }
    assert {name for name in names if re.search(IN_TEST_NAMES, name)} == set()
