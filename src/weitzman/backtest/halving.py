"""Successive halving and its relatives, as generators that yield whenever they might stop.

A rule takes a :class:`~weitzman.backtest.bench.Bench` and settings. Resources are counted in rows
of a curve, from 1; ``most`` is the length of a full run. Runs are ranked by the last score seen,
as in the papers.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .bench import Bench


def top_k(bench: Bench, runs: int, keep: int) -> Iterator[None]:
    """Train some runs for one epoch and the best K of them to the end (arXiv 2307.15422).

    An epoch is the first step that costs something.
    """
    started = np.arange(min(runs, len(bench)))
    _finish(bench, _best(started, bench.first_epoch(started), keep))
    yield


def successive_halving(bench: Bench, runs: int, rate: int, least: int, most: int) -> Iterator[None]:
    """Successive halving (Jamieson and Talwalkar, 2016): one synchronous bracket.

    All runs see ``least`` rows. Then, and whenever the remaining runs have seen ``rate`` times as
    many, the best ``ceil(runs / rate**k)`` go on. Runs that reach the last rung go to their ends.
    """
    alive = np.arange(min(runs, len(bench)))
    size, k, rows = len(alive), 0, least
    while rows < most and len(alive) > 1:
        score = bench.advance_all(alive, rows)
        k, rows = k + 1, rows * rate
        alive = _best(alive, score, -(-size // rate**k))
    _finish(bench, alive)
    yield


def hyperband(bench: Bench, runs: int, rate: int, least: int, most: int) -> Iterator[None]:
    """Hyperband (Li et al., 2018, algorithm 1): brackets from bold to cautious, over and over.

    It ends when this many runs have been started; the last bracket may be short of runs.
    """
    deepest = int(np.log(most / least) / np.log(rate) + 1e-9)
    begun, s, limit = 0, deepest, min(runs, len(bench))
    while begun < limit:
        size = -(-(deepest + 1) * rate**s // (s + 1))
        alive = np.arange(begun, min(begun + size, limit))
        begun += len(alive)
        size = len(alive)
        for i in range(s):
            if len(alive) > 1:
                score = bench.advance_all(alive, max(round(most / rate ** (s - i)), least))
                alive = _best(alive, score, max(size // rate ** (i + 1), 1))
        _finish(bench, alive)
        s = s - 1 if s > 0 else deepest
    yield


def asha(bench: Bench, rate: int, least: int, most: int) -> Iterator[None]:
    """Asynchronous successive halving (Li et al., 2020, algorithm 2) with one worker.

    A run that is among the best ``1 / rate`` of its rung is promoted, from the highest rung that
    has one; if there is none, a new run is started. Yields before each new run.
    """
    levels = [least]
    while levels[-1] < most:
        levels.append(min(levels[-1] * rate, most))
    rungs = [_Rung(rate) for _ in levels]
    for new in range(len(bench)):
        rungs[0].add(bench.advance(new, levels[0]), new)
        while (found := _promoted(rungs)) is not None:
            run, k = found
            rungs[k + 1].add(bench.advance(run, levels[k + 1]), run)
        yield


def percentile(bench: Bench, share: float, first: int, finished: int) -> Iterator[None]:
    """Percentile stopping, the rule of Ax: run after run, dropped if among the worst.

    At rows 1, 2, 4, ... from row ``first`` on, once ``finished`` runs have ended, a run goes on
    only if its score is at least the ``share`` percentile of all scores at that row, its own
    included. Yields after each run.
    """
    seen: dict[int, list[float]] = {}
    whole = 0
    for run in range(len(bench)):
        row, score = 1, bench.advance(run, 1)
        while score > -np.inf:
            there = seen.setdefault(row, [])
            there.append(score)
            if bench.is_over(run):
                whole += 1
                break
            if whole >= finished and row >= first and score < np.percentile(there, share):
                break
            row = min(2 * row, bench.longest)
            score = bench.advance(run, row)
        yield


class _Rung:
    """The runs that have reached a rung, best first, and those not promoted from it."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._all: list[tuple[float, int]] = []
        self._waiting: list[tuple[float, int]] = []

    def add(self, score: float, run: int) -> None:
        """A run has reached the rung. One that has diverged is never promoted."""
        insort(self._all, (-score, run))
        if score > -np.inf:
            insort(self._waiting, (-score, run))

    def promote(self) -> int | None:
        """Promote the best run that waits, if it is among the best ``1 / rate`` of the rung."""
        if not self._waiting:
            return None
        rank = bisect_left(self._all, self._waiting[0])
        return self._waiting.pop(0)[1] if rank < len(self._all) // self._rate else None


def _promoted(rungs: Sequence[_Rung]) -> tuple[int, int] | None:
    """A run to be promoted and the rung that it leaves; the highest such rung."""
    for k in reversed(range(len(rungs) - 1)):
        if (run := rungs[k].promote()) is not None:
            return run, k
    return None


def _best(runs: IntArray, score: FloatArray, keep: int) -> IntArray:
    """The runs with the highest scores, earlier runs first among equals, no diverged runs."""
    order = np.argsort(-score, kind="stable")[:keep]
    return runs[order[score[order] > -np.inf]]


def _finish(bench: Bench, runs: IntArray) -> None:
    if len(runs):
        bench.advance_all(runs, bench.longest)
