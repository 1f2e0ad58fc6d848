"""Every kernel as plain Python gives what it gives compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import kernel_questions
import numpy as np
import pytest
from numba import njit

from weitzman._kernels import lanes as lanes_compiled
from weitzman._kernels import lanes_plain

SCRIPT = Path(kernel_questions.__file__)


def run_script(**env):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT)],
        capture_output=True, text=True, check=False, env=os.environ | env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def compiled():
    return run_script()


def test_plain_python_gives_what_is_compiled(compiled):
    plain = run_script(NUMBA_DISABLE_JIT="1")
    assert plain["found"].keys() == compiled["found"].keys()
    for question, numbers in compiled["found"].items():
        assert plain["found"][question] == pytest.approx(numbers, rel=1e-12, abs=1e-13), question
    missed = kernel_questions.defined() - set(plain["called"])
    assert missed == set(), "kernels that no question here asks for"


def test_no_kernel_is_compiled_twice(compiled):
    """What is read only and what is not, a number in the code and one that is not: types differ."""
    shared = {"aligned"}  # also by kernels
    twice = {
        name: types
        for name, types in compiled["types"].items()
        if len(types) > 1 and name.rpartition(".")[2] not in shared
    }
    assert twice == {}


# -- lanes ---------------------------------------------------------------------------------------

NUMBERS = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 1e-310])
OTHERS = np.array([-0.0, 3.0, 1.5, 7.0, -np.inf, -np.inf, 1.0, 2.0])


def in_lanes(name, *arrays):
    """The result of a compiled operation on vectors that start the arrays."""
    f, load, store, pointer = (
        getattr(lanes_compiled, n) for n in (name, "load", "store", "pointer")
    )
    if len(arrays) == 3:

        @njit
        def run(a, b, c, out):
            x, y, z = load(pointer(a, 0), 0), load(pointer(b, 0), 0), load(pointer(c, 0), 0)
            store(pointer(out, 0), 0, f(x, y, z))

    else:

        @njit
        def run(a, b, out):
            store(pointer(out, 0), 0, f(load(pointer(a, 0), 0), load(pointer(b, 0), 0)))

    out = np.empty(8)
    run(*arrays, out)
    return out


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "larger", "smaller", "madd"])
def test_plain_arithmetic(name):
    arrays = (NUMBERS, OTHERS, OTHERS[::-1].copy())[: 3 if name == "madd" else 2]
    with np.errstate(all="ignore"):
        plain = getattr(lanes_plain, name)(*arrays)
    compiled = in_lanes(name, *arrays)
    assert plain.tobytes() == compiled.tobytes() or np.array_equal(plain, compiled, equal_nan=True)


def masks_compiled(a, b):
    above, at_least, both, either, where, some, leading, splat = (
        getattr(lanes_compiled, n)
        for n in ("above", "at_least", "both", "either", "where", "some", "leading", "splat")
    )
    load, store, pointer = lanes_compiled.load, lanes_compiled.store, lanes_compiled.pointer

    @njit
    def run(a, b, out):
        x, y = load(pointer(a, 0), 0), load(pointer(b, 0), 0)
        m, n, p = above(x, y), at_least(x, y), pointer(out, 0)
        store(p, 0, where(m, splat(1.0), splat(0.0)))
        store(p, 8, where(n, x, y))
        store(p, 16, where(both(m, n), x, y))
        store(p, 24, where(either(m, n), x, y))
        return some(m), some(n), leading(m), leading(n)

    out = np.empty(32)
    return out, run(a, b, out)


def masks_plain(a, b):
    above, at_least, where = lanes_plain.above, lanes_plain.at_least, lanes_plain.where
    m, n = above(a, b), at_least(a, b)
    out = [where(m, lanes_plain.splat(1.0), lanes_plain.splat(0.0)), where(n, a, b)]
    out += [where(lanes_plain.both(m, n), a, b), where(lanes_plain.either(m, n), a, b)]
    some, leading = lanes_plain.some, lanes_plain.leading
    return np.concatenate(out), (some(m), some(n), leading(m), leading(n))


@pytest.mark.parametrize(
    ("a", "b"),
    [(NUMBERS, OTHERS), (OTHERS, NUMBERS), (NUMBERS, NUMBERS), (np.arange(8.0), np.full(8, -1.0))],
)
def test_plain_masks(a, b):
    plain, compiled = masks_plain(a, b), masks_compiled(a, b)
    assert np.array_equal(plain[0], compiled[0], equal_nan=True)
    assert plain[1] == compiled[1]


@pytest.mark.parametrize("n", [1, 2, 7, 8, 2**40 - 1, 2**62])
def test_plain_bit_length(n):
    assert lanes_plain.bit_length(n) == njit(lambda x: lanes_compiled.bit_length(x))(n)


def test_a_plain_pointer_is_the_rest_of_an_array():
    p = lanes_plain.pointer(lanes_plain.pointer(np.arange(10.0), 4), 2)
    assert p[1] == 7
    with pytest.raises(IndexError):
        p[4]
    with pytest.raises(ValueError, match="contiguous"):
        lanes_plain.pointer(np.zeros((4, 4))[:, ::2], 0)
