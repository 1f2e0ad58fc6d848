"""The solver against the exact oracle, certificates, the paper's lemmas and symmetries."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
import random_problems
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_forests import PAPER, forest_of, random_forest, written_out

from weitzman import Forest, Status, solve
from weitzman.errors import InvalidArgument


def close(a: float, b: float, scale: float = 1.0) -> bool:
    return a == b or abs(a - b) <= 1e-10 * max(scale, abs(b))


# -- published and hand-worked cases -----------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
def test_the_papers_example(exact):
    s = solve(Forest.from_arrays(**PAPER, names=["A", "B", "C"]), exact=exact)
    assert s.value == pytest.approx(94.325, abs=1e-12)
    assert s.index("A") == pytest.approx(707, abs=1e-12)
    assert s.index("B", 0) == pytest.approx(15, abs=1e-12)
    assert s.index("B", 1) == pytest.approx(914, abs=1e-12)
    assert s.index("C") == pytest.approx(40, abs=1e-12)
    assert s.first_box == s.forest.name(0)
    assert s.gap <= 1e-9 * 929


def test_one_box_has_weitzmans_reservation_value():
    s = solve(Forest.from_arrays(parent=[-1], cost=[2], rewards=[0, 10], law=[[0.75, 0.25]]))
    assert s.index(0) == 2.0  # 0.25 * (10 - 2) = 2
    assert s.value == 0.5


def test_separate_boxes_follow_weitzmans_rule():
    rng = np.random.default_rng(5)
    rewards, laws, costs = rng.random((6, 3)), rng.dirichlet(np.ones(3), 6), rng.uniform(0, 0.2, 6)
    s = solve(Forest.from_arrays(parent=[-1] * 6, cost=costs, rewards=rewards, law=laws[:, None]))
    for i in range(6):
        gain = laws[i] @ np.maximum(rewards[i] - s.index(i), 0)
        assert gain == pytest.approx(costs[i], abs=1e-12)
    # the classical formula: E max over boxes of min(reward, reservation value)
    grid = np.array([np.minimum(rewards[i], s.index(i)) for i in range(6)])
    total = 0.0
    for pick in np.ndindex(*[3] * 6):
        p = math.prod(laws[i][j] for i, j in enumerate(pick))
        total += p * max(0.0, max(grid[i][j] for i, j in enumerate(pick)))
    assert s.value == pytest.approx(total, abs=1e-12)


def test_a_free_box_is_indexed_by_the_top_of_its_support():
    s = solve(Forest.from_arrays(parent=[-1], cost=[0], rewards=[1, 5, 9], law=[[0.5, 0.5, 0]]))
    assert s.index(0) == 5.0


def test_a_hopeless_box_has_a_finite_index_below_everything():
    s = solve(Forest.from_arrays(parent=[-1], cost=[100], rewards=[1, 5], law=[[0.5, 0.5]]))
    assert s.index(0) == 3 - 100
    assert s.value == 0
    assert s.first_box is None


def test_a_box_that_only_informs():
    # a free look at a signal which tells whether the prize behind it is there
    none = -np.inf
    s = solve(
        Forest.from_arrays(
            parent=[-1, 0],
            cost=[1, 1],
            rewards=[[none, none], [0, 10]],
            law=[[0.5, 0.5], [[1, 0], [0, 1]]],
        )
    )
    assert s.value == pytest.approx(-1 + 0.5 * 9)
    assert s.index(1, 1) == 9
    assert s.index(1, 0) == -1


def test_random_costs_count_by_their_mean():
    base = {"parent": [-1], "rewards": [0, 10], "law": [[0.5, 0.5]]}
    random = solve(Forest.from_arrays(cost=[[[1, 3]]], **base))
    fixed = solve(Forest.from_arrays(cost=[2], **base))
    assert random.value == fixed.value == 3
    assert random.index(0) == fixed.index(0)


def test_minimizing_is_maximising_with_signs_flipped():
    losses = [[-r for r in row] for row in PAPER["rewards"]]
    s = solve(Forest.from_arrays(**{**PAPER, "rewards": losses}, minimize=True, outside=0))
    assert s.value == pytest.approx(-94.325)
    assert s.index(1, 1) == pytest.approx(-914)
    assert s.first_box == s.forest.name(0)


def test_without_an_outside_option_something_is_taken():
    problem = {**PAPER, "rewards": [[r - 1000 for r in row] for row in PAPER["rewards"]]}
    s = solve(Forest.from_arrays(**problem, outside=-np.inf))
    with_it = solve(Forest.from_arrays(**problem, outside=-1e6))
    assert s.value == pytest.approx(with_it.value, rel=1e-12)
    assert s.value < 0


# -- the oracle --------------------------------------------------------------------------------

SHAPES = [
    random_problems.lines(max_boxes=5),
    random_problems.several_lines(max_boxes=5),
    random_problems.forests(max_boxes=5),
    random_problems.independent_boxes(max_boxes=4),
]


@pytest.mark.parametrize("shape", SHAPES, ids=["line", "lines", "forest", "independent"])
def test_value_and_indices_are_those_of_the_oracle(shape):
    @given(shape)
    def check(problem):
        s = solve(forest_of(problem), exact=True)
        assert s.status is Status.EXACT
        assert s.gap == 0
        assert close(s.value, float(reference.optimal_value(problem)))
        rows = reference.index_rows(reference.exact_indices(problem))
        for box, row in enumerate(rows):
            assert all(map(close, s.indices(box), row)), (box, s.indices(box), row)

    check()


@given(random_problems.forests(max_boxes=5))
def test_following_the_indices_earns_the_value(problem):
    s = solve(forest_of(problem))
    rows = [s.indices(i).tolist() for i in range(len(s.forest))]
    assert close(float(reference.follow_indices(problem, rows).value), s.value)


@given(random_problems.forests(max_boxes=5), st.sampled_from([1e-9, 1e-3, 0.1]))
def test_the_gap_bounds_the_error(problem, tolerance):
    s = solve(forest_of(problem), tolerance=tolerance)
    error = s.value - float(reference.optimal_value(problem))
    assert -1e-12 <= error <= s.gap + 1e-12
    rewards = s.forest.rewards.data[np.isfinite(s.forest.rewards.data)]
    ends = [*rewards.tolist(), s.forest.outside] if np.isfinite(s.forest.outside) else rewards
    span = max(ends) - min(ends) if len(ends) else 0
    assert s.gap <= tolerance * span * (1 + 1e-12)


@given(random_problems.forests(max_boxes=5, signals=False), st.data())
def test_copies_by_count_equal_copies_written_out(problem, data):
    arrays = reference.to_arrays(problem)
    n = len(arrays["parent"])
    count = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    counted = solve(Forest.from_arrays(**arrays, count=count), exact=True)
    parent, origin = written_out(arrays["parent"], count)
    full = solve(
        Forest.from_arrays(
            parent=parent,
            **{key: [arrays[key][i] for i in origin] for key in ("cost", "rewards", "law")},
            outside=arrays["outside"],
        ),
        exact=True,
    )
    assert close(counted.value, full.value)
    assert counted.forest.boxes == len(parent)


# -- certificates that need no remembered number -----------------------------------------------


def bellman_line(forest: Forest, x: float) -> list[np.ndarray]:
    """Phi(x, s) of each box of a line by Bellman's equation on the points x and all rewards."""
    points = np.unique(np.concatenate([[x], forest.rewards.data]))
    points = points[points >= x]
    after = None
    table = []
    for box in range(len(forest) - 1, -1, -1):
        law, reward = forest.laws[forest.law[box]], forest.rewards[forest.reward[box]][0]
        best = np.maximum(points[:, None], reward[None, :])  # point, own state
        if after is not None:
            at = np.searchsorted(points, best)
            best = after[at, range(len(reward))]
        phi = best @ law.T - forest.costs[forest.cost[box]][0, 0]
        after = np.maximum(points[:, None], phi)
        table.append(phi[np.searchsorted(points, x)])
    return table[::-1]


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_every_index_balances_gain_and_cost(seed):
    # E[(W - sigma)^+] = c for every box and state: opening at x = sigma gains nothing
    rng = np.random.default_rng(seed)
    n, k = 30, 4
    law = [rng.dirichlet(np.ones(k)), *rng.dirichlet(np.ones(k), (n - 1, k))]
    f = Forest.from_arrays(
        parent=np.arange(n) - 1, cost=rng.uniform(0.001, 0.1, n), rewards=rng.random(k), law=law
    )
    s = solve(f)
    for box in (0, 1, n // 2, n - 1):
        for state, sigma in enumerate(s.indices(box)):
            opened = bellman_line(f, sigma)[box][state]
            assert opened == pytest.approx(sigma, abs=1e-11)


def test_the_papers_payoff_table_on_lines():
    # Algorithm "Expected Equivalent Reward Computation": exact values at x in V
    rng = np.random.default_rng(11)
    n, k = 200, 6
    law = [rng.dirichlet(np.ones(k)), *rng.dirichlet(np.ones(k), (n - 1, k))]
    rewards = np.sort(rng.random(k))
    f = Forest.from_arrays(parent=np.arange(n) - 1, cost=[0.01] * n, rewards=rewards, law=law)
    for x in (0.0, *rewards[:-1]):
        s = solve(Forest.from_arrays(
            parent=np.arange(n) - 1, cost=[0.01] * n, rewards=rewards, law=law, outside=x
        ))  # fmt: skip
        assert s.value == pytest.approx(max(x, bellman_line(f, x)[0][0]), abs=1e-12)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(0, 39))
