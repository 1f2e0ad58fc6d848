"""The notebooks of the tutorials: valid, and they run from top to bottom."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted((DOCS / "tutorials").glob("*.md"))


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


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_notebooks_run(notebooks, page, tmp_path, monkeypatch):
    """Each notebook is valid and is executed in a process of its own, as by a reader."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("MPLBACKEND", "agg")
    text = json.dumps(notebooks.notebook(page.read_text("utf-8")))
    found = nbformat.reads(text, as_version=4)
    nbformat.validate(found)
    run = nbclient.NotebookClient(found, timeout=300, resources={"metadata": {"path": tmp_path}})
    run.execute()
    assert sum(cell.cell_type == "code" for cell in found.cells) >= 5
