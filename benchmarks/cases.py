"""The cases. Each returns tables; each asserts the answers that it times."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np

import weitzman
from weitzman import Forest, Solution
from weitzman._common.arrays import FloatArray
from weitzman.engine.evaluation import evaluate as evaluate_policy
from weitzman.engine.plan import Plan

from . import baselines, instances, peers
from .measure import Table, aim, child, child_json, race, seconds

EPS, TOLERANCE = 1e-12, 1e-9  # of a first pass of `solve`, and what it certifies
VALUE_ERROR, INDEX_ERROR = 2 * TOLERANCE, 1e-6  # allowed
BELLMAN_AIM, PRODUCTS_AIM, GROWTH_AIM, MEMORY_AIM_MB, DEMO_AIM = 6.0, 2.5, 11.0, 300.0, 1.5

Task = Callable[[], object]
_BELLMAN, _SOLVE = "Bellman table, Numba", "solve, one thread"
_PRODUCTS, _NUMPY_PRODUCTS = "bare matrix products, the engine's own", "bare matrix products, NumPy"


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of all cases."""

    lines: int = 20_000  # of `length` boxes with 8 states
    wide_lines: int = 4_000  # with 16 states
    length: int = 50
    boxes: int = 1_000_000  # of the random trees
    long: int = 100_000  # boxes of the longest line
    repeats: int = 5
    starts: int = 5
    peer_s: float = 60.0
    peer_gb: float = 8.0
    peer_most: int | None = None
    python: str = sys.executable  # the interpreter that has the peers
    quick: bool = False


QUICK = Scale(
    lines=200, wide_lines=60, boxes=10_000, long=1_000, repeats=3, starts=1, peer_s=1.0,
    peer_gb=4.0, peer_most=64, quick=True,
)  # fmt: skip


# -- answers ---------------------------------------------------------------------------------------


def check(holds: bool | np.bool_, what: str) -> None:
    """An assertion that also holds under ``python -O``."""
    if not holds:
        raise AssertionError(what)


