"""Damage to files: bytes, JSON documents, and columns of .wz files whose checksums stay right."""

from __future__ import annotations

import copy
import json
import random
import struct
import zlib
from typing import Any

import numpy as np

from weitzman.files.binary import MAGIC

ATOMS: list[Any] = [
    None, True, False, 0, 1, -1, 0.5, 1e308, -1e308, 1e-320, 10**15, 10**18, 10**400, 2**63,
    -(2**63), "", "A", "B", "1", "900", "step", "\ud800", "\0", "x" * 1000, [], {}, [[]], [1],
    [[1, 0], [0, 1]], {"1": 1}, {"1": {"1": 1}},
]  # fmt: skip
TOKENS = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"null", b"1e999", b"NaN", b"-", b"\\ud800", b"\xff",
]  # fmt: skip
KEYS = ["name", "parent", "kind", "kinds", "cost", "law", "rewards", "states", "outcomes",
        "count", "length", "outside", "objective", "boxes", "format", "zzz"]  # fmt: skip


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


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Header and columns of a .wz file, read without the code under test."""
    _, length, _ = struct.unpack("<III", data[8:20])
    header = json.loads(data[20 : 20 + length])
    at, found = 20 + length, {}
    for column in header["columns"]:
        at += -at % 64
        size = column["size"] * np.dtype(column["dtype"]).itemsize
        found[column["name"]] = data[at : at + size]
        at += size
    return header, found


def packed(header: dict[str, Any], found: dict[str, bytes], version: int = 1) -> bytes:
    """A .wz file whose checksums are right, whatever it says."""
    listed = header.get("columns")
    for column in listed if isinstance(listed, list) else []:
        name = str(column.get("name")) if isinstance(column, dict) else ""
        if name in found and isinstance(column.get("crc"), int):
            column["crc"] = zlib.crc32(found[name])
    text = json.dumps(header).encode()
    data = MAGIC + struct.pack("<III", version, len(text), zlib.crc32(text)) + text
    for body in found.values():
        data += bytes(-len(data) % 64) + body
    return data
