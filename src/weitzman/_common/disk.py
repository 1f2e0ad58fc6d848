"""What makes a file last."""

from __future__ import annotations

import os


def sync_folder(path: str) -> None:
    """Wait until the name of a new file is on disk too, where that can be asked for."""
    if os.name == "posix":
        folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
