"""Damaged and hostile files: whatever the bytes, only our own errors come out, and soon.

A few seconds by default; ``WEITZMAN_FUZZ_SECONDS=180 pytest tests/files/test_fuzz.py`` goes on and
prints the number of files tried. ``WEITZMAN_FUZZ_SEED`` chooses other files.
"""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from random_files import content
from test_instances import BROKEN, HOSTILE, A, B, C, document, packed, unpacked

from weitzman.errors import InvalidFile, InvalidForest
from weitzman.files import instances as io
from weitzman.policy.words import describe
from weitzman.show.layout import summary

SECONDS = float(os.environ.get("WEITZMAN_FUZZ_SECONDS", "6"))
SEED = int(os.environ.get("WEITZMAN_FUZZ_SEED", "1"))
SLOWEST = 2.0  # seconds of computing that one small file may take
VALIDATOR = jsonschema.Draft202012Validator(io.schema())

STEP = {
    "rewards": [0, None, 10],
    "states": ["a", "b", "c"],
    "law": [[0.2, 0.3, 0.5]] * 3,
    "cost": 1,
}
VALID: list[dict[str, Any]] = [
    document(A, B, C, note="the example"),
    document(
        {"name": "S", "cost": {"good": 1, "bad": 2}, "outcomes": {"good": 0.3, "bad": 0.7},
         "rewards": {"good": None, "bad": 2}},
        {"name": "T", "parent": "S", "count": 3, "cost": {"good": 5, "bad": {"40": 1, "0": 2}},
         "outcomes": {"good": {"40": 0.5, "0": 0.5}, "bad": {"0": 0.9, "40": 0.1}}},
        objective="minimize", outside=50,
    ),
    document(
        {"name": "R", "kind": "step", "law": [0.5, 0, 0.5], "cost": [1, 2, 3]},
        {"name": "L", "parent": "R", "kind": "step", "length": 5, "count": 2},
        {"name": "é", "parent": "L.3", "kind": "step", "cost": [[1, 2, 3]] * 3},
        kinds={"step": STEP}, outside=-3,
    ),
    document(
        {"rewards": [1.5, 2.5], "law": [0.25, 0.75], "cost": 0, "count": 10**15},
        {"parent": 0, "rewards": [7], "law": [[1], [1]], "cost": [1, 2], "count": 10**15},
        outside=None,
    ),
]  # fmt: skip
ATOMS: list[Any] = [
    None, True, False, 0, 1, -1, 0.5, 1e308, -1e308, 1e-320, 10**15, 10**18, 10**400, 2**63,
    -(2**63), "", "A", "B", "1", "900", "step", "\ud800", "\0", "x" * 1000, [], {}, [[]], [1],
    [[1, 0], [0, 1]], {"1": 1}, {"1": {"1": 1}},
]  # fmt: skip
TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b"null",
    b"1e999",
    b"NaN",
    b"-",
    b"\\ud800",
    b"\xff",
]
KEYS = ["name", "parent", "kind", "kinds", "cost", "law", "rewards", "states", "outcomes",
        "count", "length", "outside", "objective", "boxes", "format", "zzz"]  # fmt: skip


# -- mutations ---------------------------------------------------------------------------------


def mutate_bytes(data: bytes, pick: random.Random, other: bytes) -> bytes:
    """Overwrite, flip, cut, remove, repeat, splice, or insert what JSON is made of."""
    for _ in range(pick.choice([1, 1, 2, 5])):
        i, j = sorted((pick.randrange(len(data) + 1), pick.randrange(len(data) + 1)))
        near = i + pick.randrange(1, 9)
        head, old = data[:i], data[i : i + 1]
        match pick.randrange(8):
            case 0:
                data = head + bytes([pick.randrange(256)]) + data[i + 1 :]
            case 1:
                data = head + bytes(b ^ 1 << pick.randrange(8) for b in old) + data[i + 1 :]
            case 2:
                data = head
            case 3:
                data = head + data[near:]
            case 4:
                data = head + data[i:j] * 2 + data[j:]
            case 5:
                data = head + other[pick.randrange(len(other) + 1) :]
            case 6:
                data = head + pick.choice(TOKENS) + data[i:]
            case 7:
                data = head + pick.choice(TOKENS) + data[near:]
    return data


def places(x: Any) -> list[tuple[Any, Any]]:
    """All (container, key) pairs of a document."""
    found: list[tuple[Any, Any]] = []
    todo = [x]
    while todo:
        part = todo.pop()
        keys = (
            part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
        )
        for key in keys:
            found.append((part, key))
            todo.append(part[key])
    return found


def mutate_document(x: dict[str, Any], pick: random.Random) -> dict[str, Any]:
    """Change, remove, rename, duplicate or move parts of a document."""
    x = copy.deepcopy(x)
    for _ in range(pick.choice([1, 1, 1, 2, 4])):
        found = places(x)
        part, key = pick.choice(found)
        action = pick.randrange(6)
        if action == 0:
            del part[key]
        elif action == 1:
            part[key] = copy.deepcopy(pick.choice(ATOMS))
        elif action == 2:
            other, name = pick.choice(found)
            if isinstance(other, dict) and name in other:
                part[key] = copy.deepcopy(other[name])
        elif action == 3 and isinstance(part, dict):
            part[pick.choice(KEYS)] = part.pop(key)
        elif action == 4 and isinstance(part, list):
            part.insert(key, copy.deepcopy(part[key]))
        elif isinstance(part[key], (int, float)) and abs(part[key]) < 1e300:
            part[key] = part[key] * pick.choice([-1, 2, 1e-9, 1 + 1e-10, 1e300, 10**15])
        if not isinstance(x, dict) or not places(x):
            break
    return x


