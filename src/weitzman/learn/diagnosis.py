"""Is the model good enough? What it ignores, what its rows rest on, what it promises and earns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.text import as_html, columns
from ..errors import InvalidArgument
from .curves import Curves
from .forecasts import knowledge
from .ladder import Ladder, climb_all
from .laws import near
from .line_model import LineModel
from .noise import noise_of
from .rehearsal import rehearse
from .resemblance import ResemblanceModel

_ELSE = 0.1  # weight of a run that is near in score but not in the rest of what is known
_FEWEST = 8  # runs in a log that can be split


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """What a log says about the model learned from it.

    Attributes
    ----------
    rungs : (m,) array of int
        The rungs before which scores are predicted.
    error : dict from str to (m,) array
        The continuous ranked probability score of predicting a run from all others, in points of
        score, averaged over the runs: 0 is perfect, and a smaller mean is a better forecast.
        For a :class:`LineModel`, the score at the rung is predicted. "no change": the best score
        stays; "first order": what the model does; "second order": the previous rise is also known;
        "kind known": the kind of the run is also known, where kinds differ.
        For a :class:`ResemblanceModel`, the last score of a run is predicted from what is known
        about the run: "nothing", its "best so far", its "curve", its best score so far and its
        "settings", or "both".
    runs : (m,) array of float
        The number of runs that the thinnest row of each law rests on.
    noise : float
        The standard deviation of a score about the mean of re-evaluations, in points of score; NaN
        if the curves are too short to tell. See :mod:`weitzman.learn.noise`.
    coverage : (m,) array of float
        For a :class:`ResemblanceModel`, the share of runs whose last score lies in the interval
        that should hold 90 % of them. Empty for other models.
    predicted, realized : arrays of float
        The value of searching one half of the log with what the other half teaches, as the model
        says and as it came out, in units of cost.
    """

    rungs: IntArray
    error: dict[str, FloatArray]
    runs: FloatArray
    predicted: FloatArray
    realized: FloatArray
    coverage: FloatArray
    noise: float

    def __str__(self) -> str:
        names = list(self.error)
        rows = [["until", *names, "fewest runs"]]
        for i, rung in enumerate(self.rungs.tolist()):
            errors = [f"{self.error[name][i]:.5f}" for name in names]
            rows.append([str(rung), *errors, f"{self.runs[i]:.1f}"])
        if len(self.coverage):
            rows[0].append("in 90 %")
            for row, share in zip(rows[1:], self.coverage.tolist(), strict=True):
                row.append(f"{100 * share:.0f} %")
        said, came = float(self.predicted.mean()), float(self.realized.mean())
        spread = float(np.std(self.realized - self.predicted))  # splits overlap: no error of a mean
        return "\n".join(
            [
                *columns(rows, right=0),
                f"payoff of a search: predicted {said:.6g}, realized {came:.6g} "
                f"(the difference varies by {spread:.2g} between splits)",
                *([f"noise of a score: {self.noise:.2g} points"] if self.noise > 0 else []),
            ]
        )

    _repr_html_ = as_html


def diagnose(
    model: LineModel | ResemblanceModel, curves: Curves, *, splits: int = 10, seed: int = 0
) -> Diagnosis:
    """Test a model on the log that it was learned from, always on runs that were left out.

    Parameters
    ----------
    model : LineModel or ResemblanceModel
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
    if not isinstance(model, LineModel | ResemblanceModel):
        raise InvalidArgument(
            f"a diagnosis needs a model from `learn.fit`, but got a {type(model).__name__}."
        )
    if curves.minimize != model.minimize:
        raise InvalidArgument("the model and the curves must both maximize or both minimize.")
    noise = noise_of(curves)
    if model.noise is not None:  # the prize is a re-evaluation, here as in the search
        curves = model.noise.without(curves)
    every = climb_all(curves, model.rungs, model.encoder)
    kept = every.seen > 0
    ladder, kind = every.select(kept), np.array(curves.kind)[kept]
    if len(ladder) < _FEWEST:
        raise InvalidArgument(f"a diagnosis needs {_FEWEST} runs, but there are {len(ladder)}.")
    said, came = _promises(model, ladder, splits, seed)
    if isinstance(model, ResemblanceModel):
        return _by_knowledge(model, ladder, said, came, noise)
    names = ["no change", "first order", "second order"]
    names += ["kind known"] if len(set(kind)) > 1 else []
    tested = [r for r in range(1, len(model.rungs)) if (ladder.seen > r).sum() > 2]
    error = {
        name: np.array([_error(ladder, kind, r, name, model) for r in tested]) for name in names
    }
    thinnest = np.array([model.rows(r).min() for r in tested])
    return Diagnosis(model.rungs[tested], error, thinnest, said, came, np.zeros(0), noise)


def _by_knowledge(
    model: ResemblanceModel, ladder: Ladder, said: FloatArray, came: FloatArray, noise: float
) -> Diagnosis:
    """What each kind of knowledge adds, before each segment."""
    whole = ladder.gone
    tested = [r for r in range(len(model.rungs)) if (whole & (ladder.seen > r)).sum() >= _FEWEST]
    found = [knowledge(ladder, model.encoder, model.settings, r) for r in tested]
    error = {name: np.array([x[0][name] for x in found]) for name in (found[0][0] if found else ())}
    thinnest = np.array([model.rows(r).min() for r in tested])
    inside = np.array([x[1] for x in found])
    return Diagnosis(model.rungs[tested], error, thinnest, said, came, inside, noise)


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
    model: LineModel | ResemblanceModel, ladder: Ladder, splits: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """The value of searching half of the log, as the other half predicts it and as it came out."""
    random = np.random.default_rng(seed)
    said, came = [], []
    for _ in range(splits):
        order = random.permutation(len(ladder))
        known, unknown = order[: len(order) // 2], order[len(order) // 2 :]
        half = model.relearned(ladder.select(known))
        said.append(half.promised(ladder.select(unknown)))
        came.append(rehearse(half, ladder.select(unknown)))
    return np.array(said), np.array(came)