def test_lemmas_of_the_paper(seed, box):
    rng = np.random.default_rng(seed)
    f = random_forest(rng, 40)
    s = solve(f)
    # appending a box never lowers an index
    k = int(f.rewards.shape[f.reward[box], 1])
    columns = {
        "parent": [*f.parent, box],
        "cost": [*(f.costs[c] for c in f.cost), [[0.05]]],
        "rewards": [*(f.rewards[r][0] for r in f.reward), rng.random(2)],
        "law": [
            *(f.laws[m] if f.parent[i] >= 0 else f.laws[m][0] for i, m in enumerate(f.law)),
            rng.dirichlet(np.ones(2), k),
        ],
    }
    more = solve(Forest.from_arrays(**columns))
    for i in range(len(f)):
        assert (more.indices(i) >= s.indices(i) - 1e-10).all()
    # Phi is non-decreasing and 1-Lipschitz in the outside option
    values = []
    grid = np.linspace(-0.5, 1.5, 9)
    for x in grid:
        values.append(solve(with_outside(f, x)).value)
    steps = np.diff(values)
    assert (steps >= -1e-12).all()
    assert (steps <= np.diff(grid) + 1e-12).all()
    assert (np.array(values) >= grid - 1e-12).all()


def with_outside(f: Forest, x: float) -> Forest:
    return Forest(
        parent=f.parent, law=f.law, reward=f.reward, cost=f.cost, laws=f.laws, rewards=f.rewards,
        costs=f.costs, count=f.count, outside=x,
    )  # fmt: skip


