"""A walk through a forest: what is open, what comes next, what remains, and what the rest is worth.

The rule is that of :class:`weitzman.Policy`: open the box with the highest index while that exceeds
the best reward so far; otherwise stop. Ties: among equal indices, the box of lowest number comes
first; among its copies, the one whose parent showed the state of lowest number, then the first. If
an index equals the best reward, stop. Among equal rewards, the outside option comes before any box,
and boxes follow in the same order (box, state, copy), whichever was opened first.

Searches, explanations and reports are walks. The compiled episodes and the script of the pages
follow the same rule in their own languages, and are tested against this one step by step.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._common.numbers import Amounts
from ..engine.indices import Policy
from ..engine.solver import solve
from ..errors import InvalidAnswer
from ..forest.model import Forest
from .frontier import Box, Frontier, Id, parent_of

_SHARED = 1000  # different amounts that are kept once

Closed = tuple[int, int]
"""A box that can be opened and the state of its parent (0 for a root): what copies share."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A box that was opened, and how the search stood then.

    Attributes
    ----------
    box : Box
    state : str
        Name of the state it showed, or its number if it has no name.
    state_number : int
    reward : float or None
        The true reward; None for a state that has none.
    cost : float
        What was paid.
    best : float
        Best reward so far or the outside option; with several prizes, what stopping would earn.
    best_box : Box or None
        The box that holds it; None for the outside option.
    spent : float
        All costs so far.
    """

    box: Box
    state: str
    state_number: int
    reward: float | None
    cost: float
    best: float
    best_box: Box | None
    spent: float


class Answer(NamedTuple):  # small, since a search may have a million
    """What a box showed, and how things stood then."""

    state: int
    reward: float | None
    cost: float
    best: float
    holder: Id | None  # of the best; None for the outside option
    spent: float
    number: int = 0  # of the event
    worker: str = ""  # to whom the box had been handed out, if it had


class Walk:
    """A walk through the boxes of a policy.

    ``answers`` holds what was opened, in order; its last entry has all totals, so an answer is
    recorded completely or not at all. ``out`` holds boxes that are being opened, by whom, and
    since which event: they are not offered again. ``frontier`` knows what can be opened. ``hands``
    is what each tree holds and what was taken, where there are several prizes, else None.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy, self.forest = policy, policy.forest
        self.sign = policy.forest.sign
        self._numbered = policy.forest.endless | (policy.forest.count > 1)
        self.answers: dict[Id, Answer] = {}
        self._amounts: dict[Any, Any] = {}
        self.out: dict[Id, tuple[str, int]] = {}
        several = policy.forest.prizes > 1 or policy.forest.quotas
        self.hands = Hands(self) if several else None
        self.frontier = Frontier(
            policy, self.answers, self.out if self.hands is None else self.hands
        )

    @classmethod
    def along(cls, policy: Policy, steps: Iterable[Opened]) -> Walk:
        """A walk with the boxes that another walk has opened, by name; nothing is out."""
        walk = cls(policy)
        for step in steps:
            box = policy.forest.box(step.box.name), step.box.copy
            walk.open(box, step.state_number, step.reward, step.cost)
        return walk

    @cached_property
    def amounts(self) -> Amounts:
        """How the numbers of the problem are written for people."""
        return self.forest.amounts

    def totals(self) -> tuple[float, Id | None, float]:
        """Best reward so far, the box that holds it, and what was spent."""
        if not self.answers:
            return self.forest.outside * self.forest.prizes, None, 0.0
        last = next(reversed(self.answers.values()))
        best = last.best if self.hands is None else self.hands.total()
        return best, last.holder, last.spent

    @property
    def best(self) -> tuple[float, Box | None, float]:
        """The same, with the handle of the box."""
        best, holder, spent = self.totals()
        return best, None if holder is None else self.box(holder), spent

    @property
    def history(self) -> list[Opened]:
        """What was opened, in the order of the answers."""
        return [
            Opened(
                self.box(box), self.state_name(box[0], x.state), x.state, x.reward, x.cost,
                x.best, None if x.holder is None else self.box(x.holder), x.spent,
            )
            for box, x in self.answers.items()
        ]  # fmt: skip

    def state_name(self, v: int, state: int) -> str:
        """The name of a state, or its number."""
        names = self.forest.state_names[int(self.forest.reward[v])]
        return str(state) if names is None else names[state]

    @property
    def bar(self) -> float:
        """What an index must exceed to be worth opening, signed."""
        return self.sign * self.totals()[0] if self.hands is None else self.hands.bar()

    def top(self) -> tuple[Id, float] | None:
        """The best box that can be opened, and its index (higher is better)."""
        top = self.frontier.top()
        return None if top is None else ((top[0][0], top[0][2]), top[1])

    def next(self) -> tuple[Id, float] | None:
        """The same if opening it pays; None: stop."""
        top = self.top()
        return top if top is not None and top[1] > self.bar else None

    def next_prize(self) -> Id | None:
        """The reward to take now, where there are several prizes."""
        found = None if self.hands is None else self.hands.worth_taking()
        return None if found is None else found[0]

    def box(self, box: Id) -> Box:
        """The handle of a box."""
        return Box(self.forest.name(box[0]), *box)

    def above(self, box: Id) -> Id | None:
        """The parent of a box; None for a root."""
        return parent_of(self.forest, box)

    def state_above(self, box: Id) -> int:
        """What the parent showed (0 for a root); an error if the box cannot be opened."""
        v, copy = box
        if not copy and not self._numbered[v] and self.forest.parent[v] < 0:
            return 0
        above, own = self.above(box), copy[-1:] if self._numbered[v] else ()
        most = math.inf if self.forest.endless[v] else int(self.forest.count[v])
        if not self._numbered[v] or (own and 1 <= own[0] <= most):
            if above is None and copy == own:
                return 0
            if above is not None and above in self.answers:
                return self.answers[above].state
        # the right number of copies, each in its range? The message of this is the better one
        counts, u = list[float](), v
        while u >= 0:
            if self._numbered[u]:
                counts.insert(0, math.inf if self.forest.endless[u] else int(self.forest.count[u]))
            u = int(self.forest.parent[u])
        name = self.forest.name(v)
        if len(copy) != len(counts):
            raise InvalidAnswer(
                f"box {name!r} needs {len(counts)} numbers of copies, such as "
                f"{Box(name, v, (1,) * len(counts))!r}, but {self.box(box)!r} has {len(copy)}."
            )
        if any(not 1 <= own <= count for own, count in zip(copy, counts, strict=True)):
            ends = (own if n == math.inf else n for n, own in zip(counts, copy, strict=True))
            last = Box(name, v, tuple(map(int, ends)))
            raise InvalidAnswer(f"there is no {self.box(box)!r}: copies go up to {last!r}.")
        assert above is not None
        raise InvalidAnswer(
            f"a box can be opened after its parent, but {self.box(above)!r}, the parent of "
            f"{self.box(box)!r}, was not opened."
        )

    def show(self, box: Id, state: int) -> None:
        """Open a box that shows a state, with the reward and the cost of the model."""
        cost = self.cost(box[0], self.state_above(box), state)
        self.open(box, state, self.reward(box[0], state), cost)

    def open(
        self, box: Id, state: int, reward: float | None, cost: float, number: int = 0,
        worker: str = "",
    ) -> None:  # fmt: skip
        """Open a box that can be opened: it showed a state, with its true reward and cost."""
        self.frontier.add_children(box, state)
        self._count(box, state, reward, cost, number, worker)

    def close(self, box: Id) -> Answer:
        """Close a box again as if it had not been opened; no box below it may be open."""
        later = []
        while (last := self.answers.popitem())[0] != box:
            later.append(last)
        self.frontier.close(box, self.state_above(box))
        taken = {} if self.hands is None else self.hands.start_again()
        for other, x in reversed(later):  # their totals counted the box
            self._count(other, x.state, x.reward, x.cost, x.number, x.worker)
        if self.hands is not None:  # what was taken stays taken
            best = {tree: x for tree, x in self.hands.mark()[0].items() if tree not in taken}
            self.hands.go_back((best, taken))
        return last[1]

    def _count(
        self, box: Id, state: int, reward: float | None, cost: float, number: int, worker: str
    ) -> None:
        best, holder, spent = self.totals()
        if len(self._amounts) < _SHARED:  # a million answers show few different amounts
            cost = self._amounts.setdefault(cost, cost)
            reward = self._amounts.setdefault(reward, reward)
        if self.hands is not None:
            self.hands.found(box, state, reward)
            best = self.hands.total()
        elif reward is not None:
            better = self.sign * reward > self.sign * best
            if holder is not None and reward == best:  # of equal ones by box, state and copy
                mine, its = (box[0], state, box[1]), self.answers[holder].state
                better = mine < (holder[0], its, holder[1])
            best, holder = (reward, box) if better else (best, holder)
        self.answers[box] = Answer(state, reward, cost, best, holder, spent + cost, number, worker)

    @contextmanager
    def supposing(self, box: Id, state: int) -> Iterator[None]:
        """Stand as if a box had shown a state; afterwards as before."""
        before = self.frontier.mark()
        held = None if self.hands is None else self.hands.mark()
        self.show(box, state)
        try:
            yield
        finally:
            self.answers.popitem()
            self.frontier.go_back(before)
            if self.hands is not None and held is not None:
                self.hands.go_back(held)

    @contextmanager
    def supposing_taken(self, box: Id) -> Iterator[None]:
        """Stand as if the reward of an opened box had been taken for good; afterwards as before."""
        assert self.hands is not None, "a forest with several prizes"
        before, held = self.frontier.mark(), self.hands.mark()
        self.hands.take(box, self.answers[box].reward or 0.0)
        try:
            yield
        finally:
            self.frontier.go_back(before)
            self.hands.go_back(held)

    def reward(self, v: int, state: int) -> float | None:
        """The reward of a state; None if it has none."""
        known = float(self.forest.rewards[int(self.forest.reward[v])][0, state])
        return known if math.isfinite(known) else None

    def cost(self, v: int, above: int, state: int) -> float:
        """What opening a box costs in the model, after that state of its parent and its own."""
        cost = self.forest.costs[int(self.forest.cost[v])]
        rows, columns = cost.shape
        return float(cost[above if rows > 1 else 0, state if columns > 1 else 0])

    def closed(self, box: int | None = None) -> Counter[Closed]:
        """How many copies of each box (or of one) can be opened, by what their parents showed."""
        return +self.closed_by(lambda _: None, box)[None]

    def closed_by(
        self, tree: Callable[[Id], Id | None], box: int | None = None
    ) -> dict[Id | None, Counter[Closed]]:
        """The same for each tree with an open box, and roots by None."""
        f, policy, at = self.forest, self.policy, self.policy.child_at
        roots = f.roots.tolist() if box is None else [box] * (int(f.parent[box]) < 0)
        closed: dict[Id | None, Counter[Closed]] = defaultdict(Counter)
        closed[None].update({(v, 0): int(f.count[v]) for v in roots})
        for (v, copy), seen in self.answers.items():
            mine = closed[tree((v, copy))]
            if box is None or v == box:
                above = self.above((v, copy))
                state = 0 if above is None else self.answers[above].state
                (closed[None] if above is None else mine)[v, state] -= 1
            for u in policy.child[at[v] : at[v + 1]].tolist():
                if box is None or u == box:
                    mine[u, seen.state] += int(f.count[u])
        return closed

    def remaining(self) -> Forest | None:
        """The closed boxes as a forest, given what was seen; None: it is best to stop.

        The outside option is the best so far. Boxes that can be opened become roots; without those,
        and all below them, whose index does not exceed the best.
        """
        best = self.totals()[0]
        index, at = self.policy.index, self.policy.index_at
        closed = self.closed().items()
        tops = [(v, s, n) for (v, s), n in closed if index[at[v] + s] > self.sign * best]
        return rest(self.policy, tops, best) if tops else None

    def worth(self) -> float:
        """What the walk will earn in total if it continues optimally, past costs included.

        When minimizing, what it will cost in total. With discounting, as seen from the start; with
        a risk tolerance, the certainty equivalent.
        """
        if self.hands is not None:
            return prizes_worth(self, self.hands)
        forest, (best, _, spent) = self.remaining(), self.totals()
        value = best if forest is None else solve(forest).value
        if self.forest.factors is None:
            return value - self.sign * spent
        factor, paid, _ = self.discounted()
        return factor * value - self.sign * paid

    def discounted(self) -> tuple[float, float, float]:
        """The factor of all that was opened, what was spent, discounted, and the time it took."""
        worth, spent, time = 1.0, 0.0, 0.0
        for box, seen in self.answers.items():
            spent += worth * seen.cost
            factor, pause = self.passes(box, seen.state)
            time += pause
            worth *= factor
        return worth, spent, time

    def passes(self, box: Id, state: int) -> tuple[float, float]:
        """The factor of what comes after a box that showed a state, and the time that it took."""
        f = self.forest
        assert f.factors is not None, "a forest with discounting"
        at = (np.array([f.cost[box[0]]]), np.array([self.state_above(box)]), np.array([state]))
        factor = float(f.factors.entries(*at)[0])
        if f.durations is None:
            return factor, -math.log(factor)
        return factor, float(f.durations.entries(*at)[0])


