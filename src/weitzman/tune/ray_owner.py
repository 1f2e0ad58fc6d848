"""Who drives an experiment of Ray: a note in its folder, so that a second process is refused."""

from __future__ import annotations

import atexit
import json
from contextlib import suppress
from typing import Any

from .._common.system import Process, is_alive, this_process
from ..errors import JournalError

NOTE = "weitzman-owner.json"

Trial = Any  # Ray's classes are not typed throughout


class Ownership:
    """The right of this process to drive an experiment, once it has one."""

    def __init__(self) -> None:
        self._place: tuple[Any, str] | None = None  # file system, path

    def claim(self, trial: Trial) -> None:
        """Note that this process drives the experiment of a trial; an error if another one does."""
        storage = getattr(trial, "storage", None)
        if self._place is not None or storage is None:
            return
        place = storage.storage_filesystem, f"{storage.experiment_fs_path}/{NOTE}"
        owner = _noted(*place)
        if owner is not None and owner != this_process() and is_alive(owner) is not False:
            raise JournalError(
                f"{place[1]}: {owner} is using the experiment. One process at a time drives it. "
                f"End that process first; if it is gone, delete the file."
            )
        with suppress(OSError), place[0].open_output_stream(place[1]) as file:
            file.write(json.dumps(this_process()).encode())
        self._place = place
        atexit.register(self.release)

    def release(self) -> None:
        """The experiment is over."""
        if self._place is not None:
            (filesystem, path), self._place = self._place, None
            if _noted(filesystem, path) == this_process():
                filesystem.delete_file(path)


def _noted(filesystem: Any, path: str) -> Process | None:
    try:
        with filesystem.open_input_stream(path) as file:
            return Process(*json.loads(file.read()))
    except (OSError, ValueError, TypeError):  # none, or half of one
        return None
