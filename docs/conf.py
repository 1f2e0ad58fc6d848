"""How Sphinx builds the site: ``sphinx-build -W docs docs/_build/html``."""

from __future__ import annotations

import sys
from pathlib import Path

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
autodoc_typehints = "none"  # the text says it for people
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
