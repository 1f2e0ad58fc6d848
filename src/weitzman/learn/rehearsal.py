"""Settings chosen by rehearsal: part of the log plays the log, the rest is searched."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .ladder import Ladder
from .laws import Settings
from .line_model import LineModel

SPLITS = 8  # halves of the log that teach; the same for all choices
ORDERS = 6  # searches after each
_FEWEST = 8  # runs in a log that can be split
_SEED = 20160  # of the splits, so that the same log gives the same model


def choices() -> list[Settings]:
    """The settings that are tried unless the user says otherwise: with and without a tail."""
    usual = Settings()
    return [usual, replace(usual, tail=0.0)]


def choose(
    ladder: Ladder, *, price: float, minimize: bool, candidates: Sequence[Settings]
) -> Settings:
    """The settings that earned most when each half of the log was searched by the other's model.

    A search is among as many runs as the log has, drawn from that half with replacement: among
    fewer there is less to find, so that it would pay too rarely to hope for the best of all.
    """
    if len(candidates) == 1 or len(ladder) < _FEWEST:
        return candidates[0]
    earned = np.zeros(len(candidates))
    random = np.random.default_rng(_SEED)
    for _ in range(SPLITS // 2):
        order = random.permutation(len(ladder))
        halves = order[: len(order) // 2], order[len(order) // 2 :]
        for known, unknown in (halves, halves[::-1]):
            models = [
                LineModel(ladder.select(known), price=price, minimize=minimize, settings=settings)
                for settings in candidates
            ]
            for _ in range(ORDERS):
                runs = ladder.select(random.choice(unknown, len(ladder)))
                earned += [rehearse(model, runs) for model in models]
    return candidates[int(np.argmax(earned))]


def rehearse(model: LineModel, runs: Ladder) -> float:
    """What following the model's indices earns on these runs, in their order."""
    index = model.indices_of(runs)
    size = index.shape[1]
    worth = model.price * runs.best
    best, spent, fresh = -np.inf, 0.0, 0
    waiting: list[tuple[float, int, int]] = []  # (minus index, run, segment to come)
    while True:
        if fresh < len(runs) and (not waiting or -waiting[0][0] < model.fresh_index):
            move = (-model.fresh_index, fresh, 0)
        elif waiting:
            move = waiting[0]
        else:
            return best - spent
        if not -move[0] > best:
            return best - spent
        _, run, r = move
        if r == 0:
            fresh += 1
        else:
            heapq.heappop(waiting)
        spent += float(runs.cost[run, r])
        best = max(best, float(worth[run, r]))
        if r + 1 < min(int(runs.seen[run]), size):
            heapq.heappush(waiting, (-float(index[run, r + 1]), run, r + 1))
