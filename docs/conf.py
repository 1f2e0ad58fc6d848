"""How Sphinx builds the site: ``sphinx-build -W docs docs/_build/html``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent / "src")]

project = "weitzman"
author = "the weitzman authors"
copyright = "MIT license"
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "api_links",
    "generated_pages",
    "mathml",
    "notebooks",
]
# links into the reference of other projects, where their indexes can be downloaded
if os.environ.get("READTHEDOCS") or os.environ.get("WEITZMAN_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "networkx": ("https://networkx.org/documentation/stable", None),
    }
exclude_patterns = ["_build", "_extensions"]

# pages are read on GitHub, too: plain Markdown with formulas and anchors as GitHub makes them
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 4

# docstrings are numpydoc; attributes of dataclasses are told once, in the class
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_preprocess_types = False
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {x: x for x in ("ArrayLike", "BoolArray", "FloatArray", "IntArray")}
autodoc_inherit_docstrings = False

html_math_renderer = "mathml"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = "weitzman"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "native"


def _without_private(
    app: Any, what: str, name: str, obj: Any, options: Any, arguments: str | None, returns: Any
) -> tuple[str, Any] | None:
    """Results are not made by users: a signature with private fields is left out."""
    return ("", returns) if what == "class" and arguments and ", _" in arguments else None


def _public_names(app: Any, domain: str, kind: str, content: Any) -> None:
    """In overloads of `solve`, the names of what stands for a lazy forest and its solution."""
    for part in content.parent.findall(
        lambda node: isinstance(node, (addnodes.desc_parameter, addnodes.desc_returns))
    ):
        for inside, public in (("Unwritten[Answer]", "LazyForest"), ("Answer", "LazySolution")):
            if part.astext().removeprefix(" -> ").removeprefix("forest: ") == inside:
                prefix = part.astext().removesuffix(inside).replace(" -> ", "")
                part.children = []
                part += nodes.Text(f"{prefix}{public}")


def setup(app: Any) -> None:
    """Connect what the extensions leave to this project."""
    app.connect("object-description-transform", _public_names)
    app.connect("autodoc-process-signature", _without_private)
