"""Forests from and to NetworkX graphs and pandas tables."""

from __future__ import annotations

import io
import sys
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_problems import forests
from reference import Problem, to_arrays
from same_forests import assert_paper, assert_same

from weitzman.errors import InvalidForest
from weitzman.files.instances import from_networkx, from_pandas, to_networkx, to_pandas
from weitzman.forest.builder import side_by_side
from weitzman.forest.model import Forest

COLUMNS = ["box", "parent", "parent_state", "state", "reward", "probability", "cost"]


@st.composite
def described(draw: st.DrawFn) -> Forest:
    """Any forest: names, state names and counts may be there or not; maximizing or not."""
    problem: Problem = draw(forests())
    plain, n = to_arrays(problem), len(problem.parents)
    if draw(st.booleans()):
        plain["names"] = [f"box {v}" for v in range(n)]
    if draw(st.booleans()):
        words = st.sampled_from([None, "abc", ("x", "10", "y"), ("1", "0", "2")])
        choice = [draw(words) for _ in range(n)]
        sizes = [len(r) for r in problem.rewards]
        plain["states"] = [w and list(w[:k]) for w, k in zip(choice, sizes, strict=True)]
    if draw(st.booleans()):
        plain["count"] = [draw(st.integers(1, 3)) for _ in range(n)]
    if draw(st.booleans()):
        plain |= {"minimize": True, "outside": -plain["outside"]}
        plain["rewards"] = [[-r for r in row] for row in plain["rewards"]]
    return Forest.from_arrays(**plain)


def losses() -> Forest:
    return Forest.from_arrays(
        parent=[-1, 0], cost=[1, [2, 3]], rewards=[[3.0, np.inf], [1.0, 2.0]], minimize=True,
        law=[[0.5, 0.5], [[0.5, 0.5], [1, 0]]], outside=7, count=[2, 1],
    )  # fmt: skip


# NetworkX


def paper_graph() -> nx.DiGraph:
    graph = nx.DiGraph([("A", "B")])
    graph.add_node("C", cost=5, rewards=[10, 50], law=[0.5, 0.5])
    graph.add_node("A", cost=20, rewards=[1, 900], law=[0.9, 0.1], states=[1, 900])
    law = [[0, 0.5, 0.5, 0], [0.5, 0, 0, 0.5]]
    graph.add_node("B", cost=[3, 3], rewards=[890, -9, 21, 920], law=law)
    return graph


def test_paper_as_a_graph() -> None:
    forest = from_networkx(paper_graph())
    assert forest.names == ("A", "B", "C")
    assert_paper(forest)
    assert_paper(from_networkx(to_networkx(forest)))


@given(described())
def test_graph_round_trip(forest: Forest) -> None:
    graph = to_networkx(forest)
    assert nx.is_branching(graph)
    assert graph.number_of_edges() == (forest.parent >= 0).sum()
    assert_same(from_networkx(graph), forest)


def test_numbers_stay_numbers_in_any_order() -> None:
    forest = losses()
    graph = to_networkx(forest)
    assert list(graph.edges) == [(0, 1)]
    turned = nx.DiGraph(**graph.graph)
    turned.add_nodes_from(reversed(list(graph.nodes(data=True))))
    turned.add_edges_from(graph.edges)
    assert_same(from_networkx(turned), forest)
    assert from_networkx(turned).names is None
    from_one = from_networkx(nx.relabel_nodes(turned, {0: 1, 1: 2}))
    assert from_one.names == ("2", "1")


def test_arguments_win_over_attributes_of_the_graph() -> None:
    graph = to_networkx(losses())
    assert (graph.graph["outside"], graph.graph["minimize"]) == (7, True)
    assert from_networkx(graph, outside=5).outside == 5
    assert from_networkx(paper_graph(), outside=5).outside == 5
    with pytest.raises(InvalidForest, match="minimizing needs an outside option"):
        from_networkx(paper_graph(), minimize=True)


