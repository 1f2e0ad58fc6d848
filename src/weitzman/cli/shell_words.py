"""Advice that names options of Python, as it reads at the command line."""

from __future__ import annotations

_SAID = {
    'start the search with rewards="nearest" or with edges of bins': (
        "start the search with --rewards nearest, or with edges of bins such as --rewards 0,10,20"
    ),
    "End it first, or share the search with Search.join under another name; if it is gone, use "
    "take_over=True": "End it first",
}


def for_the_shell(message: str) -> str:
    """A message with options of the command in place of those of Python."""
    for python, shell in _SAID.items():
        message = message.replace(python, shell)
    return message