# -- symmetries --------------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    random_problems.forests(max_boxes=5, signals=False), st.integers(-60, 60), st.integers(0, 10**6)
)
def test_shift_scale_relabel_and_split(problem, power, seed):
    a = reference.to_arrays(problem)
    base = solve(Forest.from_arrays(**a), exact=True)
    # scaling by a power of two is exact in floating point, so the result must scale to the bit
    c = 2.0**power
    scaled = solve(
        Forest.from_arrays(
            parent=a["parent"],
            cost=[np.multiply(x, c) for x in a["cost"]],
            rewards=[np.multiply(r, c) for r in a["rewards"]],
            law=a["law"],
            outside=a["outside"] * c,
        ),
        exact=True,
    )
    assert scaled.value == base.value * c
    # shifting all rewards and the outside option shifts value and indices
    shifted = solve(
        Forest.from_arrays(
            **{**a, "rewards": [np.add(r, 3.0) for r in a["rewards"]], "outside": a["outside"] + 3}
        ),
        exact=True,
    )
    assert close(shifted.value, base.value + 3)
    # numbering the boxes otherwise changes nothing
    n = len(a["parent"])
    perm = np.random.default_rng(seed).permutation(n)
    place = np.argsort(perm)
    moved = solve(
        Forest.from_arrays(
            parent=[-1 if a["parent"][i] < 0 else place[a["parent"][i]] for i in perm],
            **{key: [a[key][i] for i in perm] for key in ("cost", "rewards", "law")},
            outside=a["outside"],
        ),
        exact=True,
    )
    assert close(moved.value, base.value)
    for i in range(n):
        assert all(map(close, moved.indices(int(place[i])), base.indices(i)))


