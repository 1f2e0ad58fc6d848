"""A model of runs learned from a log: a run continues like the logged runs that it resembles."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._common.interruption import interruptible
from ..errors import InvalidArgument
from ..forest.model import Forest
from .capped_runs import CappedRuns, Center, SegmentLaw
from .curves import Curves
from .ladder import (
    Ladder,
    ScoreNoise,
    choose_rungs,
    climb,
    climb_all,
    compared_costs,
    cost_levels,
    imagined,
    usual_cost,
)
from .log_tables import Config, Encoder
from .resembling_runs import ResemblingRuns, thinned
from .run_model import RunModel, Shown, as_curves, ceiling_of, check_price, price_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """How curves become a :class:`ResemblanceModel`.

    Attributes
    ----------
    ratio : float
        A rung is set where a run has paid this many times what it had paid at the rung before.
    tail, least : float
        How many runs of the log the imagined runs count for, which are better than all, and their
        least average distance above the best, in points of score.
    limit : float or None
        The best possible score, such as 1 for an accuracy or 0 for a loss, if known.
    trees, leaf : int
        Trees grown for each segment, and the fewest runs in a leaf.
    states : int
        The most runs of the log that serve as states. In a larger log, some runs below the best
        stand for several runs.
    """

    ratio: float = 1.4
    tail: float = 0.3
    least: float = 0.0
    limit: float | None = None
    trees: int = 32
    leaf: int = 3
    states: int = 1000

    def __post_init__(self) -> None:
        for name, low in (("tail", 0), ("least", 0), ("trees", 1), ("leaf", 1), ("states", 3)):
            if not getattr(self, name) >= low:
                raise InvalidArgument(
                    f"{name} must be at least {low}, but it is {getattr(self, name)!r}."
                )
        if not self.ratio > 1:
            raise InvalidArgument(f"ratio must be above 1, but it is {self.ratio!r}.")
        ceiling_of(self.limit, False)


_VAIN = 30.0  # runs without a record after which half of the hope for a better run is left
_FINE = 400  # worths at which the gain is computed


class ResemblanceModel(RunModel):
    """The law of a run, learned from a log: a run continues as the logged runs that resemble it.

    Made by :func:`weitzman.learn.fit`.

    Attributes
    ----------
    price, minimize, rungs
        As in :class:`RunModel`.
    options : FitOptions
        How the law was learned.
    ladder : Ladder
        The runs that the law was learned from, as seen from the rungs.
    encoder : Encoder
        How the settings of runs become numbers.
    noise : ScoreNoise or None
        How scores become the means of their re-evaluations, where these are the prize.

    Examples
    --------
    Runs with a higher rate score higher, so a run with a high rate is worth more before it starts.

    >>> from weitzman import learn
    >>> rate = [i / 20 for i in range(20) for _ in range(2)]
    >>> log = learn.Curves.read(
    ...     {"run": [i // 2 for i in range(40)], "step": [1, 2] * 20, "rate": rate,
    ...      "score": [x * t for x, t in zip(rate, [1, 2] * 20)], "cost": [1] * 40},
    ...     settings=["rate"])
    >>> model = learn.fit(log, price=10)
    >>> low, high = model.start_indices([{"rate": 0.1}, {"rate": 0.9}])
    >>> bool(low < high)
    True
    """

    options: FitOptions
    ladder: Ladder
    encoder: Encoder
    noise: ScoreNoise | None = None
    warned_ratio: float = 1.0  # how many times the costs of the log the last warning has named
    _log: int  # how many runs there were before any update
    _runs: ResemblingRuns
    _capped: CappedRuns

    def __init__(
        self, ladder: Ladder, encoder: Encoder, *, price: float, minimize: bool,
        options: FitOptions, last: ResemblanceModel | None = None,
    ) -> None:  # fmt: skip
        self.minimize, self.options = minimize, options
        self.ladder, self.encoder = ladder, encoder
        self._ceiling = ceiling_of(options.limit, minimize)
        self.price = check_price(price)
        best = float(ladder.best.max())
        if best > self._ceiling:
            raise InvalidArgument(
                f"no score may be better than the limit of {options.limit:g}, but a run showed "
                f"{-best if minimize else best:g}. Give the best possible score, or none."
            )
        interruptible(lambda: self._learn(ladder, last))  # one thread for all kernels

    def _learn(self, ladder: Ladder, last: ResemblanceModel | None) -> None:
        options = self.options
        self._log = len(ladder) if last is None else last._log
        log, rest = np.split(np.arange(len(ladder)), [self._log])
        known = thinned(ladder.select(log), options.states)
        self._usual = usual_cost(known)
        known = known.joined(ladder.select(rest)) if len(rest) else known
        real = len(known)
        if options.tail > 0:
            # by the rule of succession, every run of the search since the last record is a failure:
            # otherwise the hope that one lucky run of the log raises would outlive all of them
            vain = real - max(int(known.final.argmax()) + 1, real - len(rest))
            tail = options.tail * _VAIN / (_VAIN + vain)
            better = imagined(known, tail=tail, least=options.least, ceiling=self._ceiling)
            known = known.joined(better)
        self._runs = ResemblingRuns.of(
            known, self.encoder, self._usual, real=real, trees=options.trees, leaf=options.leaf,
            last=None if last is None else last._runs,
        )  # fmt: skip
        self.rungs = ladder.rungs[: len(self._runs.stages)]
        chosen: list[Center | None] = []
        if last is not None:  # centers serve again where the trees do
            pairs = zip(self._runs.stages, last._runs.stages, last._capped.frame, strict=False)
            chosen = [f.center if now.grown == then.grown else None for now, then, f in pairs]
        self._solve(chosen)

    def _solve(self, chosen: Sequence[Center | None] = ()) -> None:
        self._capped = CappedRuns.of(self._runs, self.price, self._ceiling, chosen)
        self._fresh = float(self._capped.index(0, self._runs.stages[0].usual())[0])

    def __repr__(self) -> str:
        count = len(self.encoder.names)
        known = f", {count} setting{'s' * (count > 1)}" if count else ""
        return (
            f"ResemblanceModel({len(self.ladder)} runs{known}, {len(self.rungs)} rungs up to "
            f"step {self.rungs[-1]}, price {self.price:.6g}: a full run costs "
            f"{self.full_run_cost:.3g} points{', minimize' if self.minimize else ''})"
        )

    @property
    def full_run_cost(self) -> float:
        """What a run that goes to its end costs on average, in points of score."""
        ladder = self.ladder
        over = ladder.gone if ladder.gone.any() else np.ones(len(ladder), bool)
        paid = (ladder.cost * ladder.within).sum(axis=1)[over]
        return float(np.average(paid, weights=ladder.weight[over])) / self.price

    def at_price(self, price: float) -> ResemblanceModel:
        """The model with another price of a score."""
        other = copy.copy(self)
        other.price = check_price(price)
        interruptible(other._solve)
        return other

    # -- indices -------------------------------------------------------------------------------

    @property
    def fresh_index(self) -> float:
        """The index of starting a run about which nothing is known."""
        return self._fresh

    def start_indices(self, settings: Sequence[Config]) -> FloatArray:
        """The index of starting a run with each of these settings."""
        config = self.encoder.numbers(settings, len(settings))
        return self._capped.index(0, self._runs.start_law(config))

    def next_indices(self, runs: Sequence[Shown]) -> FloatArray:
        """The index of continuing each of several runs."""
        out = np.full(len(runs), -np.inf)
        for r, which, law in self._laws(runs):
            out[which] = self._capped.index(r, law)
        return out

    def indices_of(self, runs: Ladder) -> FloatArray:
        """The index of each segment of these runs, given what they had shown before."""
        levels = self._levels(runs)
        out = np.full((len(runs), len(self.rungs)), -np.inf)
        for r in range(len(self.rungs)):
            some = np.flatnonzero(runs.seen >= r)
            if len(some):
                law = self._runs.law(r, runs.select(some), levels[some])
                out[some, r] = self._capped.index(r, law)
        return out

    # -- promises ------------------------------------------------------------------------------

    def gain(self, best: float, runs: Sequence[Shown], fresh: int) -> float:
        """What continuing adds to a worth in hand, after costs, with these runs and new ones."""
        laws = [(r, law, 1) for r, _, law in self._laws(runs)]
        if fresh:
            laws.append((0, self._runs.stages[0].usual(), fresh))
        return self._gain(best, laws)

    def promised(self, runs: Ladder) -> float:
        """What a search among these runs, known by their settings, is expected to earn."""
        law = self._runs.law(0, runs, self._levels(runs))
        first = float(self._capped.index(0, law).max())
        parts = self._capped.frame[0].parts(law)
        lowest = min(float(errors.min() + center.min()) for _, errors, _, center in parts)
        floor = min(lowest, first)  # one run is started in any case
        return floor + self._gain(floor, [(0, law, 1)])

    def rows(self, r: int) -> FloatArray:
        """The number of runs that the law of segment r of each logged run rests on."""
        row = self._runs.logged_law(r, self._runs.stages[r].runs).row
        return np.asarray(1.0 / np.square(row).sum(axis=1))

    def _gain(self, best: float, laws: Sequence[tuple[int, SegmentLaw, int]]) -> float:
        """The gain for runs by stage, law and number of copies."""
        indices = [self._capped.index(r, law) for r, law, _ in laws]
        top = max((float(x.max()) for x in indices), default=best)
        if not top > best:
            return 0.0
        # worths at which something may change; around centers, values lie anywhere
        values = np.unique(np.concatenate([x.ravel() for x in self._capped.value]))
        inside = values[(values > best) & (values < top)]
        some = np.linspace(0, len(inside) - 1, min(len(inside), _FINE)).round().astype(np.int64)
        worth = np.unique(np.concatenate([np.linspace(best, top, _FINE), inside[some]]))
        middle = (worth[1:] + worth[:-1]) / 2
        none = np.zeros(len(middle))  # log of the chance that no run exceeds
        for (r, law, copies), index in zip(laws, indices, strict=True):
            tail = self._capped.tails(r, law, index, middle)
            none += copies * np.log1p(-np.minimum(tail, 1.0 - 1e-15)).sum(axis=0)
        return float((-np.expm1(none) * np.diff(worth)).sum())

    # -- runs under way ------------------------------------------------------------------------

    def _laws(self, runs: Sequence[Shown]) -> list[tuple[int, IntArray, SegmentLaw]]:
        """By stage: which runs stand before it, and their law."""
        ladder = self._climbed(runs)
        levels = self._levels(ladder)
        out = []
        for r in np.unique(ladder.seen[~ladder.gone]).tolist():
            which = np.flatnonzero((ladder.seen == r) & ~ladder.gone)
            known = [i for i in which.tolist() if r or runs[i].settings is not None]
            if r == 0 and len(known) < len(which):
                blank = np.setdiff1d(which, known)
                usual = self._runs.stages[0].usual()
                out.append((0, blank, usual.of(np.zeros(len(blank), np.int64))))
            if known:
                some = np.array(known)
                out.append((r, some, self._runs.law(r, ladder.select(some), levels[some])))
        return out

    def _climbed(self, runs: Sequence[Shown]) -> Ladder:
        """Runs under way as seen from the rungs."""
        n, size = len(runs), len(self.rungs)
        best, last, mean = (np.full((n, size), np.nan) for _ in range(3))
        config = self.encoder.numbers([run.settings or {} for run in runs], n)
        seen, gone = np.zeros(n, np.int64), np.zeros(n, bool)
        cost, weight = np.zeros((n, size)), np.ones(n)
        ladder = Ladder(self.rungs, best, last, mean, cost, config, seen, gone, weight)
        shown = [run for run in runs if len(run.steps)]
        if shown:
            some = np.array([i for i, run in enumerate(runs) if len(run.steps)])
            part = climb_all(as_curves(shown, self.minimize), self.rungs)
            for name in ("best", "last", "mean", "cost", "seen", "gone"):
                getattr(ladder, name)[some] = getattr(part, name)
            ladder.gone[some] |= [bool(np.isnan(run.scores[-1])) for run in shown]
        return ladder

    def _levels(self, runs: Ladder) -> FloatArray:
        if not self._runs.levels.any():
            return np.zeros_like(runs.cost)
        return cost_levels(runs.cost, self._usual[: runs.cost.shape[1]])

    # -- as a forest, and learning more ----------------------------------------------------------

    def lines(self, n: int = 1, *, states: int = 100) -> Forest:
        """A forest of n new runs, unknown before they start, in worth and cost.

        The states of a box are runs of the log, about ``states`` of them: the best ones by
        themselves, others in groups with neighboring scores. A forest remembers only the state of a
        box, so a run continues from rung to rung like runs that it resembles, and what is known is
        blurred.
        """
        runs, usual = self._runs, self._runs.stages[0].usual()
        worth = [self.price * runs.ladder.best[s.runs, r] for r, s in enumerate(runs.stages)]
        # shares[r][g, j]: the part of run j in group g; runs that are over are grouped apart
        shares = [
            _groups(x, runs.continues(r), runs.stages[r].trees.weight, states)
            for r, x in enumerate(worth)
        ]
        rewards = [share @ x for share, x in zip(shares, worth, strict=True)]
        low = min(float(x.min()) for x in rewards)
        # as floats: products with truth values do without BLAS, a hundred times slower
        within = [(share.T > 0).astype(np.float64) for share in shares]
        law: list[FloatArray] = [usual.row @ within[0]]
        paid: list[FloatArray | float] = [float(usual.cost[0])]
        for r in range(1, len(runs.stages)):
            before = runs.stages[r - 1].runs
            going = (shares[r - 1] > 0) @ runs.continues(r - 1)
            # a box after a run that is over shows the lowest score and costs so much that no policy
            # opens it
            matrix = np.zeros((len(going), len(rewards[r])))
            matrix[:, int(np.argmin(rewards[r]))] = 1.0
            high = np.full(len(going), 1.0 + float(rewards[r].max()) - low)
            if going.any():
                found, part = runs.logged_law(r, before), shares[r - 1][going]
                matrix[going], high[going] = part @ found.row @ within[r], part @ found.cost
            law.append(matrix)
            paid.append(high)
        size = len(runs.stages)
        return Forest.from_arrays(
            parent=np.arange(-1, size - 1), cost=paid, rewards=rewards, law=law,
            count=[n] + [1] * (size - 1), names=[f"0:{step}" for step in self.rungs],
            outside=-np.inf,
        )  # fmt: skip

    def updated(self, curves: Curves, last: ResemblanceModel | None = None) -> ResemblanceModel:
        """The model learned from these curves too, with the same rungs and options.

        This is for the runs of a search under way: a run is cut off where it stands unless it has
        ended. If the runs clearly cost more or less than the log says, the costs of the log are
        scaled, with a warning. ``last`` is this model, or what came of it when it was updated from
        the first of these curves: trees that it has grown serve again as long as they are good
        enough, which takes a fraction of the time. Without ``last``, these runs count as further
        runs of the log.
        """
        if curves.minimize != self.minimize:
            raise InvalidArgument("the model and the curves must both maximize or both minimize.")
        if self.noise is not None:  # scores count as the means of their re-evaluations
            curves = self.noise.without(curves)
        new = climb(curves, self.ladder.rungs, self.encoder)
        cost = self._runs.law(0, new, np.zeros_like(new.cost)).cost
        level = cost / self._usual[0] if self._usual[0] > 0 else 1.0
        found = compared_costs(self.ladder, new, level)
        log = self.ladder
        if found.ratio != 1.0:
            log = replace(log, cost=log.cost * found.ratio)
        model = self.relearned(log.joined(new), last)
        model.noise = self.noise
        model.warned_ratio = found.warned(1.0 if last is None else last.warned_ratio)
        return model

    def relearned(self, ladder: Ladder, last: ResemblanceModel | None = None) -> ResemblanceModel:
        """A model with the same options; ``last`` was learned from the first of these runs."""
        return ResemblanceModel(
            ladder, self.encoder, price=self.price, minimize=self.minimize, options=self.options,
            last=last,
        )  # fmt: skip


def fit(
    curves: Curves, *, price: float | None = None, full_run_cost: float | None = None,
    limit: float | None = None, options: FitOptions | None = None, rescored: bool | float = False,
) -> ResemblanceModel:  # fmt: skip
    """Learn the law of a run from curves.

    Parameters
    ----------
    curves : Curves
        The log, of one task: scores must mean the same in all runs. If the curves have settings,
        the model says which settings to start.
    price : float
        What one point of score is worth, in units of cost.
    full_run_cost : float
        Instead of ``price``: how many points of score a full run costs, on average.
    limit : float, optional
        The best possible score, such as 1 for an accuracy, if it is known.
    options : FitOptions, optional
        How curves become a model.
    rescored : bool or float
        The prize is what a re-evaluation of the chosen run shows, not the score that it has shown:
        the best of many noisy scores is too high. With True the noise of scores is learned from the
        log; a number states its standard deviation. Then every score counts as the mean of its
        re-evaluations, in the log and in the search.

    Returns
    -------
    ResemblanceModel
        ``lines(n)`` is a forest of n new runs; ``tune.optimize`` searches with it.

    See Also
    --------
    weitzman.learn.from_nothing : A model without a log.
    weitzman.learn.diagnose : How good the forecasts are.

    Examples
    --------
    >>> from weitzman import learn
    >>> curves = learn.Curves.read({
    ...     "run": ["a", "a", "b", "b", "c", "c"], "step": [1, 2, 1, 2, 1, 2],
    ...     "score": [0.5, 0.7, 0.4, 0.5, 0.6, 0.9], "cost": [1, 1, 1, 1, 1, 1]})
    >>> model = learn.fit(curves, price=40)
    >>> model
    ResemblanceModel(3 runs, 2 rungs up to step 2, price 40: a full run costs 0.05 points)
    >>> bool(model.fresh_index > model.worth(0.7))
    True
    """
    if len(curves.tasks) > 1:
        raise InvalidArgument(
            f"a model needs curves of one task, but these are of {len(curves.tasks)}. Choose one "
            f"with `of_task`, or read them without `task` if their scores mean the same."
        )
    if options is not None and not isinstance(options, FitOptions):
        raise InvalidArgument(
            f"`options` must be a `learn.FitOptions`, but it is {options!r}. The settings of runs "
            f"belong to the curves."
        )
    worth = price_of(curves, price, full_run_cost)
    if rescored is not False:
        noise = ScoreNoise.of(curves, None if rescored is True else rescored)
        model = fit(noise.without(curves), price=worth, limit=limit, options=options)
        model.noise = noise
        return model
    options = options or FitOptions()
    if limit is not None:
        options = replace(options, limit=float(limit))
    encoder = Encoder.of(curves.settings)
    ladder = climb(curves, choose_rungs(curves, options.ratio), encoder)
    if not len(ladder):
        raise InvalidArgument(
            "no run was seen as far as the first rung: nothing can be learned from this log."
        )
    return ResemblanceModel(ladder, encoder, price=worth, minimize=curves.minimize, options=options)


def _groups(worth: FloatArray, going: BoolArray, weight: FloatArray, most: int) -> FloatArray:
    """Runs in about ``most`` groups by worth: the share of each run in its group."""
    # the best 0.4 of the groups are single runs, since decisions are made there; lower groups grow
    rows = []
    for kind in (going, ~going):
        down = np.flatnonzero(kind)
        down = down[np.argsort(-worth[down], kind="stable")]
        own = min(len(down), round(0.4 * most))
        cuts = np.geomspace(max(own, 1), max(len(down), 1), max(most - own, 1)).round()
        starts = np.union1d(np.arange(own), cuts.astype(np.int64))
        for members in np.split(down, starts[(starts > 0) & (starts < len(down))]):
            if len(members):
                rows.append(np.zeros(len(worth)))
                rows[-1][members] = weight[members] / weight[members].sum()
    return np.array(rows)
