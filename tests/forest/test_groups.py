"""Groups of trees and their quotas: what a forest accepts, keeps and rejects."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weitzman import Builder, Forest, side_by_side
from weitzman.errors import InvalidForest
from weitzman.forest import expand


def hiring(**more: Any) -> Forest:
    """Two engineers and a designer, who comes for a second interview."""
    b = Builder(**({"quotas": {"engineer": 2, "designer": 1}} | more))
    for name in ("Ada", "Ben"):
        b.add(name, cost=1, outcomes={0: 0.5, 10: 0.5}, group="engineer")
    b.add("Cleo", cost=1, outcomes={0: 0.5, 10: 0.5}, group="designer", count=3)
    b.add("Cleo again", parent="Cleo", cost=1, outcomes={0: 0.5, 10: 0.5})
    return b.build()


def test_the_default_number_of_prizes_is_the_sum_of_the_quotas():
    f = hiring()
    assert f.prizes == 3
    assert f.quotas == (("designer", 1), ("engineer", 2))
    assert f.changed(quotas={"engineer": 1}).prizes == 1
    assert f.changed(quotas={}).prizes == 1
    assert hiring(prizes=2).changed(quotas={"engineer": 1}).prizes == 2
    assert "at most 1 of designer and 2 of engineer" in repr(f)


def test_all_boxes_of_a_tree_have_the_group_of_its_root():
    f = hiring()
    assert f.groups == ("engineer", "engineer", "designer", "designer")
    assert f.changed(group={"Cleo again": "manager"}, quotas={}).groups[2:] == ("manager",) * 2
    assert f.changed(group=dict.fromkeys(["Ada", "Ben", "Cleo"], ""), quotas={}).groups is None
    assert Forest(**{k: getattr(f, k) for k in f.__slots__ if k != "_number"}) == f


@given(st.data())
def test_groups_by_root_and_by_box_are_the_same(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 9))
    order = data.draw(st.permutations(range(n)))  # parents may come after their children
    parent = np.full(n, -1)
    for i in range(1, n):
        parent[order[i]] = data.draw(st.sampled_from([-1, *(order[:i])]))
    roots = np.flatnonzero(parent < 0)
    labels = data.draw(st.lists(st.sampled_from(["", "a", "b"]), min_size=len(roots), max_size=n))
    labels = labels[: len(roots)]
    top = np.arange(n)
    while (parent[top] >= 0).any():
        top = np.where(parent[top] >= 0, parent[top], top)
    each = tuple(labels[int(np.flatnonzero(roots == t)[0])] for t in top)
    law = [[0.5, 0.5] if p < 0 else [[0.5, 0.5]] * 2 for p in parent]
    own = {"parent": parent, "cost": 1, "rewards": [0.0, 1.0], "law": law}
    by_root = Forest.from_arrays(**own, group=labels)
    assert by_root.groups == (each if any(each) else None)
    assert by_root == Forest.from_arrays(**own, group=each)
    said = [data.draw(st.sampled_from([x, ""])) if t != v else x for v, t, x in
            zip(range(n), top, each, strict=True)]  # fmt: skip
    assert by_root == Forest.from_arrays(**own, group=said)


def test_groups_and_quotas_are_kept():
    f = hiring()
    assert pickle.loads(pickle.dumps(f)) == f != f.changed(quotas={"engineer": 1})
    assert f != hiring().changed(group={"Ada": "designer"})
    assert f.subtree("Cleo").groups == ("designer",) * 2
    assert f.subtree("Cleo").quotas == ()
    assert f.take([0, 1]).quotas == (("engineer", 2),)  # nobody is left for the other
    assert expand(f).groups == ("engineer",) * 2 + ("designer",) * 6
    assert side_by_side(f, f).quotas == f.quotas
    assert side_by_side(f, f).prizes == 3
    with pytest.raises(InvalidForest, match="must have the same quotas, but that of the first is"):
        side_by_side(f, f.changed(quotas={"engineer": 1}))
    both = side_by_side(f, f.changed(quotas={}), quotas={"designer": 2})
    assert both.prizes == 2
    assert both.groups == f.groups * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quotas": {"enginer": 1}}, "for a group of boxes, but 'enginer' is none; did you mean"),
        ({"quotas": {"": 1}}, "for a group of boxes, but '' is none"),
        ({"quotas": {"engineer": 1.5}}, "whole number from 0 on, but that of group 'engineer'"),
        ({"quotas": {"engineer": -1}}, "whole number from 0 on, .* is -1"),
        ({"quotas": {"engineer": True}}, "whole number from 0 on, .* is True"),
        ({"quotas": {"engineer": float("nan")}}, "whole number from 0 on, .* is nan"),
        ({"quotas": {"engineer": 0}}, "but it is 0, the sum of the quotas"),
        ({"quotas": 3}, "must be a mapping"),
        ({"group": {"Ada": 3}, "quotas": {"4": 1}}, "The groups are '3', 'engineer', 'designer'"),
        (
            {"group": {"Cleo": "x", "Cleo again": "y"}, "quotas": {}},
            "all boxes of a tree must have one group, but box 'Cleo' has 'x' in a tree with 'y'",
        ),
        ({"risk_tolerance": 5, "prizes": 1}, "quotas do not go with a risk tolerance"),
        ({"risk_tolerance": 5}, "several prizes do not go with a risk tolerance"),
    ],
)
def test_bad_groups_and_quotas(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidForest, match=message):
        hiring().changed(**change)
    with pytest.raises(InvalidForest, match="per root, but has shape"):
        Forest.from_arrays(parent=[-1], cost=1, rewards=[1], law=[[1]], group=["a", "b"])
