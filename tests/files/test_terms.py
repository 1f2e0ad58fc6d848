"""Time, risk and prizes in files and tables: what is written is read, and bad files say why."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest
from same_forests import assert_same

import weitzman
from weitzman import Builder, Forest, load, save
from weitzman.errors import InvalidFile, InvalidForest
from weitzman.files import from_pandas, to_pandas
from weitzman.files.instances import schema


def timed() -> Forest:
    b = Builder(rate=0.1)
    b.add("A", cost=20, outcomes={900: 0.1, 1: 0.9}, duration=2)
    b.add(
        "B", parent="A", cost=3, duration={1: {21: 1, -9: 2}, 900: 3},
        outcomes={1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}},
    )  # fmt: skip
    b.add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
    return b.build()


TWO = {"parent": [-1, -1], "cost": [1.0, 0.5], "rewards": [0.0, 10.0], "law": [[0.5, 0.5]] * 2}
FORESTS = {
    "durations": timed(),
    "factors": Forest.from_arrays(**TWO, factor=[[0.9, 0.8], 0.7]),
    "prizes": Forest.from_arrays(**TWO, prizes=2),
    "risk": Forest.from_arrays(**TWO, risk_tolerance=3.5),
    "one prize and larger quotas": Forest.from_arrays(
        **TWO, group=["g", "h"], quotas={"g": 1, "h": 1}, prizes=1
    ),
    "a tree of no group": Forest.from_arrays(**TWO, group=["g", ""], quotas={"g": 1}, unit="$"),
    "losses from 0 on": Forest.from_arrays(**TWO, minimize=True, outside=0, stated_error=0.5),
}


@pytest.mark.parametrize("suffix", ["json", "json.gz", "wz", "csv", "xlsx"])
@pytest.mark.parametrize("kind", FORESTS)
def test_files_keep_the_terms(tmp_path, kind, suffix):
    forest = FORESTS[kind]
    save(forest, tmp_path / f"a.{suffix}")
    found = load(tmp_path / f"a.{suffix}")
    assert_same(found, forest)
    assert found == forest
    if suffix == "json":
        jsonschema.validate(json.loads((tmp_path / "a.json").read_text()), schema())


@pytest.mark.parametrize("kind", FORESTS)
def test_tables_keep_the_terms(kind):
    assert_same(from_pandas(to_pandas(FORESTS[kind])), FORESTS[kind])


def test_a_table_with_durations_needs_a_rate():
    table = to_pandas(timed())
    del table.attrs["rate"]
    with pytest.raises(InvalidForest, match="durations need a rate"):
        from_pandas(table)
    table["factor"] = 0.5
    with pytest.raises(InvalidForest, match="both are given"):
        from_pandas(table)


def test_side_by_side_copies_and_subtrees_keep_the_terms():
    forest = timed()
    two = weitzman.side_by_side([forest, forest])
    assert weitzman.solve(two).value > weitzman.solve(forest).value
    assert two.rate == 0.1
    copies = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3, factor=0.8)
    assert weitzman.solve(weitzman.forest.expand(copies)).value == pytest.approx(
        weitzman.solve(copies).value
    )
    tree = forest.subtree("B", 900)
    assert weitzman.solve(tree).index(0) == pytest.approx(weitzman.solve(forest).index("B", 900))
    with pytest.raises(InvalidForest, match="must have the same rate"):
        weitzman.side_by_side([forest, forest.changed(rate=0.2)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": "fast"}, "rate must be a number"),
        ({"prizes": 0}, "prizes"),
        ({"prizes": 1.5}, "prizes"),
        ({"risk_tolerance": -2}, "a risk tolerance must be a finite number above 0"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path, change, message):
    save(Forest.from_arrays(**TWO), tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text()) | change
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises((InvalidFile, InvalidForest), match=message):
        load(tmp_path / "a.json")


def test_a_file_by_hand(tmp_path):
    (tmp_path / "a.json").write_text(
        '{"format": "weitzman/1", "rate": 0.2, "boxes": ['
        '{"name": "A", "cost": 1, "duration": {"0": 1, "10": 2}, "outcomes": {"0": 0.5, "10": 0.5}}'
        ","
        '{"name": "B", "cost": 1, "outcomes": {"0": 0.5, "9": 0.5}}]}'
    )
    forest = load(tmp_path / "a.json")
    assert forest.durations is not None
    assert forest.durations[int(forest.cost[0])].tolist() == [[1, 2]]
    assert forest.durations[int(forest.cost[1])].tolist() == [[0]]
    assert forest.factors[int(forest.cost[0])] == pytest.approx(np.exp([[-0.2, -0.4]]))


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_options_of_commands_say_the_terms(tmp_path, capsys, suffix):
    from weitzman.cli import main

    def value(*options):
        assert main(["solve", str(path), "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)["value"]

    path = tmp_path / f"a.{suffix}"
    save(FORESTS["prizes"].changed(prizes=1), path)
    assert value("--prizes", "2") == weitzman.solve(FORESTS["prizes"]).value
    wanted = weitzman.solve(FORESTS["risk"]).value
    assert value("--risk-tolerance", "3.5") == pytest.approx(wanted)
    assert value("--risk-tolerance", "0.0035k") == pytest.approx(wanted)
    assert value("--outside", "$250,000") == 250_000
    save(timed(), path)
    assert value("--rate", "0.3") == weitzman.solve(timed().changed(rate=0.3)).value
    for options, message in (
        (["--prizes", "9"], "but there are 9 prizes and 2 trees"),
        (["--rate", "-1"], "a rate must be a finite number from 0 on"),
    ):
        assert main(["solve", str(path), *options]) == 1
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1
