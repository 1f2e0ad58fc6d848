"""The notebooks of the tutorials: valid, and they run from top to bottom."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path

import pytest
from test_docs import blocks

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted((DOCS / "tutorials").glob("*.md"))
SHORTEST = DOCS / "tutorials" / "analyst.md"


@pytest.fixture(scope="module")
def notebooks():
    path = DOCS / "_extensions" / "notebooks.py"
    spec = importlib.util.spec_from_file_location("notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_prompts_and_results_are_left_out(notebooks):
    assert notebooks.as_code(">>> x = [\n...     1]\n>>> x\n[1]\n") == "x = [\n    1]\nx"
    assert notebooks.as_code("x = 1\n") == "x = 1\n"


def test_all_text_and_code_of_a_page_is_there(notebooks):
    text = "# T\n\n```python\na = 1\n```\n\nmiddle\n\n```sh\nls\n```\nend\n"
    cells = notebooks.notebook(text)["cells"]
    assert [c["cell_type"] for c in cells] == ["markdown", "code", "markdown"]
    assert "".join(cells[1]["source"]) == "a = 1"
    assert "ls" in "".join(cells[2]["source"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_notebooks_are_valid_and_do_what_the_page_does(notebooks, page):
    """The blocks of a page, which `test_docs.py` runs, and nothing else."""
    nbformat = pytest.importorskip("nbformat")
    text = page.read_text("utf-8")
    found = nbformat.reads(json.dumps(notebooks.notebook(text)), as_version=4)
    nbformat.validate(found)
    cells = [ast.parse(cell.source) for cell in found.cells if cell.cell_type == "code"]
    wanted = [
        ast.parse(notebooks.as_code(block.text))
        for block in blocks(text)
        if block.language == "python"
    ]
    assert [ast.dump(x) for x in cells] == [ast.dump(x) for x in wanted]
    assert len(cells) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page != SHORTEST], ids=lambda p: p.stem)
def test_notebooks_run_without_the_rest_of_the_page(notebooks, page, tmp_path, monkeypatch):
    """Whoever has the notebook alone has run no command of the page."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    cells = notebooks.notebook(page.read_text("utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for cell in code:
        exec(cell, names)
    assert len(code) >= 5
    assert names["weitzman"].__name__ == "weitzman"  # in the names that the cells share


@pytest.mark.slow
def test_a_notebook_runs(notebooks, tmp_path, monkeypatch):
    """It is executed in a process of its own, as by a reader."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("MPLBACKEND", "agg")
    text = json.dumps(notebooks.notebook(SHORTEST.read_text("utf-8")))
    found = nbformat.reads(text, as_version=4)
    run = nbclient.NotebookClient(found, timeout=300, resources={"metadata": {"path": tmp_path}})
    code = [cell for cell in run.execute().cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any(cell.outputs for cell in code)
