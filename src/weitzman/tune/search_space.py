"""What a search is given: a search space, and a model, a log or neither."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..learn.curves import Curves
from ..learn.first_runs import from_nothing
from ..learn.log_tables import flat
from ..learn.resemblance import ResemblanceModel, fit
from ..learn.run_model import RunModel, check_model

CANDIDATES = 500  # configurations that are drawn from a space

Stated = RunModel | Curves | None


def draw(
    space: Mapping[str, Any], n: int = CANDIDATES, *, seed: int | None = 0
) -> list[dict[str, Any]]:
    """Draw configurations at random.

    Parameters
    ----------
    space : mapping from names to what may be tried
        A list gives one of its entries. A pair ``(low, high)`` gives a number in between, a whole
        number if both ends are whole. ``(low, high, "log")`` does so on a logarithmic scale. A
        distribution with ``rvs``, as in SciPy, is sampled. Anything else stands for itself.
    n : int
    seed : int or None
        None draws other configurations each time.

    Examples
    --------
    >>> from weitzman import tune
    >>> tune.draw({"rate": (1e-4, 1e-1, "log"), "layers": (1, 4), "kind": ["a", "b"]}, 1)
    [{'rate': 0.008..., 'layers': 2, 'kind': 'a'}]
    """
    random = np.random.default_rng(seed)
    return [{name: _drawn(name, what, random) for name, what in space.items()} for _ in range(n)]


def _drawn(name: str, what: Any, random: np.random.Generator) -> Any:
    if isinstance(what, list) and not what:
        raise InvalidArgument(f"{name!r} must have something to choose from, but it is empty.")
    if isinstance(what, list):
        return what[int(random.integers(len(what)))]
    if not isinstance(what, tuple):
        return np.asarray(what.rvs(random_state=random)).item() if hasattr(what, "rvs") else what
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


FIRST_PRICE = 1e-3  # points for a full run, until a budget has found the price


def model_of(
    model: Stated, *, price: float | None = None, full_run_cost: float | None = None,
    minimize: bool | None = None, limit: float | None = None, budget: float | None = None,
    space: Iterable[str] = (),
) -> tuple[RunModel, bool]:  # fmt: skip
    """The model of a search, and whether it has a price; otherwise the budget is to set it.

    ``space`` are names of what runs are started with; one that the log lacks raises a warning.
    """
    stated = price is not None or full_run_cost is not None
    known = None if isinstance(model, Curves) else model
    if known is not None:
        check_model(known)
        if stated or limit is not None:
            what = "a price: give either `model`, or `price`"
            if limit is not None:
                what = "its own limit: give either `model`, or `limit`"
            raise InvalidArgument(f"a model has {what}, not both.")
    if model is not None and minimize is not None and model.minimize != minimize:
        does = f"{'minimizes' if model.minimize else 'maximizes'}, but `minimize` is {minimize}."
        raise InvalidArgument(f"the {'log' if known is None else 'model'} {does}")
    if known is not None:
        if isinstance(known, ResemblanceModel):
            _warn_of_lacking(known.encoder.names, space)
        return known, True
    if not stated:
        if budget is None:
            raise InvalidArgument(
                "without a model the price of a score must be stated: give `price` (units of cost "
                "for a point), `full_run_cost` (points for a full run) or a `budget`, which then "
                "sets the price."
            )
        full_run_cost = FIRST_PRICE
    if isinstance(model, Curves):
        _warn_of_lacking({name for config in model.settings for name in flat(config)}, space)
        return fit(model, price=price, full_run_cost=full_run_cost, limit=limit), stated
    found = from_nothing(
        price=price, full_run_cost=full_run_cost, minimize=bool(minimize), limit=limit
    )
    return found, stated


def _warn_of_lacking(logged: Iterable[str], space: Iterable[str]) -> None:
    """Warn of settings that a log with settings does not have."""
    logged = set(logged)
    lacking = sorted(set(space) - logged)
    if lacking and logged:
        warnings.warn(
            f"the log does not say what {lacking[0]!r} was in its runs, or it was always the same "
            f"({len(lacking)} of the settings to choose), so nothing can be learned about it.",
            UserWarning,
            stacklevel=4,
        )


def names_in(configs: object) -> set[str]:
    """The names of settings, of a space or of a list of mappings."""
    if isinstance(configs, Mapping):
        return {
            name for name, x in configs.items() if isinstance(x, (list, tuple)) or hasattr(x, "rvs")
        }
    if isinstance(configs, Sequence) and configs and all(isinstance(x, Mapping) for x in configs):
        return {name for config in configs for name in flat(config)}
    return set()
