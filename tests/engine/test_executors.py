"""Work shared out among workers: the same bits, errors as they are, and workers that die."""

from __future__ import annotations

import os
import pickle
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import weitzman
from weitzman import Forest, bounds, learn, questions
from weitzman._common.sharing import spread
from weitzman._kernels.jit import PLAIN, kernels
from weitzman.errors import InvalidArgument
from weitzman.learn import bootstrap


def random_trees(boxes: int, seed: int = 0, **terms: Any) -> Forest:
    """Many trees that differ, with some subtrees that parts share."""
    rng = np.random.default_rng(seed)
    parent = np.array([i - 1 - int(rng.integers(max(i % 7, 1))) for i in range(boxes)])
    parent[::7] = -1
    k = 3
    law = rng.dirichlet(np.ones(k), (boxes, k))
    leaf = np.bincount(parent + 1, minlength=boxes + 1)[1:] == 0
    law[leaf] = law[0]  # equal leaves are shared
    law[parent < 0] = law[parent < 0, :1]
    cost = np.where(leaf, 0.05, rng.uniform(0.01, 0.1, boxes))
    return Forest.from_arrays(
        parent=parent, cost=cost, rewards=np.linspace(0, 1, k), law=law, **terms
    )


def same(a: weitzman.Solution, b: weitzman.Solution) -> bool:
    """To the last bit."""
    return (
        a.value == b.value
        and a.gap == b.gap
        and np.array_equal(a.index_columns()[1], b.index_columns()[1])
        and np.array_equal(a.index_columns()[0], b.index_columns()[0])
    )


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as pool:
        yield pool


class Fragile:
    """An executor some of whose workers die; after ``least`` more pieces it takes none at all."""

    def __init__(self, dying: set[int], last: int = 10**9) -> None:
        self.dying, self.last, self.given = dying, last, 0

    def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
        self.given += 1
        if self.given > self.last:
            raise RuntimeError("closed")
        future: Future[Any] = Future()
        if self.given in self.dying:
            future.set_exception(BrokenPipeError("the worker is gone"))
        else:
            future.set_result(fn(*args))
        return future


@pytest.mark.parametrize(
    "terms", [{}, {"minimize": True, "outside": 0.4}, {"risk_tolerance": 0.5}, {"factor": 0.97}]
)
@pytest.mark.parametrize("options", [{}, {"exact": True}])
def test_solve_is_bitwise_identical_with_an_executor(pool, terms, options):
    forest = random_trees(7000, **terms)
    alone = weitzman.solve(forest, **options)
    told: list[tuple[int, int]] = []
    with_workers = weitzman.solve(
        forest, executor=pool, progress=lambda *x: told.append(x), **options
    )
    assert same(alone, with_workers)
    assert told[-1][0] == told[-1][1] > 1  # parts
    assert with_workers.status == alone.status


def test_the_plan_is_sent_once_and_without_the_forest():
    """An executor that keeps data: pieces are numbers of parts."""

    class Keeping(Fragile):
        kept: ClassVar[list[Any]] = []

        def scatter(self, data: Any) -> Any:
            self.kept.append(data)
            return data

        def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
            assert isinstance(args[2], int)
            return super().submit(fn, *args)

    names = [f"a box with a long name, and this is number {i}" for i in range(8000)]
    forest, executor = random_trees(8000, names=names), Keeping(set())
    found = weitzman.solve(forest, executor=executor)
    assert executor.given > 2
    (kept,) = executor.kept
    assert b"a long name" not in pickle.dumps(kept)
    assert same(found, weitzman.solve(forest))


def test_small_forests_endless_lines_and_equal_trees_too(pool):
    law = [[0.7, 0.3], [0.2, 0.8]]
    endless = Forest.from_arrays(
        parent=[-1, 0], cost=[0.1, 0.1], rewards=[0.0, 1.0], law=[law[0], law],
        endless=[False, True],
    )  # fmt: skip
    equal = weitzman.line([law[0], law], rewards=[0, 1], cost=0.1, count=50)
    mixed = weitzman.side_by_side([random_trees(5000), endless, equal, endless])
    for forest in (endless, equal, mixed):
        assert same(weitzman.solve(forest), weitzman.solve(forest, executor=pool))


