"""Kernels start as plain Python and are compiled once that pays."""

from __future__ import annotations

import math
import os
import pickle
import struct
import subprocess
import sys
import threading
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from numba.core.caching import NullCache

from weitzman import Forest, solve
from weitzman._kernels import jit, processor, tiers
from weitzman._kernels.lanes import load, log1p, pointer


class Pair(NamedTuple):
    sums: np.ndarray
    last: float


@jit.helper()
def add(x, y):
    return x + y


def run_sums(x):
    out, total = np.empty(x.size), 0.0
    for i in range(x.size):
        total = add(total, x[i])
        out[i] = total
    return Pair(out, total)


class Disk(NullCache):
    """A cache that holds nothing, whatever it says."""

    def __init__(self, full):
        self.full = full

    def has_files(self):
        return self.full


@pytest.fixture
def kernel(monkeypatch):
    """A function that makes a new kernel, not known to others, whose cache is full or not."""
    monkeypatch.setitem(tiers._scale, "patience", 1.0)
    monkeypatch.setattr(jit, "kernels", [])

    def make(*, full=False, **options):
        made = jit.kernel(**options)(run_sums)
        made._cache = Disk(full)
        return made

    return make


def test_small_work_is_done_without_compiling(kernel):
    f = kernel()
    found = f(np.arange(4.0))
    assert not f.signatures
    assert isinstance(found, Pair)
    assert found.sums.tolist() == [0, 1, 3, 6]
    assert type(found.last) is float  # as compiled code returns it, not of NumPy


def test_large_work_is_compiled_at_once(kernel):
    f = kernel(work=lambda x: 1e9)
    assert f(np.arange(4.0)).last == 6
    assert len(f.signatures) == 1


def test_what_lies_on_disk_is_taken_sooner(kernel):
    steps = 0.01 / tiers.STEP  # a hundredth of a second
    assert not_compiled(kernel(work=lambda x: steps))
    assert not not_compiled(kernel(work=lambda x: steps, full=True))


def not_compiled(f):
    f(np.arange(4.0))
    return not f.signatures


def test_it_is_compiled_after_some_time(kernel):
    f = kernel()
    calls = 0
    while not f.signatures:
        f(np.arange(400.0))
        calls += 1
        assert calls < 10_000
    assert calls > 10
    before = f.stats
    assert f(np.arange(4.0)).last == 6
    assert len(f.signatures) == 1, before


def test_compiled_once_it_stays_compiled(kernel):
    """Other types are compiled as well, so that no result is made in two ways."""
    f = kernel(work=lambda x: 1e9 if x.size > 100 else 1.0)
    f(np.arange(200.0))
    f(np.arange(4))
    assert len(f.signatures) == 2


def test_compile_at_once(kernel):
    tiers.compile_at_once()
    assert not not_compiled(kernel())


def test_a_kernel_without_a_twin(kernel):
    assert not not_compiled(kernel(twin=False))


def test_a_kernel_can_be_sent_to_others(kernel):
    assert pickle.loads(pickle.dumps(kernel()))(np.arange(4.0)).last == 6


def test_an_interrupted_twin_can_be_called_again(kernel):
    f = kernel()
    with pytest.raises(KeyboardInterrupt):
        f(Interrupting(4))
    assert f(np.arange(4.0)).last == 6
    assert not f.signatures


class Interrupting:
    """As long as an array, but nobody gets beyond its second number."""

    def __init__(self, size):
        self.size = size

    def __getitem__(self, i):
        if i == 2:
            raise KeyboardInterrupt
        return float(i)


