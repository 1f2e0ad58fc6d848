"""A sampler of Optuna that moves the proposals of another sampler to past runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._common.arrays import FloatArray
from .._common.optional import need
from ..learn.features import Config
from .pool_space import PoolSpace

_optuna: Any = need("optuna", "optuna")

Trial = Any
Space = dict[str, Any]


class PoolSampler(_optuna.samplers.BaseSampler):  # type: ignore[misc]
    """Proposes runs not started yet; without a proposal to follow, the next run in order.

    Parameters
    ----------
    sampler : optuna.samplers.BaseSampler
        The sampler whose relative proposals are followed.
    space : PoolSpace
    settings : sequence of mappings
        The settings of the runs to choose from, in the order in which to start them without a
        proposal.
    """

    def __init__(self, sampler: Any, space: PoolSpace, settings: Sequence[Config]) -> None:
        self._inner, self._space = sampler, space
        self._points = space.points(settings)
        self._free = list(range(len(settings)))
        self.distributions = distributions(space)
        self.chosen = -1  # the run of the last trial

    def infer_relative_search_space(self, study: Any, trial: Trial) -> Space:
        """All settings."""
        return self.distributions

    def sample_relative(self, study: Any, trial: Trial, search_space: Space) -> dict[str, Any]:
        """The settings of a run that was not started."""
        proposed = self._inner.sample_relative(study, trial, search_space)
        place = 0
        if proposed:
            point = np.array([float(proposed[name]) for name in self.distributions])
            place = self._space.nearest(point, self._points[self._free])
        self.chosen = self._free.pop(place)
        return parameters(self._space, self._points[self.chosen])

    def sample_independent(self, study: Any, trial: Trial, name: str, distribution: Any) -> Any:
        """Never asked for: all settings are chosen together."""
        return self._inner.sample_independent(study, trial, name, distribution)


def distributions(space: PoolSpace) -> Space:
    """A distribution of Optuna for each column of the points."""
    make = _optuna.distributions
    return {
        f"x{d}": make.CategoricalDistribution(list(range(size))) if size
        else make.FloatDistribution(0.0, 1.0)
        for d, size in enumerate(space.categories)
    }  # fmt: skip


def parameters(space: PoolSpace, point: FloatArray) -> dict[str, Any]:
    """A point as parameters of a trial."""
    return {
        f"x{d}": int(x) if size else float(x)
        for d, (x, size) in enumerate(zip(point.tolist(), space.categories, strict=True))
    }
