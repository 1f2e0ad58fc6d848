"""Real training, searched live: ``python -m benchmarks.tuning.live [--seeds N] [--write]``.

A small network on scikit-learn's digits, four settings, 9 epochs. The cost of an epoch is its
number of multiplications, so that results do not depend on the machine; the mean full run of the
log costs 1. The payoff is the best accuracy seen less ``FULL_RUN_COST`` for each unit of cost.

The index policy chooses, pauses, resumes and stops by itself: with a log of 30 random runs, or from
nothing. The pruners of Optuna know neither costs nor when to stop: they get the number of trials
that is best for them on average over all seeds, in hindsight. "Knows the log" means that the runs
of the log are in the study, with their reports, as trials of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

for _library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import optuna  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402

from weitzman import learn, tune  # noqa: E402
from weitzman.tune.optuna import optimize  # noqa: E402

EPOCHS, LOG, MOST, FULL_RUN_COST = 9, 30, 20, 0.01
HERE = Path(__file__).parent
REMARK = """
The cost of the log is not counted for anyone. The pruners have Optuna's default options. What
favors the pruners: their number of trials is chosen in hindsight. What favors the index policy: it
is told what every epoch costs.
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


def objective(trial: Any) -> Iterator[tuple[float, float]]:
    """Train, and yield the accuracy and the cost of each epoch."""
    settings = suggest(trial)
    for score in curve(*settings):
        yield score, epoch_cost(settings[1])


SPACE = {
    "rate": (1e-4, 3.0, "log"), "width": (4, 128, "log"), "decay": (1e-6, 1.0, "log"),
    "batch": [16, 64],
}  # fmt: skip


def index_policy(name: str, seed: int, *, log: bool) -> tuple[float, float, int]:
    """Best score, spend in full runs, and runs started by the index policy."""
    known = log_of(seed)
    unit = float(known.total_cost.mean())
    price = unit / FULL_RUN_COST
    study = optuna.create_study(direction="maximize", sampler=sampler(name, seed))
    own = {"candidates": tune.draw(SPACE, seed=seed)} if name == "index" else {}
    if log and name == "tpe":
        tell_log(study, seed)
    result = optimize(
        study, objective, known if log else None, price=price, n_trials=4 * MOST, **own
    )
    return float(result.best_score or 0.0), result.spent / unit, len(result.runs)


def tell_log(study: Any, seed: int) -> None:
    """Add the runs of the log to a study, as complete trials with their reports."""
    random = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1000 + seed))
    for _ in range(LOG):
        trial = random.ask()
        scores = curve(*suggest(trial)) or (0.1,)
        study.add_trial(
            optuna.trial.create_trial(
                params=trial.params, distributions=trial.distributions, value=max(scores),
                intermediate_values=dict(enumerate(scores, 1)),
            )
        )  # fmt: skip


def pruned(pruner: Any, seed: int, *, log: bool) -> np.ndarray:
    """Best score and spend in full runs after each trial of a study with TPE."""
    unit = float(log_of(seed).total_cost.mean())
    study = optuna.create_study(direction="maximize", sampler=sampler("tpe", seed), pruner=pruner)
    if log:
        tell_log(study, seed)
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


def table(seeds: int, logs: Sequence[bool] = (True, False)) -> str:
    """All methods, paired by seed."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    lines = ["| | payoff | accuracy | full runs' worth | runs | behind the first of its part |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for log in logs:
        payoff, more = _payoffs(seeds, log)
        first = next(iter(payoff.values()))
        for name, x in payoff.items():
            score, spend, runs = more[name]
            behind = "" if x is first else interval(first - x)
            lines.append(
                f"| {name} | {interval(x)} | {score:.4f} | {spend:.2f} | {runs:.0f} | {behind} |"
            )
    return "\n".join(lines)


def _payoffs(seeds: int, log: bool) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The payoff for each seed; and mean score, spend and runs."""
    with_log = "knows the log" if log else "from nothing"
    ours = {"index": "its own choice", "tpe": "TPE's", "random": "random choice"}
    found: dict[str, list[Any]] = {}
    for seed in range(seeds):
        for name, told in ours.items():
            called = f"index policy, {told}, {with_log}"
            found.setdefault(called, []).append(index_policy(name, seed, log=log))
        for name, pruner in (
            ("SuccessiveHalving + TPE", optuna.pruners.SuccessiveHalvingPruner()),
            ("Hyperband + TPE", optuna.pruners.HyperbandPruner(max_resource=EPOCHS)),
        ):
            path = pruned(pruner, seed, log=log)
            found.setdefault(f"{name}, {with_log}", []).append(path)
        print(f"{with_log}: seed {seed}", file=sys.stderr, flush=True)
    return _summary({name: np.array(x, float) for name, x in found.items()})


def _summary(
    found: dict[str, np.ndarray],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Searches that stop by themselves have one row each; of the others the best stop is taken."""
    payoff, more = {}, {}
    for name, x in found.items():
        each = x[..., 0] - FULL_RUN_COST * x[..., 1]
        if x.ndim == 2:
            payoff[name], more[name] = each, x.mean(axis=0)
            continue
        stop = int(each.mean(axis=0).argmax())
        payoff[name] = each[:, stop]
        more[name] = np.append(x[:, stop].mean(axis=0), stop + 1)
    return payoff, more


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
