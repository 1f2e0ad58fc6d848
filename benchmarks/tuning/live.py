"""Real training, searched live: ``python -m benchmarks.tuning.live [--seeds N] [--write]``.

A small network on scikit-learn's digits, four settings, 9 epochs. The cost of an epoch is its
number of multiplications, so that results do not depend on the machine; the mean full run of the
log costs 1. The payoff is the best accuracy seen less ``FULL_RUN_COST`` for each unit of cost.

The index policy learns from a log of random runs, chooses, pauses, resumes and stops by itself. The
pruners of Optuna know neither costs nor when to stop: they get the number of trials that is best
for them on average over all seeds, in hindsight.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

for _library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import optuna  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402

from weitzman import learn  # noqa: E402
from weitzman.tune.optuna import optimize  # noqa: E402

EPOCHS, LOG, MOST, FULL_RUN_COST = 9, 30, 30, 0.01
HERE = Path(__file__).parent
REMARK = """
Two things favor the index policy: the cost of its log is not counted, and TPE is not told of that
log. The pruners have Optuna's default options. Few seeds: intervals are rough. Both samplers lead
to the same searches here, presumably since TPE draws its first ten trials at random.
"""
X, Y = load_digits(return_X_y=True)
X = X / 16.0


def suggest(trial: Any) -> tuple[float, int, float, int]:
    """The settings of a run."""
    return (
        trial.suggest_float("rate", 1e-4, 3.0, log=True),
        trial.suggest_int("width", 4, 128, log=True),
        trial.suggest_float("decay", 1e-6, 1.0, log=True),
        trial.suggest_categorical("batch", [16, 64]),
    )


@cache
def curve(rate: float, width: int, decay: float, batch: int) -> tuple[float, ...]:
    """The accuracy after each epoch, on digits that were not trained on; as far as it converges."""
    net = MLPClassifier(
        (width,), solver="sgd", learning_rate_init=rate, alpha=decay, batch_size=batch,
        random_state=0,
    )  # fmt: skip
    scores = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _ in range(EPOCHS):
            try:
                net.partial_fit(X[:300], Y[:300], classes=np.arange(10))
            except ValueError:  # weights that are not finite
                break
            scores.append(float(net.score(X[300:900], Y[300:900])))
    return tuple(scores)


def epoch_cost(width: int) -> float:
    """Multiplications of an epoch, forward and back."""
    return 300 * 3.0 * width * (64 + 10)


def log_of(seed: int) -> learn.Curves:
    """Random runs with their settings."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1000 + seed))
    rows = []
    for run in range(LOG):
        trial = study.ask()
        settings = suggest(trial)
        for epoch, score in enumerate(curve(*settings) or (0.1,), 1):
            row = {"run": run, "step": epoch, "score": score, "cost": epoch_cost(settings[1])}
            rows.append(row | trial.params)
    return learn.Curves.read(rows, settings=["rate", "width", "decay", "batch"], ended=True)


def sampler(name: str, seed: int) -> Any:
    """A sampler by name."""
    if name == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    return optuna.samplers.TPESampler(seed=seed, multivariate=True)


def index_policy(name: str, seed: int) -> tuple[float, float, int]:
    """Best score, spend in full runs, and runs started by the index policy."""
    log = log_of(seed)
    unit = float(log.total_cost.mean())
    model = learn.fit(log, price=unit / FULL_RUN_COST)
    study = optuna.create_study(direction="maximize", sampler=sampler(name, seed))

    def objective(trial: Any) -> Iterator[tuple[float, float]]:
        settings = suggest(trial)
        for score in curve(*settings):
            yield score, epoch_cost(settings[1])

    result = optimize(study, objective, model, n_trials=4 * MOST)
    return float(result.best_score or 0.0), result.spent / unit, len(result.runs)


def pruned(pruner: Any, seed: int) -> np.ndarray:
    """Best score and spend in full runs after each trial of a study with TPE."""
    unit = float(log_of(seed).total_cost.mean())
    study = optuna.create_study(direction="maximize", sampler=sampler("tpe", seed), pruner=pruner)
    best, spent, path = 0.0, 0.0, []
    for _ in range(MOST):
        trial = study.ask()
        settings, seen = suggest(trial), 0.0
        state = optuna.trial.TrialState.COMPLETE
        for epoch, score in enumerate(curve(*settings), 1):
            spent += epoch_cost(settings[1]) / unit
            best, seen = max(best, score), max(seen, score)
            trial.report(score, epoch)
            if trial.should_prune():
                state = optuna.trial.TrialState.PRUNED
                break
        study.tell(trial, None if state.name == "PRUNED" else seen, state)
        path.append((best, spent))
    return np.array(path)


def interval(x: np.ndarray) -> str:
    """Mean and 95 % bootstrap interval over seeds."""
    draws = np.random.default_rng(0).choice(x, (4000, len(x))).mean(axis=1)
    return f"{x.mean():.4f} [{np.quantile(draws, 0.025):.4f}, {np.quantile(draws, 0.975):.4f}]"


def table(seeds: int) -> str:
    """All methods, paired by seed."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    payoff, more = {}, {}
    for name in ("random", "tpe"):
        found = np.array([index_policy(name, seed) for seed in range(seeds)])
        payoff[f"index policy + {name}"] = found[:, 0] - FULL_RUN_COST * found[:, 1]
        more[f"index policy + {name}"] = found.mean(axis=0)
    for name, pruner in (
        ("SuccessiveHalving + tpe", optuna.pruners.SuccessiveHalvingPruner()),
        ("Hyperband + tpe", optuna.pruners.HyperbandPruner(max_resource=EPOCHS)),
    ):
        paths = np.array([pruned(pruner, seed) for seed in range(seeds)])
        each = paths[:, :, 0] - FULL_RUN_COST * paths[:, :, 1]
        stop = int(each.mean(axis=0).argmax())
        payoff[name] = each[:, stop]
        more[name] = np.append(paths[:, stop].mean(axis=0), stop + 1)
    first = payoff["index policy + tpe"]
    lines = ["| | payoff | accuracy | full runs' worth | runs | behind index policy + tpe |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for name, x in payoff.items():
        score, spend, runs = more[name]
        behind = "" if x is first else interval(first - x)
        lines.append(
            f"| {name} | {interval(x)} | {score:.4f} | {spend:.2f} | {runs:.0f} | {behind} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--write", action="store_true", help="write LIVE.md")
    arguments = parser.parse_args()
    text = table(arguments.seeds)
    print(text)
    if arguments.write:
        about = (__doc__ or "").partition("\n\n")[2]
        (HERE / "LIVE.md").write_text(
            f"# Real training, searched live\n\n`python -m benchmarks.tuning.live --seeds "
            f"{arguments.seeds} --write` makes this page.\n\n{about}\n{text}\n{REMARK}"
        )


if __name__ == "__main__":
    main()
