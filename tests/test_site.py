"""The generated pages of the documentation: all that is public, and every command."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import weitzman
from weitzman.cli import main

DOCS = Path(__file__).parents[1] / "docs"


def extension(name):
    path = DOCS / "_extensions" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages():
    yield extension("generated_pages")
    sys.modules.pop("generated_pages", None)


def test_names_in_code_font_find_their_object():
    pytest.importorskip("sphinx")
    links = extension("api_links")
    kinds = {
        "weitzman.solve": "function", "weitzman.Search": "class", "weitzman.Search.ask": "method",
        "weitzman.LazySearch": "class", "weitzman.LazySearch.ask": "method",
        "weitzman.learn.fit": "function", "weitzman.show.plot.payoff": "function",
    }  # fmt: skip
    names = links.known_names({n: SimpleNamespace(objtype=kind) for n, kind in kinds.items()})
    found = {
        "solve": "weitzman.solve", "solve(forest)": "weitzman.solve",
        "Search.ask": "weitzman.Search.ask", "search.ask()": "weitzman.Search.ask",
        "learn.fit(curves,\nprice=1)": "weitzman.learn.fit", "fit": "weitzman.learn.fit",
        "plot.payoff": "weitzman.show.plot.payoff", "payoff": None, "ask": None, "x + 1": None,
    }  # fmt: skip
    assert {text: links.target_of(text, names) for text in found} == found


def test_the_reference_has_every_public_name_once(pages):
    text = "\n".join(pages.reference_pages((DOCS / "api.md").read_text("utf-8")).values())
    asked = [line.split(":: ")[1] for line in text.splitlines() if line.startswith(".. auto")]
    assert len(set(asked)) == len(asked)
    told = [name for name in weitzman.__all__ if name not in ("__version__", "plot")]
    assert {f"weitzman.{name}" for name in told} <= set(asked)
    drawn = weitzman.plot.__all__
    own = {n for n in drawn if getattr(weitzman.plot, n).__module__.startswith("weitzman.show")}
    assert {f"weitzman.show.plot.{name}" for name in own} <= set(asked)
    assert "weitzman.policy.payoff_law" in asked  # told in its own room
    assert "weitzman.strategies.myopic" in asked
    assert "weitzman.strategies.compare" not in asked  # it is told on top


def test_classes_are_told_with_their_methods(pages):
    told = pages.directive("Forest", weitzman.Forest)
    assert told.startswith(".. autoclass:: weitzman.Forest\n   :members:\n")
    assert pages.directive("solve", weitzman.solve) == ".. autofunction:: weitzman.solve\n"
    assert pages.directive("TooLarge", weitzman.errors.TooLarge).startswith(".. autoexception::")


def test_the_command_page_says_what_help_says(pages, capsys):
    text = pages.command_page()
    for command in ("demo", "solve", "evaluate", "compare", "search", "convert", "schema"):
        assert main([command, "--help"]) == 0
        assert f"## weitzman {command}\n\n```text\n{capsys.readouterr().out}```\n" in text


def test_pages_that_nobody_listed_are_in_the_tree(pages, tmp_path):
    for name in ("index", "theory", "news"):
        (tmp_path / f"{name}.md").write_text("# x")
    source = ["```{toctree}\ntheory\n{other pages}\n```"]
    pages.fill_index(SimpleNamespace(srcdir=tmp_path), "index", source)
    assert source == ["```{toctree}\ntheory\nnews\n```"]


def test_links_to_files_that_are_no_pages_become_paths(pages, tmp_path):
    (tmp_path / "docs" / "how-to").mkdir(parents=True)
    source = ["[a](../theory.md#x) and [the results](../../benchmarks/RESULTS.md)"]
    pages.unlink_files(SimpleNamespace(srcdir=tmp_path / "docs"), "how-to/a", source)
    assert source == ["[a](../theory.md#x) and the results (`benchmarks/RESULTS.md`)"]
