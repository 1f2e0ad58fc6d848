r"""A run goes on as the logged runs that it resembles, each in its own way.

Before segment r, a run about which :math:`x` is known resembles the logged runs j that were seen to
its end with weights :math:`w_r(x, j)`, which trees give, and the segment costs :math:`c_r(x)`. Let
:math:`K_{jr}` be what run j was worth from there on to a searcher who follows indices: its *capped
value*.
The index of going on is the root of

.. math:: \sum_j w_r(x, j)\, (K_{jr} - \sigma)^+ = c_r(x).

Capped values follow backward along each run, from its own best scores b and its own indices:

.. math:: K_{jr} = \max(b_{jr}, \min(\sigma_{j,r+1}, K_{j,r+1})),

and :math:`K_{jr} = b_{jr}` where the run has ended. The index of a logged run never looks at the
run itself, so its capped value takes no advantage of what it will show. Runs resemble each other
for one step at a time only, so what is known is not blurred from rung to rung, as it is in a chain.
For a run that was cut off the future is unknown: it has several capped values, spread like those of
the runs that it resembles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._kernels.leaves import Fallen, Known, Nodes, Outcomes, fall, grow, resemblance
from .._kernels.roots import roots
from .known import Encoder, features, is_category
from .ladder import Ladder
from .laws import cost_levels

_SHARE = 0.632  # of the runs in the bag of a tree

_OUTGROWN = 1.2  # times the runs that trees were grown from: they grow anew, one stage at a time
_OUTNUMBERED = 2.0  # times that number: they grow anew at once
_ATOMS = 4  # capped values of a run
_ALIKE = 0.1  # standard deviation of log costs below which runs are taken to cost the same
_COST = 0.5  # what a standard deviation of cost counts against one of scores when trees split
_SEED = 20160  # of the trees, so that the same log gives the same model


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Trees grown from runs, and where these runs fall.

    Attributes
    ----------
    category : (F,) array of bool
        Which features are categories.
    nodes : Nodes
        Features, splits and left children of all nodes, and where each tree begins.
    bags : (trees, n) array of bool
        The runs that each tree was grown from.
    leaf : (trees, n) array of int
        Where each run falls.
    weight : (n,) array of float
        How much each run counts.
    known : (n, F) array of float
        What is known about each run.
    """

    category: BoolArray
    nodes: Nodes
    bags: BoolArray
    leaf: IntArray
    weight: FloatArray
    known: FloatArray

    @classmethod
    def grown(
        cls,
        known: FloatArray,
        category: BoolArray,
        target: FloatArray,
        weight: FloatArray,
        *,
        trees: int,
        leaf: int,
        random: np.random.Generator,
        bags: BoolArray | None = None,
    ) -> Trees:
        """Trees that separate runs with different targets, by what is known about the runs."""
        bags = _bags(len(known), trees, random) if bags is None else bags
        seeds = random.integers(1, 2**31 - 1, trees)
        seen = Known(np.ascontiguousarray(known), category)
        nodes = grow(seen, Outcomes(target, weight), bags, seeds, leaf)
        return cls(category, nodes, bags, fall(seen, nodes), weight, known)

    def joined_by(self, known: FloatArray, bags: BoolArray, weight: FloatArray) -> Trees:
        """The same trees with other runs in their leaves: those that shaped them, and more."""
        leaf, n = np.empty(bags.shape, np.int64), min(len(known), len(self.known))
        old, now = self.known[:n], known[:n]
        same = ((old == now) | (np.isnan(old) & np.isnan(now))).all(axis=1)
        new = np.append(~same, np.ones(len(known) - n, bool))
        leaf[:, ~new] = self.leaf[:, np.flatnonzero(~new)]
        leaf[:, new] = fall(Known(np.ascontiguousarray(known[new]), self.category), self.nodes)
        return replace(self, bags=bags, leaf=leaf, weight=weight, known=known)

    def rows(self, known: FloatArray, own: IntArray) -> FloatArray:
        """How much each run resembles each row of what is known; a row sums to 1.

        ``own`` gives the run that a row describes, -1 for none. Such a row is compared by trees
        that the run did not help to grow, so no run resembles itself.
        """
        leaf, new = self.leaf[:, own], own < 0
        if new.any():
            leaf[:, new] = fall(Known(np.ascontiguousarray(known[new]), self.category), self.nodes)
        runs = Fallen(self.leaf, self.bags, self.weight)
        return np.asarray(resemblance(leaf, own, runs, len(self.nodes.feature)))


