"""Small forests by looking at everything: all policies, orders and sets, with time, risk, prizes.

Floats and plain Python, no index anywhere: moves are opening a box, taking a prize for good, and
stopping. Copies are written out here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from weitzman import Forest

States = dict[int, int]
Hand = dict[int, float]
Go = Callable[[States, Hand], float]


def random_terms(rng: np.random.Generator, term: str, boxes: int = 3) -> Forest:
    """A random small forest with ties, copies, signals, random costs and one term."""
    grid = rng.random() < 0.4  # numbers that tie
    minimize = bool(rng.random() < 0.3)
    n = int(rng.integers(1, boxes + 1))
    columns: dict[str, list] = {k: [] for k in ("parent", "law", "rewards", "cost", "factor")}
    count = []
    for v in range(n):
        up = -1 if v == 0 or rng.random() < 0.5 else int(rng.integers(0, v))
        k = int(rng.integers(1, 4))
        rows = 1 if up < 0 else len(columns["rewards"][up])
        law = rng.dirichlet(np.ones(k), rows)
        if k > 1 and rng.random() < 0.3:
            law = np.where(law == law.min(axis=1, keepdims=True), 0, law)
            law /= law.sum(axis=1, keepdims=True)
        r = rng.integers(-3, 8, k).astype(float) if grid else np.round(rng.normal(3, 4, k), 2)
        if rng.random() < 0.15:
            r[rng.random(k) < 0.5] = np.inf if minimize else -np.inf
        shapes = [(1, 1), (rows, 1), (rows, k)]
        a, b = (shapes[i] for i in rng.integers(0, 3, 2))
        columns["parent"].append(up)
        columns["law"].append(law)
        columns["rewards"].append(r)
        columns["cost"].append(rng.integers(0, 3, a) * 1.0 if grid else rng.uniform(0, 2, a))
        columns["factor"].append(rng.choice([0.5, 0.75, 1], b) if grid else rng.uniform(0.4, 1, b))
        count.append(2 if rng.random() < 0.15 and n < 4 else 1)
    if term != "time":
        del columns["factor"]
    roots = sum(c for c, up in zip(count, columns["parent"], strict=True) if up < 0)
    return Forest.from_arrays(
        **columns,
        count=count,
        minimize=minimize,
        outside=float(rng.integers(-2, 3)) if grid else float(rng.normal()),
        risk_tolerance=float(rng.choice([2.0, 5.0, 20.0])) if term == "risk" else None,
        prizes=int(rng.integers(1, roots + 1)) if term == "prizes" else 1,
    )


class WrittenOut:
    """A forest with its copies written out; payoffs are signed so that higher is better."""

    def __init__(self, forest: Forest) -> None:
        f = self.forest = forest
        self.box: list[int] = []
        self.parent: list[int] = []
        self.tree: list[int] = []
        copies: dict[int, list[int]] = {-1: [-1]}
        for v in range(len(f)):
            copies[v] = []
            for up in copies[int(f.parent[v])]:
                for _ in range(int(f.count[v])):
                    i = len(self.box)
                    copies[v].append(i)
                    self.box.append(v)
                    self.parent.append(up)
                    self.tree.append(i if up < 0 else self.tree[up])
        self.outside = f.sign * f.outside

    def __len__(self) -> int:
        return len(self.box)

    def ready(self, seen: States) -> list[int]:
        return [i for i, up in enumerate(self.parent) if i not in seen and (up < 0 or up in seen)]

    def state_above(self, i: int, seen: States) -> int:
        return 0 if self.parent[i] < 0 else seen[self.parent[i]]

    def outcomes(self, i: int, seen: States) -> Iterator[tuple[int, float, float, float, float]]:
        """State, probability, cost, factor, signed reward."""
        f, v, s = self.forest, self.box[i], self.state_above(i, seen)
        for y, p in enumerate(f.laws[int(f.law[v])][s].tolist()):
            if p > 0:
                cost = _entry(f.costs[int(f.cost[v])], s, y)
                factor = 1.0 if f.factors is None else _entry(f.factors[int(f.cost[v])], s, y)
                yield y, p, cost, factor, f.sign * float(f.rewards[int(f.reward[v])][0, y])

    def utility(self, payoff: float) -> float:
        tau = self.forest.risk_tolerance
        return payoff if tau is None else -math.exp(-payoff / tau)

    def payoff(self, utility: float) -> float:
        """Back, in the user's sign."""
        tau = self.forest.risk_tolerance
        return self.forest.sign * (utility if tau is None else -tau * math.log(-utility))

    def stop(self, hand: Hand) -> float:
        k = self.forest.prizes
        best = sorted([*hand.values(), *([self.outside] * k)])[-k:]
        return self.utility(sum(best))

    def opening(self, i: int, seen: States, hand: Hand, go: Go) -> float:
        tau, total = self.forest.risk_tolerance, 0.0
        tree = self.tree[i] if self.forest.prizes > 1 else 0
        for y, p, cost, factor, reward in self.outcomes(i, seen):
            after = go({**seen, i: y}, {**hand, tree: max(hand.get(tree, -math.inf), reward)})
            total += p * (factor * after - cost if tau is None else math.exp(cost / tau) * after)
        return total


def _entry(matrix: np.ndarray, s: int, y: int) -> float:
    return float(matrix[s if matrix.shape[0] > 1 else 0, y if matrix.shape[1] > 1 else 0])


def optimum(w: WrittenOut) -> float:
    """The most that any policy earns; prizes are taken one by one, each closing its tree."""
    memo: dict[object, float] = {}

    def go(seen: States, hand: Hand, taken: frozenset[int]) -> float:
        key = (tuple(sorted(seen.items())), tuple(sorted(hand.items())), taken)
        if key not in memo:
            memo[key] = max(moves(seen, hand, taken))
        return memo[key]

    def moves(seen: States, hand: Hand, taken: frozenset[int]) -> Iterator[float]:
        left = w.forest.prizes - len(taken)
        if w.forest.prizes == 1:
            yield w.stop(hand)
        else:
            yield left * w.outside
            for tree, reward in hand.items() if left else ():
                if tree not in taken:
                    yield reward + go(seen, hand, taken | {tree})
        for i in w.ready(seen) if left else ():
            if w.forest.prizes == 1 or w.tree[i] not in taken:
                yield w.opening(i, seen, hand, lambda a, b: go(a, b, taken))

    return w.payoff(go({}, {}, frozenset()))


def value_of(w: WrittenOut, order: tuple[int, ...], *, stopping: bool) -> float:
    """What an order earns, with or without stopping."""

    def go(at: int, seen: States, hand: Hand) -> float:
        if at == len(order):
            return w.stop(hand)
        on = w.opening(order[at], seen, hand, lambda a, b: go(at + 1, a, b))
        return max(w.stop(hand), on) if stopping else on

    return w.payoff(go(0, {}, {}))


def sequences(w: WrittenOut) -> list[tuple[int, ...]]:
    """All orders of all sets, parents first."""
    found: list[tuple[int, ...]] = [()]
    last = found
    while last:
        last = [(*o, i) for o in last for i in w.ready(dict.fromkeys(o, 0))]
        found = found + last
    return found
