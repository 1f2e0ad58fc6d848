"""A model whose states are the logged runs: a run goes on like the runs that it resembles."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import FloatArray, IntArray
from ..errors import InvalidArgument
from ..forest.model import Forest
from .capped_runs import KinCapped
from .centers import Center, SegmentLaw
from .curves import Curves
from .kin import Kin, thinned
from .known import Config, Encoder
from .ladder import Ladder, climb_all
from .laws import Recipe, cost_levels, imagined, usual_cost
from .log_model import LearnedModel, ceiling_of, check_limit, check_price
from .run_model import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Resemblance(Recipe):
    """How logged runs become the states of a :class:`ResemblanceModel`; see also :class:`Recipe`.

    Attributes
    ----------
    trees : int
        Trees grown for each segment.
    leaf : int
        The fewest runs in a leaf.
    states : int
        The most runs of the log that serve as states. In a larger log, some runs below the best
        stand for several runs.
    """

    trees: int = 32
    leaf: int = 3
    states: int = 1000

    def _rules(self) -> dict[str, bool]:
        return Recipe._rules(self) | {
            "trees must be at least 1": self.trees >= 1,
            "leaf must be at least 1": self.leaf >= 1,
            "states must be at least 3": self.states >= 3,
        }


_VAIN = 30.0  # runs without a record after which half of the hope for a better run is left
_FINE = 400  # worths at which the gain is computed


class ResemblanceModel(LearnedModel):
    """A model by resemblance: a run goes on as the logged runs that resemble it.

    Made by :func:`weitzman.learn.fit` from curves with settings.

    Attributes
    ----------
    settings : Resemblance

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

    settings: Resemblance
    _log: int  # how many runs there were before any update
    _kin: Kin
    _capped: KinCapped

    def __init__(
        self,
        ladder: Ladder,
        encoder: Encoder,
        *,
        price: float,
        minimize: bool,
        settings: Resemblance,
        last: ResemblanceModel | None = None,
    ) -> None:
        self.minimize, self.settings = minimize, settings
        self.ladder, self.encoder = ladder, encoder
        check_limit(ladder, settings.limit, minimize)
        self._log = len(ladder) if last is None else last._log
        log, rest = np.split(np.arange(len(ladder)), [self._log])
        known = thinned(ladder.select(log), settings.states)
        self._usual = usual_cost(known)
        known = known.joined(ladder.select(rest)) if len(rest) else known
        real, ceiling = len(known), ceiling_of(settings.limit, minimize)
        if settings.tail > 0:
            hope = replace(settings, tail=settings.tail * _hope_left(known, real - len(rest)))
            known = known.joined(imagined(known, hope, ceiling))
        self._kin = Kin.of(
            known, encoder, self._usual, real=real, trees=settings.trees, leaf=settings.leaf,
            last=None if last is None else last._kin,
        )  # fmt: skip
        self.rungs = ladder.rungs[: len(self._kin.stages)]
        self._solve(price, () if last is None else self._centers_of(last))

    def _centers_of(self, last: ResemblanceModel) -> list[Center | None]:
        """Centers that serve again, as the trees do; None where trees have grown anew."""
        now, then = self._kin.stages, last._kin.stages
        same = [a.grown == b.grown for a, b in zip(now, then, strict=False)]
        return [x.center if s else None for x, s in zip(last._capped.frame, same, strict=False)]

    def _solve(self, price: float, chosen: Sequence[Center | None] = ()) -> None:
        self.price = check_price(price)
        ceiling = ceiling_of(self.settings.limit, self.minimize)
        self._capped = KinCapped.of(self._kin, self.price, ceiling, chosen)
        self._fresh = float(self._capped.index(0, self._kin.stages[0].usual())[0])

    def at_price(self, price: float) -> ResemblanceModel:
        """The model with another price of a score."""
        other = copy.copy(self)
        other._solve(price)
        return other

    # -- indices -------------------------------------------------------------------------------

    @property
    def fresh_index(self) -> float:
        """The index of starting a run about which nothing is known."""
        return self._fresh

    def start_indices(self, settings: Sequence[Config]) -> FloatArray:
        """The index of starting a run with each of these settings."""
        config = self.encoder.numbers(settings, len(settings))
        return self._capped.index(0, self._kin.start_law(config))

    def next_indices(self, runs: Sequence[Shown]) -> FloatArray:
        """The index of going on with each of several runs."""
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
                law = self._kin.law(r, runs.select(some), levels[some])
                out[some, r] = self._capped.index(r, law)
        return out

    def gain(self, best: float, runs: Sequence[Shown], fresh: int) -> float:
        """What going on adds to a worth in hand, after costs, with these runs and new ones.

        The value of lines side by side is the mean of the best capped value.
        """
        laws = [(r, law, 1) for r, _, law in self._laws(runs)]
        if fresh:
            laws.append((0, self._kin.stages[0].usual(), fresh))
        return self._gain(best, laws)

    def promised(self, runs: Ladder) -> float:
        """What a search among these runs, known by their settings, is expected to earn."""
        law = self._kin.law(0, runs, self._levels(runs))
        first = float(self._capped.index(0, law).max())
        parts = self._capped.frame[0].parts(law)
        lowest = min(float(errors.min() + center.min()) for _, errors, _, center in parts)
        floor = min(lowest, first)  # one run is started in any case
        return floor + self._gain(floor, [(0, law, 1)])

    def rows(self, r: int) -> FloatArray:
        """The number of runs that the law of segment r of each logged run rests on."""
        row = self._kin.logged_law(r, self._kin.stages[r].runs).row
        return np.asarray(1.0 / np.square(row).sum(axis=1))

    def resembling(self, r: int, runs: IntArray) -> FloatArray:
        """How much these runs of the log resemble each other before segment r, never themselves.

        The runs must have gone through the segment, and the log must not have been thinned.
        """
        row = self._kin.logged_law(r, runs).row
        among = row[:, np.searchsorted(self._kin.stages[r].runs, runs)]
        np.fill_diagonal(among, 0.0)
        total = among.sum(axis=1, keepdims=True)
        alone = 1.0 - np.eye(len(runs))  # a run that resembles imagined runs only
        return np.where(total > 0, among / np.where(total > 0, total, 1.0), alone / alone.sum(1))

    def _gain(self, best: float, laws: Sequence[tuple[int, SegmentLaw, int]]) -> float:
        """The same for runs by stage, rows, costs and numbers of copies."""
        indices = [self._capped.index(r, law) for r, law, _ in laws]
        top = max((float(x.max()) for x in indices), default=best)
        if not top > best:
            return 0.0
        worth = self._worths(best, top)
        middle = (worth[1:] + worth[:-1]) / 2
        none = np.zeros(len(middle))  # log of the chance that no run exceeds
        for (r, law, copies), index in zip(laws, indices, strict=True):
            tail = self._capped.tails(r, law, index, middle)
            none += copies * np.log1p(-np.minimum(tail, 1.0 - 1e-15)).sum(axis=0)
        return float((-np.expm1(none) * np.diff(worth)).sum())

    def _worths(self, best: float, top: float) -> FloatArray:
        """Worths in between at which something may change."""
        values = np.unique(np.concatenate([x.ravel() for x in self._capped.value]))
        inside = values[(values > best) & (values < top)]
        between = np.linspace(best, top, _FINE)  # around centers, values lie anywhere
        return np.unique(np.concatenate([between, _some(inside, _FINE)]))

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
                usual = self._kin.stages[0].usual()
                out.append((0, blank, usual.of(np.zeros(len(blank), np.int64))))
            if known:
                some = np.array(known)
                out.append((r, some, self._kin.law(r, ladder.select(some), levels[some])))
        return out

    def _climbed(self, runs: Sequence[Shown]) -> Ladder:
        """Runs under way as seen from the rungs."""
        shown = [run for run in runs if len(run.steps)]
        ladder = self._blank(runs)
        if shown:
            some = np.array([i for i, run in enumerate(runs) if len(run.steps)])
            part = climb_all(as_curves(shown, self.minimize), self.rungs)
            for name in ("best", "last", "mean", "cost", "seen", "gone"):
                getattr(ladder, name)[some] = getattr(part, name)
            ladder.gone[some] |= [bool(np.isnan(run.scores[-1])) for run in shown]
        return ladder

    def _blank(self, runs: Sequence[Shown]) -> Ladder:
        n, size = len(runs), len(self.rungs)
        best, last, mean = (np.full((n, size), np.nan) for _ in range(3))
        config = self.encoder.numbers([run.settings or {} for run in runs], n)
        seen, gone = np.zeros(n, np.int64), np.zeros(n, bool)
        cost, weight = np.zeros((n, size)), np.ones(n)
        return Ladder(self.rungs, best, last, mean, cost, config, seen, gone, weight)

    def _levels(self, runs: Ladder) -> FloatArray:
        if not self._kin.levels.any():
            return np.zeros_like(runs.cost)
        return cost_levels(runs.cost, self._usual[: runs.cost.shape[1]])

    # -- as a forest, and learning more ----------------------------------------------------------

    def lines(self, n: int = 1) -> Forest:
        """A forest of n new runs, unknown before they start, in worth and cost."""
        return _forest(self._kin, self.price, n)

    def _relative_cost(self, runs: Ladder) -> FloatArray | float:
        """How many times the usual cost each of these runs should cost, by its settings."""
        cost = self._kin.law(0, runs, np.zeros_like(runs.cost)).cost
        return cost / self._usual[0] if self._usual[0] > 0 else 1.0

    def relearned(self, ladder: Ladder, last: LearnedModel | None = None) -> ResemblanceModel:
        """A model of the same kind, learned from other runs."""
        return ResemblanceModel(
            ladder, self.encoder, price=self.price, minimize=self.minimize, settings=self.settings,
            last=last if isinstance(last, ResemblanceModel) else None,
        )  # fmt: skip