def test_costs_have_their_shortest_form() -> None:
    costs = [[1, 2], 3, [4, 5], [[6, 7], [8, 9]]]
    law = [[0.9, 0.1], [0.2, 0.8]]
    graph = to_networkx(
        Forest.from_arrays(
            parent=[-1, 0, 0, 0], cost=costs, rewards=[0, 10], law=[[0.5, 0.5], law, law, law]
        )
    )
    assert [np.asarray(graph.nodes[v]["cost"]).tolist() for v in range(4)] == costs


def test_equal_boxes_share_arrays() -> None:
    chain = nx.DiGraph([(0, 1), (1, 2)])
    law = [[0.9, 0.1], [0.2, 0.8]]
    for v in chain:
        chain.add_node(v, cost=1, rewards=[0, 10], law=law if v else [0.5, 0.5])
    graph = to_networkx(from_networkx(chain))
    assert graph.nodes[1]["law"] is graph.nodes[2]["law"]
    assert graph.nodes[0]["rewards"] is graph.nodes[2]["rewards"]
    assert not graph.nodes[1]["law"].flags.writeable


def two_parents() -> nx.DiGraph:
    graph = paper_graph()
    graph.add_edge("C", "B")
    return graph


def circle() -> nx.DiGraph:
    graph = paper_graph()
    graph.add_edge("B", "A")
    return graph


def without_cost() -> nx.DiGraph:
    graph = paper_graph()
    del graph.nodes["B"]["cost"]
    return graph


def same_label() -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from([1, "1"], cost=1, rewards=[0, 1], law=[0.5, 0.5])
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.DiGraph(), r"at least one box, but the graph has no nodes"),
        (nx.Graph([(0, 1)]), r"must be a networkx.DiGraph, but this is a Graph. Draw an edge from"),
        (nx.MultiDiGraph([(0, 1)]), r"must be a networkx.DiGraph, but this is a MultiDiGraph"),
        ([(0, 1)], r"must be a networkx.DiGraph, but this is a list"),
        (two_parents(), r"node 'B' has 2: \['A', 'C'\] \(1 such node\)"),
        (circle(), r"'B' -> 'A' -> 'B' is a cycle"),
        (
            without_cost(),
            r"node 'B' has no 'cost' \(1 such node\)\. Set graph.nodes\['B'",
        ),
        (same_label(), r"names of boxes must differ, but '1' appears twice"),
    ],
)
def test_graph_errors(graph: Any, message: str) -> None:
    with pytest.raises(InvalidForest, match=message):
        from_networkx(graph)


# pandas

PAPER_ROWS = [
    ("B", "A", 1, 21, 21, 0.5, 3),
    ("B", "A", 1, -9, -9, 0.5, 3),
    ("B", "A", 900, 890, 890, 0.5, 3),
    ("B", "A", 900, 920, 920, 0.5, 3),
    ("A", None, None, 900, 900, 0.1, 20),
    ("A", None, None, 1, 1, 0.9, 20),
    ("C", None, None, 50, 50, 0.5, 5),
    ("C", None, None, 10, 10, 0.5, 5),
]


def paper_table(rows: list[tuple[Any, ...]] = PAPER_ROWS) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


def changed(row: int, column: str, value: Any) -> pd.DataFrame:
    table = paper_table().astype(object)
    table.loc[row, column] = value
    return table


def test_paper_as_a_table() -> None:
    forest = from_pandas(paper_table())
    assert forest.names == ("B", "A", "C")
    assert forest.states("B") == ("21", "-9", "890", "920")
    assert_paper(forest)
    assert_paper(from_pandas(to_pandas(forest)))


def test_the_order_of_rows_matters_only_for_numbers() -> None:
    table = paper_table()
    for seed in range(5):
        assert_paper(from_pandas(table.sample(frac=1, random_state=seed)))


