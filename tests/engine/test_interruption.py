"""Ctrl-C ends long work at once, also in compiled code."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from weitzman._common.interruption import Stopped, check, flag, interruptible

# a line whose operations take long, most of the time in one call of compiled code
HEAVY = """
import sys, time
import numpy as np
import weitzman
rng = np.random.default_rng(0)
k, n = 300, 32000
law = rng.dirichlet(np.ones(k), k)
forest = weitzman.Forest.from_arrays(
    parent=np.arange(n) - 1, cost=rng.uniform(1e-4, 2e-4, n), rewards=rng.random(k),
    law=[law[0]] + [law] * (n - 1))
small = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1)
weitzman.evaluate(weitzman.solve(small))  # compiled, or read from disk
"""
SOLVE = "work = lambda: weitzman.solve(forest, exact=True, threads=1)"
EVALUATE = """
index = np.concatenate([[1.0], np.tile(np.linspace(0, 1, k), n - 1)])
at = np.concatenate([[0], 1 + k * np.arange(n - 1)])
policy = weitzman.Policy.of(forest, at, index)
work = lambda: weitzman.evaluate(policy)
"""
WAIT = """
print("ready", flush=True)
try:
    work()
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
else:
    print("never interrupted", flush=True)
"""


def seconds_to_end(work):
    """How long compiled work goes on after an interrupt."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import signal\nsignal.signal(signal.SIGINT, "
         "signal.default_int_handler)\n" + HEAVY + work + WAIT],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n", child.stderr.read()
    time.sleep(1.0)
    assert child.poll() is None, "it was done before anybody could interrupt it"
    sent = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, "")
    return float(out) - sent


@pytest.mark.parametrize("work", [SOLVE, EVALUATE])
def test_an_interrupt_ends_compiled_work(work):
    assert any(seconds_to_end(work) < 0.5 for _ in range(4))  # other programs may be in the way


def test_results_errors_and_flags_go_through():
    assert interruptible(lambda: 7) == 7
    assert interruptible(threading.current_thread) is not threading.current_thread()
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0)
    assert flag().tolist() == [0]
    with pytest.raises(Stopped):
        check(np.ones(1, np.int64))


def test_another_thread_does_its_own_work():
    seen = []
    other = threading.Thread(target=lambda: seen.append(interruptible(threading.current_thread)))
    other.start()
    other.join()
    assert seen == [other]


def test_settings_of_the_caller_hold():
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        interruptible(lambda: np.ones(1) / np.zeros(1))


# Calls on the main thread of what can reach a kernel, interrupted by a timer at a random instant. A
# signal handler that raises while Numba boxes a result takes the interpreter down; an interrupt
# inside threading.Event ends in "release unlocked lock".
TIMER = """
import random, signal, sys, time
import numpy as np
import weitzman
from weitzman import bounds, chains, questions
from weitzman._kernels import jit

def stop(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
ten = weitzman.line([[0.5, 0.5]] + [[[0.6, 0.4], [0.3, 0.7]]] * 9, rewards=[0, 10], cost=0.3)
jit.compile_always(sys.argv[1] == "compiled")
best = weitzman.solve(ten)
search = weitzman.Search(best)
chain = chains.Chain([[0.6, 0.4], [0.3, 0.7]], [0, 10])
many = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=0.3, count=3, prizes=2)
endless = weitzman.Forest.from_arrays(parent=[-1, 0], cost=0.3, rewards=[0, 10],
    law=[[0.5, 0.5], [[0.6, 0.4], [0.3, 0.7]]], endless=[False, True])
works = [
    lambda: weitzman.solve(ten), lambda: weitzman.evaluate(best),
    lambda: weitzman.simulate(best, 50, rng=1), lambda: weitzman.compare(ten),
    lambda: weitzman.Search(best).expected, lambda: weitzman.sensitivity(best),
    lambda: weitzman.break_even(best, 0), lambda: best.phi(3.0), lambda: search.expected,
    lambda: questions.tornado(ten), lambda: bounds.truncate(ten, gap=0.01),
    lambda: chain.stationary(), lambda: weitzman.solve(many),
    lambda: weitzman.evaluate(weitzman.solve(endless)),
    lambda: questions.frontier(ten, corners=2), lambda: questions.value_of_knowing(ten, "1"),
]
random.seed(int(sys.argv[2]))
for work in works:
    work()
hits, end = 0, time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 2e-3))
        random.choice(works)()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        hits += 1
signal.setitimer(signal.ITIMER_REAL, 0)
assert search.expected == weitzman.solve(ten).value == best.value
print(hits)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a timer of Unix")
@pytest.mark.parametrize("way", ["by size", "compiled"])
def test_a_timer_at_any_instant_ends_in_nothing_but_an_interrupt(way):
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", TIMER, way, "1", "6"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 20
