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

Files that are larger than memory are written forest by forest, and read tree by tree from a mapped
file. Checksums cover whole columns, so they take one pass over the file, a piece at a time.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path as FilePath
from types import SimpleNamespace
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from .._common.arrays import IntArray
from .._common.disk import check_regular, replacing
from ..errors import InvalidFile, InvalidForest
from ..forest.columns import Pool, concat_pools, starts
from ..forest.fields import Field, said
from ..forest.model import BY_BOX, FIELDS, SETTINGS, Forest
from .documents import Path, explained, fields, parse, read_settings, shown, whole, wrong

MAGIC = b"\x89WTZ\r\n\x1a\n"
VERSION = 1

_FIXED = struct.Struct("<III")
_MAX_HEADER = 2**16
_MAX_SIDE = 2**31  # rows or columns of a matrix
_ALIGN = 64
_CHUNK = 2**20  # bytes that are read at a time
_PIECE = 2**18  # matrices of a mapped file whose places are found at a time
_INTEGERS = ("|i1", "<i2", "<i4", "<i8")

POINTERS = tuple(dict.fromkeys(one.pointer for one in BY_BOX if one.pointer))
_POOLS = {o.stored: o.pointer for o in FIELDS if o.needed and o.pointer}
_ENTRIES = {one.stored: one for one in FIELDS if one.form == "entry" and one.type is not str}

Columns = dict[str, npt.NDArray[Any]]


def _parts(one: Field) -> dict[str, str]:
    """The columns of a field, and the kinds of their numbers."""
    name = one.stored
    if one.pointer and one.form != "states":
        return {f"{name}.data": "f", f"{name}.shape": "i"}
    if one.type is not str and one.form != "states":
        return {name: "f" if one.type is float else "i"}
    rows = {f"{name}.rows": "i"} if one.form == "states" else {}
    return {f"{name}.bytes": "u", f"{name}.length": "i", **rows}


_KINDS = dict.fromkeys(POINTERS, "i") | {c: k for o in BY_BOX for c, k in _parts(o).items()}


class Column(NamedTuple):
    """A column as the header describes it, and where it starts in the file."""

    name: str
    dtype: str
    size: int
    crc: int
    start: int = 0


# -- writing -----------------------------------------------------------------------------------


def write(forest: Forest, file: BinaryIO) -> None:
    """Write a forest; columns in which everything is as by default are left out."""
    columns: Columns = {}
    for one in BY_BOX:
        if one.pointer:
            columns[one.pointer] = _narrow(getattr(forest, one.pointer))
        x = one.given(forest)
        if x is None:
            continue
        if isinstance(x, Pool):
            data = x.data[x.start[0] : x.start[-1]]
            columns[f"{one.stored}.data"] = np.ascontiguousarray(data, "<f8")
            columns[f"{one.stored}.shape"] = _narrow(x.shape)
        elif one.form == "states" or one.type is str:
            rows = [i for i, names in enumerate(x) if names is not None]
            if one.form == "states" and rows:
                columns[f"{one.stored}.rows"] = _narrow(np.array(rows))
                x = [name for names in x for name in names or ()]
            if rows:
                encoded = [text.encode() for text in x]
                columns[f"{one.stored}.bytes"] = np.frombuffer(b"".join(encoded), "|u1")
                columns[f"{one.stored}.length"] = _narrow(np.array([*map(len, encoded)]))
        else:
            is_float = one.type is float
            columns[one.stored] = np.ascontiguousarray(x, "<f8") if is_float else _narrow(x)
    described = [Column(x, c.dtype.str, c.size, zlib.crc32(c.data)) for x, c in columns.items()]
    _write(file, said(forest), described, lambda name: [columns[name].data])


def _write(
    file: BinaryIO,
    settings: Mapping[str, Any],
    columns: Iterable[Column],
    content: Callable[[str], Iterable[bytes | memoryview]],
) -> None:
    """Write the head of a file and the contents of its columns, piece by piece."""
    named = [{x: getattr(c, x) for x in ("name", "dtype", "size", "crc")} for c in columns]
    header = json.dumps({**settings, "columns": named}).encode()
    file.write(MAGIC + _FIXED.pack(VERSION, len(header), zlib.crc32(header)) + header)
    for c in columns:
        file.write(bytes(-file.tell() % _ALIGN))
        for piece in content(c.name):
            file.write(piece)


