"""Formulas as MathML, which browsers show by themselves: no script, and nothing to load."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

LOG = logging.getLogger(__name__)
# what docutils calls otherwise, or writes with a character that few fonts have
OTHER_NAMES = {r"\texttt": r"\mathtt", r"\dots": r"\ldots", r"\setminus": r"\smallsetminus"}


def convert(node: nodes.math | nodes.math_block, block: bool) -> str:
    """The formula of a node; what cannot be read is a warning, and shown as it was written."""
    text = node.astext()
    for name, known in OTHER_NAMES.items():
        text = re.sub(re.escape(name) + r"(?![a-zA-Z])", lambda _, known=known: known, text)
    try:
        return str(tex2mathml(text, as_block=block))
    except (SyntaxError, ValueError) as error:  # MathError is a ValueError
        LOG.warning("a formula cannot be shown: %s", error, location=node)
        return f"<code>{escape(text)}</code>"


def visit_math(self: Any, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(convert(node, block=False))
    raise nodes.SkipNode


def visit_displaymath(self: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    self.body.append(f'<div class="math">{convert(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
