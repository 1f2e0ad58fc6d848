"""Pause and resume trials, and stop a study when no trial is worth its cost."""

from weitzman.tune.optuna import StopWhenNotWorthIt, optimize, plain

__all__ = ["StopWhenNotWorthIt", "optimize", "plain"]