def test_a_piece_whose_worker_died_is_done_again_bitwise_identical():
    forest = random_trees(7000, seed=3)
    alone = weitzman.solve(forest)
    executor = Fragile(dying={1, 3, 5})
    assert same(alone, weitzman.solve(forest, executor=executor))
    parts = executor.given - 3
    with pytest.warns(RuntimeWarning, match=f"did not finish .* of {parts} pieces"):
        found = weitzman.solve(forest, executor=Fragile(dying={2}, last=parts - 1))
    assert same(alone, found)
    with pytest.warns(RuntimeWarning, match=f"{parts} of {parts} pieces .*BrokenPipeError"):
        found = weitzman.solve(forest, executor=Fragile(dying=set(range(10**4))))
    assert same(alone, found)


def fails(_: None, piece: int) -> int:
    if piece == 2:
        raise InvalidArgument("the work itself is wrong")
    return piece


def test_an_error_of_the_work_is_raised_once():
    executor = Fragile(dying=set())
    with pytest.raises(InvalidArgument, match="the work itself is wrong"):
        spread(executor, fails, None, [0, 1, 2, 3])
    assert executor.given == 4


def ends_once(folder: str, piece: int) -> int:
    """The first time, piece 1 takes its process with it."""
    mark = Path(folder) / "died"
    if piece == 1 and not mark.exists():
        mark.touch()
        os._exit(1)
    return piece * piece


def reads(data: dict[str, Any], piece: int) -> tuple[int, int]:
    return piece + data["one"], os.getpid()


def test_a_pool_of_processes_reads_the_data_once_and_may_break(tmp_path):
    with ProcessPoolExecutor(2) as processes:
        found = spread(processes, reads, {"one": 1}, range(6))
        assert [x for x, _ in found] == [1, 2, 3, 4, 5, 6]
        assert os.getpid() not in {pid for _, pid in found}
        with pytest.warns(RuntimeWarning, match="BrokenProcessPool"):
            assert spread(processes, ends_once, str(tmp_path), range(4)) == [0, 1, 4, 9]


def note(told: list[tuple[int, int]], done: int, total: int) -> None:
    told.append((done, total))


def test_simulate_is_bitwise_identical_with_an_executor(pool):
    solution = weitzman.solve(random_trees(300))
    for options in ({}, {"workers": 3}, {"budget": 4}):
        alone = weitzman.simulate(solution, 3001, 5, **options)
        told: list[tuple[int, int]] = []
        progress = partial(note, told)
        shared = weitzman.simulate(solution, 3001, 5, executor=pool, progress=progress, **options)
        for name in ("payoff", "reward", "spend", "openings", "rounds", "time"):
            a, b = getattr(alone, name), getattr(shared, name)
            assert (a.mean, a.standard_error) == (b.mean, b.standard_error)
            assert np.array_equal(a.values, b.values)
        assert np.array_equal(alone.opened, shared.opened)
        assert told[-1] == (3001, 3001)


def test_draws_and_compare_are_the_same_with_an_executor(pool):
    model = learn.fit(learn.sample().of_task("letter"), price=1000)
    assert isinstance(model, learn.ResemblanceModel)
    alone, shared = bootstrap(model, 4, seed=1), bootstrap(model, 4, seed=1, executor=pool)
    assert np.array_equal(alone.fresh_index, shared.fresh_index)
    assert np.array_equal(alone.value_at(3), shared.value_at(3))
    solution = weitzman.solve(random_trees(12))
    a = weitzman.compare(solution, episodes=500)
    b = weitzman.compare(solution, episodes=500, executor=pool)
    assert a.columns() == b.columns()
    with pytest.raises(InvalidArgument, match="`rng` must be a seed"):
        weitzman.compare(solution, executor=pool, rng=np.random.default_rng(0))


SWEEPS: dict[str, Any] = {
    "value_of_knowing": lambda f, **how: questions.value_of_knowing(f, [0, 3], **how),
    "value_of_knowing, drawn": lambda f, **how: questions.value_of_knowing(
        f, range(12), samples=9, rng=4, **how
    ),
    "value_of_tests": lambda f, **how: questions.value_of_tests(f, {0: 0.8, 7: 0.9}, **how),
    "risk_sweep": lambda f, **how: questions.risk_sweep(f, steps=5, **how).columns(),
    "tornado": lambda f, **how: questions.tornado(f, boxes=5, **how).columns(),
    "turning_points": lambda f, **how: questions.turning_points(
        weitzman.solve(f), boxes=3, **how
    ),
    "commit": lambda f, **how: repr(questions.commit(f, unseen=[0, 7, 14], **how)),
    "commit, one at a time": lambda f, **how: repr(
        questions.commit(f, unseen=f.roots[:10].tolist(), **how)
    ),
    "solve_many": lambda f, **how: questions.solve_many(
        [f.changed(outside=x) for x in range(200)], **how
    ).columns(),
    "solve_many, arrays": lambda f, **how: questions.solve_many(
        f, cost=np.linspace(0, 2, 5 * len(f)).reshape(5, -1), **how
    ).columns(),
    "frontier": lambda f, **how: questions.frontier(f, corners=9, **how).columns(),
}  # fmt: skip


