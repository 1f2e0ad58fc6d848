"""One process at a time drives an experiment that lies in a folder."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress

from .._common.disk import one_at_a_time, replacing
from .._common.system import Process, is_alive, this_process
from ..errors import JournalError


def owner_file(folder: str) -> str:
    """The file that says which process drives an experiment, beside the folder.

    Ray would copy a file within the folder back and forth.
    """
    parent, name = os.path.split(os.path.abspath(folder))
    return os.path.join(parent, f".{name}.owner.json")


def claim(folder: str) -> str:
    """Note that this process drives the experiment; an error if another process does.

    Returns
    -------
    token : str
        What `release` needs, because this process may claim the experiment again before.
    """
    path, token = owner_file(folder), secrets.token_hex(8)
    with one_at_a_time(path):
        owner, _ = _owner(path)
        if owner is not None and owner != this_process() and is_alive(owner) is not False:
            raise JournalError(
                f"{folder}: {owner} is using the experiment. One process at a time drives it. End "
                f"that process first; if it is gone, delete {path}."
            )
        with replacing(path) as file:
            file.write(json.dumps([*this_process(), token]).encode())
    return token


def release(folder: str, token: str) -> None:
    """Free the experiment for others, unless it was claimed again."""
    path = owner_file(folder)
    with one_at_a_time(path):
        if _owner(path) == (this_process(), token):
            with suppress(OSError):
                os.unlink(path)


def _owner(path: str) -> tuple[Process | None, str]:
    """The process and the token in a file; None if there is nothing that can be read."""
    try:
        with open(path, encoding="utf-8") as file:
            *process, token = json.load(file)
            return Process(*process), token
    except (OSError, ValueError, TypeError):
        return None, ""
