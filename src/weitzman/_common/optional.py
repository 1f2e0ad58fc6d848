"""Packages that are needed for some functions only."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import MissingPackage


def need(module: str, extra: str) -> Any:
    """Import an optional package, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackage(
            f'this needs {package}, which is not installed. Run: pip install "weitzman[{extra}]"'
        ) from error