def _hope_left(runs: Ladder, log: int) -> float:
    """The share that is left of the hope for a run better than all, by the rule of succession.

    Every run of the search since the last record is a failure. Without it, the hope that one lucky
    run of the log raises would outlive any number of failures.
    """
    final = runs.best[np.arange(len(runs)), runs.seen - 1]
    vain = len(runs) - max(int(final.argmax()) + 1, log)
    return _VAIN / (_VAIN + vain)


def _some(values: FloatArray, most: int) -> FloatArray:
    """A limited number of them, spread evenly."""
    places = np.linspace(0, len(values) - 1, min(len(values), most)).round().astype(np.int64)
    return values[places]


def as_curves(runs: Sequence[Shown], minimize: bool) -> Curves:
    """Runs under way as curves. A run without costs, or with no costs above 0, costs the usual."""
    for run in runs:
        costs = run.steps if run.costs is None else run.costs
        if not len(run.steps) == len(run.scores) == len(costs):
            raise InvalidArgument("a run must have one score and one cost per step.")
    paid = [np.zeros(len(run.steps)) if run.costs is None else run.costs for run in runs]
    blank = ("",) * len(runs)
    return Curves(
        runs=tuple(map(str, range(len(runs)))),
        start=np.cumsum([0, *(len(run.steps) for run in runs)]),
        step=np.concatenate([np.asarray(run.steps, np.int64) for run in runs]),
        score=np.concatenate([np.asarray(run.scores, np.float64) for run in runs]),
        cost=np.concatenate([np.asarray(x, np.float64) for x in paid]),
        task=blank,
        kind=blank,
        ended=np.zeros(len(runs), bool),
        minimize=minimize,
    )


