"""A forest as the page edits it: the file format, with all data of a box in the box itself."""

from __future__ import annotations

import json
from typing import Any

from ...errors import InvalidArgument
from ...files import json_reader as _json
from ...files import json_writer as _write
from ...forest.model import Forest

MOST = 5000
"""How many boxes a page can hold and stay easy to use."""


def document(forest: Forest) -> dict[str, Any]:
    """A document of the format ``weitzman/1``, without kinds and with names for all boxes."""
    if len(forest) > MOST:
        raise InvalidArgument(
            f"the explorer shows at most {MOST} boxes, but there are {len(forest)}. weitzman "
            f"report and weitzman solve have no such limit. Boxes that are alike can be one box "
            f"with a count."
        )
    text: dict[str, Any] = json.loads("".join(_write.pieces(forest)))
    kinds = text.pop("kinds", {})
    for v, box in enumerate(text["boxes"]):
        kind = kinds.get(box.pop("kind", None), {})
        for key, value in kind.items():
            box.setdefault(key, value)
        box["name"] = forest.name(v)
        if "parent" in box:
            box["parent"] = forest.name(int(forest.parent[v]))
        if box.get("states", ...) is None:
            del box["states"]
    return text


def forest(document: Any) -> Forest:
    """The forest that the page describes; the same messages as for a file."""
    return _json.forest(document)