Top = tuple[int, int, int]
"""A box that can be opened, the state of its parent (0 for a root), and how many copies."""

Held = tuple[dict[Id, tuple[Id, float]], dict[Id, tuple[Id, float]]]
"""By tree: what is held, and what was taken."""


class Hands:
    """The best reward found in each tree that is not closed, and the rewards taken.

    ``taken`` is by tree, in the order of taking. Rewards are the true ones; comparisons use the
    sign of the walk. A tree is closed once its reward was taken, or its group has no room left.
    """

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self.places = int(walk.forest.prizes)
        self.quotas = dict(walk.forest.quotas)
        self.taken: dict[Id, tuple[Id, float]] = {}
        self.filled: Counter[str] = Counter()
        self._best: dict[Id, tuple[Id, float]] = {}

    def tree(self, box: Id) -> Id:
        """The root above a box: its tree."""
        while (above := self._walk.above(box)) is not None:
            box = above
        return box

    def group(self, box: Id) -> str:
        """The group of a box and its tree; empty without one."""
        groups = self._walk.forest.groups
        return "" if groups is None else groups[box[0]]

    def is_closed(self, tree: Id) -> bool:
        """Whether nothing can be taken from a tree any more."""
        return self.full or tree in self.taken or self._is_full(self.group(tree), self.filled)

    def _is_full(self, group: str, filled: Mapping[str, int]) -> bool:
        return group in self.quotas and filled.get(group, 0) >= self.quotas[group]

    def __contains__(self, box: object) -> bool:
        """Whether a box is out of reach: handed out, or its tree closed."""
        return box in self._walk.out or self.is_closed(self.tree(box))  # type: ignore[arg-type]

    @property
    def full(self) -> bool:
        """Whether all prizes were taken."""
        return len(self.taken) == self.places

    def found(self, box: Id, state: int, reward: float | None) -> None:
        """A box was opened and showed a state."""
        tree = self.tree(box)
        if reward is None or tree in self.taken:
            return
        before = self._best.get(tree)
        if before is None or self._order(box, reward, state) > self._order(*before):
            self._best[tree] = box, reward

    def _order(self, box: Id, reward: float, state: int | None = None) -> tuple[Any, ...]:
        """Which of two rewards comes first: among equal ones by box, state and copy."""
        state = self._walk.answers[box].state if state is None else state
        return self._walk.sign * reward, -box[0], -state, tuple(-i for i in box[1])

    @property
    def held(self) -> dict[Id, tuple[Id, float]]:
        """The best reward found in each tree that is not closed, and the box that has it."""
        return {tree: held for tree, held in self._best.items() if not self.is_closed(tree)}

    def start_again(self) -> dict[Id, tuple[Id, float]]:
        """Count anew all answers so far, as if nothing had been taken; returns what was."""
        taken = self.taken
        self.go_back(({}, {}))
        for box, x in self._walk.answers.items():
            self.found(box, x.state, x.reward)
        return taken

    def mark(self) -> Held:
        """What is held and taken now, for :meth:`go_back`."""
        return self._best.copy(), self.taken.copy()

    def go_back(self, mark: Held) -> None:
        """Return to what was held and taken at a mark."""
        self._best, self.taken = mark
        self.filled = Counter(map(self.group, self.taken))

    def take(self, box: Id, reward: float) -> None:
        """A reward was taken, and its tree closed."""
        tree = self.tree(box)
        self.taken[tree] = box, reward
        self.filled[self.group(tree)] += 1
        self._best.pop(tree, None)

    def bar(self) -> float:
        """What an index must exceed, signed: the outside option and every reward in hand."""
        sign = self._walk.sign
        held = [sign * reward for _, reward in self.held.values()]
        return math.inf if self.full else max([sign * self._walk.forest.outside, *held])

    def worth_taking(self) -> tuple[Id, float] | None:
        """The reward to take now: the highest of all in hand and of all indices, if it pays."""
        walk, sign, held = self._walk, self._walk.sign, self.held
        if not held:
            return None
        box, reward = max(held.values(), key=lambda held: self._order(*held))
        top = walk.top()
        awaited = (
            walk.frontier.index(b[0], walk.state_above(b))
            for b in walk.out
            if not self.is_closed(self.tree(b))
        )
        rivals = max([-math.inf if top is None else top[1], *awaited], default=-math.inf)
        pays = sign * reward > sign * walk.forest.outside
        return (box, reward) if pays and rivals <= sign * reward else None

    def total(self) -> float:
        """The sum of all prizes if one stopped now: taken, in hand, and empty places."""
        sign, outside, filled = self._walk.sign, self._walk.forest.outside, self.filled.copy()
        kept = [reward for _, reward in self.taken.values()]
        for tree, (_, reward) in sorted(self._best.items(), key=lambda x: -sign * x[1][1]):
            group = self.group(tree)
            if len(kept) == self.places or sign * reward <= sign * outside:
                break
            if not self._is_full(group, filled):  # the best that its group has room for
                kept.append(reward)
                filled[group] += 1
        return sum(kept + [outside] * (self.places - len(kept)))

    def check(self, box: Id) -> bool:
        """Whether a reward can be taken; False if it was taken before, an error if it never can."""
        walk = self._walk
        here = walk.box(box)
        if box not in walk.answers or walk.answers[box].reward is None:
            why = "it has no reward" if box in walk.answers else "it was not opened"
            raise InvalidAnswer(f"the reward of box {here!r} cannot be taken: {why}.")
        before = self.taken.get(self.tree(box))
        if before is not None and before[0] == box:
            return False
        if before is not None:
            raise InvalidAnswer(
                f"one prize comes from each tree, but {walk.box(before[0])!r} was taken from the "
                f"tree of {here!r} before."
            )
        if self.full:
            raise InvalidAnswer(f"there are {self.places} prizes, and all of them were taken.")
        if self.is_closed(self.tree(box)):
            group = self.group(box)
            raise InvalidAnswer(
                f"at most {self.quotas[group]} prizes come from group {group!r}, and so many were "
                f"taken, so {here!r} cannot be."
            )
        return True


