"""What other versions of Python make of the journal."""

from __future__ import annotations

import gc
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import weitzman
from weitzman.engine.solver import solve
from weitzman.errors import InvalidFile
from weitzman.forest.builder import Builder
from weitzman.policy.search import Search


def solved() -> Any:
    return solve(Builder().add("A", cost=1, outcomes={0: 0.5, 9: 0.5}).build())


def test_no_view_of_a_bytesio_is_kept() -> None:
    """Collected in a cycle, such a view crashes CPython 3.12.1 and is an error on 3.13 (gh-111049).

    The crash needs the collector to meet the BytesIO before its view, so the name is looked for.
    """
    package = Path(weitzman.__file__).parent
    users = [path for path in package.rglob("*.py") if ".getbuffer(" in path.read_text("utf-8")]
    assert users == []


def test_a_file_that_is_rejected_leaves_no_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.13 warns of connections that nobody has closed."""
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    path = tmp_path / "run.db"
    Search(solved(), journal=path).close()
    whole = path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in range(100, len(whole), 1000):
            path.write_bytes(whole[:size])
            with pytest.raises(InvalidFile):
                Search.resume(path)
        gc.collect()
    assert seen == []
