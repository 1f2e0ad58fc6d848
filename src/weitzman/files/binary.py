r"""The ``.wz`` format: columns as they are in memory, with checksums.

============  ==================================================================================
8 bytes       ``89 57 54 5A 0D 0A 1A 0A``: not text, and damaged by copying as text
3 × uint32    version (1), length of the header, CRC-32 of the header
header        JSON: the settings with the keys of ``weitzman/1``, and ``columns``, a list of
              ``name``, ``dtype``, ``size``, ``crc``
columns       raw, one after the other, each from the next multiple of 64 bytes on
============  ==================================================================================

All numbers are little-endian. Whole numbers are stored in the narrowest type that holds them.
Texts are one column of UTF-8 bytes and one of lengths. Columns that say nothing beyond the default
are left out.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .._common.arrays import IntArray
from ..errors import InvalidFile
from ..forest.fields import Field, said
from ..forest.model import BY_BOX, SETTINGS, Forest
from ..forest.pools import Pool
from .parsing import fields, read_settings, whole, wrong
from .safely import parse, shown

MAGIC = b"\x89WTZ\r\n\x1a\n"
VERSION = 1

_FIXED = struct.Struct("<III")
_MAX_HEADER = 2**16
_MAX_SIDE = 2**31  # rows or columns of a matrix
_ALIGN = 64
_CHUNK = 2**20
_INTEGERS = ("|i1", "<i2", "<i4", "<i8")

POINTERS = tuple(dict.fromkeys(one.pointer for one in BY_BOX if one.pointer))

Columns = dict[str, npt.NDArray[Any]]


def write(forest: Forest, file: BinaryIO) -> None:
    """Write a forest as raw columns."""
    columns = _columns(forest)
    described = [
        {"name": name, "dtype": c.dtype.str, "size": c.size, "crc": zlib.crc32(c.data)}
        for name, c in columns.items()
    ]
    header = json.dumps(said(forest) | {"columns": described}).encode()
    at = write_head(file, header)
    for c in columns.values():
        file.write(padding(at))
        file.write(c.data)
        at += len(padding(at)) + c.nbytes


def write_head(file: BinaryIO, header: bytes) -> int:
    """Write the head of the file, and return its length."""
    return file.write(MAGIC + _FIXED.pack(VERSION, len(header), zlib.crc32(header)) + header)


def padding(at: int) -> bytes:
    """The padding between ``at`` and the next column."""
    return bytes(-at % _ALIGN)


def read(file: BinaryIO) -> Forest:
    """Read a forest; every size is first checked against the size of the file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    header, at = read_header(file, size)
    columns: Columns = {}
    for name, dtype, count, crc, start in layout(header, at, size):
        if any(file.read(start - file.tell())):
            raise InvalidFile(f"the bytes before column {name!r} are damaged. Copy the file again.")
        columns[name] = _column(file, name, dtype, count, crc)
    for name, column in columns.items():
        _check_type(name, column)
    held: dict[str, Any] = {p: columns[p] for p in POINTERS}
    for one in BY_BOX:
        if one.stored in columns:
            whole = columns[one.stored]
            held[one.stored] = whole == 1 if one.type is bool else whole
        elif f"{one.stored}.data" in columns:
            held[one.stored] = _pool(columns, one.stored)
        elif f"{one.stored}.rows" in columns:
            held[one.stored] = _state_names(columns, one.stored, _pool(columns, "rewards"))
        elif f"{one.stored}.bytes" in columns:
            held[one.stored] = _split(columns, one.stored)
    settings = {o.name: o.stored for o in SETTINGS}
    held |= {settings[name]: x for name, x in read_settings(header).items()}
    return Forest(**held)


# -- writing -----------------------------------------------------------------------------------


