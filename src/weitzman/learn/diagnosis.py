"""Is the model good enough? What it forgets, what its rows rest on, what it promises and earns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.notebook import as_html
from .._common.text import columns
from ..engine.solver import solve
from ..errors import InvalidArgument
from .curves import Curves
from .ladder import Ladder, climb_all
from .laws import near
from .line_model import LineModel
from .rehearsal import rehearse

_ELSE = 0.1  # what a run counts that is near in score but not in what else is known
_FEWEST = 8  # runs in a log that can be split


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """What a log says about the model learnt from it.

    Attributes
    ----------
    rungs : (R - 1,) array of int
        The rungs whose scores are predicted, each from the one before.
    error : dict from str to (R - 1,) array
        The continuous ranked probability score of predicting a run from all others, in points of
        score, averaged over the runs: 0 is perfect, and a smaller mean is a better forecast.
        "no change": the best score stays; "first order": what the model does; "second order": the
        rise before it is known too; "kind known": so is the kind of the run, where kinds differ.
    runs : (R - 1,) array of float
        The number of runs that the thinnest row of each law rests on.
    predicted, realized : arrays of float
        The value of searching one half of the log with what the other half teaches, as the model
        says and as it came out, in units of cost.
    """

    rungs: IntArray
    error: dict[str, FloatArray]
    runs: FloatArray
    predicted: FloatArray
    realized: FloatArray

    def __str__(self) -> str:
        names = list(self.error)
        rows = [["until", *names, "fewest runs"]]
        for i, rung in enumerate(self.rungs.tolist()):
            errors = [f"{self.error[name][i]:.5f}" for name in names]
            rows.append([str(rung), *errors, f"{self.runs[i]:.1f}"])
        said, came = float(self.predicted.mean()), float(self.realized.mean())
        spread = float(np.std(self.realized - self.predicted))  # splits overlap: no error of a mean
        return "\n".join(
            [
                *columns(rows, right=0),
                f"payoff of a search: predicted {said:.6g}, realized {came:.6g} "
                f"(the difference varies by {spread:.2g} between splits)",
            ]
        )

    _repr_html_ = as_html


def diagnose(model: LineModel, curves: Curves, *, splits: int = 10, seed: int = 0) -> Diagnosis:
    """Test a model on the log that it was learnt from, always on runs that were left out.

    Parameters
    ----------
    model : LineModel
    curves : Curves
        The log. Its kinds, if there are any, are tried as a predictor.
    splits : int
        How often the log is halved to compare what the model promises with what it earns.
    seed : int

    Examples
    --------
    >>> from weitzman import learn
    >>> log = learn.sample().of_task("letter")
    >>> found = learn.diagnose(learn.fit(log, price=1000), log)
    >>> bool(found.error["first order"].mean() < found.error["no change"].mean())
    True
    """
    if curves.minimize != model.minimize:
        raise InvalidArgument("the model and the curves must both maximize or both minimize.")
    every = climb_all(curves, model.rungs)
    kept = every.seen > 0
    ladder, kind = every.select(kept), np.array(curves.kind)[kept]
    if len(ladder) < _FEWEST:
        raise InvalidArgument(f"a diagnosis needs {_FEWEST} runs, but there are {len(ladder)}.")
    names = ["no change", "first order", "second order"]
    names += ["kind known"] if len(set(kind)) > 1 else []
    tested = [r for r in range(1, len(model.rungs)) if (ladder.seen > r).sum() > 2]
    error = {
        name: np.array([_error(ladder, kind, r, name, model) for r in tested]) for name in names
    }
    thinnest = np.array([model.rows(r).min() for r in tested])
    said, came = _promises(model, ladder, splits, seed)
    return Diagnosis(model.rungs[tested], error, thinnest, said, came)


def _error(ladder: Ladder, kind: np.ndarray, r: int, name: str, model: LineModel) -> float:
    """The mean score of predicting each run at rung r from all the others."""
    runs = np.flatnonzero(ladder.seen > r)
    before, after = ladder.best[runs, r - 1], ladder.best[runs, r]
    if name == "no change":
        return float(np.mean(after - before))
    share = model.settings.neighbors
    weight = (1.0 - np.eye(len(runs))) * ladder.weight[runs]
    weight = weight * near(_gaps(before), weight, share)
    if name == "second order" and r > 1:
        rise = before - ladder.best[runs, r - 2]
        weight = weight * (near(_gaps(rise), weight, share) + _ELSE)
    if name == "kind known":
        weight = weight * np.where(kind[runs, None] == kind[runs], 1.0, _ELSE)
    weight /= weight.sum(axis=1, keepdims=True)
    landing = np.maximum(after[None], before[:, None])
    miss = np.sum(weight * np.abs(landing - after[:, None]), axis=1)
    width = np.array([w @ _gaps(y) @ w for w, y in zip(weight, landing, strict=True)])
    return float(np.mean(miss - width / 2))


def _gaps(x: FloatArray) -> FloatArray:
    return np.asarray(np.abs(x[:, None] - x[None]))


def _promises(
    model: LineModel, ladder: Ladder, splits: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """The value of searching half of the log, as the other half predicts it and as it came out."""
    random = np.random.default_rng(seed)
    said, came = [], []
    for _ in range(splits):
        order = random.permutation(len(ladder))
        known, unknown = order[: len(order) // 2], order[len(order) // 2 :]
        half = model.relearnt(ladder.select(known))
        said.append(solve(half.lines(len(unknown)), threads=1).value)
        came.append(rehearse(half, ladder.select(unknown)))
    return np.array(said), np.array(came)
