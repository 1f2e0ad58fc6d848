"""What a search is asked for: a model as it is stated, and configurations drawn from a space."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..learn.curves import Curves
from ..learn.first_runs import from_nothing
from ..learn.fitting import fit
from ..learn.run_model import RunModel, check_model

CANDIDATES = 500  # configurations that are drawn from a space

Stated = RunModel | Curves | None


def draw(space: Mapping[str, Any], n: int = CANDIDATES, *, seed: int = 0) -> list[dict[str, Any]]:
    """Draw configurations at random.

    Parameters
    ----------
    space : mapping from names to what may be tried
        A list gives one of its entries. A pair ``(low, high)`` gives a number in between, a whole
        number if both ends are whole. ``(low, high, "log")`` does so on a logarithmic scale. A
        distribution with ``rvs``, as in SciPy, is sampled. Anything else stands for itself.
    n : int
    seed : int

    Examples
    --------
    >>> from weitzman import tune
    >>> tune.draw({"rate": (1e-4, 1e-1, "log"), "layers": (1, 4), "kind": ["a", "b"]}, 1)
    [{'rate': 0.008..., 'layers': 2, 'kind': 'a'}]
    """
    random = np.random.default_rng(seed)
    return [{name: _drawn(name, what, random) for name, what in space.items()} for _ in range(n)]


def _drawn(name: str, what: Any, random: np.random.Generator) -> Any:
    if isinstance(what, list):
        if not what:
            raise InvalidArgument(f"{name!r} must have something to choose from, but it is empty.")
        return what[int(random.integers(len(what)))]
    if isinstance(what, tuple):
        return _between(name, what, random)
    if hasattr(what, "rvs"):
        return np.asarray(what.rvs(random_state=random)).item()
    return what


def _between(name: str, what: Sequence[Any], random: np.random.Generator) -> float | int:
    """A number in a range."""
    log = len(what) == 3 and what[2] == "log"
    ends = what[:2]
    good = len(what) == 2 + log and all(isinstance(x, Real) for x in ends) and ends[0] < ends[1]
    if not good or not all(map(math.isfinite, ends)) or (log and not ends[0] > 0):
        raise InvalidArgument(
            f'a range must be (low, high) or (low, high, "log") with numbers that rise, above 0 on '
            f"a logarithmic scale, but {name!r} is {tuple(what)!r}. Write choices as a list."
        )
    whole = all(isinstance(x, Integral) for x in ends)
    low, high = float(ends[0]), float(ends[1]) + whole
    u = float(random.random())
    x = math.exp((1 - u) * math.log(low) + u * math.log(high)) if log else (1 - u) * low + u * high
    return min(math.floor(x), int(ends[1])) if whole else x


def model_of(
    model: Stated,
    *,
    price: float | None,
    full_run_cost: float | None,
    minimize: bool | None = None,
) -> RunModel:
    """The model of a search.

    Parameters
    ----------
    model : RunModel, Curves or None
        A model; a log, from which one is learned; or nothing, so that the runs of the search itself
        are the only data.
    price, full_run_cost : float, optional
        What a point is worth in units of cost, or how many points a full run costs; for a log or
        nothing one of them.
    minimize : bool, optional
        Lower scores are better. By default as the model or the log says; without either, False.
    """
    stated = price is not None or full_run_cost is not None
    if model is None:
        if not stated:
            raise InvalidArgument(
                "without a model the price of a score must be stated: give `price` (units of cost "
                "for a point) or `full_run_cost` (points for a full run)."
            )
        return from_nothing(price=price, full_run_cost=full_run_cost, minimize=bool(minimize))
    found = model
    if isinstance(model, Curves):
        found = fit(model, price=price, full_run_cost=full_run_cost)
    elif stated:
        raise InvalidArgument("a model has a price: give either `model`, or `price`, not both.")
    check_model(found)
    assert isinstance(found, RunModel)
    if minimize is not None and found.minimize != minimize:
        raise InvalidArgument(
            f"the model {'minimizes' if found.minimize else 'maximizes'}, but `minimize` is "
            f"{minimize}."
        )
    return found
