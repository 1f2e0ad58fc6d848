"""What knowing beforehand is worth: the states of boxes, or the outcome of a test of them.

Given what is told, the other boxes still form a forest with a Markov law on every edge: each law is
weighed with the likelihood of what is told below. See the theory page, section 16.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, check_counts, error_of_mean
from .._common.sharing import Executor, check_executor, spread
from .._common.text import as_html
from .._kernels.structure import postorder
from ..engine.solver import solve
from ..errors import InvalidArgument
from ..forest.model import Forest

_ENUMERATED = 4096  # combinations of outcomes that are all looked at; beyond, they are sampled


@dataclass(frozen=True, slots=True)
class Knowing:
    """What information is worth.

    Attributes
    ----------
    without, value : float
        The value without the information, and the expected value with it (in the user's sign);
        with a risk tolerance, certainty equivalents.
    worth : float
        What the information adds: the most to pay for it. With a risk tolerance, too: paying an
        amount for certain lowers the certainty equivalent by that amount.
    error : float
        Standard error of ``value``; 0 if all outcomes were looked at.
    """

    without: float
    value: float
    worth: float
    error: float

    _repr_html_ = as_html


def value_of_knowing(
    forest: Forest,
    boxes: str | int | Sequence[str | int],
    *,
    samples: int = 1000,
    rng: np.random.Generator | int = 0,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Knowing:
    """What it is worth to be told the states of some boxes before anything is opened.

    Costs do not change, and a box must still be opened after its parent: only its state is known.

    Parameters
    ----------
    forest : Forest
    boxes : name or number, or list of them
    samples : int
        If the boxes have more than some thousand combinations of states, draw this many of them.
    rng : Generator or int
        For the draws.
    threads, executor, progress
        As in :func:`solve_many`, combination by combination.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> weitzman.questions.value_of_knowing(box, ["chest"]).worth  # saves the cost of a nought
    0.5
    """
    listed: Any = [boxes] if isinstance(boxes, str | int | np.integer) else boxes
    tests = [(v, np.eye(len(forest.states(v)))) for v in map(forest.box, listed)]
    return _value_told(forest, tests, samples, rng, threads, executor, progress)


def value_of_tests(
    forest: Forest,
    tests: Mapping[Any, float | ArrayLike],
    *,
    samples: int = 1000,
    rng: np.random.Generator | int = 0,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Knowing:
    """What it is worth to see the outcomes of tests of some boxes before anything is opened.

    Parameters
    ----------
    forest : Forest
    tests : mapping
        For each box the accuracy of its test, or a matrix (own states, outcomes) with the
        probability of each outcome in each state. An accuracy is the probability that the test
        reports the true state; otherwise it reports one of the other states, each with the same
        probability.
    samples, rng, threads, executor, progress
        As in :func:`value_of_knowing`.

    Examples
    --------
    >>> import weitzman
    >>> box = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=4, names=["chest"])
    >>> round(weitzman.questions.value_of_tests(box, {"chest": 0.9}).worth, 9)
    1.5
    """
    given = [(forest.box(b), _matrix(forest, forest.box(b), q)) for b, q in tests.items()]
    return _value_told(forest, given, samples, rng, threads, executor, progress)


def _value_told(
    forest: Forest, tests: Sequence[tuple[int, FloatArray]], samples: int,
    rng: np.random.Generator | int, threads: int | None, executor: Executor | None,
    progress: Callable[[int, int], None] | None,
) -> Knowing:  # fmt: skip
    """The value once the outcomes of tests are told."""
    forest.must_end("the value of information")
    check_counts(2, samples=samples)
    check_executor(executor)
    outcomes = dict(tests)
    if len(outcomes) < max(1, len(tests)):
        twice = [v for v in outcomes if sum(v == w for w, _ in tests) > 1]
        named = f", but box {forest.name(twice[0])!r} is named twice" if twice else ""
        raise InvalidArgument(f"give at least one box, and each one once{named}.")
    for v in outcomes:
        up = v
        while up >= 0:
            if forest.count[up] > 1:
                raise InvalidArgument(
                    f"what is told must be about one box, but box {forest.name(v)!r} has copies. "
                    f"Write them out with expand."
                )
            up = int(forest.parent[up])
    without = solve(forest, threads=threads).value
    sizes = [q.shape[1] for q in outcomes.values()]
    every = float(np.prod(np.array(sizes, float))) <= _ENUMERATED
    told = (
        list(product(*map(range, sizes)))
        if every
        else list(_drawn(forest, outcomes, samples, np.random.default_rng(rng)))
    )
    data = forest, outcomes, threads if executor is None else 1
    found = np.array(spread(executor, _mass_and_value, data, told, progress))
    found = found[found[:, 0] > 0]
    mass, values = found[:, 0] if every else np.full(len(found), 1 / len(found)), found[:, 1]
    tau = forest.risk_tolerance
    if tau is None:
        total, error = float(mass @ values), error_of_mean(values)
    else:  # the certainty equivalent of all certainty equivalents, measured from the worst one
        worst = float((forest.sign * values).min())
        lost = np.exp(-(forest.sign * values - worst) / tau)
        mean = float(mass @ lost)
        total = forest.sign * (worst - tau * math.log(mean))
        error = tau * error_of_mean(lost) / mean
    return Knowing(without, total, forest.sign * (total - without), 0.0 if every else error)


def _mass_and_value(
    data: tuple[Forest, dict[int, FloatArray], int | None], told: tuple[int, ...]
) -> tuple[float, float]:
    """The probability of some outcomes, and the value once they are told."""
    f, tests, threads = data
    outcome, mass = dict(zip(tests, told, strict=True)), 1.0
    column, laws = f.law.copy(), list[FloatArray]()
    likelihood: dict[int, FloatArray] = {}  # of what is told at or below a box, by its own state
    for v in postorder(f.parent)[0].tolist():
        if v in outcome:
            likelihood[v] = likelihood.get(v, 1.0) * tests[v][:, outcome[v]]
        if v not in likelihood:
            continue
        law, up = f.laws[int(f.law[v])], int(f.parent[v])
        weighed = law * likelihood[v]
        total = weighed.sum(axis=1, keepdims=True)
        if up >= 0:
            likelihood[up] = likelihood.get(up, np.ones(len(total))) * total[:, 0]
        else:
            mass *= float(total[0, 0])
        column[v] = len(f.laws) + len(laws)
        # after an impossible state any law will do
        laws.append(np.where(total > 0, weighed / np.where(total > 0, total, 1.0), law))
    if mass <= 0:
        return 0.0, 0.0
    given = replace(f, law=column, laws=f.laws.with_more(laws))
    return mass, solve(given, threads=threads).value


def _matrix(f: Forest, box: int, given: float | ArrayLike) -> FloatArray:
    k = len(f.states(box))
    q = np.asarray(given, np.float64)
    if q.ndim == 0:
        if not 0 <= q <= 1:
            raise InvalidArgument(f"an accuracy must lie between 0 and 1, but it is {q:g}.")
        other = (1 - float(q)) / max(k - 1, 1)
        q = np.full((k, k), other)
        np.fill_diagonal(q, float(given) if k > 1 else 1.0)  # type: ignore[arg-type]
    if q.ndim != 2 or len(q) != k or (q < 0).any() or (np.abs(q.sum(axis=1) - 1) > 1e-9).any():
        raise InvalidArgument(
            f"a test is an accuracy, or a matrix with a row of probabilities for each of the {k} "
            f"states of its box, but that of box {f.name(box)!r} is not."
        )
    return q


def _drawn(
    f: Forest, tests: Mapping[int, FloatArray], samples: int, rng: np.random.Generator
) -> Iterator[tuple[int, ...]]:
    """Outcomes of the tests, drawn with their probabilities."""
    order = postorder(f.parent)[0][::-1].tolist()
    for _ in range(samples):
        state: dict[int, int] = {-1: 0}
        for v in order:
            law = f.laws[int(f.law[v])][state[int(f.parent[v])]]
            state[v] = int(rng.choice(len(law), p=law / law.sum()))
        yield tuple(
            int(rng.choice(q.shape[1], p=q[state[v]] / q[state[v]].sum())) for v, q in tests.items()
        )
