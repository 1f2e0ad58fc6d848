"""Sampler, pruner and terminator in one, by the index of a run."""

from weitzman.tune.optuna_sampler import IndexSampler

__all__ = ["IndexSampler"]
