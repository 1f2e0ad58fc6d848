"""Tutorials as Jupyter notebooks: the same text and code, to download and to run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = "notebooks"
SITE = "tutorials"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook(text: str) -> dict[str, Any]:
    """A page in Markdown as a notebook: each block of Python is a cell, and what is between."""
    cells, end = list[dict[str, Any]](), 0
    for block in _BLOCK.finditer(text):
        if block[1] != "python":
            continue
        cells.append(_cell("markdown", text[end : block.start()], len(cells)))
        cells.append(_cell("code", as_code(block[2]), len(cells)))
        end = block.end()
    cells.append(_cell("markdown", text[end:], len(cells)))
    kept = [cell for cell in cells if "".join(cell["source"]).strip()]
    meta = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
    return {"cells": kept, "metadata": meta, "nbformat": 4, "nbformat_minor": 5}


def as_code(block: str) -> str:
    """A block without the prompts and the results of a session."""
    if ">>>" not in block:
        return block
    lines = block.splitlines()
    code = [line[4:] for line in lines if line.startswith((">>> ", "... "))]
    return "\n".join(code)


def _cell(kind: str, text: str, number: int) -> dict[str, Any]:
    source = text.strip("\n").splitlines(keepends=True)
    cell: dict[str, Any] = {"cell_type": kind, "id": f"c{number}", "metadata": {}, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def write_notebooks(app: Sphinx) -> None:
    """Write a notebook for each tutorial, where the pages link to it."""
    source = Path(app.srcdir)
    (source / FOLDER).mkdir(exist_ok=True)
    for page in sorted((source / SITE).glob("*.md")):
        text = json.dumps(notebook(page.read_text("utf-8")), indent=1) + "\n"
        target = source / FOLDER / f"{page.stem}.ipynb"
        if not target.exists() or target.read_text("utf-8") != text:
            target.write_text(text, "utf-8")


def add_link(app: Sphinx, page: str, source: list[str]) -> None:
    """Below the title of a tutorial: where its notebook is."""
    if page.startswith(f"{SITE}/"):
        name = page.rpartition("/")[2]
        title, _, rest = source[0].partition("\n")
        link = "{download}`Download this page as a notebook <../" + f"{FOLDER}/{name}.ipynb>`"
        source[0] = f"{title}\n\n{link}\n{rest}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_notebooks)
    app.connect("source-read", add_link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
