"""The same problems given to what people use today: QuantEcon and markovianbandit-pkg.

Each measurement runs in a process of its own, under limits of time and memory, with an interpreter
that has the peers (they are no dependency of this package)::

    pip install quantecon markovianbandit-pkg numba

``python -m benchmarks.peers quantecon-line 100`` makes one of them and prints it as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import weitzman
from weitzman._common.arrays import FloatArray, IntArray

from . import instances
from .measure import ChildFailed, Table, child, child_json, race, seconds

LINE_STATES, PAIR_STATES, CHAIN_STATES = 16, 4, 8  # k of the problems below
BETA = 1 - 1e-6  # QuantEcon refuses 1; see `_undo_discount`
GITTINS_BETA = 1 - 1e-8  # markovianbandit needs less than 1; nothing undoes it


# -- a line, or a pair of lines, as a Markov decision process --------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Process:
    """States from 0, the start, to the last, the end; one row for each state and action."""

    reward: FloatArray
    column: IntArray
    probability: FloatArray
    row_start: IntArray
    state: IntArray
    action: IntArray

    @property
    def states(self) -> int:
        return int(self.state[-1]) + 1


def _undo_discount(opened: IntArray | int) -> FloatArray:
    """What a payment after ``opened`` boxes is multiplied by, so that discounting does nothing."""
    return np.asarray(BETA ** -np.asarray(opened, float))


def line_process(laws: FloatArray, cost: FloatArray, rewards: FloatArray) -> Process:
    """State: boxes opened, last state s, best state b >= s so far. Actions: stop, open the next."""
    length, k, _ = laws.shape
    s, b = np.triu_indices(k)
    number = np.zeros((k, k), np.int64)
    number[s, b] = np.arange(len(s))
    m, y = len(s), np.arange(k)
    after = number[y, np.maximum(b[:, None], y)]  # (m, k): where showing y leads
    end = 1 + length * m
    stage = np.arange(1, length)[:, None, None]
    to_end = np.full((length - 1, m, 1), end)
    column = [np.append(end, 1 + number[y, y])]
    column.append(np.concatenate([to_end, 1 + stage * m + after], axis=2).reshape(-1))
    column.append(np.full(m + 1, end))
    sure = np.ones((length - 1, m, 1))
    probability = [np.append(1.0, laws[0, 0])]
    probability.append(np.concatenate([sure, laws[1:, s]], axis=2).reshape(-1))
    probability.append(np.ones(m + 1))
    rows = [np.tile([1, k], 1 + (length - 1) * m), np.ones(m + 1, np.int64)]
    opened = _undo_discount(np.arange(1, length))[:, None]
    two = np.stack([rewards[b] * opened, np.repeat(-cost[1:, None] * opened, m, axis=1)], axis=2)
    last = rewards[b] * _undo_discount(length)
    state = np.append(np.repeat(np.arange(1 + (length - 1) * m), 2), end - m + np.arange(m + 1))
    return Process(
        reward=np.concatenate([[0.0, -cost[0]], two.reshape(-1), last, [0.0]]),
        column=np.concatenate(column),
        probability=np.concatenate(probability),
        row_start=np.concatenate([[0], np.cumsum(np.concatenate(rows))]),
        state=state,
        action=np.append(np.tile([0, 1], 1 + (length - 1) * m), np.zeros(m + 1, np.int64)),
    )


def pair_process(laws: FloatArray, cost: FloatArray, rewards: FloatArray) -> Process:
    """State: where each of two lines stands, and the best so far. Actions: stop, open on either."""
    _, length, k, _ = laws.shape
    place = np.arange(1 + length * k)  # nothing opened, then (boxes opened, last state)
    opened, shown = (place + k - 1) // k, np.where(place > 0, (place - 1) % k, -1)
    first, second, best = (
        x.reshape(-1) for x in np.meshgrid(place, place, np.arange(-1, k), indexing="ij")
    )
    least = np.maximum(shown[first], shown[second])
    possible = (best >= least) & ((first + second > 0) | (best < 0))
    possible &= (best >= 0) | (first + second == 0)
    number = np.cumsum(possible) - 1
    first, second, best = first[possible], second[possible], best[possible]
    n = len(first)
    can = [opened[first] < length, opened[second] < length]
    at = np.cumsum(1 + can[0] + can[1]) - (1 + can[0] + can[1])  # first pair of each state
    pay = _undo_discount(opened[first] + opened[second])
    total = int(at[-1]) + 1 + int(can[0][-1]) + int(can[1][-1]) + 1
    reward, size = np.zeros(total), np.ones(total, np.int64)
    state, action = np.full(total, n), np.zeros(total, np.int64)
    reward[at], state[at] = np.where(best >= 0, rewards[best], 0.0) * pay, np.arange(n)
    rows = [at, at + 1, at + 1 + can[0]]
    for a in (0, 1):
        who, row = np.flatnonzero(can[a]), rows[a + 1][can[a]]
        size[row], state[row], action[row] = k, who, a + 1
        reward[row] = -cost[a, opened[(first, second)[a][who]]] * pay[who]
    row_start = np.concatenate([[0], np.cumsum(size)])
    column, probability = np.full(row_start[-1], n), np.ones(row_start[-1])
    y = np.arange(k)
    for a in (0, 1):
        who, row = np.flatnonzero(can[a]), rows[a + 1][can[a]]
        here = (first, second)[a][who]
        there = (1 + opened[here] * k)[:, None] + y
        other = (second, first)[a][who][:, None]
        one, two = (there, other) if a == 0 else (other, there)
        now = np.maximum(best[who][:, None], y)
        entry = row_start[row][:, None] + y
        column[entry] = number[(one * len(place) + two) * (k + 1) + now + 1]
        probability[entry] = laws[a, opened[here], np.maximum(shown[here], 0)]
    return Process(reward, column, probability, row_start, state, action)


def _quantecon(process: Process) -> tuple[float, float]:
    """Value of the start and the time to find it, by the fastest of the methods it has.

    Value iteration is exact here after as many sweeps as boxes can be opened, and stops after fewer
    where it seldom pays to open many.
    """
    import quantecon
    from scipy import sparse

    p = process
    shape = (len(p.reward), p.states)
    matrix = sparse.csr_matrix((p.probability, p.column, p.row_start), shape=shape)
    start = time.perf_counter()
    program = quantecon.markov.DiscreteDP(p.reward, matrix, BETA, p.state, p.action)
    result = program.solve(method="value_iteration", max_iter=1_000_000)
    return float(result.v[0]), time.perf_counter() - start


def _weitzman(forest: weitzman.Forest) -> tuple[weitzman.Solution, float]:
    """The solution and the least time of three."""
    solution = weitzman.solve(forest, threads=1)  # compiles
    return solution, race({"solve": lambda: weitzman.solve(forest, threads=1)}, 3)["solve"]


def quantecon_line(size: int) -> dict[str, Any]:
    """One line of ``size`` boxes."""
    lines = instances.many_lines(1, size, LINE_STATES)
    _quantecon(line_process(lines.laws[0, :2], lines.cost[0, :2], lines.rewards[0]))  # compiles
    process = line_process(lines.laws[0], lines.cost[0], lines.rewards[0])
    value, taken = _quantecon(process)
    solution, ours = _weitzman(lines.forest)
    return {
        "boxes": size, "states": process.states, "peer_s": taken, "weitzman_s": ours,
        "error": abs(value - solution.value),
    }  # fmt: skip


def quantecon_pair(size: int) -> dict[str, Any]:
    """Two lines of ``size`` boxes each, with the same rewards but else different."""
    lines = instances.many_lines(2, size, PAIR_STATES, shared_rewards=True)
    _quantecon(pair_process(lines.laws[:, :2], lines.cost[:, :2], lines.rewards[0]))  # compiles
    process = pair_process(lines.laws, lines.cost, lines.rewards[0])
    value, taken = _quantecon(process)
    solution, ours = _weitzman(lines.forest)
    return {
        "boxes": 2 * size, "states": process.states, "peer_s": taken, "weitzman_s": ours,
        "error": abs(value - solution.value),
    }  # fmt: skip


# -- a line of signals as a chain with Gittins indices ---------------------------------------------


def _chain(line: instances.Signals) -> tuple[FloatArray, FloatArray]:
    """Transitions and rewards of state 0, then of (boxes opened, last state).

    Those of the last box pay forever. Paying r at every step is worth r / (1 - beta): in that unit
    the costs are given, and an index a step is the index of the box. (In the unit of the costs the
    tolerance 1e-12 of the package would be too coarse.)
    """
    length, k, _ = line.laws.shape
    n, price = 1 + length * k, line.cost / (1 - GITTINS_BETA)
    transition, reward = np.zeros((n, n)), np.empty(n)
    transition[0, 1 : 1 + k], reward[0] = line.laws[0, 0], -price[0]
    for i in range(1, length):
        here = 1 + (i - 1) * k
        transition[here : here + k, here + k : here + 2 * k] = line.laws[i]
        reward[here : here + k] = -price[i]
    last = np.arange(n - k, n)
    transition[last, last] = 1.0
    reward[last] = line.rewards
    return transition, reward


def _gittins(transition: FloatArray, reward: FloatArray) -> tuple[FloatArray, float]:
    settings = np.geterr()
    import markovianbandit

    np.seterr(**settings)  # importing it changes them for the whole process
    start = time.perf_counter()
    bandit = markovianbandit.rested_bandit_from_P1_R1(transition, reward)
    index = bandit.gittins_indices(discount=GITTINS_BETA)
    taken = time.perf_counter() - start
    return np.asarray(index), taken


def gittins_line(size: int) -> dict[str, Any]:
    """One line of signals with the reward at its end: what a chain can express."""
    _gittins(*_chain(instances.signals(2, CHAIN_STATES)))  # compiles
    line = instances.signals(size, CHAIN_STATES)
    index, taken = _gittins(*_chain(line))
    solution, ours = _weitzman(line.forest)
    exact = np.concatenate([solution.indices(v) for v in range(size)])
    return {
        "boxes": size, "states": len(index), "peer_s": taken, "weitzman_s": ours,
        "error": float(np.abs(index[: len(exact)] - exact).max()),
    }  # fmt: skip


# -- the largest size of each that fits the limits -------------------------------------------------


@dataclass(frozen=True, slots=True)
class Peer:
    """A package, a problem it can express, and how near its answer must come."""

    key: str
    package: str
    problem: str
    run: Callable[[int], dict[str, Any]]
    first: int
    tolerance: float


PEERS = (
    Peer(
        "quantecon-line", "quantecon", f"one line, k = {LINE_STATES}", quantecon_line, 10, 1e-7
    ),
    Peer(
        "quantecon-pair", "quantecon", f"two lines, k = {PAIR_STATES}", quantecon_pair, 4, 1e-7
    ),
    Peer(
        "gittins-line", "markovianbandit", f"one line of signals, k = {CHAIN_STATES}",
        gittins_line, 8, 1e-4,
    ),
)  # fmt: skip


def installed(package: str, python: str) -> str | None:
    """The version that an interpreter has, or None."""
    distribution = "markovianbandit-pkg" if package == "markovianbandit" else package
    code = f"from importlib.metadata import version; print(version({distribution!r}))"
    done = child(["-c", code], python=python)
    return done.stdout.strip() if done.returncode == 0 else None


def climb(
    peer: Peer, python: str, limit_s: float, limit_gb: float, most: int | None = None
) -> tuple[dict[str, Any] | None, str]:
    """Double the size while the limits hold: the last result, and what ended it."""
    size, last = peer.first, None
    while most is None or size <= most:
        try:
            result = child_json(
                ["-m", "benchmarks.peers", peer.key, str(size)],
                python=python, limit_s=4 * limit_s + 60, limit_gb=limit_gb,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return last, f"size {size}: no end in {4 * limit_s + 60:.0f} s"
        except ChildFailed as failure:
            if not failure.by_memory:
                raise
            return last, f"size {size}: over {limit_gb:g} GB"
        if result["error"] > peer.tolerance:
            raise AssertionError(f"{peer.key} {size}: answers differ by {result['error']:.3g}")
        if result["peer_s"] > limit_s:
            return last, f"size {size}: {seconds(result['peer_s'])}"
        size, last = 2 * size, result
    return last, "not tried further"


def table(python: str, limit_s: float, limit_gb: float, most: int | None = None) -> Table:
    """The largest problem of each kind that a peer solves within the limits."""
    out = Table(
        ["package", "problem", "largest", "states", "its time", "weitzman", "ratio",
         "answers differ by", "next size"],
    )  # fmt: skip
    for peer in PEERS:
        version = installed(peer.package, python)
        if version is None:
            out.rows.append([peer.package, peer.problem, "not installed", *[""] * 6])
            continue
        last, end = climb(peer, python, limit_s, limit_gb, most)
        row = [f"{peer.package} {version}", peer.problem]
        if last is None:
            out.rows.append([*row, "none", *[""] * 5, end])
            continue
        out.rows.append([
            *row, f"{last['boxes']:,} boxes", f"{last['states']:,}", seconds(last["peer_s"]),
            seconds(last["weitzman_s"]), f"{last['peer_s'] / last['weitzman_s']:,.0f}",
            f"{last['error']:.1g}", end,
        ])  # fmt: skip
    return out


if __name__ == "__main__":
    task = {peer.key: peer.run for peer in PEERS}[sys.argv[1]]
    print(json.dumps(task(int(sys.argv[2]))))