def _columns(f: Forest) -> Columns:
    """The columns of a forest; those in which everything is as by default are left out."""
    columns: Columns = {}
    for one in BY_BOX:
        if one.pointer:
            columns[one.pointer] = _narrow(getattr(f, one.pointer))
        x = one.given(f)
        if x is None:
            continue
        if isinstance(x, Pool):
            data = x.data[x.start[0] : x.start[-1]]
            columns[f"{one.stored}.data"] = np.ascontiguousarray(data, "<f8")
            columns[f"{one.stored}.shape"] = _narrow(x.shape)
        elif one.form == "states":
            rows = [i for i, names in enumerate(x) if names is not None]
            if rows:
                columns[f"{one.stored}.rows"] = _narrow(np.array(rows))
                columns |= _joined(one.stored, (s for names in x for s in names or ()))
        elif one.type is str:
            columns |= _joined(one.stored, x)
        else:
            columns[one.stored] = (
                np.ascontiguousarray(x, "<f8") if one.type is float else _narrow(x.astype(np.int64))
            )
    return columns


def _narrow(x: IntArray) -> npt.NDArray[Any]:
    ends = (int(x.min()), int(x.max())) if x.size else (0, 0)
    for dtype in _INTEGERS:
        limits = np.iinfo(dtype)
        if limits.min <= ends[0] and ends[1] <= limits.max:
            break
    return np.ascontiguousarray(x, dtype).reshape(-1)


def _joined(name: str, texts: Iterable[str]) -> Columns:
    encoded = [text.encode() for text in texts]
    blob = np.frombuffer(b"".join(encoded), "|u1")
    return {f"{name}.bytes": blob, f"{name}.length": _narrow(np.array([*map(len, encoded)]))}


# -- reading -----------------------------------------------------------------------------------