def _bags(n: int, trees: int, random: np.random.Generator) -> BoolArray:
    """The runs of each tree: about two thirds of them; a single run is in every tree."""
    size = max(1, min(n - 1, round(_SHARE * n)))
    places = random.random((trees, n)).argsort(axis=1)
    bags = np.zeros((trees, n), bool)
    np.put_along_axis(bags, places[:, :size], True, axis=1)
    return bags


def _lasting_bags(n: int, trees: int, r: int) -> BoolArray:
    """The bags of segment r for any number of runs: more runs leave those of the first as they are.

    So a run that joins the trees later never meets itself in a tree that it helped to grow.
    """
    return np.asarray(np.random.default_rng([_SEED, r]).random((n, trees)).T < _SHARE)


def _none_empty(bags: BoolArray) -> BoolArray:
    """A tree that would have no runs has all of them."""
    return bags | ~bags.any(axis=1, keepdims=True)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One segment of a line.

    Attributes
    ----------
    trees : Trees
        Grown from the runs that were seen to its end.
    runs : (n,) array of int
        The numbers of these runs in the ladder.
    cost, level : (n,) arrays of float
        What the segment cost each run, and the cost level of the segment before it.
    grown : int
        How many runs there were when the trees were grown.
    """

    trees: Trees
    runs: IntArray
    cost: FloatArray
    level: FloatArray
    grown: int

    def law(
        self, known: FloatArray, level: FloatArray, own: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Rows over the runs, and mean costs, by what is known and the last segment's cost level.

        ``own`` gives the numbers of these runs in the ladder, if they are in the ladder.
        """
        place = np.full(len(known), -1)
        if own is not None:
            at = np.minimum(np.searchsorted(self.runs, own), len(self.runs) - 1)
            place = np.where(self.runs[at] == own, at, -1)
        row = self.trees.rows(known, place)
        return row, self._costs(row, level)

    def _costs(self, row: FloatArray, level: FloatArray) -> FloatArray:
        """What the segment costs: the cost of the segment before, times the usual growth.

        The growth is a geometric mean, so that a few short segments with inexact times do not
        decide. Before the first segment, and where runs cost about the same, costs are averaged.
        """
        if not self.level.any():
            return np.asarray(row @ self.cost)
        paid = self.cost > 0
        growth = np.where(paid, np.log(np.where(paid, self.cost, 1.0)) - self.level, 0.0)
        share = row @ paid
        return np.asarray(share * np.exp(level + row @ growth / np.maximum(share, 1e-300)))

    def usual(self) -> tuple[FloatArray, FloatArray]:
        """The row and the mean cost for a run about which nothing is known."""
        row = (self.trees.weight / self.trees.weight.sum())[None]
        return row, (row * self.cost).sum(axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Kin:
    """The stages of a line, and the runs that they were learned from.

    Attributes
    ----------
    ladder : Ladder
    encoder : Encoder
    levels : (n, R) array of float
        The cost level of each segment of each run; 0 where runs cost about the same.
    stages : list of Stage
    """

    ladder: Ladder
    encoder: Encoder
    levels: FloatArray
    stages: list[Stage]

    @classmethod
    def of(
        cls,
        ladder: Ladder,
        encoder: Encoder,
        usual: FloatArray,
        *,
        trees: int,
        leaf: int,
        last: Kin | None = None,
    ) -> Kin:
        """Grow trees for every segment that a run was seen to finish.

        ``last`` was made from the first of these runs. Its trees serve again, with all runs in
        their leaves, as long as there are not many more runs than the trees were grown from.
        """
        levels = levels_of(ladder, usual)
        if last is not None and levels.any() != last.levels.any():
            last = None
        kept = [] if last is None else _lasting(ladder, last.stages)
        stages = []
        for r in range(int(ladder.seen.max())):
            runs = np.flatnonzero(ladder.seen > r)
            mine, level = ladder.select(runs), levels[runs]
            known, bags = features(mine, r, level), _lasting_bags(len(ladder), trees, r)[:, runs]
            old = kept[r] if r < len(kept) else None
            if old is not None:
                grown = old.trees.joined_by(known, bags, mine.weight)
            else:
                grown = Trees.grown(
                    known, is_category(encoder, r), _target(mine, r, level), mine.weight,
                    trees=trees, leaf=leaf, random=np.random.default_rng([_SEED, r]),
                    bags=_none_empty(bags),
                )  # fmt: skip
            before = level[:, r - 1] if r else np.zeros(len(runs))
            count = len(runs) if old is None else old.grown
            stages.append(Stage(grown, runs, mine.cost[:, r], before, count))
        return cls(ladder, encoder, levels, stages)

    def law(
        self, r: int, runs: Ladder, levels: FloatArray, own: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Rows and mean costs of segment r for these runs, by what they had shown before it."""
        before = levels[:, r - 1] if r else np.zeros(len(runs))
        return self.stages[r].law(features(runs, r, levels), before, own)

    def logged_law(self, r: int, own: IntArray) -> tuple[FloatArray, FloatArray]:
        """Rows and mean costs for runs of the log, each learned from the other runs."""
        return self.law(r, self.ladder.select(own), self.levels[own], own)

    def goes_on(self, r: int) -> BoolArray:
        """Which runs that were seen to the end of segment r can go on."""
        runs = self.stages[r].runs
        over = self.ladder.gone[runs] & (self.ladder.seen[runs] == r + 1)
        return ~over if r + 1 < len(self.stages) else np.zeros(len(runs), bool)


def _lasting(ladder: Ladder, stages: list[Stage]) -> list[Stage | None]:
    """The stages whose trees serve again; None where they grow anew.

    Growing takes long, so one stage at a time grows anew, the one with the most new runs for each
    old run. All stages that new runs outnumber grow anew.
    """
    times = np.array([int((ladder.seen > r).sum()) / s.grown for r, s in enumerate(stages)])
    anew = times >= _OUTNUMBERED
    most = int(times.argmax())
    anew[most] |= times[most] >= _OUTGROWN
    return [None if new else stage for new, stage in zip(anew, stages, strict=True)]


def levels_of(ladder: Ladder, usual: FloatArray) -> FloatArray:
    """The cost level of each segment of each run; 0 where runs cost about the same."""
    level = cost_levels(ladder.cost, usual)
    seen = np.arange(level.shape[1]) < ladder.seen[:, None]
    alike = not seen.any() or float(np.std(level[seen])) <= _ALIKE
    return np.zeros_like(level) if alike else level


def _target(ladder: Ladder, r: int, level: FloatArray) -> FloatArray:
    """What trees tell apart: the score at the end of a segment, the last score, and the cost."""
    final = ladder.best[np.arange(len(ladder)), ladder.seen - 1]
    columns = [_upper(ladder.best[:, r]), _upper(final)]
    if level.any():
        columns.append(_COST * _standard(level[:, r]))
    return np.column_stack(columns)


def _upper(score: FloatArray) -> FloatArray:
    """Scores cut off at the median from below: how bad a bad run is does not matter."""
    return _standard(np.maximum(score, np.median(score)))


def _standard(x: FloatArray) -> FloatArray:
    """The numbers with mean 0, in standard deviations."""
    width = float(x.std())
    return (x - x.mean()) / width if width > 0 else np.zeros_like(x)


def thinned(ladder: Ladder, most: int) -> Ladder:
    """A limited number of runs: the best third, and others that each stand for several runs."""
    n, own = len(ladder), most // 3
    if n <= most:
        return ladder
    final = ladder.best[np.arange(n), ladder.seen - 1]
    down = np.argsort(-final, kind="stable")
    rest = np.linspace(own, n - 1, most - own).round().astype(np.int64)
    kept = ladder.select(np.concatenate([down[:own], down[rest]]))
    weight = kept.weight.copy()
    weight[own:] *= ladder.weight[down[own:]].sum() / weight[own:].sum()
    return replace(kept, weight=weight)


@dataclass(frozen=True, slots=True, eq=False)
class KinCapped:
    """What logged runs were worth from each segment on to a searcher who follows indices.

    Attributes
    ----------
    value : list of (n, m) arrays
        For each stage the capped values of its runs, m equally likely ones each.
    """

    value: list[FloatArray]

    @classmethod
    def of(cls, kin: Kin, price: float) -> KinCapped:
        """Backward from the last segment to the first."""
        out = cls([])
        for r in reversed(range(len(kin.stages))):
            runs = kin.stages[r].runs
            worth = np.repeat(price * kin.ladder.best[runs, r][:, None], _ATOMS, axis=1)
            going = kin.goes_on(r)
            if going.any():
                ahead = out._ahead(kin, r, runs[going])
                worth[going] = np.maximum(worth[going], ahead)
            out.value.insert(0, worth)
        return out

    def _ahead(self, kin: Kin, r: int, runs: IntArray) -> FloatArray:
        """What going on after segment r was worth to these runs, at most their indices.

        The values of the next stage come first, since the stages before it are not known yet.
        """
        row, cost = kin.logged_law(r + 1, runs)
        index = _roots(self.value[0], row, cost)
        next_runs = kin.stages[r + 1].runs
        place = np.minimum(np.searchsorted(next_runs, runs), len(next_runs) - 1)
        seen = next_runs[place] == runs
        ahead = self.value[0][place]
        if not seen.all():
            ahead[~seen] = _quantiles(self.value[0], row[~seen])
        return np.minimum(index[:, None], ahead)

    def index(self, r: int, row: FloatArray, cost: FloatArray) -> FloatArray:
        """The index of going through stage r with these rows and costs."""
        return _roots(self.value[r], row, cost)

    def tails(self, r: int, row: FloatArray, index: FloatArray, worth: FloatArray) -> FloatArray:
        """The chance that the capped value of each row exceeds each worth: (rows, worths)."""
        value = self.value[r]
        above = np.stack([(value > s).mean(axis=1) for s in worth], axis=1)
        return np.asarray(np.where(worth < index[:, None], _mixed(row, above), 0.0))


def _mixed(row: FloatArray, values: FloatArray) -> FloatArray:
    """The product of two matrices, without threads that would wait for each other."""
    return np.asarray(np.einsum("ij,jk->ik", row, values))


def _roots(value: FloatArray, row: FloatArray, cost: FloatArray) -> FloatArray:
    """The index of every row over runs with these capped values."""
    flat = value.ravel()
    down = np.argsort(-flat, kind="stable")
    chances = np.ascontiguousarray(row) / value.shape[1]
    return np.asarray(roots(flat[down], down // value.shape[1], chances, cost, False))


def _quantiles(value: FloatArray, row: FloatArray) -> FloatArray:
    """Capped values spread like the capped values of the runs that each row resembles."""
    flat = value.ravel()
    up = np.argsort(flat, kind="stable")
    reached = np.cumsum(np.repeat(row / value.shape[1], value.shape[1], axis=1)[:, up], axis=1)
    levels = (np.arange(value.shape[1]) + 0.5) / value.shape[1]
    places = (reached[:, :, None] < levels).sum(axis=1)
    return np.asarray(flat[up][np.minimum(places, len(flat) - 1)])