@settings(max_examples=30)
@given(random_problems.forests(max_boxes=4, costs="fixed", signals=False), st.data())
def test_splitting_a_state_changes_nothing(problem, data):
    a = reference.to_arrays(problem)
    base = solve(Forest.from_arrays(**a), exact=True)
    box = data.draw(st.integers(0, len(a["parent"]) - 1))
    y = data.draw(st.integers(0, len(a["rewards"][box]) - 1))
    law = [np.atleast_2d(np.array(m, float)) for m in a["law"]]
    law[box] = np.insert(law[box], y, law[box][:, y] / 4, axis=1)
    law[box][:, y + 1] *= 3
    rewards = [list(r) for r in a["rewards"]]
    rewards[box].insert(y, rewards[box][y])
    for child in (i for i, p in enumerate(a["parent"]) if p == box):
        law[child] = np.insert(law[child], y, law[child][y], axis=0)
    law[box][:, y + 1] = law[box][:, y + 1] / 4
    split = solve(
        Forest.from_arrays(
            parent=a["parent"], cost=a["cost"], rewards=rewards, outside=a["outside"],
            law=[m[0] if a["parent"][i] < 0 else m for i, m in enumerate(law)],
        ),
        exact=True,
    )  # fmt: skip
    assert close(split.value, base.value)


# -- scale, determinism, extremes --------------------------------------------------------------


def test_bitwise_identical_whatever_the_number_of_threads():
    rng = np.random.default_rng(3)
    n = 6000
    f = Forest.from_arrays(
        parent=[-1 if i % 7 == 0 else i - 1 for i in range(n)],
        cost=rng.uniform(0.001, 0.1, n),
        rewards=[0.1, 0.4, 0.9],
        law=[rng.dirichlet(np.ones(3), None if i % 7 == 0 else 3) for i in range(n)],
    )
    one, two, five = (solve(f, threads=t) for t in (1, 2, 5))
    assert one.value == two.value == five.value
    assert (one._index == two._index).all()
    assert (one._index == five._index).all()


def test_a_billion_boxes_by_counts():
    levels = 20
    law = [[0.5, 0.5], *[[[0.9, 0.1], [0.3, 0.7]]] * (levels - 1)]
    f = Forest.from_arrays(
        parent=np.arange(levels) - 1, cost=[0.05] * levels, rewards=[0, 1], law=law,
        count=[1] + [3] * (levels - 1),
    )  # fmt: skip
    assert f.boxes == sum(3**d for d in range(levels)) > 10**9
    s = solve(f)
    assert s.gap <= 1e-9
    small = solve(Forest.from_arrays(
        parent=np.arange(3) - 1, cost=[0.05] * 3, rewards=[0, 1], law=law[:3], count=[1, 3, 3]
    ))  # fmt: skip
    assert s.value >= small.value


def test_a_line_of_a_hundred_thousand_boxes():
    n = 100_000
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet(np.ones(4), 4)
    law = [rng.dirichlet(np.ones(4))] + [matrix] * (n - 1)
    cost = rng.uniform(0.01, 0.05, n)
    s = solve(Forest.from_arrays(parent=np.arange(n) - 1, cost=cost, rewards=range(4), law=law))
    short = solve(Forest.from_arrays(
        parent=np.arange(2000) - 1, cost=cost[:2000], rewards=range(4), law=law[:2000]
    ))  # fmt: skip
    assert s.gap <= 3e-9
    assert short.value <= s.value + s.gap
    assert s.value == pytest.approx(short.value, abs=1e-8)


@pytest.mark.parametrize("scale", [1e12, 1e-12, 1e150, 1e-150])
def test_extreme_scales(scale):
    rng = np.random.default_rng(8)
    base = solve(random_forest(rng, 60))
    rng = np.random.default_rng(8)
    s = solve(random_forest(rng, 60, spread=scale))
    assert s.value == pytest.approx(base.value * scale, rel=1e-9)


def test_tiny_probabilities_keep_their_digits():
    p = 1e-295
    s = solve(Forest.from_arrays(parent=[-1], cost=[1.0], rewards=[0, 4e295], law=[[1 - p, p]]))
    assert s.index(0) == pytest.approx(3e295, rel=1e-12)  # p * (4e295 - x) = 1
    assert s.value == pytest.approx(3.0, rel=1e-12)


def test_progress_is_told_and_reaches_the_end():
    calls = []
    f = random_forest(np.random.default_rng(2), 300)
    solve(f, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] > 0


