r"""A run continues as the logged runs that it resembles, each in its own way.

Before segment r, run x resembles the logged runs j that were seen to its end with weights
:math:`w_r(x, j)`, which trees give, and the segment costs :math:`c_r(x)`. Let :math:`K_{jr}` be
what run j was worth from there on to a searcher who follows indices: its *capped value*. The index
of continuing is the root of

.. math:: \sum_j w_r(x, j)\, (m_r(x) + K_{jr} - m_r(j) - \sigma)^+ = c_r(x),

with the *centers* :math:`m` of :mod:`.capped_runs`. Capped values follow backward along each run,
from its own best scores b and its own indices, which are learned from the other runs:
:math:`K_{jr} = \max(b_{jr}, \min(\sigma_{j,r+1}, K_{j,r+1}))`, and :math:`b_{jr}` where the run has
ended. A run that was cut off has several, spread like those of the runs that it resembles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._kernels.leaves import Fallen, Known, Nodes, Outcomes, fall, grow, resemblance
from .capped_runs import DOUBTS, Center, Forecast, Peers, SegmentLaw, chosen_center, upper_half
from .ladder import Ladder, cost_levels, features, is_category
from .log_tables import Encoder

_SHARE = 0.632  # of the runs in the bag of a tree

_OUTGROWN = 1.2  # times the runs that trees were grown from: they grow anew, one stage at a time
_OUTNUMBERED = 2.0  # times that number: they grow anew at once
_ALIKE = 0.1  # standard deviation of log costs below which runs are taken to cost the same
_COST = 0.5  # what a standard deviation of cost counts against one of scores when trees split
_SEED = 20160  # of the trees, so that the same log gives the same model


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Trees grown from n runs, and where these runs fall."""

    category: BoolArray  # which features are categories
    nodes: Nodes  # features, splits and left children of all nodes, and where each tree begins
    bags: BoolArray  # (trees, n): the runs that each tree was grown from
    leaf: IntArray  # (trees, n): where each run falls
    weight: FloatArray  # how much each run counts
    known: FloatArray  # (n, F): what is known about each run

    @classmethod
    def grown(
        cls, known: FloatArray, category: BoolArray, target: FloatArray, weight: FloatArray, *,
        trees: int, leaf: int, random: np.random.Generator, bags: BoolArray | None = None,
    ) -> Trees:  # fmt: skip
        """Trees that separate runs with different targets, by what is known about the runs."""
        if bags is None:  # about two thirds of the runs in each tree; a single run is in every tree
            n = len(known)
            places = random.random((trees, n)).argsort(axis=1)
            bags = np.zeros((trees, n), bool)
            mine = places[:, : max(1, min(n - 1, round(_SHARE * n)))]
            np.put_along_axis(bags, mine, True, axis=1)
        seeds = random.integers(1, 2**31 - 1, trees)
        seen = Known(np.ascontiguousarray(known), category)
        nodes = grow(seen, Outcomes(target, weight), bags, seeds, leaf)
        return cls(category, nodes, bags, fall(seen, nodes), weight, known)

    def _fall(self, known: FloatArray) -> IntArray:
        """Where other runs fall."""
        return fall(Known(np.ascontiguousarray(known), self.category), self.nodes)

    def joined_by(self, known: FloatArray, bags: BoolArray, weight: FloatArray) -> Trees:
        """The same trees with other runs in their leaves: those that shaped them, and more."""
        leaf, n = np.empty(bags.shape, np.int64), min(len(known), len(self.known))
        old, now = self.known[:n], known[:n]
        same = ((old == now) | (np.isnan(old) & np.isnan(now))).all(axis=1)
        new = np.append(~same, np.ones(len(known) - n, bool))
        leaf[:, ~new] = self.leaf[:, np.flatnonzero(~new)]
        leaf[:, new] = self._fall(known[new])
        return replace(self, bags=bags, leaf=leaf, weight=weight, known=known)

    def rows(self, known: FloatArray, own: IntArray) -> FloatArray:
        """How much each run resembles each row of what is known; a row sums to 1.

        ``own`` is the run that a row describes, -1 for none: trees that it helped to grow say
        nothing about it.
        """
        leaf, new = self.leaf[:, own], own < 0
        if new.any():
            leaf[:, new] = self._fall(known[new])
        runs = Fallen(self.leaf, self.bags, self.weight)
        return np.asarray(resemblance(leaf, own, runs, len(self.nodes.feature)))