def _narrow(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Whole numbers in the narrowest type that holds them."""
    top = max(int(x.max(initial=0)), -1 - int(x.min(initial=0)))
    dtype = next(t for t in _INTEGERS if top <= np.iinfo(t).max)
    return np.ascontiguousarray(x, dtype).reshape(-1)


# -- reading -----------------------------------------------------------------------------------


def read(file: BinaryIO) -> Forest:
    """Read a forest; every size is first checked against the size of the file."""
    settings, layout = _head(file)
    columns: Columns = {}
    for c in layout:
        if any(file.read(c.start - file.tell())):
            raise InvalidFile(
                f"the bytes before column {c.name!r} are damaged. Copy the file again."
            )
        columns[c.name] = _checked(file, c)
    held: dict[str, Any] = {p: columns[p] for p in POINTERS}
    for one in BY_BOX:
        name = one.stored
        if name in columns:
            held[name] = columns[name] == 1 if one.type is bool else columns[name]
        elif f"{name}.data" in columns:
            held[name] = _pool(columns, name)
        elif f"{name}.rows" in columns:
            held[name] = _state_names(columns, name, _pool(columns, "rewards"))
        elif f"{name}.bytes" in columns:
            held[name] = _split(columns, name)
    return Forest(**held, **settings)


def _head(file: BinaryIO) -> tuple[dict[str, Any], list[Column]]:
    """The settings by attribute, and the columns, checked against the size of the file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
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
    if not isinstance(header["columns"], list):
        wrong("the header: columns", "a list", header["columns"])
    found, at = list[Column](), len(fixed) + length
    for i, column in enumerate(header["columns"]):
        where = f"the header: columns[{i}]"
        about = fields(column, where, ("name", "dtype", "size", "crc"))
        name, dtype = about.get("name"), about.get("dtype")
        if not isinstance(name, str) or dtype not in (*_INTEGERS, "<f8", "|u1"):
            raise InvalidFile(f"{where}: needs a name and a known type, not {shown(dtype)}.")
        if np.dtype(dtype).kind != _KINDS.get(name, np.dtype(dtype).kind):
            raise InvalidFile(f"the header: column {name!r} cannot be of type {dtype}.")
        count = whole(about.get("size"), f"{where}: size", 0, size)
        crc = whole(about.get("crc"), f"{where}: crc", 0, 2**32 - 1)
        at += -at % _ALIGN
        found.append(Column(name, dtype, count, crc, at))
        at += count * np.dtype(dtype).itemsize
    if at != size:
        raise InvalidFile(
            f"the file must have {at} bytes, but it has {size}: it is cut off or has been added "
            f"to. Copy it again."
        )
    names = [c.name for c in found]
    # all needed columns are there, once, and of the others all parts or none
    needed, known = set(POINTERS), set(names)
    for one in BY_BOX:
        if _parts(one).keys() & known or one.needed:
            needed |= _parts(one).keys()
    if len(known) < len(names) or known != needed:
        odd = sorted(known ^ needed) or sorted(n for n in names if names.count(n) > 1)
        raise InvalidFile(f"the header: column {shown(odd[0])} is missing, repeated or unknown.")
    stored, given = {o.name: o.stored for o in SETTINGS}, read_settings(header)
    return {stored[name]: x for name, x in given.items()}, found


def _checked(file: BinaryIO, c: Column, keep: bool = True) -> npt.NDArray[Any]:
    """Read a column, which starts here, and compare its checksum; ``keep``: all of it."""
    size = c.size * np.dtype(c.dtype).itemsize
    room = np.empty(size if keep else min(size, _CHUNK), np.uint8)
    found = 0
    for i in range(0, size, _CHUNK):
        piece = room.data[i if keep else 0 :][: min(_CHUNK, size - i)]
        if file.readinto(piece) < len(piece):  # type: ignore[attr-defined]
            raise InvalidFile(f"the file is cut off in column {c.name!r}. Copy it again.")
        found = zlib.crc32(piece, found)
    if found != c.crc:
        raise InvalidFile(
            f"column {c.name!r} is damaged: its checksum must be {c.crc:08x}, but it is "
            f"{found:08x}. Copy or write the file again."
        )
    return room.view(c.dtype)


def _pool(columns: Columns, name: str) -> Pool:
    data, shape = columns[f"{name}.data"], columns[f"{name}.shape"]
    if shape.size % 2 or (shape < 1).any() or (shape > _MAX_SIDE).any():
        raise InvalidFile(f"{name}: each matrix must have rows and columns, at least one of each.")
    rows, cols = shape.astype(np.int64).reshape(-1, 2).T
    if (rows.astype(np.float64) * cols).sum() != data.size:  # as floats: no overflow
        raise InvalidFile(f"{name}: the shapes must add up to the {data.size} entries given.")
    both = np.column_stack([rows, cols])
    return Pool(data, starts(both), both)


def _split(columns: Columns, name: str) -> tuple[str, ...]:
    blob, length = columns[f"{name}.bytes"].tobytes(), columns[f"{name}.length"]
    if (length < 0).any() or length.sum(dtype=np.float64) != len(blob):
        raise InvalidFile(f"{name}: the lengths must add up to the {len(blob)} bytes given.")
    ends = [0, *np.cumsum(length, dtype=np.int64).tolist()]
    try:
        return tuple(blob[i:j].decode() for i, j in pairwise(ends))
    except UnicodeDecodeError:
        raise InvalidFile(f"{name}: a name must be UTF-8 text, but one is not.") from None


def _state_names(columns: Columns, name: str, rewards: Pool) -> tuple[tuple[str, ...] | None, ...]:
    named: list[tuple[str, ...] | None] = [None] * len(rewards)
    rows = columns[f"{name}.rows"].astype(np.int64)
    if (np.diff(rows) < 1).any() or (rows < 0).any() or (rows >= len(rewards)).any():
        raise InvalidFile(f"{name}: rows must be numbers of rewards, in rising order.")
    names, ends = _split(columns, name), [0, *np.cumsum(rewards.shape[rows, 1]).tolist()]
    if not len(rows) or ends[-1] != len(names):
        raise InvalidFile(f"{name}: there must be a name for each state of each row.")
    once: dict[tuple[str, ...], tuple[str, ...]] = {}
    for row, (i, j) in zip(rows.tolist(), pairwise(ends), strict=True):
        named[row] = once.setdefault(names[i:j], names[i:j])
    return tuple(named)


# -- files larger than memory: reading ---------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class MappedPool:
    """A pool of matrices in a file; ``mark[j]`` is where matrix ``j * _PIECE`` starts."""

    data: npt.NDArray[Any]
    shape: npt.NDArray[Any]
    mark: IntArray

    @classmethod
    def of(cls, columns: Columns, name: str) -> MappedPool:
        """Check that the shapes fit the data."""
        data, pairs = columns[f"{name}.data"], columns[f"{name}.shape"].reshape(-1, 2)
        pieces = [pairs[i : i + _PIECE] for i in range(0, len(pairs), _PIECE)]
        sizes = [np.prod(piece, axis=1, dtype=np.int64).sum() for piece in pieces]
        mark = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if mark[-1] != len(data) or any((piece < 1).any() for piece in pieces):
            raise InvalidFile(f"{name}: the shapes must add up to the {len(data)} entries.")
        return cls(data, pairs, mark)

    def take(self, which: IntArray) -> Pool:
        """The matrices ``which``, in rising order, in memory."""
        if len(which) and not (which[0] >= 0 and which[-1] < len(self.shape)):
            raise InvalidFile(f"a box points to matrix {int(which[-1])}, which is not there.")
        pools = []
        for j in np.unique(which // _PIECE).tolist():
            here = which[which // _PIECE == j] - j * _PIECE
            shape = np.asarray(self.shape[j * _PIECE : (j + 1) * _PIECE], np.int64)
            start = starts(shape)
            low, high = int(here[0]), int(here[-1]) + 1
            a, b = int(self.mark[j] + start[low]), int(self.mark[j] + start[high])
            near = Pool(
                np.array(self.data[a:b]), start[low : high + 1] - start[low], shape[low:high]
            )
            pools.append(near.take(here - low))
        return concat_pools(pools)


@dataclass(frozen=True, slots=True, eq=False)
class MappedFile:
    """A forest in a ``.wz`` file that is read in parts.

    Attributes
    ----------
    boxes : int
    settings : dict
        Those of the forest, by attribute.
    """

    boxes: int
    settings: dict[str, Any]
    _columns: Columns
    _pools: dict[str, MappedPool]
    _whole: mmap.mmap

    def forget(self) -> None:
        """Let the system take back the memory of what was read; reading again brings it back."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._whole.madvise(mmap.MADV_DONTNEED)

    @classmethod
    def open(cls, path: Path, *, check: bool = True) -> MappedFile:
        """Map a file. Checksums take one pass over it; ``check=False`` leaves them out.

        A file with discounting, a risk tolerance, several prizes or endless lines is rejected.
        """
        with explained(os.fspath(path), "read"):
            check_regular(os.stat(path))
            with open(path, "rb") as file:
                settings, layout = _head(file)
                for c in layout if check else ():
                    file.seek(c.start)
                    _checked(file, c, keep=False)
                whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            columns = {c.name: np.frombuffer(whole, c.dtype, c.size, c.start) for c in layout}
            there = {*settings, *columns}
            more = [o.key for o in FIELDS if o.term and there & {o.stored, *_parts(o)}]
            more += ["endless"] if "endless" in columns and columns["endless"].any() else []
            if more:
                raise InvalidFile(
                    f"a file that is read in parts must have no {more[0]!r}. Use load, which reads "
                    f"it whole."
                )
            n = len(columns["parent"])
            by_box = columns.keys() & {"parent", *_POOLS.values(), *_ENTRIES}
            if n == 0 or any(len(columns[c]) != n for c in by_box):
                raise InvalidFile("the columns of the boxes must be of one length, at least 1.")
            found = cls(n, settings, columns, {}, whole)
            for name in _POOLS:
                found._pools[name] = MappedPool.of(columns, name)
                found.forget()
            return found

    def reward_range(self) -> tuple[float, float]:
        """The least and the highest number among the rewards and the outside option."""
        outside = self.settings["outside"]
        low, high = (outside, outside) if np.isfinite(outside) else (np.inf, -np.inf)
        data = self._pools["rewards"].data
        for i in range(0, len(data), _CHUNK):
            part = data[i : i + _CHUNK]
            part = part[np.isfinite(part)]
            low = min(low, float(part.min(initial=low)))
            high = max(high, float(part.max(initial=high)))
        self.forget()
        return low, high

    def cuts(self, size: int) -> list[int]:
        """Places between whole trees, about ``size`` boxes apart; from 0 to the number of boxes.

        No tree is cut, even if it does not fit. Trees whose boxes are mixed up stay together.
        """
        parent, n = self._columns["parent"], self.boxes
        blocks = list(range(0, n, size))
        highest = -1  # parent of a box before the block
        reach = []
        for a in blocks:
            reach.append(highest)
            highest = max(highest, int(parent[a : a + size].max()))
        found, least = [n], n
        for a, before in zip(reversed(blocks), reversed(reach), strict=True):
            block = np.asarray(parent[a : a + size], np.int64)
            low = np.where(block < 0, n, block)
            down = np.minimum(np.minimum.accumulate(low[::-1])[::-1], least)
            up = np.maximum.accumulate(np.concatenate([[before], block[:-1]]))
            place = a + np.arange(len(block))
            fine = np.flatnonzero((down >= place) & (up < place))
            if len(fine):
                found.append(a + int(fine[0]))
            least = int(down[0])
        self.forget()
        return sorted({0, *found})

    def part(self, first: int, last: int) -> Forest:
        """Boxes ``first`` to ``last - 1``, which must be whole trees, as a forest."""
        held: dict[str, Any] = {}
        parent = np.asarray(self._columns["parent"][first:last], np.int64)
        held["parent"] = np.where(parent < 0, -1, parent - first)
        for name, one in _ENTRIES.items():
            if name in self._columns:
                held[name] = np.asarray(self._columns[name][first:last]).astype(one.type)
        for pool, name in _POOLS.items():
            number = np.asarray(self._columns[name][first:last], np.int64)
            which, held[name] = np.unique(number, return_inverse=True)
            held[pool] = self._pools[pool].take(which)
        return Forest(**held, **self.settings)


# -- files larger than memory: writing ---------------------------------------------------------


def save_many(forests: Iterable[Forest], path: Path) -> int:
    """Write forests side by side into one ``.wz`` file, one after the other; the number of boxes.

    Only one forest is in memory at a time. Names of boxes, states and groups are left out. All
    forests have the same outside option and the same objective, and none has terms such as
    discounting; their stated errors add up.

    Examples
    --------
    >>> import tempfile, weitzman
    >>> from weitzman.files import save_many
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_many((box for _ in range(3)), f"{folder}/three.wz")
    ...     len(weitzman.load(f"{folder}/three.wz"))
    3
    3
    """
    beside = {"dir": FilePath(path).resolve().parent, "prefix": ".", "suffix": ".tmp"}
    with (
        explained(os.fspath(path), "written"),
        tempfile.TemporaryDirectory(**beside) as folder,  # type: ignore[call-overload]
        ExitStack() as files,
    ):
        columns: dict[str, _Growing] = {}

        def column(name: str, dtype: str = "<i8") -> _Growing:
            if name not in columns:
                file = files.enter_context(open(FilePath(folder) / name, "w+b"))
                columns[name] = _Growing(file, dtype)
            return columns[name]

        boxes, settings = 0, None
        for number, f in enumerate(forests):
            for check in (f.must_be_plain, f.must_end):
                check("a file written forest by forest")
            settings = _settings(settings, f, number)
            column("parent").add(np.where(f.parent < 0, -1, f.parent + boxes))
            for pool, name in _POOLS.items():
                before, kept = column(f"{pool}.shape"), getattr(f, pool)
                column(name).add(getattr(f, name) + before.size // 2)
                column(f"{pool}.data", "<f8").add(kept.data[kept.start[0] : kept.start[-1]])
                before.add(kept.shape)
            for name, one in _ENTRIES.items():
                column(name, "<f8" if one.type is float else "<i8").add(getattr(f, name))
            boxes += len(f)
        if settings is None:
            raise InvalidFile("a file needs at least one forest, but none was given.")
        given = {o.key: o.plain(x) for o in SETTINGS if (x := o.given(settings)) is not None}
        described = [Column(name, c.dtype, c.size, c.crc) for name, c in columns.items()]
        with replacing(os.fspath(path)) as file:
            _write(file, given, described, lambda name: columns[name].pieces())
    return boxes


def _settings(so_far: Any, forest: Forest, number: int) -> Any:
    """The settings of the forests so far, as one object with an attribute for each."""
    if so_far is None:
        return SimpleNamespace(**{o.stored: getattr(forest, o.stored) for o in SETTINGS})
    try:
        each = {o: o.join(o, [so_far, forest], [1, 1]) for o in SETTINGS if o.join}
    except InvalidForest as error:
        raise InvalidFile(f"all forests in one file, up to number {number}: {error}") from None
    return SimpleNamespace(**{o.stored: o.default if x is None else x for o, x in each.items()})


@dataclass(slots=True)
class _Growing:
    """A column on its way into a file."""

    file: IO[bytes]
    dtype: str
    size: int = 0
    crc: int = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        """More entries."""
        data = np.ascontiguousarray(values, self.dtype).reshape(-1)
        self.file.write(data.data)
        self.size += data.size
        self.crc = zlib.crc32(data.data, self.crc)

    def pieces(self) -> Iterator[bytes]:
        """All that was written."""
        self.file.seek(0)
        while piece := self.file.read(_CHUNK):
            yield piece