def read_header(file: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
    """The header and where it ends."""
    fixed = file.read(len(MAGIC) + _FIXED.size)
    if not fixed.startswith(MAGIC):
        raise InvalidFile("a .wz file must start with the bytes that mark it, but this does not.")
    if len(fixed) < len(MAGIC) + _FIXED.size:
        raise InvalidFile(f"the file is cut off after {size} bytes. Copy it again.")
    version, length, crc = _FIXED.unpack(fixed[len(MAGIC) :])
    if version != VERSION:
        raise InvalidFile(
            f"the version of the format must be {VERSION}, but it is {version}. A newer version of "
            f"this program may read it."
        )
    if length > _MAX_HEADER:
        raise InvalidFile(f"the header must have at most {_MAX_HEADER} bytes, not {length}.")
    data = file.read(length)
    if len(data) < length or zlib.crc32(data) != crc:
        raise InvalidFile("the header is damaged. Copy or write the file again.")
    header = fields(parse(data), "the header", (*(one.key for one in SETTINGS), "columns"))
    for key in (*(one.key for one in SETTINGS if one.always), "columns"):
        if key not in header:
            raise InvalidFile(f"the header: {key!r} is missing.")
    return header, len(fixed) + length


def layout(
    header: dict[str, Any], at: int, size: int, kind: type = Forest
) -> Iterator[tuple[str, str, int, int, int]]:
    """Name, type, length, checksum and place of each column, checked against the file size."""
    if not isinstance(header["columns"], list):
        wrong("the header: columns", "a list", header["columns"])
    found = []
    for i, column in enumerate(header["columns"]):
        where = f"the header: columns[{i}]"
        about = fields(column, where, ("name", "dtype", "size", "crc"))
        name, dtype = about.get("name"), about.get("dtype")
        if not isinstance(name, str) or dtype not in (*_INTEGERS, "<f8", "|u1"):
            raise InvalidFile(f"{where}: needs a name and a known type, not {shown(dtype)}.")
        count = whole(about.get("size"), f"{where}: size", 0, size)
        crc = whole(about.get("crc"), f"{where}: crc", 0, 2**32 - 1)
        at += -at % _ALIGN
        found.append((name, dtype, count, crc, at))
        at += count * np.dtype(dtype).itemsize
    if at != size:
        raise InvalidFile(
            f"the file must have {at} bytes, but it has {size}: it is cut off or has been added "
            f"to. Copy it again."
        )
    _check_names([name for name, *_ in found])
    yield from found


def _check_names(names: list[str]) -> None:
    """All needed columns are there, once, and of the others all parts or none."""
    needed, known = set(POINTERS), set(names)
    for one in BY_BOX:
        if parts(one) & known or one.needed:
            needed |= parts(one)
    if len(known) < len(names) or known != needed:
        odd = sorted(known ^ needed) or sorted(n for n in names if names.count(n) > 1)
        raise InvalidFile(f"the header: column {shown(odd[0])} is missing, repeated or unknown.")


def parts(one: Field) -> set[str]:
    """The columns of a field."""
    if one.pointer and one.form != "states":
        return {f"{one.stored}.data", f"{one.stored}.shape"}
    if one.type is not str and one.form != "states":
        return {one.stored}
    rows = {f"{one.stored}.rows"} if one.form == "states" else set()
    return {f"{one.stored}.bytes", f"{one.stored}.length"} | rows


def _column(file: BinaryIO, name: str, dtype: str, count: int, crc: int) -> npt.NDArray[Any]:
    column = np.empty(count, dtype)
    view = column.view(np.uint8).data
    found = 0
    for i in range(0, len(view), _CHUNK):
        piece = view[i : i + _CHUNK]
        if file.readinto(piece) < len(piece):  # type: ignore[attr-defined]
            raise InvalidFile(f"the file is cut off in column {name!r}. Copy it again.")
        found = zlib.crc32(piece, found)
    if found != crc:
        raise InvalidFile(
            f"column {name!r} is damaged: its checksum must be {crc:08x}, but it is {found:08x}. "
            f"Copy or write the file again."
        )
    return column


def _check_type(name: str, column: npt.NDArray[Any]) -> None:
    amounts = {one.stored for one in BY_BOX if one.form == "entry" and one.type is float}
    floats = name.endswith(".data") or name in amounts
    if column.dtype.kind != ("f" if floats else "u" if name.endswith(".bytes") else "i"):
        raise InvalidFile(f"the header: column {name!r} cannot be of type {column.dtype.str}.")


def _pool(columns: Columns, name: str) -> Pool:
    data, shape = columns[f"{name}.data"], columns[f"{name}.shape"]
    if shape.size % 2 or (shape < 1).any() or (shape > _MAX_SIDE).any():
        raise InvalidFile(f"{name}: each matrix must have rows and columns, at least one of each.")
    rows, cols = shape.astype(np.int64).reshape(-1, 2).T
    if (rows.astype(np.float64) * cols).sum() != data.size:  # as floats: no overflow
        raise InvalidFile(f"{name}: the shapes must add up to the {data.size} entries given.")
    start = np.concatenate([[0], np.cumsum(rows * cols)])
    return Pool(data, start, np.column_stack([rows, cols]))


def _split(columns: Columns, name: str) -> tuple[str, ...]:
    blob, length = columns[f"{name}.bytes"].tobytes(), columns[f"{name}.length"]
    if (length < 0).any() or length.sum(dtype=np.float64) != len(blob):
        raise InvalidFile(f"{name}: the lengths must add up to the {len(blob)} bytes given.")
    ends = np.cumsum(length, dtype=np.int64).tolist()
    try:
        return tuple(blob[i:j].decode() for i, j in zip([0, *ends[:-1]], ends, strict=True))
    except UnicodeDecodeError:
        raise InvalidFile(f"{name}: a name must be UTF-8 text, but one is not.") from None


def _state_names(columns: Columns, name: str, rewards: Pool) -> tuple[tuple[str, ...] | None, ...]:
    named: list[tuple[str, ...] | None] = [None] * len(rewards)
    rows = columns[f"{name}.rows"].astype(np.int64)
    if (np.diff(rows) < 1).any() or (rows < 0).any() or (rows >= len(rewards)).any():
        raise InvalidFile(f"{name}: rows must be numbers of rewards, in rising order.")
    names = _split(columns, name)
    ends = np.cumsum(rewards.shape[rows, 1]).tolist()
    if not ends or ends[-1] != len(names):
        raise InvalidFile(f"{name}: there must be a name for each state of each row.")
    once: dict[tuple[str, ...], tuple[str, ...]] = {}
    for row, i, j in zip(rows.tolist(), [0, *ends[:-1]], ends, strict=True):
        named[row] = once.setdefault(names[i:j], names[i:j])
    return tuple(named)
