"""What the report and the explorer share: one HTML page, its scripts, and its safety.

A report is one file that holds its style, script and data. Its Content-Security-Policy allows
only this script and style, so the name of a box cannot become code. The explorer
serves script and style as files, and its policy allows no inline script at all. Scripts are ES
modules, joined here in the order of their imports; there is no build chain."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

_EMPTY = {"input", "br", "hr"}


class Markup(str):
    """HTML, as opposed to text. Only this module and templates make it."""

    __slots__ = ()


Child = str | Iterable["Child"] | None


def escape(text: str) -> str:
    """Text escaped for HTML, also inside attributes."""
    return text if isinstance(text, Markup) else html.escape(text)


def h(tag: str, *children: Child, **attributes: str | float | bool | None) -> Markup:
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
    there = (child for child in children if child is not None)
    return Markup("".join(escape(x) if isinstance(x, str) else join(x) for x in there))


def name(text: str) -> Markup:
    """A name in running text. A name written right to left does not disturb the text around it."""
    return h("bdi", text)


def forms(box: str, verb: str, time: str = "units of time") -> dict[str, str]:
    """The forms of "box" and "open" and what to write instead, from the user's noun and verb.

    The same of the unit of time.

    >>> found = forms("study", "plan")
    >>> found["Boxes"], found["opened"], found["opens"]
    ('Studies', 'planned', 'plans')
    """
    units = {} if time == "units of time" else {"units of time": time}
    if (box, verb) == ("box", "open"):
        return units

    def ending(word: str, s: str) -> str:
        if re.search("[^aeiou]y$", word):
            return f"{word[:-1]}ie{s}" if s != "ing" else f"{word}ing"
        if s == "s":
            return word + ("es" if re.search("(s|x|z|ch|sh)$", word) else "s")
        if re.search("^[^aeiou]*[aeiou][^aeiouwxy]$", word):
            word += word[-1]
        return (word[:-1] if re.search("[^e]e$", word) else word) + ("ing" if s == "ing" else "ed")

    past = _PAST.get(verb) or ending(verb, "d").replace("iedd", "ied")
    a = "an" if box[:1].lower() in tuple("aeiou") else "a"
    found = {
        "a box": f"{a} {box}", "box": box, "boxes": ending(box, "s"), "open": verb,
        "opens": ending(verb, "s"), "opened": past, "opening": ending(verb, "ing"),
        "openings": f"{ending(box, 's')} {past}",
    }  # fmt: skip
    return units | found | {key.capitalize(): x[:1].upper() + x[1:] for key, x in found.items()}


_PAST = {
    "run": "run", "do": "done", "make": "made", "take": "taken", "buy": "bought", "begin": "begun",
    "build": "built", "hold": "held", "read": "read", "send": "sent", "set": "set", "see": "seen",
}  # fmt: skip


def worded(html: Markup, words: dict[str, str], names: Iterable[str]) -> Markup:
    """A page in the words of the user; names, attributes and drawings stay."""
    if not words:
        return html
    keys = sorted(words, key=len, reverse=True)
    own = [escape(x) for x in names if re.search(rf"\b({'|'.join(keys)})\b", x)]
    kept = "".join(f"{re.escape(x)}|" for x in sorted(own, key=len, reverse=True))
    pattern = re.compile(rf"<svg.*?</svg>|<[^>]*>|{kept}\b({'|'.join(keys)})\b", re.DOTALL)
    return Markup(pattern.sub(lambda m: words[m[1]] if m[1] else m[0], html))


_IMPORT = re.compile(r"^import\b[^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=async |function |class |const |let )", re.MULTILINE)

STEPPER = (
    "text.js", "problem.js", "hands.js", "walk.js", "draw.js", "chart.js", "profile.js",
    "stepper.js", "answers.js",
)  # fmt: skip
"""The scripts that pages share. Each script comes after the scripts that it imports."""

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect "
    "x='1' y='3' width='14' height='11' rx='2' fill='%230b5d57'/%3E%3Cpath d='M1 7h14' "
    "stroke='white'/%3E%3Crect x='6.5' y='6' width='3' height='3.5' fill='white'/%3E%3C/svg%3E"
)


def script(package: str, *names: str) -> str:
    """The stepper and further modules of a package as one module."""
    here, there = files("weitzman.show.page"), files(package)
    texts = [here.joinpath(name).read_text("utf-8") for name in STEPPER]
    texts += [there.joinpath(name).read_text("utf-8") for name in names]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


def style(package: str, name: str) -> str:
    """The style that all pages share, followed by the style of one page."""
    parts = files("weitzman.show.page").joinpath("page.css"), files(package).joinpath(name)
    return "\n".join(part.read_text("utf-8") for part in parts)


def whole(title: str, body: Markup, *, style: str, script: str, data: Any) -> str:
    """A page that is one file: it carries its own policy and opens from disk."""
    rules = escape(policy(_hash(script), _hash(style), "'none'"))
    head = f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n<style>{style}</style>'
    return _page(title, head, body, data, f'<script type="module">{script}</script>')


def linked(title: str, body: Markup, *, style: str, script: str, data: Any) -> str:
    """A page with style and script at other addresses; its policy must be sent as a header."""
    head = f'<link rel="stylesheet" href="{escape(style)}">'
    return _page(title, head, body, data, f'<script type="module" src="{escape(script)}"></script>')


def _page(title: str, head: str, body: Markup, data: Any, script: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="{_ICON}">
{head}
</head>
<body>
{body}
<script type="application/json" id="data">{embedded(data)}</script>
{script}
</body>
</html>
"""


def policy(script: str, style: str, connect: str) -> str:
    """The Content-Security-Policy of a page with that script and style."""
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src {connect}; "
        f"img-src data:; base-uri 'none'; form-action 'none'; "
        f"require-trusted-types-for 'script'; trusted-types 'none'"
    )


def embedded(data: Any) -> str:
    """JSON for a script element. No text in the JSON can end the element."""
    text = json.dumps(finite(data), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def finite(x: Any) -> Any:
    """The data with null in place of numbers that are not finite."""
    if isinstance(x, dict):
        return {key: finite(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