def mutate_binary(data: bytes, pick: random.Random) -> bytes:
    """Change columns or the header of a .wz file and make the checksums right again."""
    header, found = unpacked(data)
    if pick.random() < 0.3:
        return packed(mutate_document(header, pick), found)
    name = pick.choice(list(found))
    dtype = next(c["dtype"] for c in header["columns"] if c["name"] == name)
    column = np.frombuffer(found[name], dtype).copy()
    if column.size and pick.random() < 0.8:
        whole = [-128, -2, -1, 0, 1, 2, 3, 127]
        real = [np.nan, np.inf, -np.inf, -1.0, 1e308, 5e-324, 0.0, 1.0]
        bytes_ = [0, 0x80, 0xFF, 65]
        values = {"i": whole, "f": real, "u": bytes_}[column.dtype.kind]
        for _ in range(pick.choice([1, 1, 3])):
            column[pick.randrange(column.size)] = pick.choice(values)
    else:
        column = pick.choice([column[:-1], np.repeat(column, 2), column[:0]])
        next(c for c in header["columns"] if c["name"] == name)["size"] = column.size
    return packed(header, {**found, name: column.tobytes()})


# -- the run -----------------------------------------------------------------------------------


class Fuzz:
    """Files of one kind: how they are made, and what came of them."""

    def __init__(
        self,
        folder: Path,
        suffix: str,
        make: Callable[[random.Random], bytes],
        valid: list[bytes] | None = None,
    ) -> None:
        self.path, self.make, self.valid = folder / f"x{suffix}", make, valid
        self.ends: Counter[str] = Counter()
        self.slowest = 0.0

    def run(self, pick: random.Random) -> None:
        data = self.make(pick)
        self.path.write_bytes(data)
        start = time.process_time()
        try:
            forest = io.load(self.path)
        except (InvalidFile, InvalidForest) as error:
            end, message = type(error).__name__, str(error)
        else:
            end, message = "valid", f"{self.path}: "
            assert self.valid is None or data in self.valid  # checksums notice any change
            check_accepted(forest, data, self.path)
        self.ends[end] += 1
        self.slowest = max(self.slowest, time.process_time() - start)
        assert message.startswith(f"{self.path}: ")
        assert self.path.read_bytes() == data
        assert self.slowest < SLOWEST


def check_accepted(forest: Any, data: bytes, path: Path) -> None:
    """What is read can be told, written and read again, and the schema agrees."""
    summary(forest)
    describe(forest)
    for suffix in (".json", ".wz"):
        again = path.with_name(f"again{suffix}")
        io.save(forest, again)
        assert content(io.load(again)) == content(forest)
    if path.suffix == ".json":
        VALIDATOR.validate(json.loads(data.decode("utf-8-sig")))


def encoded(x: Any) -> bytes:
    return json.dumps(x).encode()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of files are written."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@pytest.fixture(params=["text", "document", "gzip", "binary", "columns"])
def fuzz(request, folder) -> Fuzz:
    texts = [encoded(x) for x in VALID]
    hostile = [data for data, _ in HOSTILE if len(data) < 1000] + [encoded(x) for x, *_ in BROKEN]
    raw = []
    for i, text in enumerate(texts):
        (folder / f"{i}.json").write_bytes(text)
        io.save(io.load(folder / f"{i}.json"), folder / f"{i}.wz")
        raw.append((folder / f"{i}.wz").read_bytes())

    def text(pick: random.Random) -> bytes:
        return mutate_bytes(pick.choice(texts), pick, pick.choice(texts + hostile))

    def tree(pick: random.Random) -> bytes:
        return encoded(mutate_document(pick.choice(VALID), pick))

    def zipped(pick: random.Random) -> bytes:
        if pick.random() < 0.5:
            return gzip.compress(text(pick), 1)
        return mutate_bytes(gzip.compress(pick.choice(texts), 1), pick, gzip.compress(texts[0], 1))

    def binary(pick: random.Random) -> bytes:
        return mutate_bytes(pick.choice(raw), pick, pick.choice(raw))

    def columns(pick: random.Random) -> bytes:
        return mutate_binary(pick.choice(raw), pick)

    kinds: dict[str, Any] = {
        "text": (".json", text),
        "document": (".json", tree),
        "gzip": (".json.gz", zipped),
        "binary": (".wz", binary, raw),
        "columns": (".wz", columns),
    }
    return Fuzz(folder, *kinds[request.param])


def test_only_our_errors_come_out(fuzz, capsys, request):
    pick = random.Random(f"{SEED} {request.node.name}")
    end = time.monotonic() + SECONDS / 5
    while time.monotonic() < end:
        fuzz.run(pick)
    assert fuzz.ends["InvalidFile"] > 10
    if "WEITZMAN_FUZZ_SECONDS" in os.environ:
        with capsys.disabled():
            sys.stdout.write(
                f"\n{request.node.name}: {fuzz.ends.total()} files, {dict(fuzz.ends)}, slowest "
                f"{fuzz.slowest:.3f} s\n"
            )
