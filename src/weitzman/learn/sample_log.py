"""A small set of real curves to try things on."""

from __future__ import annotations

import csv
import gzip
from importlib.resources import files

from .curves import Curves


def sample() -> Curves:
    """Learning curves of scikit-learn classifiers on three data sets, each with five splits.

    A run is a learner on growing training sets; the cost is in seconds, from scratch at each size.
    From LCDB 1.0 (MIT License, Felix Mohr); ``sample.txt`` beside the file says more.

    Examples
    --------
    >>> sample()
    Curves(284 runs, 5,250 rows, 3 tasks, 0 cut off)
    """
    packed = files(__package__).joinpath("sample.csv.gz").read_bytes()
    rows = list(csv.reader(gzip.decompress(packed).decode().splitlines()))
    table = dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))
    return Curves.read(
        table,
        run=["learner", "replicate"],
        score="accuracy",
        cost="seconds",
        task="task",
        kind="learner",
        ended=True,
    )
