"""Work for every kernel, to be done compiled and as plain Python: prints numbers, and what ran.

``python kernel_questions.py`` writes one JSON object: the numbers of each question, and the
functions that were called as plain Python, or the types that kernels were compiled for.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import weitzman
from weitzman import Chain, Forest, solve
from weitzman._kernels import jit, structure
from weitzman._kernels.jit import KernelCache
from weitzman.learn.resembling_runs import Trees
from weitzman.policy import simulation
from weitzman.strategies import best_partially_adaptive, random_order

KERNELS = Path(jit.__file__).parent
COMPILED_ONLY = {"lanes.py", "jit.py"}


def forest(seed: int, n: int, states: int, *, count: int = 1) -> Forest:
    """A random forest: signals, copies, ties, costs of every kind, to be maximized or minimized."""
    rng = np.random.default_rng(seed)
    minimize = seed % 2 == 1
    parent = [int(rng.integers(-1, i)) for i in range(n)]
    sizes = rng.integers(1, states + 1, n).tolist()
    law, rewards, cost = [], [], []
    for v in range(n):
        rows = 1 if parent[v] < 0 else sizes[parent[v]]
        law.append(rng.dirichlet(np.ones(sizes[v]), rows))
        own = rng.integers(0, 40, sizes[v]) / 8 if seed % 3 else rng.normal(size=sizes[v])
        if seed % 4 == 2:
            own[rng.random(sizes[v]) < 0.3] = np.inf if minimize else -np.inf
        rewards.append(own)
        shape = [(1, 1), (rows, 1), (rows, sizes[v])][int(rng.integers(3))]
        cost.append(rng.uniform(0, 0.4, shape))
    return Forest.from_arrays(
        parent=parent, cost=cost, rewards=rewards, law=law, minimize=minimize,
        count=rng.integers(1, count + 1, n), outside=1.0,
    )  # fmt: skip


def line_of_many_states() -> Forest:
    """A line whose boxes have so many states that not all products are done, on both ways."""
    rng = np.random.default_rng(3)
    law = rng.dirichlet(np.full(20, 0.3), (4, 20))
    return Forest.from_arrays(
        parent=[-1, 0, 1, 2],
        cost=[0.01] * 4,
        rewards=rng.random((4, 20)),
        law=[law[0, 0], *law[1:]],
    )


def answers(problem: Forest, **options: Any) -> list[float]:
    """Value, indices, what a policy does, and how it fares in a few episodes."""
    solution = solve(problem, threads=1, **options)
    policy = weitzman.evaluate(solution)
    played = weitzman.simulate(solution, 20, rng=3, threads=1, workers=2)
    indices = [x for v in range(len(problem)) for x in solution.indices(v).tolist()]
    chosen = [x for v in range(len(problem)) for x in policy.chosen[v].tolist()]
    return [
        solution.value, *indices, policy.value, *policy.opened.tolist(), *chosen,
        *played.payoff.values.tolist(),
    ]  # fmt: skip


def endless() -> list[float]:
    """A line without an end under a box, followed and cut."""
    law = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]]
    problem = Forest.from_arrays(
        parent=[-1, 0], cost=[0.1, 0.5], rewards=[0, 3, 9], law=[law[0], law],
        endless=[False, True],
    )  # fmt: skip
    cut = weitzman.truncate(problem, gap=0.1)
    return [*answers(problem), cut.lower, cut.upper]


def chain() -> list[float]:
    """What is asked of a matrix."""
    law = Chain([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.1, 0.4, 0.5]], [0, 1, 2])
    return [*law.stationary().tolist(), *law.first_passage([2]).tolist()]


def orders() -> list[float]:
    """A fixed order, and none at all."""
    small = forest(8, 5, 2)
    searched = best_partially_adaptive(small)
    loose = random_order(solve(small), 20, rng=2)
    star = Forest.from_arrays(
        parent=[-1] * 90, cost=[0.1] * 90, rewards=[0, 1], law=[[0.5, 0.5]] * 90
    )
    crowd = weitzman.simulate(solve(star), 3, rng=1, workers=90, budget=90)
    return [searched.value, *loose.payoff.values, *crowd.payoff.values]


def trees() -> list[float]:
    """Which runs resemble each other, by numbers and categories, some of them missing."""
    random = np.random.default_rng(0)
    known = np.column_stack([random.normal(size=(14, 2)), random.integers(0, 3, 14)])
    known[random.random(known.shape) < 0.2] = np.nan
    grown = Trees.grown(
        known, np.array([False, False, True]), random.normal(size=(14, 2)), np.ones(14),
        trees=5, leaf=2, random=random,
    )  # fmt: skip
    row = grown.rows(known, np.arange(14))
    return row.ravel().tolist()


def terms() -> list[float]:
    """Discounting, risk, and several prizes with copies."""
    timed = weitzman.line([[0.5, 0.5]], rewards=[0, 9], cost=1, count=3, factor=[[0.9, 0.8]])
    risky = weitzman.line([[0.5, 0.5]], rewards=[0, 9], cost=[[1, 2]], risk_tolerance=4.0)
    several = weitzman.line([[0.5, 0.3, 0.2]], rewards=[0, 4, 9], cost=1, count=4, prizes=2)
    apart = weitzman.forest.expand(several)
    out = []
    for problem in (timed, risky, several, apart):
        solution = solve(problem, threads=1)
        out += [solution.value, weitzman.evaluate(solution).value]
        out += weitzman.simulate(solution, 20, rng=3, threads=1).payoff.values.tolist()
    rows = [[0.6, 0.4], [[0.9, 0.1], [0.3, 0.7]]]
    crowd = weitzman.line(rows, rewards=[0, 3], cost=0.01, count=80, prizes=70)
    return out + weitzman.simulate(solve(crowd, threads=1), 2, rng=3).payoff.values.tolist()


def questions() -> dict[str, list[float]]:
    """All of it, small enough for plain Python."""
    found = {f"forest {seed}": answers(forest(seed, 7, 4), exact=True) for seed in range(12)}
    found |= {f"copies {seed}": answers(forest(seed, 6, 3, count=4)) for seed in (0, 1, 4)}
    for seed in range(20, 40):
        many = {"count": 3} if seed % 3 == 0 else {}
        found[f"random {seed}"] = answers(forest(seed, seed % 11 + 1, seed % 7 + 2, **many))
    found["wide"] = answers(forest(5, 8, 20))  # more states and breakpoints than there is room for
    found["many states"] = answers(line_of_many_states())
    found["thinned"] = answers(forest(6, 24, 5), tolerance=0.01)
    found["trees"] = trees()
    found |= {"endless": endless(), "chain": chain(), "orders": orders()}
    return found | {"terms": terms()}


def one_by_one(*_: object) -> None:
    """Episodes that cannot go on together are played by the kernel."""
    raise simulation._TooWide


def defined() -> set[str]:
    """All functions of the kernels, as file and name, but those that say how large work is."""
    return {
        f"{path.name} {node.name}"
        for path in KERNELS.glob("*.py")
        if path.name not in COMPILED_ONLY
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name not in {"cubic", "episode_work"}
    }


def types() -> dict[str, list[str]]:
    """For which types of arguments each kernel was compiled."""
    modules = [module for name, module in sys.modules.items() if "weitzman._kernels." in name]
    return {
        f"{module.__name__}.{name}": [str(types) for types in value.signatures]
        for module in modules
        for name, value in vars(module).items()
        if isinstance(getattr(value, "_cache", None), KernelCache)
    }


def main() -> None:
    """Answer all questions under a profiler that sees Python functions only."""
    called: set[str] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        folder, _, file = frame.f_code.co_filename.rpartition(os.sep)
        if event == "call" and folder == str(KERNELS):
            called.add(f"{file} {frame.f_code.co_name}")

    if jit.PLAIN:
        threading.setprofile(note)
        sys.setprofile(note)
    assert threading.current_thread() is not threading.main_thread()  # else kernels run unseen
    # the kernels, however small the questions
    jit.compile_always()
    structure._FEW_ROWS = 0
    simulation._Together = one_by_one
    found = questions()
    sys.setprofile(None)
    json.dump({"found": found, "called": sorted(called), "types": types()}, sys.stdout)


if __name__ == "__main__":
    with ThreadPoolExecutor(1) as pool:  # kernels run in the thread that calls them, if not in main
        pool.submit(main).result()
