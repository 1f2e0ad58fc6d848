"""Simulated episodes: against a plain Python loop, and against just drawing the random numbers."""

from __future__ import annotations

import heapq
import math
import random
from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate, count
from typing import NamedTuple

import numpy as np
from numba import njit

from weitzman import Forest, Policy, Solution, solve
from weitzman._kernels import episodes as kernel
from weitzman.policy.simulation import simulate, stream_key, tabulate

from . import instances
from .measure import Table, race, seconds

SIGMAS = 5.0  # a mean may be so many standard errors off


class Case(NamedTuple):
    """A forest, how many episodes to play, and how many of them in Python."""

    name: str
    forest: Forest
    episodes: int
    in_python: int


def cases(quick: bool) -> Iterator[Case]:
    """From three boxes to a million, and copies that are never written out."""
    part = 20 if quick else 1
    paper = Forest.from_arrays(
        parent=[-1, 0, -1],
        cost=[20, 3, 5],
        rewards=[[1, 900], [21, -9, 920, 890], [50, 10]],
        law=[[0.9, 0.1], [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], [0.5, 0.5]],
    )
    yield Case("3 boxes (the paper's)", paper, 2_000_000 // part, 50_000 // part)
    rng = np.random.default_rng(0)
    n = 1000
    apart = Forest.from_arrays(
        parent=np.full(n, -1),
        cost=np.full(n, 0.001),
        rewards=np.sort(rng.random((n, 8)), axis=1) ** 0.1,
        law=rng.dirichlet(np.full(8, 0.3), n)[:, None, :],
    )
    yield Case("1,000 separate boxes, k = 8", apart, 400_000 // part, 10_000 // part)
    lines = sticky_lines(100, 100, 8)
    yield Case("100 lines of 100, k = 8", lines, 100_000 // part, 2000 // part)
    trees = instances.random_trees(1_000_000 // part)
    yield Case(f"random trees, {len(trees):,} boxes", trees, 400_000 // part, 2000 // part)
    many = Forest.from_arrays(
        parent=[-1, 0], cost=[1, 1], rewards=[0.0, 500.0],
        law=[[0.99, 0.01], [[0.99, 0.01], [0.98, 0.02]]], count=[10**9, 10**6],
    )  # fmt: skip
    yield Case("10^15 boxes, by counts", many, 100_000 // part, 2000 // part)


def sticky_lines(lines: int, length: int, k: int) -> Forest:
    """Lines whose states change slowly and whose boxes are cheap: many are opened."""
    rng = np.random.default_rng(1)
    law = 0.2 * rng.dirichlet(np.full(k, 0.3), (lines * length, k)) + 0.8 * np.eye(k)
    law[::length] = law[::length, :1]
    parent = np.arange(lines * length) - 1
    parent[::length] = -1
    return Forest.from_arrays(
        parent=parent, cost=np.full(lines * length, 1e-4),
        rewards=np.sort(rng.random((lines * length, k)), axis=1), law=law,
    )  # fmt: skip


class Loop:
    """The same episodes as a user would write them in Python; laws are looked up as lists."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.forest = policy, policy.forest
        self.root = policy.root.tolist()
        self.at = policy.child_at.tolist()
        self.child = policy.child.tolist()
        self.count = policy.forest.count.tolist()
        self.known: dict[tuple[int, int], tuple[list[float], list[float], list[float]]] = {}
        self.index: dict[tuple[int, int], float] = {}

    def look_up(self, v: int, s: int) -> tuple[list[float], list[float], list[float]]:
        """Cumulative law, rewards and costs; kept, as a program that runs long would."""
        if (v, s) not in self.known:
            f = self.forest
            law = f.laws[int(f.law[v])][s]
            row, cost = int(f.reward[v]), f.costs[int(f.cost[v])]
            rewards = self.policy.rewards[f.rewards.start[row] : f.rewards.start[row + 1]]
            prices = np.broadcast_to(cost, (max(len(cost), s + 1), len(law)))[s]
            self.known[v, s] = list(accumulate(law.tolist())), rewards.tolist(), prices.tolist()
        return self.known[v, s]

    def rank(self, v: int, s: int) -> float:
        """Minus the index."""
        if (v, s) not in self.index:
            self.index[v, s] = -float(self.policy.index[self.policy.index_at[v] + s])
        return self.index[v, s]

    def episode(self, draw: random.Random) -> float:
        """The payoff of one episode; roots come from a sorted list, all else from a heap."""
        best, spend = self.policy.outside, 0.0
        roots, left, number = iter(self.root), 0, count()
        heap: list[tuple[float, int, int, int, int]] = []
        next_root: int | None = None
        while True:
            if left == 0:
                next_root = next(roots, None)
                left = 0 if next_root is None else self.count[next_root]
            top = heap[0][:2] if heap else (math.inf, 0)
            here = (math.inf, 0) if next_root is None else (self.rank(next_root, 0), next_root)
            if not -min(top, here)[0] > best:
                return best - spend
            if here <= top:
                _, v = here
                s, left = 0, left - 1
            else:
                x, v, _, s, copies = heapq.heappop(heap)
                if copies > 1:
                    heapq.heappush(heap, (x, v, next(number), s, copies - 1))
            chances, rewards, costs = self.look_up(v, s)
            y = min(bisect(chances, draw.random()), len(chances) - 1)
            spend += costs[y]
            best = max(best, rewards[y])
            for u in self.child[self.at[v] : self.at[v + 1]]:
                heapq.heappush(heap, (self.rank(u, y), u, next(number), y, self.count[u]))

    def payoffs(self, episodes: int, seed: int) -> list[float]:
        """Payoffs of many episodes."""
        draw = random.Random(seed)
        return [self.episode(draw) for _ in range(episodes)]


@njit(cache=True, nogil=True)
def draw_only(stream_key: np.ndarray, openings: np.ndarray) -> float:
    """The random numbers of all episodes, added up."""
    total = 0.0
    for episode in range(openings.size):
        stream = kernel._stream(stream_key, episode)
        for _ in range(int(openings[episode])):
            stream += kernel._GOLDEN
            total += kernel._uniform(stream)
    return total


def check(solution: Solution, mean: float, error: float) -> None:
    """The mean payoff must be the value of the policy."""
    if not abs(mean - solution.value) <= SIGMAS * error + solution.gap + 1e-12:
        raise AssertionError(f"mean payoff {mean} ± {error}, but the value is {solution.value}")


def tables(quick: bool = False) -> list[Table]:
    """Times of one episode and of one opening."""
    table = Table(
        ["forest", "openings", "Python loop", "one thread", "all threads", "faster than Python",
         "an opening", "just drawing", "ratio"],
        notes=[
            "Times of one episode (mean over all), then of one opening on one thread and of just "
            "drawing the random numbers that the episodes use, and the ratio of the two. Setting "
            "up (sorting siblings, adding up laws) is counted in all but `an opening`, where it "
            "is taken off."
        ],
    )  # fmt: skip
    for case in cases(quick):
        table.rows.append(_row(case, repeats=2 if quick else 5))
    return [table]


def _row(case: Case, repeats: int) -> list[str]:
    solution = solve(case.forest)
    policy = solution.policy()
    loop, key = Loop(policy), stream_key(1)
    played = simulate(policy, case.episodes, 1)
    openings = played.openings.values
    loop_payoffs = np.array(loop.payoffs(case.in_python, 1))
    check(solution, played.payoff.mean, played.payoff.standard_error)
    error = float(loop_payoffs.std(ddof=1)) / math.sqrt(len(loop_payoffs))
    check(solution, float(loop_payoffs.mean()), error)
    one = simulate(policy, case.episodes, 1, threads=1)
    if one.payoff.mean != played.payoff.mean:
        raise AssertionError("the number of threads changes the result")
    best = race(
        {
            "python": lambda: loop.payoffs(case.in_python, 1),
            "one": lambda: simulate(policy, case.episodes, 1, threads=1),
            "all": lambda: simulate(policy, case.episodes, 1),
            "set up": lambda: tabulate(policy),
            "draw": lambda: draw_only(key, openings),
        },
        repeats,
    )
    n, total = case.episodes, float(openings.sum())
    python, one_thread, all_threads = (
        best["python"] / case.in_python,
        best["one"] / n,
        best["all"] / n,
    )
    opening, drawing = max(0.0, best["one"] - best["set up"]) / total, best["draw"] / total
    return [
        case.name, f"{played.openings.mean:.3g}", seconds(python), seconds(one_thread),
        seconds(all_threads), f"{python / all_threads:.0f} times", seconds(opening),
        seconds(drawing), f"{opening / drawing:.1f}",
    ]  # fmt: skip


if __name__ == "__main__":
    for each in tables():
        print(each.markdown())
