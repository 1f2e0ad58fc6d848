"""HTML in which text stays text: everything except `Markup` is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable

_EMPTY = {"input", "br", "hr"}


class Markup(str):
    """HTML, as opposed to text. Only this module and templates make it."""

    __slots__ = ()


Child = str | Iterable["Child"] | None


def escape(text: str) -> str:
    """Text escaped for HTML, also inside attributes."""
    return text if isinstance(text, Markup) else html.escape(text)


def h(tag: str, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """An element. ``class_`` gives the attribute class, ``data_x`` gives data-x.

    >>> h("p", "1 < 2 ", h("b", "yes"), class_="note")
    '<p class="note">1 &lt; 2 <b>yes</b></p>'
    """
    words = [tag]
    for key, value in attributes.items():
        title = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(title)
        elif value is not None and value is not False:
            words.append(f'{title}="{escape(str(value))}"')
    opening = f"<{' '.join(words)}>"
    return Markup(opening if tag in _EMPTY else f"{opening}{join(children)}</{tag}>")


def join(children: Iterable[Child]) -> Markup:
    """Children one after the other."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, str):
            parts.append(escape(child))
        elif child is not None:
            parts.append(join(child))
    return Markup("".join(parts))


def name(text: str) -> Markup:
    """A name in running text. A name written right to left does not disturb the text around it."""
    return h("bdi", text)
