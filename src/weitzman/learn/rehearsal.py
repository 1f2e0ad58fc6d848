"""Settings chosen by rehearsal: part of the log serves as the log, the rest is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..policy.frontier import Offers
from .known import NOTHING, Encoder
from .ladder import Ladder
from .laws import Recipe, Settings
from .line_model import LineModel
from .resemblance import Resemblance, ResemblanceModel

SPLITS = 8  # halves of the log that teach; the same for all choices
ORDERS = 6  # searches after each
_FEWEST = 8  # runs in a log that can be split
_SEED = 20160  # of the splits, so that the same log gives the same model


def choices(encoder: Encoder = NOTHING) -> list[Recipe]:
    """What is tried unless the user says otherwise.

    Where settings are known, runs are told apart by resemblance; otherwise by their best score,
    with and without a tail.
    """
    usual = Settings()
    return [Resemblance()] if encoder.names else [usual, replace(usual, tail=0.0)]


def make(
    ladder: Ladder, encoder: Encoder, *, price: float, minimize: bool, settings: Recipe
) -> LineModel | ResemblanceModel:
    """The model that the settings stand for."""
    if isinstance(settings, Settings):  # this kind of model ignores the settings of runs
        ladder = replace(ladder, config=ladder.config[:, :0])
        return LineModel(ladder, price=price, minimize=minimize, settings=settings)
    assert isinstance(settings, Resemblance)
    return ResemblanceModel(ladder, encoder, price=price, minimize=minimize, settings=settings)


def choose(
    ladder: Ladder,
    encoder: Encoder = NOTHING,
    *,
    price: float,
    minimize: bool,
    candidates: Sequence[Recipe],
) -> Recipe:
    """The settings that earned most when each half of the log was searched by the other's model.

    A search has as many runs as the log, drawn from that half with replacement. With fewer runs
    there is less to find, and hoping for the best run of all would pay too rarely.
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
                make(ladder.select(known), encoder, price=price, minimize=minimize, settings=x)
                for x in candidates
            ]
            for _ in range(ORDERS):
                runs = ladder.select(random.choice(unknown, len(ladder)))
                earned += [rehearse(model, runs) for model in models]
    return candidates[int(np.argmax(earned))]


def rehearse(model: LineModel | ResemblanceModel, runs: Ladder) -> float:
    """What following the model's indices earns on these runs; ties go to the first run."""
    index = model.indices_of(runs)
    size = index.shape[1]
    worth = model.price * runs.best
    best, spent = -np.inf, 0.0
    offers = Offers[tuple[bool, int, int]](lambda key: True)  # is it new, run, segment to come
    for run, x in enumerate(index[:, 0].tolist()):
        offers.put((True, run, 0), x)
    while (move := offers.next(best)) is not None:
        offers.take()
        _, run, r = move[0]
        spent += float(runs.cost[run, r])
        best = max(best, float(worth[run, r]))
        if r + 1 < min(int(runs.seen[run]), size):
            offers.put((False, run, r + 1), float(index[run, r + 1]))
    return best - spent
