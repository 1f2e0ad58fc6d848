"""Names of the API in code font become links to the reference, on every page.

``solve``, ``Search.tell`` and ``weitzman.learn.fit`` are found by their names; a bare name is a
link if one function or class alone has it. Code blocks, headings and the reference itself stay as
they are.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_NAME = re.compile(r"^([A-Za-z_][\w.]*)(\(.*\))?$", re.DOTALL)
_WHOLE = {"function", "class", "exception"}
_PLOT = "weitzman.show.plot."  # its functions have names of every day: they are told as plot.X


def known_names(objects: dict[str, Any]) -> dict[str, str]:
    """What may be written for each object: the end of its name, if no other object ends so."""
    found = {name: name for name in objects}
    ends = Counter(end for name in objects for end in _ends(name))
    for name, entry in objects.items():
        for end in _ends(name):
            if ends[end] == 1 and ("." in end or entry.objtype in _WHOLE):
                found.setdefault(end, name)
    for name, entry in objects.items():
        short = name.rpartition(".")[2]
        if name.startswith(_PLOT):
            found[f"weitzman.plot.{short}"] = found[f"plot.{short}"] = name
            if found.get(short) == name:
                del found[short]
        elif name == f"weitzman.{short}" and entry.objtype in _WHOLE:
            found[short] = name
    return found


def _ends(name: str) -> list[str]:
    """``weitzman.learn.fit``: fit, learn.fit."""
    parts = name.split(".")
    return [".".join(parts[i:]) for i in range(1, len(parts))]


def target_of(text: str, names: dict[str, str]) -> str | None:
    """The object that a piece of code names: ``solve(forest)``, ``search.tell``."""
    match = _NAME.match(text)
    if match is None:
        return None
    name = match[1]
    owner, dot, rest = name.partition(".")
    of_a_class = f"{owner.capitalize()}.{rest}" if dot and owner.islower() else name
    return names.get(name) or names.get(of_a_class)


class ApiLinks(SphinxPostTransform):
    """Literals that name an object are references to it."""

    default_priority = 5

    def run(self, **options: Any) -> None:
        if self.env.docname.startswith("reference/"):
            return
        domain = self.env.get_domain("py")
        names = known_names(domain.objects)
        for literal in list(self.document.findall(nodes.literal)):
            inside = (nodes.reference, nodes.title, addnodes.pending_xref)
            target = target_of(literal.astext(), names)
            if target is None or isinstance(literal.parent, inside):
                continue
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True,
                refdoc=self.env.docname, refwarn=False,
            )  # fmt: skip
            link["py:module"] = link["py:class"] = None
            literal.replace_self(link)
            link += literal


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_post_transform(ApiLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