def check_lines(lines: instances.Lines, solution: Solution, root: FloatArray) -> None:
    """The table of every line agrees with its index, and the values of some lines with both.

    ``root[l, x]`` is the value of opening line l with the x-th reward in hand: it pays exactly
    where that reward lies below the index.
    """
    length = lines.cost.shape[1]
    index = np.array([solution.indices(v)[0] for v in range(0, len(lines.forest), length)])
    gain = root - lines.rewards
    clear = np.abs(gain) > INDEX_ERROR
    agree = (gain > 0) == (index[:, None] > lines.rewards)
    check((agree | ~clear).all(), "a Bellman table and an index disagree on whether to open")
    for line in (0, len(index) // 2, len(index) - 1):
        value = max(0.0, root[line, 0])
        alone = weitzman.solve(lines.one(line))
        check(abs(alone.value - value) < VALUE_ERROR, "solve and the Bellman table differ")
        off = abs(alone.indices(0)[0] - index[line])
        check(off < INDEX_ERROR, "a line alone has another index than among many")


def check_trees(forest: Forest, solution: Solution, boxes: int = 400) -> None:
    """Values and indices of the first trees are those of the plain recursion."""
    some = instances.first_trees(forest, boxes)
    value, index = baselines.plain_solve(some)
    check(abs(weitzman.solve(some).value - value) < VALUE_ERROR, "solve and the recursion differ")
    off = max(np.abs(solution.indices(v) - index[v]).max() for v in range(len(some)))
    check(off < INDEX_ERROR, f"an index differs by {off:.3g} from the plain recursion")


def check_same(one: Solution, other: Solution) -> None:
    """The same bits."""
    same = one.value == other.value
    same = same and np.array_equal(one.index_columns()[1], other.index_columns()[1])
    check(same, "the number of threads changes the result")


# -- the engine against simpler work ---------------------------------------------------------------


def lines(scale: Scale) -> list[Table]:
    """Many different lines: against Bellman tables and bare matrix products."""
    return [_lines(scale, n, k) for n, k in ((scale.lines, 8), (scale.wide_lines, 16))]


def _lines(scale: Scale, count: int, k: int) -> Table:
    case = instances.many_lines(count, scale.length, k)
    root, textbook = np.empty((count, k)), np.empty((count, k))
    arrays = case.laws, case.cost, case.rewards
    rivals = {
        _BELLMAN: lambda: baselines.bellman(*arrays, root),
        "the same, textbook loops": lambda: baselines.bellman_textbook(*arrays, textbook),
    }
    title = f"{count:,} lines of {scale.length} boxes, k = {k}"
    table, solution = _against(title, case.forest, rivals, case.describe, scale.repeats)
    check(np.abs(root - textbook).max() < 1e-12, "the two Bellman tables differ")
    check_lines(case, solution, root)
    return table


def trees(scale: Scale) -> list[Table]:
    """One forest of random trees: against bare matrix products."""
    forest = instances.random_trees(scale.boxes)
    title = f"random trees, {scale.boxes:,} boxes, k = 2 to 8, each with rewards of its own"
    table, solution = _against(title, forest, {}, lambda: replace(forest), scale.repeats)
    check_trees(forest, solution)
    return [table]


def _against(
    title: str, forest: Forest, rivals: dict[str, Task], describe: Task, repeats: int
) -> tuple[Table, Solution]:
    """Time rivals, bare products, one pass alone, and solving on one and two threads."""
    plan = Plan.of(forest)
    check(len(plan.op_of) == len(forest), "boxes of this instance were meant to differ")
    eps = EPS * plan.span
    run = plan.run(eps)
    passes = 1 if run.gap <= TOLERANCE * plan.span else 2
    products = baselines.Products.of(forest, run.width[plan.op_of][plan.class_of])
    last: dict[str, Solution] = {}

    def solve(threads: int) -> None:
        last[str(threads)] = weitzman.solve(forest, threads=threads)

    tasks = {
        **rivals,
        _PRODUCTS: lambda: check(abs(products.bare() - 1) < 1e-9, "wrong product"),
        "the same, from laws as stored": lambda: check(
            abs(products.with_layout() - 1) < 1e-9, "wrong product"
        ),
        _NUMPY_PRODUCTS: lambda: check(abs(products.with_numpy() - 1) < 1e-9, "wrong product"),
        _SOLVE: lambda: solve(1),
        "one pass of it, laid out before": lambda: plan.run(eps, 1),
        "solve, two threads": lambda: solve(2),
        "for comparison: describing and checking the forest": describe,
    }
    best = race(tasks, repeats)
    check_same(last["1"], last["2"])
    check(last["1"].gap <= TOLERANCE * plan.span, "the gap is larger than asked for")
    aims = {_BELLMAN: BELLMAN_AIM, _PRODUCTS: PRODUCTS_AIM}
    table = Table(["", "time", "a box", "solve on one thread takes"], title=title)
    for name, t in best.items():
        ratio = best[_SOLVE] / t
        against = aim(ratio, aims[name]) if name in aims else f"{ratio:.2f}"
        table.rows.append([name, seconds(t), seconds(t / len(forest)), against])
    work, joins = products.operations, len(plan.ops) - len(plan.op_of)
    table.notes.append(
        f"A box takes on average a product of {products.width.mean():.1f} columns, "
        f"{work / len(forest):,.0f} operations ({work / best[_PRODUCTS] / 1e9:.1f} GFLOP/s by the "
        f"engine's own product, {work / best[_NUMPY_PRODUCTS] / 1e9:.1f} by NumPy's), and "
        f"{joins / len(forest):.2f} joins of two values. Passes of a solve: {passes}; certified "
        f"gap {last['1'].gap:.1g}."
    )
    return table, last["1"]


# -- growth and memory -----------------------------------------------------------------------------


def growth(scale: Scale) -> list[Table]:
    """Ten times the boxes."""
    s = scale
    kinds: dict[str, Callable[[int], Forest]] = {
        "lines, k = 8": lambda n: instances.many_lines(n // s.length, s.length, 8).forest,
        "random trees": instances.random_trees,
        "one line, k = 16": lambda n: instances.many_lines(1, n, 16).forest,
    }
    sizes = (s.lines * s.length, s.boxes, s.long)
    table = Table(["", "boxes", "time", "boxes", "time", "ratio"])
    for (name, make), boxes in zip(kinds.items(), sizes, strict=True):
        few, many = make(boxes // 10), make(boxes)
        tasks = {
            "few": lambda f=few: weitzman.solve(f, threads=1),
            "many": lambda f=many: weitzman.solve(f, threads=1),
        }
        best = race(tasks, s.repeats)
        table.rows.append([
            name, f"{len(few):,}", seconds(best["few"]), f"{len(many):,}", seconds(best["many"]),
            aim(best["many"] / best["few"], GROWTH_AIM),
        ])  # fmt: skip
    return [table]


def memory(scale: Scale) -> list[Table]:
    """Highest memory of a solve over what the process held before."""
    table = Table(["", "boxes", "instance", "solve adds at most"])
    sizes = {"lines": scale.lines * scale.length, "trees": scale.boxes, "line": scale.long}
    names = {"lines": "lines, k = 8", "trees": "random trees", "line": "one line, k = 16"}
    for kind, boxes in sizes.items():
        found = child_json(["-m", "benchmarks.memory", kind, str(boxes)])
        more = found["more"] / 1e6
        told = f"{more:.0f} MB (aim {MEMORY_AIM_MB:g}: {'met' if more <= 300 else 'missed'})"
        table.rows.append([names[kind], f"{boxes:,}", f"{found['instance'] / 1e6:.0f} MB", told])
    return [table]


# -- others ----------------------------------------------------------------------------------------


def one_line(scale: Scale) -> list[Table]:
    """One line: against what a user would write."""
    table = Table(["", "a box, k = 8", "solve takes", "a box, k = 16", "solve takes"])
    length = scale.long // 10
    columns = []
    for k in (8, 16):
        case = instances.many_lines(1, length, k)
        laws, cost, rewards = case.laws, case.cost, case.rewards
        root, values = np.empty((1, k)), {}

        def keep(name: str, value: float, values: dict[str, float] = values) -> None:
            values[name] = value

        tasks = {
            "12 lines of NumPy": lambda a=(laws[0], cost[0], rewards[0]), f=keep: f(
                "loop", baselines.numpy_loop(*a)
            ),
            _BELLMAN: lambda a=(laws, cost, rewards, root): baselines.bellman(*a),
            _SOLVE: lambda c=case, f=keep: f("solve", weitzman.solve(c.forest, threads=1).value),
        }
        best = race(tasks, scale.repeats)
        check(abs(values["loop"] - values["solve"]) < VALUE_ERROR, "loop and solve differ")
        check(abs(max(0.0, root[0, 0]) - values["loop"]) < VALUE_ERROR, "loop and table differ")
        columns.append(best)
    for name in columns[0]:
        row = [name]
        for best in columns:
            row += [seconds(best[name] / length), f"{best[_SOLVE] / best[name]:.2f}"]
        table.rows.append(row)
    table.notes.append(
        f"A line of {length:,} boxes. The first two give the value and when to stop; only the last "
        f"gives indices, by which several lines can be ranked."
    )
    return [table]


def others(scale: Scale) -> list[Table]:
    """The peers, up to the size where each ends."""
    s = scale
    table = peers.table(s.python, s.peer_s, s.peer_gb, s.peer_most)
    table.notes.append(
        f"Limits: {s.peer_s:g} s for the solution alone and {s.peer_gb:g} GB of addresses for the "
        f"process; sizes are doubled until one is passed; weitzman on one thread. QuantEcon "
        f"refuses a discount factor of 1, so it gets {peers.BETA:.6f} with every payment after t "
        f"boxes raised by its t-th power: the answer is the undiscounted one. markovianbandit "
        f"cannot express the best reward so far; it gets a line of signals with the rewards in the "
        f"last box, and its discount {peers.GITTINS_BETA:.8f} is the difference that remains."
    )
    return [table]


def counts(scale: Scale) -> list[Table]:
    """Forests described by counts."""
    table = Table(["", "described", "boxes in all", "describe and solve"])
    makers: dict[str, Callable[[], Forest]] = {
        "3 kinds, 1,000 copies each under each": lambda: instances.copies(3, 1000),
        "6 kinds, 1,000 copies each under each": lambda: instances.copies(6, 1000),
        "random trees, 1 to 1,000 copies of each box": lambda: instances.random_trees(
            1000, count=1000
        ),
    }
    for name, make in makers.items():
        forest = make()
        plain, _ = baselines.plain_solve(forest)
        solution = weitzman.solve(forest)
        allowed = solution.gap + 1e-12 * float(forest.rewards.data.max())
        check(abs(solution.value - plain) <= allowed, "solve and the recursion differ")
        best = race({name: lambda m=make: weitzman.solve(m())}, scale.repeats)[name]
        total = forest.boxes
        boxes = f"{total:,}" if total < 10**12 else f"{float(total):.3g}"
        table.rows.append([name, f"{len(forest):,}", boxes, seconds(best)])
    return [table]


def evaluation(scale: Scale) -> list[Table]:
    """Openings and choices of every box, against solving."""
    table = Table(["", "boxes", "solve", "evaluate", "ratio", "values differ by"])
    for name, forest in (
        ("lines, k = 8", instances.many_lines(scale.lines, scale.length, 8).forest),
        ("random trees", instances.random_trees(scale.boxes)),
        ("one tree, k = 4", instances.one_tree(scale.boxes // 5)),
    ):
        solution = weitzman.solve(forest)
        result = evaluate_policy(solution)
        off = abs(result.value - solution.value)
        check(off < 1e-8, "following the indices does not earn the value")
        tasks = {
            "solve": lambda f=forest: weitzman.solve(f, threads=1),
            "evaluate": lambda s=solution: evaluate_policy(s),
        }
        best = race(tasks, scale.repeats)
        table.rows.append([
            name, f"{len(forest):,}", seconds(best["solve"]), seconds(best["evaluate"]),
            f"{best['evaluate'] / best['solve']:.2f}", f"{off:.1g}",
        ])  # fmt: skip
    table.notes.append("One thread each.")
    return [table]


# -- start-up --------------------------------------------------------------------------------------


def startup(scale: Scale) -> list[Table]:
    """From the shell to an answer: whole processes, the interpreter included."""
    commands = {
        "python -c pass": ["-c", "pass"],
        "import numpy": ["-c", "import numpy"],
        "import numba": ["-c", "import numba"],
        "import weitzman": ["-c", "import weitzman"],
        "weitzman demo": ["-m", "weitzman", "demo"],
        "solve and evaluate one box": [
            "-c", "import weitzman as w; s = w.solve(w.Forest.from_arrays(parent=[-1], cost=[1],"
            "rewards=[0, 10], law=[[0.5, 0.5]])); assert s.value == 4 == w.evaluate(s).value",
        ],
    }  # fmt: skip
    table = Table(["", "first time", "later"])
    with tempfile.TemporaryDirectory() as cache:
        env = {"NUMBA_CACHE_DIR": cache, "WEITZMAN_CACHE_DIR": cache}
        first = {name: _clock(command, env) for name, command in commands.items()}
        tasks = {name: lambda c=command: _clock(c, env) for name, command in commands.items()}
        later = race(tasks, scale.starts)
    for name in commands:
        shown = seconds(later[name])
        if name == "weitzman demo":
            shown += f" (aim {DEMO_AIM:g} s: {'met' if later[name] <= DEMO_AIM else 'missed'})"
        cold = seconds(first[name]) if "weitzman" in name or "solve" in name else ""
        table.rows.append([name, cold, shown])
    table.notes.append(
        "The first time is with an empty folder for compiled code. Small problems run in plain "
        "Python, so nothing is compiled; [first_call.md](first_call.md) has larger ones."
    )
    return [table]


def _clock(command: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    done = child(command, env=env)
    taken = time.perf_counter() - start
    check(done.returncode == 0, f"{command} failed: {done.stderr[-500:]}")
    if command[-1] == "demo":
        check("94.325" in done.stdout, "the demo no longer earns 94.325")
    return taken


def simulation(scale: Scale) -> list[Table]:
    """Simulated episodes against a Python loop, if that benchmark is there."""
    try:
        module = import_module("benchmarks.simulation")
    except ImportError as error:
        return [Table([""], [["not there"]], [f"`benchmarks/simulation.py`: {error}"])]
    found: list[Table] = module.tables(quick=scale.quick)
    return found
