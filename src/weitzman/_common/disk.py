"""What makes a file last."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

_NO_SUCH_THING = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF)


class Folder:
    """An open folder, whose entries can be made to last."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle

    def sync(self) -> None:
        """Wait until the names in it are on disk, where that can be asked for."""
        if self._handle is None:
            return
        try:
            os.fsync(self._handle)
        except OSError as error:
            if error.errno not in _NO_SUCH_THING:  # some file systems keep names at once
                raise


@contextmanager
def open_folder(path: str) -> Iterator[Folder]:
    """The folder of a file; an error if it cannot be opened, before anything is written there."""
    if os.name != "posix":
        yield Folder(None)
        return
    where = os.path.dirname(os.path.abspath(path))
    try:
        handle = os.open(where, os.O_RDONLY)
    except PermissionError as error:
        why = "the folder cannot be read, so that a new name in it could be lost in a power cut"
        raise PermissionError(error.errno, why, where) from None
    try:
        yield Folder(handle)
    finally:
        os.close(handle)
