"""What to do instead: calls that cannot work say what does."""

from __future__ import annotations

import sys

import pytest

import weitzman
from weitzman import Builder, LazyForest, Node, Search, compare, evaluate, explain, solve
from weitzman.cli.common import for_the_shell
from weitzman.errors import InvalidAnswer, InvalidArgument, MissingPackage, UnknownName


@pytest.fixture
def forest():
    return Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5}).build()


@pytest.mark.parametrize("call", [solve, evaluate, compare, Search, explain])
def test_a_dag_is_sent_to_the_exhaustive_solver(call):
    dag = weitzman.strategies.Dag(
        parents=[[]], cost=[0.1], rewards=[[0, 1]], law=[[0.5, 0.5]]
    )  # fmt: skip
    with pytest.raises(InvalidArgument, match=r"weitzman\.strategies\.exhaustive\(dag\)"):
        call(dag)
    assert weitzman.strategies.exhaustive(dag).value == pytest.approx(0.4)


@pytest.mark.parametrize("call", [evaluate, compare])
def test_a_lazy_solution_says_which_part_can_be_asked(call):
    root = Node(name="a", law=[0.5, 0.5], rewards=[0, 10], cost=1)
    found = solve(LazyForest([root], lambda node: [], bound=10.0))
    with pytest.raises(InvalidArgument, match=r"`found\.solution`"):
        call(found)
    assert evaluate(found.solution).value == pytest.approx(4)


def test_a_number_that_is_no_state_may_be_a_reward(forest):
    search = Search(solve(forest), rewards="nearest")
    box = search.ask()
    with pytest.raises(
        UnknownName, match=r"If 13\.7 is its reward, call tell\('A', reward=13\.7\)"
    ):
        search.tell(box, 13.7)
    search.tell(box, reward=13.7)
    assert search.best == 13.7


def test_the_command_names_its_own_options(forest):
    search = Search(solve(forest))
    with pytest.raises(InvalidAnswer, match='rewards="nearest"') as refused:
        search.tell(search.ask(), reward=13.7)
    said = for_the_shell(str(refused.value))
    assert "--rewards nearest" in said
    assert 'rewards="' not in said


@pytest.mark.parametrize("call", [solve, evaluate, compare, lambda s: weitzman.simulate(s, 10)])
def test_tables_without_pandas_say_what_to_install(call, forest, monkeypatch):
    result = call(forest if call is solve else solve(forest))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackage, match=r'pip install "weitzman\[table\]"'):
        result.to_pandas()
