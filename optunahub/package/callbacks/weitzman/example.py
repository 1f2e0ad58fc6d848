"""Curves that are made up, a model learned from some of them, and a study that stops by itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import optuna

import optunahub
from weitzman import learn

STEPS = 27


def curve(rate: float, width: int) -> list[float]:
    """What training would show."""
    top, speed = 0.95 - 0.05 * (np.log10(rate) + 2) ** 2, 0.1 + width / 100
    return [float(top * (1 - np.exp(-speed * step))) for step in range(1, STEPS + 1)]


def objective(trial: optuna.Trial) -> Iterator[tuple[float, float]]:
    """Suggest, then yield the score and the cost of each step."""
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    for score in curve(rate, trial.suggest_int("width", 1, 99)):
        yield score, 1.0


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    log = [curve(10 ** rng.uniform(-4, 0), int(rng.integers(1, 100))) for _ in range(30)]
    columns = {
        "run": np.repeat(np.arange(len(log)), STEPS),
        "step": np.tile(np.arange(1, STEPS + 1), len(log)),
        "score": np.ravel(log),
    }
    model = learn.fit(learn.Curves.read(columns, cost=None), price=100 * STEPS)
    module = optunahub.load_module(package="callbacks/weitzman")
    study = optuna.create_study(direction="maximize")
    print(module.optimize(study, objective, model, n_trials=100))