def test_threads_that_begin_together(kernel):
    f = kernel()
    found, start = [], threading.Barrier(8)

    def work():
        start.wait()
        found.extend(f(np.arange(50.0)).last for _ in range(200))

    crowd = [threading.Thread(target=work) for _ in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert found == [1225.0] * 1600


# -- the environment -------------------------------------------------------------------------------

DEMO = [sys.executable, "-W", "error", "-m", "weitzman", "demo"]


def run_demo(folder, choice):
    env = {k: v for k, v in os.environ.items() if k != tiers.VARIABLE}
    env |= {"WEITZMAN_CACHE_DIR": str(folder)} | ({tiers.VARIABLE: choice} if choice else {})
    done = subprocess.run(DEMO, capture_output=True, text=True, check=False, env=env)
    return done.returncode, done.stdout, done.stderr


def test_the_first_demo_compiles_nothing(tmp_path):
    code, words, complaint = run_demo(tmp_path, "")
    assert (code, complaint) == (0, "")
    assert "Try your own numbers" in words
    assert list(tmp_path.rglob("*.bin")) == []


def test_an_unknown_choice(monkeypatch):
    monkeypatch.setenv(tiers.VARIABLE, "sometimes")
    with pytest.warns(RuntimeWarning, match="WEITZMAN_COMPILE must be .*, but it is 'sometimes'"):
        tiers._read_choice()


@pytest.mark.parametrize(("choice", "patience"), [("always", 0), ("never", math.inf), ("", 1)])
def test_choices(monkeypatch, choice, patience):
    monkeypatch.setenv(tiers.VARIABLE, choice)
    monkeypatch.setitem(tiers._scale, "patience", 7.0)
    tiers._read_choice()
    assert tiers._scale["patience"] == patience


def test_results_of_both_tiers_can_be_mixed(monkeypatch):
    """A plan made by twins is carried out by compiled kernels, and the other way round."""
    forest = Forest.from_arrays(
        parent=[-1, 0, 0], cost=[0.1, 0.2, 0.1], rewards=[0, 3],
        law=[[0.5, 0.5], [[0.5, 0.5], [0.2, 0.8]], [[0.9, 0.1], [0.5, 0.5]]],
    )  # fmt: skip
    expected = solve(forest)
    twins = {k.py_func.__name__: tiers.Tiers(k, len)._run for k in jit.kernels}
    from weitzman._kernels import capped, structure

    for module, name in ((structure, "classify"), (structure, "build_operations")):
        with monkeypatch.context() as only:
            only.setattr(module, name, twins[name])
            mixed = solve(forest)
        assert mixed.value == expected.value
        assert mixed.indices(0).tolist() == expected.indices(0).tolist()
    assert len(capped.sweep.signatures) == 1  # the types of what twins return are the same


# -- arithmetic ------------------------------------------------------------------------------------


def bits(x):
    return struct.pack("d", x)


def numbers(seed):
    """Floats of all sizes, subnormal ones, sums that cancel, and what is not finite."""
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(size=2000) * 2.0 ** rng.integers(-540, 500, 2000) for _ in range(2))
    c = np.where(rng.random(2000) < 0.5, -a * b, rng.normal(size=2000) * 2.0 ** rng.integers(-9, 9))
    c = np.where(rng.random(2000) < 0.3, np.nextafter(c, rng.normal(size=2000)), c)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7976931348623157e308])
    for x in (a, b, c):
        x[rng.integers(0, 2000, 300)] = rng.choice(special, 300)
    return a, b, c


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:overflow|invalid:RuntimeWarning")
def test_one_rounding_by_fractions_is_that_of_the_machine(seed):
    a, b, c = numbers(seed)
    found = processor.fused(a, b, c)
    ours = np.array(list(map(processor._exact, a.tolist(), b.tolist(), c.tolist())))
    assert np.array_equal(np.isnan(found), np.isnan(ours))
    assert found[~np.isnan(found)].tobytes() == ours[~np.isnan(ours)].tobytes()
    if sys.version_info >= (3, 13):
        assert processor._fma is processor._of_python


def test_two_roundings_differ():
    """So that a test of equal bits can fail."""
    a, b, c = numbers(5)
    with np.errstate(all="ignore"):
        assert (processor.fused(a, b, c) != a * b + c).sum() > 200


def test_logarithm_of_nothing():
    from weitzman._kernels import lanes_plain

    compiled = njit(lambda x: log1p(x))
    for x in (-1.0, -0.5, -1e-300, 0.0, 1e-9, 1.0):
        assert bits(lanes_plain.log1p(x)) == bits(compiled(x))


def test_reading_needs_a_pointer():
    """Operations on lanes have twins of the same name, without which a kernel has none."""
    from weitzman._kernels import lanes_compiled, lanes_plain

    assert load is lanes_compiled.load
    assert pointer is lanes_compiled.pointer
    shared = {n for n in vars(lanes_compiled) if hasattr(lanes_plain, n)}
    assert shared >= {"load", "store", "madd", "exp", "expm1", "log1p"}
