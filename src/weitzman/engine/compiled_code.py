"""Where compiled code is kept, and how much of it there is."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .._kernels import jit, kernel_cache
from .._kernels.jit import compile_always

__all__ = ["CompiledCode", "compile_always", "compiled_code"]


class CompiledCode(NamedTuple):
    """What this process has compiled or read, and the folder that keeps it (None: no folder)."""

    folder: Path | None
    ready: tuple[str, ...]
    missing: tuple[str, ...]


def compiled_code() -> CompiledCode:
    """The state of the kernels in this process."""
    names = {f"{k.py_func.__module__}.{k.py_func.__name__}": k for k in jit.kernels}
    ready = tuple(name for name, kernel in names.items() if kernel.signatures)
    return CompiledCode(kernel_cache.kept_in(), ready, tuple(sorted(names.keys() - set(ready))))
