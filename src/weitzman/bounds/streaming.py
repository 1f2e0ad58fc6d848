"""Forests that are larger than memory, solved part by part.

A part is a number of whole trees. Trees are independent, so each part contributes only its best
capped value: the distribution function of the best of all is the product over the parts. The errors
of the parts add up to the certified gap.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.law import Law
from .._common.sharing import Executor, check_executor, spread
from ..engine.plan import Plan, Progress, check_threads
from ..engine.solver import pass_within
from ..errors import InvalidArgument, InvalidFile, TooLarge
from ..files.binary import MappedFile
from ..files.documents import Path

_BYTES_PER_BOX = 700  # beside the matrices of a box: columns, classes, operations, indices


@dataclass(frozen=True, slots=True, eq=False)
class FileSolution:
    """The value of a forest in a file.

    Attributes
    ----------
    value, gap : float
        The optimal value, and its certified error, which includes the stated error of the file.
    boxes, parts : int
    first_box : int or None
        The number of the box to open first; None if it is best to open nothing.
    """

    value: float
    gap: float
    boxes: int
    parts: int
    first_box: int | None


def solve_file(
    path: Path, *, tolerance: float = 1e-9, part: int = 200_000, indices: Path | None = None,
    threads: int | None = None, executor: Executor | None = None, progress: Progress | None = None,
) -> FileSolution:  # fmt: skip
    """Solve a forest in a ``.wz`` file in bounded memory, whole trees at a time.

    Parameters
    ----------
    path : str or path
        A file that :func:`~weitzman.save` or :func:`~weitzman.files.save_many` wrote. Boxes of one
        tree should lie together: trees that are mixed up are read together.
    tolerance : float
        Certified error of the value, as a share of the range of the rewards.
    part : int
        Approximate number of boxes to read at a time. A tree that is more than ten times as large
        is rejected.
    indices : str or path, optional
        Write the index of each root to this ``.npy`` file, by box; NaN for all other boxes.
    threads : int, optional
        All cores by default.
    executor : optional
        Workers to share the parts, as in :func:`~weitzman.solve`. Each worker reads its parts from
        the file, which must have the same path on all machines; nothing else is sent. The result
        is bitwise identical to the one without.
    progress : callable, optional
        Called with (parts done, parts in all).

    See Also
    --------
    weitzman.files.save_many : Writes such a file.

    Examples
    --------
    >>> import tempfile, weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = weitzman.files.save_many([box, box], f"{folder}/two.wz")
    ...     weitzman.bounds.solve_file(f"{folder}/two.wz").value
    6.0
    """
    check_threads(threads)
    if not 0 <= tolerance < np.inf or part < 1:
        raise InvalidArgument(
            f"`tolerance` must be a number from 0 on and `part` a number of boxes, but they are "
            f"{tolerance} and {part}."
        )
    check_executor(executor)
    file = MappedFile.open(path)
    cuts = file.cuts(part)
    if (most := int(np.diff(cuts).max())) > 10 * part:
        raise TooLarge(
            f"the largest tree (or trees whose boxes are mixed up) has {most} boxes, which take "
            f"about {most * _BYTES_PER_BOX / 1e6:.0f} MB beside their matrices. Raise `part` to "
            f"{most} to allow that, or write the boxes of each tree together.",
            situations=float(most),
        )
    low, high = file.reward_range()
    target = tolerance * max(high - low, 0.0) / (len(cuts) - 1)
    where = file if executor is None else _FileThere.of(path)
    data = where, target, threads if executor is None else 1
    found = spread(executor, _solve_part, data, list(pairwise(cuts)), progress)
    sign = -1.0 if file.settings["minimize"] else 1.0
    if indices is not None:  # by box, and NaN for all that are no roots
        out = np.lib.format.open_memmap(indices, "w+", np.float64, (file.boxes,))
        for (first, last), one in zip(pairwise(cuts), found, strict=True):
            out[first:last] = np.nan
            out[one.roots] = sign * one.highs
    outside = sign * file.settings["outside"]
    best, box = outside, None
    for one in found:
        top = int(one.highs.argmax())
        if one.highs[top] > best:
            best, box = float(one.highs[top]), int(one.roots[top])
    law = found[0].best.largest(*(one.best for one in found[1:]))
    value = sign * float(law.with_fallback(outside)) + 0.0
    gap = sum((one.gap for one in found), file.settings.get("stated_error", 0.0))
    return FileSolution(value, gap, file.boxes, len(found), box)


class _FileThere(NamedTuple):
    """A file as a worker finds it; another file of the same name is not the same."""

    path: str
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> _FileThere:
        told = os.stat(path)
        return cls(os.path.abspath(path), told.st_size, told.st_mtime_ns)


class _PartFound(NamedTuple):
    """What a part of a file comes to."""

    gap: float
    best: Law
    roots: IntArray  # by number in the file
    highs: FloatArray  # the index of each, to be maximized


@lru_cache(maxsize=1)
def _opened(place: _FileThere) -> MappedFile:
    """On a worker: the file, mapped once. The caller has compared the checksums."""
    if _FileThere.of(place.path) != place:
        raise InvalidFile(f"{place.path} is another file here than where the work was given out.")
    return MappedFile.open(place.path, check=False)


def _solve_part(
    data: tuple[MappedFile | _FileThere, float, int | None], piece: tuple[int, int]
) -> _PartFound:
    """Solve some trees of a file."""
    where, target, threads = data
    file = _opened(where) if isinstance(where, _FileThere) else where
    forest = file.part(*piece)
    file.forget()
    plan = Plan.of(forest)
    run = pass_within(plan, target, threads)
    index = run.sigma[plan.sigma_at[plan.class_of[forest.roots]]]
    points, tails = run.tail
    over = points > plan.outside
    best = Law(points[over], np.minimum(tails[over], 1.0))
    return _PartFound(run.gap, best, piece[0] + forest.roots, index)