@pytest.mark.parametrize("sweep", SWEEPS)
def test_sweeps_are_the_same_with_an_executor(pool, sweep):
    forest, told = random_trees(70, outside=0.3), []
    alone = SWEEPS[sweep](forest, progress=lambda a, b: told.append((a, b)))
    assert told
    assert SWEEPS[sweep](forest, executor=pool) == alone
    assert SWEEPS[sweep](forest, executor=Fragile({2, 3})) == alone
    with pytest.raises(InvalidArgument, match="submit"):
        SWEEPS[sweep](forest, executor=3)


@pytest.mark.parametrize("minimize", [False, True])
def test_a_file_is_read_by_the_workers(pool, tmp_path, minimize):
    path, other = tmp_path / "many.wz", tmp_path / "other.wz"
    terms = {"minimize": True, "outside": 0.7} if minimize else {}
    weitzman.files.save_many((random_trees(700, seed, **terms) for seed in range(4)), path)
    alone = bounds.solve_file(path, part=300, indices=tmp_path / "a.npy")
    told: list[tuple[int, int]] = []
    there = bounds.solve_file(
        path, part=300, indices=tmp_path / "b.npy", executor=pool,
        progress=lambda a, b: told.append((a, b)),
    )  # fmt: skip
    assert told[-1] == (there.parts, there.parts)
    assert there.parts > 5
    known = (there.value, there.gap, there.boxes, there.parts, there.first_box)
    assert known == (alone.value, alone.gap, alone.boxes, alone.parts, alone.first_box)
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    weitzman.files.save_many([random_trees(700, 9, **terms)], other)
    os.replace(other, path)  # another file: what a worker has mapped is not taken for it
    again = bounds.solve_file(path, part=300, executor=pool)
    assert again.value == bounds.solve_file(path, part=300).value != alone.value


class FromStore(Fragile):
    """An executor whose workers get read-only arrays, as those of Ray do."""

    def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
        buffers: list[pickle.PickleBuffer] = []
        packed = pickle.dumps(args, 5, buffer_callback=buffers.append)
        stored = [bytes(buffer.raw()) for buffer in buffers]
        return super().submit(fn, *pickle.loads(packed, buffers=stored))

    def scatter(self, data: Any) -> Any:
        return data


@pytest.mark.skipif(PLAIN, reason="nothing is compiled")
def test_workers_compile_nothing_that_the_caller_has_not():
    """A read-only array has a type of its own, for which kernels would be compiled once more."""
    forest = random_trees(3000)
    solution = weitzman.solve(forest)
    played = weitzman.simulate(solution, 20_000, 0)
    before = {kernel: len(kernel.signatures) for kernel in kernels}
    executor = FromStore(set())
    assert same(weitzman.solve(forest, executor=executor), solution)
    there = weitzman.simulate(solution, 20_000, 0, executor=executor)
    assert there.payoff.mean == played.payoff.mean
    after = {kernel: len(kernel.signatures) for kernel in kernels}
    assert [k.__name__ for k in kernels if after[k] > max(before[k], 1)] == []


def test_what_is_no_executor_is_rejected():
    forest = random_trees(20)
    with pytest.raises(InvalidArgument, match=r"must have a method `submit`.* got a int"):
        weitzman.solve(forest, executor=4)

    class Client:
        def get_executor(self) -> None: ...

        def submit(self) -> None: ...

    with pytest.raises(InvalidArgument, match=r"Pass its get_executor\(\)"):
        weitzman.simulate(weitzman.solve(forest), 10, executor=Client())
    with (
        pytest.raises(InvalidArgument, match="several prizes"),
        warnings.catch_warnings(),
        ThreadPoolExecutor(1) as one,
    ):
        weitzman.solve(random_trees(20, prizes=2), executor=one)
