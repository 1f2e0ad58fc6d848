"""Forests that are larger than memory, solved part by part.

A part is a number of whole trees. Trees are independent, so each part contributes only its best
capped value: the distribution function of the best of all is the product over the parts. The errors
of the parts add up to the certified gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arrays import FloatArray
from ..engine.plan import Plan, Progress, check_threads
from ..engine.solver import pass_within
from ..errors import InvalidArgument, TooLarge
from ..files.instances import Path
from ..files.mapped import MappedFile, parts

_BYTES_PER_BOX = 700  # beside the matrices of a box: columns, classes, operations, indices


@dataclass(frozen=True, slots=True, eq=False)
class FileSolution:
    """The value of a forest in a file.

    Attributes
    ----------
    value, gap : float
        The optimal value, and its certified error.
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
    path: Path,
    *,
    tolerance: float = 1e-9,
    part: int = 200_000,
    indices: Path | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> FileSolution:
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
        is refused.
    indices : str or path, optional
        Write the index of each root to this ``.npy`` file, by box; NaN for all other boxes.
    threads : int, optional
    progress : callable, optional
        Called with (boxes done, boxes in all).

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
    file = MappedFile.open(path)
    cuts = file.cuts(part)
    _check_sizes(cuts, part)
    low, high = file.reward_range()
    target = tolerance * max(high - low, 0.0) / (len(cuts) - 1)
    out = None if indices is None else np.lib.format.open_memmap(
        indices, "w+", np.float64, (file.boxes,)
    )  # fmt: skip
    best: tuple[float, int | None] = -np.inf, None
    points, tails, gap = np.empty(0), np.empty(0), 0.0
    sign = -1.0 if file.minimize else 1.0
    for first, forest in parts(file, part):
        plan = Plan.of(forest)
        run = pass_within(plan, target, threads)
        gap += run.gap
        points, tails = _larger(points, tails, *_above(run.tail, plan.outside))
        index = run.sigma[plan.sigma_at[plan.class_of[forest.roots]]]
        top = int(index.argmax())
        if index[top] > max(best[0], plan.outside):
            best = float(index[top]), first + int(forest.roots[top])
        if out is not None:
            out[first : first + len(forest)] = np.nan
            out[first + forest.roots] = sign * index
        if progress is not None:
            progress(first + len(forest), file.boxes)
    value = _mean(points, tails, sign * file.outside)
    return FileSolution(sign * value + 0.0, gap, file.boxes, len(cuts) - 1, best[1])


def _check_sizes(cuts: list[int], part: int) -> None:
    most = int(np.diff(cuts).max())
    if most > 10 * part:
        raise TooLarge(
            f"the largest tree (or trees whose boxes are mixed up) has {most} boxes, which take "
            f"about {most * _BYTES_PER_BOX / 1e6:.0f} MB beside their matrices. Raise `part` to "
            f"{most} to allow that, or write the boxes of each tree together.",
            situations=float(most),
        )


def _above(law: tuple[FloatArray, FloatArray], outside: float) -> tuple[FloatArray, FloatArray]:
    points, tails = law
    over = points > outside
    return points[over], np.minimum(tails[over], 1.0)


def _larger(
    a: FloatArray, ta: FloatArray, b: FloatArray, tb: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Breakpoints and tails P(larger of two >= x) of independent values."""
    points = np.union1d(a, b)
    pair: list[Any] = [np.append(t, 0.0)[np.searchsorted(p, points)] for p, t in ((a, ta), (b, tb))]
    return points, pair[0] + pair[1] - pair[0] * pair[1]


def _mean(points: FloatArray, tails: FloatArray, outside: float) -> float:
    """E max(outside, value)."""
    if len(points) == 0:
        return outside
    start = outside if np.isfinite(outside) else float(points[0])
    return start + float(np.sum((tails * np.diff(np.append(start, points)))[::-1]))
