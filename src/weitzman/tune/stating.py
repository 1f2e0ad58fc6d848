"""What to expect of a run, stated as a model, as a log, or only by a price."""

from __future__ import annotations

from ..errors import InvalidArgument
from ..learn.curves import Curves
from ..learn.first_runs import from_nothing
from ..learn.fitting import fit
from ..learn.run_model import RunModel, check_model

Stated = RunModel | Curves | None


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
        A model; a log, from which one is learnt; or nothing, so that the runs of the search itself
        are all there is to learn from.
    price, full_run_cost : float, optional
        What a point is worth in units of cost, or how many points a full run costs; for a log or
        nothing one of them.
    minimize : bool, optional
        Lower scores are better; None: as the model or the log says, and without any: no.
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
