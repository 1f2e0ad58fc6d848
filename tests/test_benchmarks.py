"""The benchmarks still run and still notice wrong answers. Nothing here is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import weitzman

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import baselines, cases, instances, measure, peers, run

TINY = cases.Scale(lines=12, wide_lines=10, length=3, boxes=120, long=60, repeats=1, quick=True)


@pytest.mark.parametrize(
    "case",
    [cases.lines, cases.trees, cases.growth, cases.one_line, cases.counts, cases.evaluation],
)
def test_a_case_runs_and_its_answers_agree(case):
    for table in case(TINY):
        assert all(len(row) == len(table.head) for row in table.rows)
        assert table.markdown().count("\n| ") > 1


def test_every_case_has_a_place_for_remarks():
    assert run.REMARKS.keys() == run.CASES.keys()


def test_quick_figures_are_not_written():
    with pytest.raises(SystemExit):
        run.main(["--quick", "--write"])


def test_instances_are_seeded_and_smaller_ones_begin_larger_ones():
    few, many = instances.many_lines(2, 4, 3), instances.many_lines(5, 4, 3)
    assert np.array_equal(few.laws, many.laws[:2])
    assert np.array_equal(few.rewards, many.rewards[:2])
    few, many = instances.random_trees(50), instances.random_trees(90)
    assert np.array_equal(few.parent, many.parent[:50])
    assert np.array_equal(few.laws.data, many.laws.data[: few.laws.start[-1]])


def test_a_wrong_table_is_noticed():
    case = instances.many_lines(6, 4, 5)
    root = np.empty((6, 5))
    baselines.bellman(case.laws, case.cost, case.rewards, root)
    solution = weitzman.solve(case.forest)
    cases.check_lines(case, solution, root)
    with pytest.raises(AssertionError, match="disagree on whether to open"):
        cases.check_lines(case, solution, 2 * case.rewards - root)
    with pytest.raises(AssertionError, match="solve and the Bellman table differ"):
        cases.check_lines(case, solution, case.rewards + 1.001 * (root - case.rewards))


def test_a_wrong_index_is_noticed():
    forest = instances.random_trees(150)
    cases.check_trees(forest, weitzman.solve(forest))
    prices = replace(forest.costs, data=forest.costs.data * 1.001)
    with pytest.raises(AssertionError, match="from the plain recursion"):
        cases.check_trees(forest, weitzman.solve(replace(forest, costs=prices)))


def test_plain_recursion_with_copies():
    forest = instances.random_trees(20, count=3)
    value, index = baselines.plain_solve(forest)
    solution = weitzman.solve(forest, exact=True)
    assert value == pytest.approx(solution.value, abs=1e-13)
    for v in range(len(forest)):
        assert index[v] == pytest.approx(solution.indices(v), abs=1e-12)


def test_products_have_the_shapes_of_the_laws():
    forest = instances.random_trees(60)
    products = baselines.Products.of(forest, np.arange(1, 61))
    assert sum(len(laws) for laws, _ in products.groups) == 60
    work = sum(2 * laws.size * width for laws, width in products.groups)
    assert products.operations == work
    for made in (products.bare(), products.with_layout(), products.with_numpy()):
        assert made == pytest.approx(1.0)


def _backwards(process: peers.Process) -> float:
    """Value of the start: every action leads to a later state."""
    best = np.full(process.states, -np.inf)
    best[-1] = 0.0
    for row in range(len(process.reward) - 2, -1, -1):
        to = slice(process.row_start[row], process.row_start[row + 1])
        assert (process.column[to] > process.state[row]).all()
        ahead = process.probability[to] @ best[process.column[to]]
        here = process.state[row]
        best[here] = max(best[here], process.reward[row] + peers.BETA * ahead)
    return float(best[0])


def test_peers_are_given_the_same_problem():
    one = instances.many_lines(1, 5, 4)
    process = peers.line_process(one.laws[0], one.cost[0], one.rewards[0])
    assert _backwards(process) == pytest.approx(weitzman.solve(one.forest).value, abs=1e-11)
    two = instances.many_lines(2, 3, 3, shared_rewards=True)
    process = peers.pair_process(two.laws, two.cost, two.rewards[0])
    assert _backwards(process) == pytest.approx(weitzman.solve(two.forest).value, abs=1e-11)


def test_a_peer_that_is_not_there_is_said_so():
    assert peers.installed("no-such-package", sys.executable) is None
    assert peers.installed("numpy", sys.executable) == np.__version__


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux only")
def test_peak_of_memory():
    _, more = measure.peak_during(lambda: np.ones(8_000_000).sum())
    assert 60e6 < more < 80e6


def test_results_keep_other_sections_of_the_same_machine(tmp_path):
    path = tmp_path / "RESULTS.md"
    path.write_text(run.assemble("head\n", {"lines": "## A\n\none\n", "trees": "## B\n"}, path))
    again = run.assemble("head\n", {"lines": "## A\n\ntwo\n"}, path)
    assert "one" not in again
    assert again.index("two") < again.index("## B")
    assert "## B" not in run.assemble("another machine\n", {"lines": "## A\n"}, path)


def test_the_worker_that_compares_commits_runs():
    """One small case by hand: the worker is a script, which no import would check."""
    from benchmarks import compare

    small = compare.WORKER.replace("lines(2000, 50, 8, 1)", "lines(3, 4, 2, 1)")
    question = json.dumps(["solve, 2,000 lines of 50 boxes, 8 states", 1]) + "\n"
    done = subprocess.run(
        [sys.executable, "-c", small], input=question, capture_output=True, text=True, check=True
    )
    cases, answer = map(json.loads, done.stdout.splitlines())
    assert len(cases) == 4
    assert answer[0] >= 0


def test_instructions_are_read_from_the_files_of_callgrind():
    """All parts of a file count; a file without counts is told."""
    from benchmarks import compare

    part = "# callgrind format\nevents: Ir\nsummary: {}\n\nfn=(1) 0x40\n0 7\ntotals: {}\n"
    assert compare.counted(part.format(41, 41) + part.format(1, 1)) == 42
    with pytest.raises(SystemExit, match="no instructions"):
        compare.counted("# callgrind format\nevents: Dr\nsummary: 5\n")
    with pytest.raises(SystemExit, match="no instructions"):
        compare.counted("")
