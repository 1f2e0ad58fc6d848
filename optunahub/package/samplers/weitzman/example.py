"""Curves that are made up, and a study that samples, prunes and stops by itself."""

from __future__ import annotations

import numpy as np
import optuna

import optunahub

STEPS = 27


def objective(trial: optuna.Trial) -> float:
    """Report a score after each step."""
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    speed = 0.1 + trial.suggest_int("width", 1, 99) / 100
    score = 0.0
    for step in range(1, STEPS + 1):
        score = (0.95 - 0.05 * (np.log10(rate) + 2) ** 2) * (1 - np.exp(-speed * step))
        trial.report(score, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return float(score)


if __name__ == "__main__":
    module = optunahub.load_module(package="samplers/weitzman")
    policy = module.IndexSampler(full_run_cost=0.01, seed=1)
    study = optuna.create_study(direction="maximize", sampler=policy, pruner=policy)
    study.optimize(objective, n_trials=100)
    print(f"Best score {study.best_value:.3f} after {len(study.trials)} trials")