def rest(policy: Policy, tops: Sequence[Top], best: float) -> Forest:
    """The boxes that can be opened, in order, and all below them, with ``best`` in hand."""
    f, at = policy.forest, policy.child_at
    keep = [v for v, _, _ in tops]
    parent = [-1] * len(keep)
    at_end = 0
    while at_end < len(keep):  # breadth first: what is behind each box
        v = keep[at_end]
        below = policy.child[at[v] : at[v + 1]].tolist()
        if at_end >= len(tops):  # an endless box stands for all that follow it
            below = [u for u in below if u != v]
        keep += below
        parent += [at_end] * len(below)
        at_end += 1
    n, behind = len(tops), len(keep) - len(tops)
    count = np.concatenate([np.array([k for *_, k in tops], np.int64), f.count[keep[n:]]])
    return f.take(
        keep, parent=parent, after=[s for _, s, _ in tops] + [-1] * behind, count=count,
        endless=np.concatenate([np.zeros(n, bool), f.endless[keep[n:]]]),  # the next of a line
        outside=best, names=None, prizes=1, quotas=(),
    )  # fmt: skip


def prizes_worth(walk: Walk, hands: Hands) -> float:
    """What a walk for several prizes will earn in total if it continues optimally.

    An open tree without a taken prize is a free box that holds the best reward found, with the
    boxes that can be opened below it.
    """
    spent, sign, outside = walk.totals()[2], walk.sign, walk.forest.outside
    taken = sum(reward for _, reward in hands.taken.values())
    left = hands.places - len(hands.taken)
    begun = walk.closed_by(hands.tree)
    untouched = begun.pop(None)

    def worth_it(closed: Counter[Closed]) -> list[Top]:
        index, bar = walk.frontier.index, sign * outside
        return [(v, s, n) for (v, s), n in closed.items() if n > 0 and index(v, s) > bar]

    fresh = worth_it(untouched)
    trees = {tree: worth_it(x) for tree, x in begun.items() if tree and not hands.is_closed(tree)}
    tops = [*fresh, *(top for tree in trees.values() for top in tree)]
    if left == 0 or not tops:
        return hands.total() - sign * spent
    owner = [-1] * len(fresh) + [i for i, tree in enumerate(trees.values()) for _ in tree]
    held = [hands.held[tree][1] if tree in hands.held else -sign * np.inf for tree in trees]
    forest = rest(walk.policy, tops, outside)
    if trees:  # the roots of each open tree go below a free box that holds its best reward
        n, more, root = len(forest), np.zeros(len(trees), np.int64), np.array(owner)
        parent = forest.parent.copy()
        parent[: len(root)] = np.where(root >= 0, n + root, -1)
        # what can be opened may lie in no group while what is in hand does
        group = (*(forest.groups or ("",) * n), *(hands.group(tree) for tree in trees))
        forest = replace(
            forest,
            parent=np.append(parent, more - 1),
            law=np.append(forest.law, more + len(forest.laws)),
            laws=forest.laws.with_more([np.ones((1, 1))]),
            reward=np.append(forest.reward, len(forest.rewards) + np.arange(len(trees))),
            rewards=forest.rewards.with_more([np.array([[x]]) for x in held]),
            cost=np.append(forest.cost, more + len(forest.costs)),
            costs=forest.costs.with_more([np.zeros((1, 1))]),
            count=np.append(forest.count, more + 1),
            endless=np.append(forest.endless, more.astype(bool)),
            state_names=(*forest.state_names, *[None] * len(trees)),
            groups=group if any(group) else None,
        )
    places = min(left, int(forest.count[forest.roots].sum()))
    there = set(forest.groups or ())
    room = {g: most - hands.filled[g] for g, most in hands.quotas.items() if g in there}
    value = solve(replace(forest, prizes=places, quotas=tuple(room.items()))).value
    return taken + value + (left - places) * outside - sign * spent