@dataclass(frozen=True, slots=True, eq=False)
class SegmentCosts:
    """What a segment cost each run: what the segment before did, times the usual growth.

    The growth is a geometric mean, shrunken to that of runs with the same settings where these tell
    more. Before the first segment, and where runs cost about the same, costs are averaged.
    """

    cost: FloatArray  # what the segment cost,
    level: FloatArray  # and the cost level of the segment before it
    doubt: float  # how little a run with the same settings counts; infinite for not at all
    own: FloatArray  # the growth that the other runs expect of each run, NaN for none

    @classmethod
    def of(cls, cost: FloatArray, level: FloatArray) -> SegmentCosts:
        """Costs by the runs that a run resembles alone."""
        return cls(cost, level, np.inf, np.full(len(cost), np.nan))

    def mean(self, law: SegmentLaw, peers: Peers, level: FloatArray) -> FloatArray:
        """The mean cost for runs by their law, and by the cost level of the segment before."""
        cost = self._mean(law.row, level, 0.0, np.zeros(len(self.cost)))
        if np.isfinite(self.doubt):
            growth = Forecast.of(law, peers.alike(law)).expected(self._growth, self.doubt)
            known = np.isfinite(self.own)
            some = np.isfinite(growth) & (law.row @ known > 0)
            row = np.where(known, law.row[some], 0.0)
            row = row / row.sum(axis=1, keepdims=True)
            own = np.where(known, self.own, 0.0)
            cost[some] = self._mean(row, level[some], growth[some], own)
        return cost

    def by_settings(self, law: SegmentLaw, peers: Peers) -> SegmentCosts:
        """With costs by settings if they forecast better, by the law of the runs themselves."""
        alike = peers.alike(law)
        known = alike.any(axis=1) & peers.real
        if not known.any() or not (self.cost > 0).all():
            return self
        growth, forecast = self._growth, Forecast.of(law, alike)
        best, least = self, float(np.square(law.row @ growth - growth)[known].sum())
        for doubt in DOUBTS:
            own = forecast.expected(growth, doubt)
            error = float(np.square(own - growth)[known].sum())
            if error < least:
                best, least = replace(self, doubt=doubt, own=own), error
        return best

    @property
    def _growth(self) -> FloatArray:
        """The logarithm of the cost over that of the segment before; 0 for a free segment."""
        paid = self.cost > 0
        return np.where(paid, np.log(np.where(paid, self.cost, 1.0)) - self.level, 0.0)

    def _mean(
        self, row: FloatArray, level: FloatArray, growth: FloatArray | float, own: FloatArray
    ) -> FloatArray:
        """Costs around a growth, with errors by the runs around their own growth."""
        if not self.level.any():
            return np.asarray(np.exp(growth) * (row @ (self.cost * np.exp(-own))))
        paid = self.cost > 0
        share = row @ paid
        error = row @ np.where(paid, self._growth - own, 0.0) / np.maximum(share, 1e-300)
        return np.asarray(share * np.exp(level + growth + error))


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One segment of a line."""

    trees: Trees  # grown from the runs that were seen to its end
    runs: IntArray  # the numbers of these runs in the ladder
    costs: SegmentCosts
    grown: int  # how many runs there were when the trees were grown
    peers: Peers  # which of these runs have the same settings

    def law(
        self, known: FloatArray, level: FloatArray, best: FloatArray, group: IntArray,
        own: IntArray | None = None,
    ) -> SegmentLaw:  # fmt: skip
        """The law of runs by what was seen of them before the segment: features, cost level, ...

        ``group`` numbers their settings in the log, ``own`` the runs themselves in the ladder.
        """
        place = np.full(len(known), -1)
        if own is not None:
            at = np.minimum(np.searchsorted(self.runs, own), len(self.runs) - 1)
            place = np.where(self.runs[at] == own, at, -1)
        row, weight = self.trees.rows(known, place), self.trees.weight
        # one more run may be unlike all that it resembles, and then it is as any other run
        mine = np.flatnonzero(place >= 0)
        total = np.full((len(row), 1), weight.sum())
        total[mine, 0] -= weight[place[mine]]
        if len(weight) == 1:  # no other run is left
            total[mine] = 0.0
        unlike = np.where(total > 0, 1.0 / (1.0 + 1.0 / np.square(row).sum(axis=1)[:, None]), 0.0)
        row *= 1.0 - unlike
        myself = row[mine, place[mine]]
        row += (unlike / np.where(total > 0, total, 1.0)) * weight
        row[mine, place[mine]] = myself
        law = SegmentLaw(row, np.zeros(len(row)), group, place, best)
        return law._replace(cost=self.costs.mean(law, self.peers, level))

    def usual(self) -> SegmentLaw:
        """The law of a run about which nothing is known."""
        row = (self.trees.weight / self.trees.weight.sum())[None]
        none = np.full(1, -1)
        return SegmentLaw(row, (row * self.costs.cost).sum(axis=1), none, none, np.zeros(1))


@dataclass(frozen=True, slots=True, eq=False)
class ResemblingRuns:
    """The stages of a line, and the runs that they were learned from."""

    ladder: Ladder
    levels: FloatArray  # (n, R): the cost level of each segment; 0 where runs cost about the same
    number: dict[bytes, int]  # of the different settings
    group: IntArray  # the number of the settings of each run; -1 for none
    stages: list[Stage]

    @classmethod
    def of(
        cls, ladder: Ladder, encoder: Encoder, usual: FloatArray, *, real: int, trees: int,
        leaf: int, last: ResemblingRuns | None = None,
    ) -> ResemblingRuns:  # fmt: skip
        """Trees for every segment that a run was seen to finish; the first ``real`` were logged.

        ``last`` was made from the first of these runs, and its trees may serve again.
        """
        levels = levels_of(ladder, usual)
        if last is not None and levels.any() != last.levels.any():
            last = None
        kept: list[Stage | None] = []
        if last is not None:
            # growing takes long, so one stage at a time grows anew, the one with the most new runs
            # for each old run; all stages that new runs outnumber grow anew
            times = np.array([(ladder.seen > r).sum() / s.grown for r, s in enumerate(last.stages)])
            anew = times >= _OUTNUMBERED
            most = int(times.argmax())
            anew[most] |= times[most] >= _OUTGROWN
            kept = [None if new else old for new, old in zip(anew, last.stages, strict=True)]
        number = distinct(ladder.config)
        group, stages = numbered(number, ladder.config), []
        for r in range(int(ladder.seen.max())):
            runs = np.flatnonzero(ladder.seen > r)
            mine, level = ladder.select(runs), levels[runs]
            known, old = features(mine, r, level), kept[r] if r < len(kept) else None
            # more runs leave the bags of the first ones as they are: so a run that joins the trees
            # later never meets itself in a tree that it helped to grow
            drawn = np.random.default_rng([_SEED, r]).random((len(ladder), trees))
            bags = drawn.T[:, runs] < _SHARE
            if old is not None:
                grown = old.trees.joined_by(known, bags, mine.weight)
            else:
                # trees tell apart the score at the end of the segment, the last one, and the cost
                target = [_standard(upper_half(x)) for x in (mine.best[:, r], mine.final)]
                if level.any():
                    target.append(_COST * _standard(level[:, r]))
                grown = Trees.grown(
                    known, is_category(encoder, r), np.column_stack(target), mine.weight,
                    trees=trees, leaf=leaf, random=np.random.default_rng([_SEED, r]),
                    bags=bags | ~bags.any(axis=1, keepdims=True),  # an empty tree has all runs
                )  # fmt: skip
            before = level[:, r - 1] if r else np.zeros(len(runs))
            count = len(runs) if old is None else old.grown
            costs, peers = SegmentCosts.of(mine.cost[:, r], before), Peers(group[runs], runs < real)
            stages.append(Stage(grown, runs, costs, count, peers))
        made = cls(ladder, levels, number, group, stages)
        for r, stage in enumerate(stages):
            if levels.any() and stage.peers.repeated:  # costs by settings, if they forecast better
                law = made.logged_law(r, stage.runs)
                stages[r] = replace(stage, costs=stage.costs.by_settings(law, stage.peers))
        return made

    def center(self, r: int, law: SegmentLaw, worth: FloatArray) -> Center:
        """The center that forecasts what runs of stage r were worth best, by their own law."""
        stage = self.stages[r]
        over = np.flatnonzero(stage.peers.real & self.ladder.gone[stage.runs])
        over = over[law.row[np.ix_(over, over)].sum(axis=1) > 0]
        row = law.row[np.ix_(over, over)]
        mine = law.of(over)._replace(
            row=row / row.sum(axis=1, keepdims=True), place=np.arange(len(over))
        )
        return chosen_center(mine, Peers(*(x[over] for x in stage.peers)), worth[over], r == 0)

    def law(
        self, r: int, runs: Ladder, levels: FloatArray, own: IntArray | None = None
    ) -> SegmentLaw:
        """The law of segment r for these runs, by what they had shown before it."""
        none = np.zeros(len(runs))
        level, best = (levels[:, r - 1], runs.best[:, r - 1]) if r else (none, none)
        group = numbered(self.number, runs.config) if own is None else self.group[own]
        return self.stages[r].law(features(runs, r, levels), level, best, group, own)

    def start_law(self, config: FloatArray) -> SegmentLaw:
        """The law of the first segment for runs with these settings."""
        none = np.zeros(len(config))
        return self.stages[0].law(config, none, none, numbered(self.number, config))

    def logged_law(self, r: int, own: IntArray) -> SegmentLaw:
        """The law for runs of the log, each learned from the other runs."""
        return self.law(r, self.ladder.select(own), self.levels[own], own)

    def standing(self, r: int) -> IntArray:
        """The numbers of the runs that stood before segment r, whether it was seen or not."""
        if r == 0:
            return np.arange(len(self.ladder))
        return np.asarray(self.stages[r - 1].runs[self.continues(r - 1)])

    def continues(self, r: int) -> BoolArray:
        """Which runs that were seen to the end of segment r can continue."""
        runs = self.stages[r].runs
        over = self.ladder.gone[runs] & (self.ladder.seen[runs] == r + 1)
        return ~over if r + 1 < len(self.stages) else np.zeros(len(runs), bool)


def levels_of(ladder: Ladder, usual: FloatArray) -> FloatArray:
    """The cost level of each segment of each run; 0 where runs cost about the same."""
    level, seen = cost_levels(ladder.cost, usual), ladder.within
    alike = not seen.any() or float(np.std(level[seen])) <= _ALIKE
    return np.zeros_like(level) if alike else level


def distinct(config: FloatArray) -> dict[bytes, int]:
    """The different rows of settings by number."""
    return {key: k for k, key in enumerate(dict.fromkeys(_keys(config)))}


def numbered(number: dict[bytes, int], config: FloatArray) -> IntArray:
    """The number of each row of settings; -1 if it is new, or if every setting is missing."""
    found = np.array([number.get(key, -1) for key in _keys(config)], np.int64)
    return np.where(np.isnan(config).all(axis=1), -1, found)


def _keys(config: FloatArray) -> list[bytes]:
    """Rows as keys; all missing values are the same, and so are both zeros."""
    plain = np.where(np.isnan(config), np.nan, config + 0.0)
    return [row.tobytes() for row in plain]


def _standard(x: FloatArray) -> FloatArray:
    """The numbers with mean 0, in standard deviations."""
    width = float(x.std())
    return (x - x.mean()) / width if width > 0 else np.zeros_like(x)


def thinned(ladder: Ladder, most: int) -> Ladder:
    """A limited number of runs: the best third, and others that each stand for several runs."""
    n, own = len(ladder), most // 3
    if n <= most:
        return ladder
    down = np.argsort(-ladder.final, kind="stable")
    rest = np.linspace(own, n - 1, most - own).round().astype(np.int64)
    kept = ladder.select(np.concatenate([down[:own], down[rest]]))
    weight = kept.weight.copy()
    weight[own:] *= ladder.weight[down[own:]].sum() / weight[own:].sum()
    return replace(kept, weight=weight)