def test_table_and_views_show_value_and_indices():
    s = solve(Forest.from_arrays(**PAPER, names=["A", "<b>", "C"]))
    assert "94.325" in str(s)
    assert "707" in s.table()
    assert s.table(limit=2).endswith("2 more rows")
    assert "&lt;b&gt;" in s._repr_html_()
    frame = s.to_pandas()
    assert frame["index"].tolist() == pytest.approx([707, 15, 914, 40])
    assert frame["box"].tolist() == ["A", "<b>", "<b>", "C"]


def test_unknown_names_are_told_what_exists():
    s = solve(Forest.from_arrays(**PAPER, names=["Alpha", "Beta", "Gamma"]))
    with pytest.raises(KeyError, match="did you mean 'Beta'"):
        s.index("Bta", 0)
    with pytest.raises(KeyError, match="is a root"):
        s.index("Alpha", 0)
    with pytest.raises(KeyError, match="depends on the state of its parent 'Alpha'"):
        s.index("Beta")
    with pytest.raises(KeyError, match="its states are 0 to 1"):
        s.index("Beta", 2)


def test_rows_a_hair_above_one_do_no_harm():
    # such rows are within the tolerance for sums; powers of copies must survive them
    s = solve(
        Forest.from_arrays(
            parent=[-1],
            cost=[0],
            rewards=[0, 1],
            law=[[0.5, 0.50000000005]],
            count=[3],
            outside=-np.inf,
        )
    )
    assert s.value == pytest.approx(1 - 0.5**3, abs=1e-9)
    assert s.gap <= 1e-9


def test_sums_of_copies_beyond_integers():
    # 10,000 equal siblings of 10^15 copies each: more than any 64-bit integer holds
    n, p = 10_000, 1e-19
    f = Forest.from_arrays(
        parent=[-1] * n, cost=[0] * n, rewards=[0, 1], law=[[1 - p, p]] * n, count=[10**15] * n
    )
    s = solve(f)
    assert s.value == pytest.approx(-math.expm1(-1.0), rel=1e-9)
    below = Forest.from_arrays(
        parent=[-1] + [0] * n, cost=[0] * (n + 1), rewards=[[0], *[[0, 1]] * n],
        law=[[1.0], *[[[1 - p, p]]] * n], count=[1] + [10**15] * n,
    )  # fmt: skip
    assert solve(below).value == pytest.approx(s.value, rel=1e-9)


@pytest.mark.parametrize("bad", [-1, np.nan, np.inf])
def test_tolerances_that_make_no_sense(bad):
    f = Forest.from_arrays(**PAPER)
    with pytest.raises(InvalidArgument, match="`tolerance` must be a number from 0 on"):
        solve(f, tolerance=bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5])
def test_threads_that_make_no_sense(bad):
    with pytest.raises(InvalidArgument, match="`threads` must be a whole number from 1 on"):
        solve(Forest.from_arrays(**PAPER), threads=bad)


def test_a_huge_range_is_solved_exactly_or_called_coarse():
    big = 1e300
    s = solve(
        Forest.from_arrays(
            parent=[-1, 0],
            cost=[1, 1],
            rewards=[-big, big],
            law=[[0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]],
        )
    )
    assert s.gap == 0 or s.status is Status.COARSE


def test_lines_with_copies_keep_the_tolerance():
    rng = np.random.default_rng(6)
    for _ in range(40):
        n, k = 40, 8
        f = Forest.from_arrays(
            parent=np.arange(n) - 1,
            cost=rng.uniform(0.001, 0.2, n),
            rewards=rng.normal(size=k),
            law=[rng.dirichlet(np.ones(k)), *rng.dirichlet(np.ones(k), (n - 1, k))],
            count=rng.choice([1, 1000, 10**9], n),
        )
        s = solve(f)
        assert s.status is not Status.COARSE
        assert s.value == pytest.approx(solve(f, exact=True).value, abs=s.gap + 1e-12)


def test_help_says_what_solve_returns() -> None:
    assert inspect.signature(solve).return_annotation == "Solution | Answer"


def test_what_is_never_opened_costs_no_digits_of_the_value() -> None:
    forest = Forest.from_arrays(
        parent=[-1, 0, 1], cost=[0, 2.0**50, 0], outside=-np.inf,
        rewards=[[0.0, 23.0], [0.0, 0.0, 0.0], [0.0, 23.0]],
        law=[[0, 1], [[0, 0, 1], [0, 0, 1]], [[0, 1], [0, 1], [16 / 17, 1 / 17]]],
    )  # fmt: skip
    assert solve(forest, exact=True).value == 23  # 22.875 when summed from -2^50 on