@given(described())
def test_table_round_trip(forest: Forest) -> None:
    table = to_pandas(forest)
    assert len(table) == sum(forest.laws[i].size for i in forest.law)
    assert_same(from_pandas(table), forest)


@given(described())
def test_table_round_trip_through_a_file(forest: Forest) -> None:
    text = to_pandas(forest).to_csv(index=False, float_format="%.17g")
    table = pd.read_csv(io.StringIO(text))
    again = from_pandas(table, outside=forest.outside, minimize=forest.minimize)
    assert_same(again, forest)


def test_rows_of_probability_zero_may_be_left_out() -> None:
    whole = to_pandas(from_pandas(paper_table()))
    possible = whole[whole["probability"] > 0]
    assert (len(whole), len(possible)) == (12, 8)
    assert_paper(from_pandas(possible))


def test_a_state_may_be_there_with_probability_zero_only() -> None:
    rows = [*PAPER_ROWS, ("A", None, None, 0, 0, 0.0, 20), ("B", "A", 0, -9, -9, 1.0, 3)]
    assert_paper(from_pandas(paper_table(rows)))


def test_costs_take_the_shortest_form() -> None:
    rows = [
        ("root", None, None, "a", 0, 0.5, 1),
        ("root", None, None, "b", 0, 0.5, 2),
        ("fixed", "root", "a", 0, 0, 1, 4),
        ("fixed", "root", "b", 1, 1, 1, 4),
        ("after", "root", "a", 0, 0, 1, 4),
        ("after", "root", "b", 1, 1, 1, 5),
        ("found", "root", "a", 0, 0, 0.5, 4),
        ("found", "root", "a", 1, 1, 0.5, 5),
        ("found", "root", "b", 0, 0, 1.0, 6),
        ("found", "root", "b", 1, 1, 0.0, None),
    ]
    forest = from_pandas(paper_table(rows))
    costs = [forest.costs[c].tolist() for c in forest.cost]
    assert costs == [[[1, 2]], [[4]], [[4], [5]], [[4, 5], [6, 0]]]


def test_signals_counts_and_sense() -> None:
    table = to_pandas(losses())
    assert table["reward"].isna().tolist() == [False, True, False, False, False, False]
    assert table["count"].tolist() == [2, 2, 1, 1, 1, 1]
    assert table["parent"].isna().tolist() == [True, True, False, False, False, False]
    assert table.attrs == {"outside": 7.0, "minimize": True}
    assert from_pandas(table, outside=5).outside == 5
    without = table.drop(columns="count")
    without.attrs = {}
    forest = from_pandas(without, outside=-1)
    assert forest.count.tolist() == [1, 1]
    assert (forest.outside, forest.minimize) == (-1, False)
    assert forest.rewards[forest.reward[0]].tolist() == [[3, -np.inf]]


def test_numbers_of_boxes_are_kept() -> None:
    table = paper_table()
    table["box"] = table["box"].map({"A": 2, "B": 0, "C": 1})
    table["parent"] = table["parent"].map({"A": 2.0})
    forest = from_pandas(table)
    assert forest.names is None
    assert forest.parent.tolist() == [2, -1, -1]
    assert forest.states(2) == ("900", "1")


def test_mixed_and_categorical_columns() -> None:
    table = paper_table()
    table["box"] = table["box"].astype("category")
    table["state"] = [21, "-9", 890.0, np.int64(920), "900", 1, 50, 10]
    assert_paper(from_pandas(table))


def test_states_of_equal_rewards_keep_their_names() -> None:
    forest = Forest.from_arrays(
        parent=[-1, -1, -1], cost=1, rewards=[0, 10], law=[[0.5, 0.5]] * 3,
        states=[["a", "b"], None, ["b", "a"]],
    )  # fmt: skip
    assert_same(from_pandas(to_pandas(forest)), forest)


