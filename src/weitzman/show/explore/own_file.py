"""The file that the explorer may write, and no other unless the user names it."""

from __future__ import annotations

import os
from typing import Any

from ..._common.disk import one_at_a_time
from ...errors import InvalidFile
from ...files.instances import save
from ...forest.model import Forest

TABLES = (".csv", ".tsv", ".xlsx")
SAVED = (".json", ".json.gz", ".wz", *TABLES)
"""What the explorer can save as."""

_LONGEST = 200  # letters of a name: file systems take 255 bytes

Stamp = tuple[int, int, int]


class OwnFile:
    """One file in one folder: the folder of the file that was named at the start.

    A file that somebody else wrote is replaced only if the user says so. So is a table that the
    explorer has read but not written: a table may hold titles, formulas and other sheets.

    Parameters
    ----------
    path : str, optional
        The file. Without a path, the folder is the current one.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.folder = os.path.dirname(os.path.abspath(path or "here"))
        self._stamps: dict[str, Stamp | None] = {}
        self._written: set[str] = set()

    @property
    def name(self) -> str | None:
        """The name of the file, without its folder."""
        return None if self.path is None else os.path.basename(self.path)

    def seen(self) -> None:
        """Remember the file as it is now, just after it was read."""
        if self.path is not None:
            self._stamps[self.path] = _stamp(self.path)

    def save(
        self, forest: Forest, name: object = None, *, own: bool = True, anyway: bool = False
    ) -> dict[str, Any]:
        """Write a forest; ``taken`` says that it was not written because another file is there.

        Parameters
        ----------
        forest : Forest
        name : str, optional
            By default, the current file.
        own : bool
            Whether the boxes come from that file, so that the user means to replace it.
        anyway : bool
            Whether the user wants to replace what is there.
        """
        path = self._target(name)
        if path is None:
            raise InvalidFile("no file was named. Save under a name, or download instead.")
        with one_at_a_time(path):  # another explorer may be saving the same file
            return self._save(forest, path, own=own, anyway=anyway)

    def _save(self, forest: Forest, path: str, *, own: bool, anyway: bool) -> dict[str, Any]:
        now = _stamp(path)
        mine = own and now == self._stamps.get(path)
        if now is not None and not (mine and not self._holds_more(path)) and not anyway:
            return {"taken": True, "file": os.path.basename(path), "message": self._taken(path)}
        save(forest, path)
        self._stamps[path] = _stamp(path)
        self._written.add(path)
        self.path = path
        return {"file": os.path.basename(path)}

    def _holds_more(self, path: str) -> bool:
        """Whether a file may hold more than boxes."""
        return path.lower().endswith(TABLES) and path not in self._written

    def _taken(self, path: str) -> str:
        if self._stamps.get(path) != _stamp(path) and path in self._stamps:
            return (
                f"{os.path.basename(path)} was changed by another program since it was read. "
                f"Nothing was saved. Replace the file, or save under another name."
            )
        if path in self._stamps and self._holds_more(path):
            return (
                f"{os.path.basename(path)} may hold more than its boxes: titles, formulas, other "
                f"sheets. Only the boxes would be saved. Replace the file, or save under another "
                f"name."
            )
        return (
            f"{os.path.basename(path)} already exists, with other boxes. Nothing was saved. "
            f"Replace the file, or save under another name."
        )

    def _target(self, name: object) -> str | None:
        """Where to write: a plain name in the folder, never a way out of it."""
        if name is None or name == self.name:
            return self.path
        if not isinstance(name, str) or not name.lower().endswith(SAVED):
            raise InvalidFile(
                f"a file name must end in {', '.join(SAVED[:-1])} or {SAVED[-1]}, but it is "
                f"{name!r}."
            )
        strange = any(ord(c) < 32 or c in '/\\:<>"|?*' for c in name)
        if strange or name.startswith((".", " ")) or len(name) > _LONGEST:
            raise InvalidFile(
                f"a file name must be plain, without a folder, but it is {name!r}. The folder "
                f"is {self.folder}."
            )
        path = os.path.join(self.folder, name)
        if os.path.islink(path) or os.path.isdir(path):
            raise InvalidFile(f"{name} is a link or a folder. Choose another name.")
        return path


def _stamp(path: str) -> Stamp | None:
    """A stamp that changes when a file is written; None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
