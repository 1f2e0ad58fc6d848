"""``.wz`` files that are larger than memory: written forest by forest, read tree by tree.

A mapped file is read through the address space of the process: the system reads what is used, and
drops it again when memory is short. Checksums cover whole columns, so they take one pass over the
file, a piece at a time.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import IntArray
from .._common.disk import check_regular, replacing
from ..errors import InvalidFile, InvalidForest
from ..forest.model import BY_BOX, FIELDS, SETTINGS, Forest
from ..forest.pools import Pool, starts
from . import binary
from .instances import Path
from .parsing import read_settings
from .safely import explained

_PIECE = 2**18  # matrices whose places are found at a time
_BYTES = 2**22  # bytes of a checksum at a time
_POOLS = {o.stored: o.pointer for o in FIELDS if o.needed and o.pointer}
_ENTRIES = {one.stored: one for one in FIELDS if one.form == "entry" and one.type is not str}


@dataclass(frozen=True, slots=True, eq=False)
class MappedPool:
    """A pool of matrices in a file; ``mark[j]`` is where matrix ``j * _PIECE`` starts."""

    data: npt.NDArray[Any]
    shape: npt.NDArray[Any]
    mark: IntArray

    @classmethod
    def of(cls, data: npt.NDArray[Any], shape: npt.NDArray[Any], name: str) -> MappedPool:
        """Check that the shapes fit the data."""
        pairs = shape.reshape(-1, 2)
        sizes = [
            np.prod(pairs[i : i + _PIECE], axis=1, dtype=np.int64).sum()
            for i in range(0, len(pairs), _PIECE)
        ]
        mark = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if mark[-1] != len(data) or any(
            (pairs[i : i + _PIECE] < 1).any() for i in range(0, len(pairs), _PIECE)
        ):
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
        shape = np.concatenate([p.shape for p in pools])
        return Pool(np.concatenate([p.data for p in pools]), starts(shape), shape)


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
    _columns: dict[str, npt.NDArray[Any]]
    _pools: dict[str, MappedPool]
    _whole: mmap.mmap

    def forget(self) -> None:
        """Let the system take back the memory of what was read; reading again brings it back."""
        _drop(self._whole)

    @classmethod
    def open(cls, path: Path, *, check: bool = True) -> MappedFile:
        """Map a file. Checksums take one pass over it; ``check=False`` leaves them out.

        A file with discounting, a risk tolerance, several prizes or endless lines is rejected.
        """
        with explained(os.fspath(path), "read"):
            return cls._opened(path, check)

    @classmethod
    def _opened(cls, path: Path, check: bool) -> MappedFile:
        check_regular(os.stat(path))
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            header, at = binary.read_header(file, size)
            layout = list(binary.layout(header, at, size))
            for name, dtype, count, crc, start in layout if check else ():
                _check_sum(file, name, start, count * np.dtype(dtype).itemsize, crc)
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        columns = {
            name: np.frombuffer(whole, dtype, count, start)
            for name, dtype, count, _, start in layout
        }
        more = [o.key for o in SETTINGS if o.term and o.key in header]
        more += [o.key for o in BY_BOX if o.term and binary.parts(o) & columns.keys()]
        more += ["endless"] if "endless" in columns and columns["endless"].any() else []
        if more:
            raise InvalidFile(
                f"a file that is read in parts must have no {more[0]!r}. Use load, which reads it "
                f"whole."
            )
        pools = {}
        for name in _POOLS:
            pools[name] = MappedPool.of(columns[f"{name}.data"], columns[f"{name}.shape"], name)
            _drop(whole)
        n = len(columns["parent"])
        by_box = columns.keys() & {"parent", *_POOLS.values(), *_ENTRIES}
        if n == 0 or any(len(columns[c]) != n for c in by_box):
            raise InvalidFile("the columns of the boxes must be of one length, at least 1.")
        stored, given = {o.name: o.stored for o in SETTINGS}, read_settings(header)
        settings = {stored[name]: x for name, x in given.items()}
        return cls(n, settings, columns, pools, whole)

    def reward_range(self) -> tuple[float, float]:
        """The least and the highest number among the rewards and the outside option."""
        outside = self.settings["outside"]
        low, high = (outside, outside) if np.isfinite(outside) else (np.inf, -np.inf)
        data = self._pools["rewards"].data
        for i in range(0, len(data), _BYTES):
            part = data[i : i + _BYTES]
            part = part[np.isfinite(part)]
            low, high = (
                min(low, float(part.min(initial=low))),
                max(high, float(part.max(initial=high))),
            )
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
        columns: dict[str, Any] = {}
        parent = np.asarray(self._columns["parent"][first:last], np.int64)
        columns["parent"] = np.where(parent < 0, -1, parent - first)
        for name, one in _ENTRIES.items():
            if name in self._columns:
                columns[name] = np.asarray(self._columns[name][first:last]).astype(one.type)
        for pool, name in _POOLS.items():
            number = np.asarray(self._columns[name][first:last], np.int64)
            which, columns[name] = np.unique(number, return_inverse=True)
            columns[pool] = self._pools[pool].take(which)
        return Forest(**columns, **self.settings)


def _drop(whole: mmap.mmap) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        whole.madvise(mmap.MADV_DONTNEED)


def _check_sum(file: IO[bytes], name: str, start: int, size: int, crc: int) -> None:
    file.seek(start)
    found = 0
    for i in range(0, size, _BYTES):
        found = zlib.crc32(file.read(min(_BYTES, size - i)), found)
    if found != crc:
        raise InvalidFile(f"column {name!r} is damaged. Copy or write the file again.")


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
    with (
        explained(os.fspath(path), "written"),
        tempfile.TemporaryDirectory(
            dir=FilePath(path).resolve().parent, prefix=".", suffix=".tmp"
        ) as folder,
        ExitStack() as files,
    ):
        columns: dict[str, _Growing] = {}
        boxes, settings = 0, None
        for number, forest in enumerate(forests):
            forest.must_be_plain("a file written forest by forest")
            forest.must_end("a file written forest by forest")
            settings = _joined(settings, forest, number)
            _append(forest, boxes, columns, lambda name: files.enter_context(_new(folder, name)))
            boxes += len(forest)
        if settings is None:
            raise InvalidFile("a file needs at least one forest, but none was given.")
        _assemble(columns, settings, path)
    return boxes


def _joined(so_far: Any, forest: Forest, number: int) -> Any:
    """The settings of the forests so far, as one object with an attribute for each."""
    if so_far is None:
        return SimpleNamespace(**{o.stored: getattr(forest, o.stored) for o in SETTINGS})
    try:
        each = {o.stored: o.join(o, [so_far, forest], [1, 1]) for o in SETTINGS if o.join}
    except InvalidForest as error:
        raise InvalidFile(f"all forests in one file, up to number {number}: {error}") from None
    return SimpleNamespace(
        **{o.stored: o.default if each[o.stored] is None else each[o.stored] for o in SETTINGS}
    )


@dataclass(slots=True)
class _Growing:
    """A column on its way into a file."""

    file: IO[bytes]
    dtype: str
    size: int = 0
    crc: int = 0
    matrices: int = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        """More entries."""
        data = np.ascontiguousarray(values, self.dtype).reshape(-1)
        self.file.write(data.data)
        self.size += data.size
        self.crc = zlib.crc32(data.data, self.crc)


def _new(folder: str, name: str) -> IO[bytes]:
    return open(FilePath(folder) / name, "w+b")


def _append(
    f: Forest, boxes: int, columns: dict[str, _Growing], new: Callable[[str], IO[bytes]]
) -> None:
    def column(name: str, dtype: str = "<i8") -> _Growing:
        if name not in columns:
            columns[name] = _Growing(new(name), dtype)
        return columns[name]

    column("parent").add(np.where(f.parent < 0, -1, f.parent + boxes))
    matrices = {pool: column(f"{pool}.shape").size // 2 for pool in _POOLS} if columns else {}
    for pool, name in _POOLS.items():
        column(name).add(getattr(f, name) + matrices.get(pool, 0))
        kept: Pool = getattr(f, pool)
        column(f"{pool}.data", "<f8").add(kept.data[kept.start[0] : kept.start[-1]])
        column(f"{pool}.shape").add(kept.shape)
    for name, one in _ENTRIES.items():
        column(name, "<f8" if one.type is float else "<i8").add(getattr(f, name))


def _assemble(columns: dict[str, _Growing], settings: Any, path: Path) -> None:
    described = [
        {"name": name, "dtype": c.dtype, "size": c.size, "crc": c.crc}
        for name, c in columns.items()
    ]
    given = {o.key: o.plain(x) for o in SETTINGS if (x := o.given(settings)) is not None}
    header = json.dumps(given | {"columns": described}).encode()
    with replacing(os.fspath(path)) as file:
        at = binary.write_head(file, header)
        for c in columns.values():
            padding = binary.padding(at)
            file.write(padding)
            c.file.seek(0)
            shutil.copyfileobj(c.file, file, _BYTES)
            at += len(padding) + c.size * np.dtype(c.dtype).itemsize