def test_equal_boxes_are_stored_once() -> None:
    table = paper_table()
    twice = pd.concat([table, table.assign(box=table["box"] + "'", parent=table["parent"] + "'")])
    forest = from_pandas(twice)
    assert (len(forest), len(forest.laws), len(forest.rewards), len(forest.costs)) == (6, 3, 3, 3)
    one = from_pandas(table)
    assert_same(forest, side_by_side(one, one), names=False)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (paper_table().drop(columns="cost"), r"columns box, .*, cost, but 'cost' is missing \(1 "),
        (paper_table().rename(columns={"parent": "parents"}), r"'parent' is missing \(1 such column"
            r"; is it 'parents'\?\)"),
        (paper_table()[:0], r"at least one box, but the table has no rows"),
        (changed(3, "box", None), r"must name its box, but row 3 of the table has no name \(1"),
        (paper_table([("B", "Ann", 1, 2, 2, 1, 1), ("Anna", None, None, 1, 1, 1, 1)]), r"but row 0 "
            r"of the table \(box 'B'\) has 'Ann', which is not a box; did you mean 'Anna'\? \(1"),
        (changed(3, "parent", "C"), r"one parent, but row 3 of the table \(box 'B'\) has another"),
        (changed(3, "parent", None), r"a box has one parent, but row 3"),
        (changed(3, "state", None), r"every row must have a state, but row 3"),
        (changed(5, "parent_state", 1), r"a root has no parent_state, but row 5 .*'A'\) has one"),
        (changed(3, "parent_state", None), r"needs a parent_state, but row 3 .*'B'\) has none"),
        (changed(3, "parent_state", 7), r"row 3 .*'B'\) has '7', a state that 'A' does not have"),
        (changed(3, "parent_state", 50), r"row 3 .*'B'\) has '50', a state that 'A' does not have"),
        (paper_table([*PAPER_ROWS, PAPER_ROWS[0]]), r"may have one row .* row 8 .* repeats one"),
        (paper_table([*PAPER_ROWS, ("B", "A", 900, 21, 22, 0, 3)]), r"a state has one reward, but "
            r"row 8 of the table \(box 'B'\) gives another .* \(1 such row\)\. Make two states"),
        (paper_table([*PAPER_ROWS, ("B", "A", 900, 21, None, 0, 3)]), r"row 8 .* gives another"),
        (changed(3, "reward", "much"), r"'reward' must hold numbers, but row 3 .* has 'much'"),
        (changed(3, "probability", None), r"'probability' must hold numbers, but row 3 .*none"),
        (changed(3, "cost", np.nan), r"'cost' must hold numbers, but row 3 .* has none"),
        (changed(3, "probability", 0.4), r"box 'B' after 'A' shows '900' sum to 0.9"),
        (changed(0, "probability", -0.5), r"between 0 and 1, but row 0 .*'B'\) has -0.5"),
        (changed(0, "cost", -3), r"costs must be finite and not negative, but box 'B' has -3"),
        (paper_table().assign(count=[1, 2, *[1] * 6]), r"a box has one count, but row 1"),
        (paper_table().assign(count=1.5), r"a count must be a whole number of "
            r"at most \d+, but row 0 .* \(8 such"),
        (paper_table().assign(count=0), r"a count must be from 1"),
        (paper_table([("B", "A", 1, 1, 1, 1, 1), ("A", "B", 1, 1, 1, 1, 1)]), r"'B' -> 'A' -> 'B' "
            r"is a cycle"),
    ],
)  # fmt: skip
def test_table_errors(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(InvalidForest, match=message):
        from_pandas(table)


# Without the other package


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (from_networkx, r'networkx, which .* pip install "weitzman\[graph\]"'),
        (to_networkx, r'networkx, which .* pip install "weitzman\[graph\]"'),
        (from_pandas, r'pandas, which .* pip install "weitzman\[table\]"'),
        (to_pandas, r'pandas, which .* pip install "weitzman\[table\]"'),
    ],
)
def test_a_missing_package_is_named(
    call: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("networkx", "pandas"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=message):
        call(losses())