def _forest(kin: Kin, price: float, n: int) -> Forest:
    """New runs as lines; the states of a box are runs of the log.

    A forest remembers only the state of a box. So a run goes on from rung to rung like runs that
    it resembles, and it resembles itself no more than others do. A box after a run that is over
    shows the lowest score and costs so much that no policy opens it.
    """
    worth = price * kin.ladder.best
    low = min(float(worth[s.runs, r].min()) for r, s in enumerate(kin.stages))
    usual = kin.stages[0].usual()
    law: list[FloatArray] = [usual.row]
    paid: list[FloatArray | float] = [float(usual.cost[0])]
    rewards = [worth[s.runs, r] for r, s in enumerate(kin.stages)]
    for r in range(1, len(kin.stages)):
        going, runs = kin.goes_on(r - 1), kin.stages[r - 1].runs
        matrix = np.zeros((len(runs), len(kin.stages[r].runs)))
        matrix[:, int(np.argmin(rewards[r]))] = 1.0
        high = np.full(len(runs), 1.0 + float(rewards[r].max()) - low)
        if going.any():
            found = kin.logged_law(r, runs[going])
            matrix[going], high[going] = found.row, found.cost
        law.append(matrix)
        paid.append(high)
    size = len(kin.stages)
    return Forest.from_arrays(
        parent=np.arange(-1, size - 1), cost=paid, rewards=rewards, law=law,
        count=[n] + [1] * (size - 1), names=[f"0:{step}" for step in kin.ladder.rungs[:size]],
        outside=-np.inf,
    )  # fmt: skip
