"""What the columns of a log are usually called."""

from __future__ import annotations

from collections.abc import Collection

# names that a column may have if none is given; the first one present is taken
USUAL: dict[str, tuple[str, ...]] = {
    "run": (
        "run", "run_id", "trial", "trial_id", "config_id", "config", "learner", "run_name", "name",
    ),
    "step": ("step", "epoch", "iteration", "training_iteration", "_step", "global_step", "Step"),
    "score": (
        "score", "val_score", "value", "val_accuracy", "val_acc", "eval_accuracy", "accuracy",
        "acc", "val_loss", "eval_loss", "loss",
    ),
    "cost": (
        "cost", "cost_seconds", "cost_units", "seconds", "time", "time_this_iter_s", "_runtime",
        "elapsed", "time_total_s", "wall_time", "_timestamp", "timestamp",
    ),
    "task": ("task", "dataset", "problem"),
}  # fmt: skip

# costs that are counted from the start of a run, or read from a wall clock
_CUMULATIVE = {"_runtime", "elapsed", "time_total_s", "wall_time", "_timestamp", "timestamp"}

# parts of names of scores where lower is better
_LOSSES = {"loss", "error", "err", "mse", "rmse", "mae", "nll", "perplexity", "ppl", "logloss"}


def usual(role: str, there: Collection[str]) -> str | None:
    """The column with a role, recognized by its name; None if no name is known."""
    return next((name for name in USUAL[role] if name in there), None)


def is_cumulative(name: str) -> bool:
    """Whether a column of this name counts from the start of a run."""
    return name in _CUMULATIVE


def is_loss(name: str) -> bool:
    """Whether the name of a score says that lower is better."""
    parts = name.lower().replace("/", "_").replace("-", "_").replace(" ", "_").split("_")
    return not _LOSSES.isdisjoint(parts)
