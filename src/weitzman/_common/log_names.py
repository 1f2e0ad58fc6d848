"""What the columns of a log are usually called."""

from __future__ import annotations

from collections.abc import Collection

# names that a column may have if none is given; the first one present is taken. Capitals do not
# matter, and "/", "-" and blanks are as good as "_"
USUAL: dict[str, tuple[str, ...]] = {
    "run": (
        "run", "run_id", "trial", "trial_id", "config_id", "config", "learner", "run_name", "name",
        "experiment",
    ),
    "step": (
        "step", "epoch", "iteration", "training_iteration", "_step", "global_step", "steps",
        "epochs", "iterations", "iter", "round", "budget",
    ),
    "score": (
        "score", "val_score", "value", "val_accuracy", "val_acc", "eval_accuracy", "accuracy",
        "acc", "eval_acc", "valid_acc", "valid_accuracy", "mean_test_score", "metric",
        "objective", "reward", "mean_reward", "auc", "val_auc", "f1",
        "val_f1", "val_loss", "eval_loss", "valid_loss", "validation_loss", "val_error", "loss",
    ),
    "cost": (
        "cost", "cost_seconds", "cost_units", "seconds", "time", "duration", "runtime",
        "time_this_iter_s", "_runtime", "elapsed", "time_total_s", "wall_time", "_timestamp",
        "timestamp",
    ),
    "task": ("task", "dataset", "problem"),
}  # fmt: skip

# costs that are counted from the start of a run, or read from a wall clock
_CUMULATIVE = {"_runtime", "elapsed", "time_total_s", "wall_time", "_timestamp", "timestamp"}

# parts of names of scores where lower is better
_LOSSES = {"loss", "error", "err", "mse", "rmse", "mae", "nll", "perplexity", "ppl", "logloss"}


def usual(role: str, there: Collection[str]) -> str | None:
    """The column that plays a role, by its name; None if none is known.

    Examples
    --------
    >>> usual("score", ["Name", "Step", "val/acc"])
    'val/acc'
    """
    exact = next((name for name in USUAL[role] if name in there), None)
    plain = {_plain(name): name for name in reversed(list(there))}
    return exact or next((plain[name] for name in USUAL[role] if name in plain), None)


def is_cumulative(name: str) -> bool:
    """Whether a column of this name counts from the start of a run."""
    return _plain(name) in _CUMULATIVE


def _plain(name: str) -> str:
    """A name in small letters, with "_" between its parts."""
    return name.lower().replace("/", "_").replace("-", "_").replace(" ", "_")


def is_loss(name: str) -> bool:
    """Whether the name of a score says that lower is better."""
    return not _LOSSES.isdisjoint(_plain(name).split("_"))
