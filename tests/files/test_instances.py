"""Instance files: what is written reads back, and what is broken is refused with a reason."""

from __future__ import annotations

import gzip
import json
import os
import stat
import struct
import tempfile
import threading
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from mutations import packed, unpacked
from random_files import columns, content, forests

import weitzman
from weitzman.errors import InvalidFile, InvalidForest
from weitzman.files import Range, Ranges, documents, read_ranges, read_table
from weitzman.files import instances as io
from weitzman.files.binary import MAGIC
from weitzman.forest.builder import Builder
from weitzman.forest.model import Forest

VALIDATOR = jsonschema.Draft202012Validator(io.schema())

A = {"name": "A", "cost": 20, "outcomes": {"900": 0.1, "1": 0.9}}
B = {
    "name": "B",
    "parent": "A",
    "cost": 3,
    "outcomes": {"900": {"920": 0.5, "890": 0.5}, "1": {"21": 0.5, "-9": 0.5}},
}
C = {"name": "C", "cost": 5, "rewards": [50, 10], "law": [0.5, 0.5]}


def document(*boxes: Any, **more: Any) -> dict[str, Any]:
    return {"format": "weitzman/1", "boxes": list(boxes), **more}


@pytest.fixture
def read(tmp_path: Path) -> Callable[[Any], Forest]:
    """Load a document, text or bytes as a .json file."""

    def read(x: Any) -> Forest:
        path = tmp_path / "x.json"
        data = x if isinstance(x, bytes) else (x if isinstance(x, str) else json.dumps(x)).encode()
        path.write_bytes(data)
        return io.load(path)

    return read


# -- round trips -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".wz"])
@given(forest=forests())
def test_what_is_saved_loads(suffix, forest):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x" + suffix)
        io.save(forest, path)
        again = io.load(path)
        assert content(again) == content(forest)
        if suffix == ".wz":
            assert columns(again) == columns(forest)
        else:
            data = path.read_bytes()
            text = gzip.decompress(data) if suffix == ".json.gz" else data
            VALIDATOR.validate(json.loads(text))
        assert os.listdir(folder) == [path.name]


def test_equal_forests_give_equal_files(tmp_path, read):
    forest = read(document(A, B, C))
    for suffix in (".json", ".json.gz", ".wz"):
        one, two = tmp_path / f"1{suffix}", tmp_path / f"2{suffix}"
        io.save(forest, one)
        io.save(forest, two)
        assert one.read_bytes() == two.read_bytes()
    assert (tmp_path / "1.json.gz").read_bytes()[4:8] == bytes(4)  # no date in it


def test_text_is_compact_and_readable(tmp_path):
    step = np.array([[0.25, 0.75], [0.5, 0.5]])
    forest = Forest.from_arrays(
        parent=[-1, 0, 1, -1],
        cost=[1, 2, 3, 1],
        rewards=[0, 10],
        law=[[0.5, 0.5], step, step, [0.1, 0.9]],
        names=["A", "B", "C", "D"],
        count=[1, 1, 4, 1],
    )
    io.save(forest, tmp_path / "x.json")
    assert (tmp_path / "x.json").read_text() == (
        """{
  "format": "weitzman/1",
  "objective": "maximize",
  "outside": 0,
  "kinds": {
    "k0": {"cost": 1, "rewards": [0, 10]},
    "k1": {"cost": 2, "rewards": [0, 10], "law": [[0.25, 0.75], [0.5, 0.5]]}
  },
  "boxes": [
    {"name": "A", "kind": "k0", "law": [0.5, 0.5]},
    {"name": "B", "parent": "A", "kind": "k1"},
    {"name": "C", "parent": "B", "kind": "k1", "cost": 3, "count": 4},
    {"name": "D", "kind": "k0", "law": [0.1, 0.9]}
  ]
}
"""
    )


def test_kinds_are_numbered_as_they_appear(tmp_path):
    def law(p: float) -> list[float]:
        return [p, 1 - p]

    forest = Forest.from_arrays(
        parent=[-1, -1, -1, -1, -1, -1, 5],
        cost=[1, 1, 1, 1, 1, 1, [1, 2]],
        rewards=[[1, 2], [1, 2], [3, 4], [3, 4], [5, 6], [5, 6], [1, 2]],
        law=[law(0.1), law(0.2), law(0.3), law(0.3), law(0.4), law(0.5), [law(0), law(1)]],
    )
    io.save(forest, tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    assert [box["kind"] for box in document["boxes"]] == ["k0"] * 2 + ["k1"] * 2 + ["k2"] * 2 + [
        "k0"
    ]
    assert document["kinds"]["k2"]["rewards"] == [5, 6]
    assert document["boxes"][6]["cost"] == [1, 2]
    assert content(io.load(tmp_path / "x.json")) == content(forest)


def test_a_static_line_is_written_with_one_matrix(tmp_path):
    n, k = 500, 8
    step = np.full((k, k), 1 / k)
    forest = Forest.from_arrays(
        parent=np.arange(-1, n - 1), cost=np.ones(n), rewards=np.arange(k),
        law=[step[0], *[step] * (n - 1)],
    )  # fmt: skip
    io.save(forest, tmp_path / "x.json")
    assert (tmp_path / "x.json").stat().st_size < 40 * n
    assert len(io.load(tmp_path / "x.json").laws) == 2


# -- what a document may say -------------------------------------------------------------------


def test_outcomes(read):
    solution = weitzman.solve(read(document(A, B, C)))
    assert solution.value == pytest.approx(94.325)
    assert solution.index("B", 900) == pytest.approx(914)
    assert solution.index("B", "1") == pytest.approx(15)


def test_outcomes_agree_with_the_builder(read):
    builder = Builder()
    builder.add("S", cost=1, outcomes={"good": 0.3, "bad": 0.7}, rewards={"good": None, "bad": 2})
    builder.add(
        "T", parent="S", count=3, cost={"good": 5, "bad": {40: 1, 0: 2}},
        outcomes={"good": {40: 0.5, 0: 0.5}, "bad": {0: 0.9, 40: 0.1}},
    )  # fmt: skip
    builder.add("U", parent="T", cost={0: 1, 40: 2}, outcomes={7: 0.5, -7: 0.5})
    builder.add("V", cost={1: 3, 2: 4}, outcomes={1: 0.5, 2: 0.5})
    built = builder.build()
    loaded = read(
        document(
            {"name": "S", "cost": 1, "outcomes": {"good": 0.3, "bad": 0.7},
             "rewards": {"good": None, "bad": 2}},
            {"name": "T", "parent": "S", "count": 3, "cost": {"good": 5, "bad": {"40": 1, "0": 2}},
             "outcomes": {"good": {"40": 0.5, "0": 0.5}, "bad": {"0": 0.9, "40.0": 0.1}}},
            {"name": "U", "parent": "T", "cost": {"0": 1, "4e1": 2},
             "outcomes": {"7": 0.5, "-7": 0.5}},
            {"name": "V", "cost": {"1": 3, "2": 4}, "outcomes": {"1": 0.5, "2": 0.5}},
        )
    )  # fmt: skip
    assert content(loaded) == content(built)


def test_costs_of_states_that_cannot_occur_may_be_left_out(read):
    box = {**B, "cost": {"900": {"920": 1, "890": 2}, "1": {"21": 3, "-9": 4}}}
    forest = read(document(A, box))
    assert forest.costs[int(forest.cost[1])].tolist() == [[4, 3, 0, 0], [0, 0, 2, 1]]


def test_kinds_are_overridden(read):
    kinds = {
        "step": {"rewards": [0, 9], "states": ["lo", "hi"], "law": [[1, 0], [0, 1]], "cost": 1}
    }
    root = {"name": "R", "kind": "step", "law": [0.5, 0.5], "cost": 2}
    plain = {"name": "S", "parent": "R", "kind": "step"}
    other = {"name": "T", "parent": "S", "kind": "step", "rewards": [3, 4], "states": None}
    forest = read(document(root, plain, other, kinds=kinds))
    assert [float(forest.costs[int(c)][0, 0]) for c in forest.cost] == [2, 1, 1]
    assert forest.states("S") == ("lo", "hi")
    assert forest.state_names[int(forest.reward[2])] is None


def test_a_kind_fits_each_parent(read):
    """Outcomes go by the names of the parent's states, whatever their order."""
    kinds = {"k": {"cost": {"a": 1, "b": 2}, "outcomes": {"a": {"1": 1}, "b": {"2": 1}}}}
    up = {"name": "U", "cost": 1, "rewards": [0, 1], "states": ["a", "b"], "law": [0, 1]}
    down = {**up, "name": "D", "states": ["b", "a"]}
    below = [{"name": f"below {x}", "parent": x, "kind": "k"} for x in "UD"]
    forest = read(document(up, down, *below, kinds=kinds))
    assert forest.laws[int(forest.law[2])].tolist() == [[1, 0], [0, 1]]
    assert forest.laws[int(forest.law[3])].tolist() == [[0, 1], [1, 0]]
    assert forest.costs[int(forest.cost[3])].tolist() == [[2], [1]]


def test_a_line_stands_for_its_boxes(read):
    step = {"rewards": [0, 10], "law": [[0.9, 0.1], [0.2, 0.8]], "cost": 1}
    line = {"name": "L", "parent": "A", "kind": "step", "length": 3, "count": 2}
    tail = {"name": "Z", "parent": "L", "kind": "step"}
    side = {"name": "Y", "parent": "L.2", "kind": "step"}
    root = {"name": "A", "rewards": [0, 10], "law": [0.5, 0.5], "cost": 1}
    forest = read(document(tail, side, line, root, kinds={"step": step}))
    assert forest.names == ("Z", "Y", "L.1", "L.2", "L.3", "A")
    assert forest.parent.tolist() == [4, 3, 5, 2, 3, -1]
    assert forest.count.tolist() == [1, 1, 2, 1, 1, 1]
    assert len(forest.laws) == 2


def test_boxes_without_names_are_numbered(read):
    box = {"rewards": [1, 2], "cost": 0, "law": [[1, 0], [0, 1]]}
    forest = read(document({**box, "parent": 1}, {**box, "law": [1, 0], "parent": None}))
    assert forest.names is None
    assert forest.parent.tolist() == [1, -1]


def test_objective_and_outside(read):
    box = {"name": "A", "cost": 1, "rewards": [5, None], "law": [0.5, 0.5]}
    forest = read(document(box, objective="minimize", outside=9, note="losses"))
    assert forest.minimize
    assert forest.rewards[0].tolist() == [[5, np.inf]]
    assert read(document(A)).outside == 0
    assert read(document(A, outside=None)).outside == -np.inf
    assert read(document(A, objective="minimize", outside=None)).outside == np.inf


def test_text_may_start_with_a_byte_order_mark(read):
    assert len(read(b"\xef\xbb\xbf" + json.dumps(document(A)).encode())) == 1


def test_counts_may_be_written_with_an_exponent(read):
    assert read(document({**A, "count": 1e6})).count.tolist() == [10**6]


def test_the_demo_is_the_example_of_the_paper(read):
    forest = read(files("weitzman.files").joinpath("demo.json").read_bytes())
    assert weitzman.solve(forest).value == pytest.approx(94.325)


# -- broken documents --------------------------------------------------------------------------

BIG = 10**400
LAW = {"name": "C", "cost": 5, "rewards": [50, 10]}

# document, message, and whether the schema refuses it too
BROKEN: list[tuple[Any, str, bool]] = [
    ([], "the document must be an object, but it is a list of 0", True),
    ({}, 'format must be "weitzman/1", but it is missing', True),
    ({**document(A), "format": "weitzman/2"}, "format must be .* but it is 'weitzman/2'", True),
    (document(), "boxes must be a list of at least one box, but it is a list of 0", True),
    ({"format": "weitzman/1"}, "boxes must be .* but it is missing", True),
    (document(A, boxs=1), "'boxs' is not a key here; did you mean 'boxes'", True),
    (document(A, note=1), "the document: note must be text, but it is 1", True),
    (document(A, objective="best"), 'objective must be "maximize" or "minimize", but it is', True),
    (document(A, objective=[]), "objective must be .* but it is a list of 0", True),
    (document(A, objective="minimize"), "minimizing needs an outside option", True),
    (document(A, outside="0"), "outside must be a number .* but it is '0'", True),
    (document(A, outside=True), "outside must be a number .* but it is true", True),
    (document(A, outside=BIG), "outside must be a number that fits", False),
    (document(A, kinds=[]), "kinds must be an object, but it is a list of 0", True),
    (document(A, kinds={"k": 1}), r"kinds\['k'\] must be an object, but it is 1", True),
    (document(A, kinds={"k": {"name": "x"}}), r"kinds\['k'\]: 'name' is not a key", True),
    (document(A, 5), r"boxes\[1\] must be an object, but it is 5", True),
    (document({**A, "costs": 1}), r"boxes\[0\] \('A'\): 'costs' .* did you mean 'cost'", True),
    (document({**A, "name": 7}), r"boxes\[0\] \(7\): name must be text, but it is 7", True),
    (document(A, {**C, "name": "A"}), r"boxes\[1\] \('A'\): names must differ", False),
    (document(A, {**LAW, "law": [1, 0]} | {"name": "\ud800"}), "name must be valid Unicode", False),
    (document({"cost": 1, "rewards": [0], "law": [1]}, A), "either all boxes have a name", True),
    (document(A, {"cost": 1, "rewards": [0], "law": [1]}), "either all boxes have a name", True),
    (document(A, {**B, "parent": "a"}), r"boxes\[1\] \('B'\): there is no box 'a'", False),
    (document(A, {**B, "parent": "AA"}), "no box 'AA' to be its parent; did you mean 'A'", False),
    (document(A, {**B, "parent": 0}), r"\('B'\): parent must be text, but it is 0", True),
    (document({**B, "parent": "B", "outcomes": {"1": 1}}), "'B' -> 'B' is a cycle", False),
    (document({"cost": 1, "outcomes": {"1": 1}, "parent": 5}), "from 0 to 0, but it is 5", False),
    (document({"cost": 1, "outcomes": {"1": 1}, "parent": -1}), "from 0 to 0, but it is -1", True),
    (document({"cost": 1, "outcomes": {"1": 1}, "parent": "A"}), "parent must be a whole", True),
    (document({**A, "kind": "x"}), "there is no kind 'x'", False),
    (document({**A, "kind": 3}), "kind must be text, but it is 3", True),
    (document({**A, "count": 0}), "count must be a whole number from 1 to", True),
    (document({**A, "count": 1.5}), "count must be a whole number .* but it is 1.5", True),
    (document({**A, "count": 10**18}), "count must be a whole number from 1 to", True),
    (document({**A, "count": True}), "count must be a whole number .* but it is true", True),
    (document({"name": "A", "outcomes": {"1": 1}}), "'cost' is missing", True),
    (document({**LAW}), r"boxes\[0\] \('C'\): 'law' is missing", True),
    (document({**A, "law": [1]}), "outcomes stand for .* 'law' is given too", True),
    (document({**C, "rewards": {}}), "rewards by state belong to outcomes", True),
    (document({**C, "cost": None}), "cost must be a number, a list.* but it is null", True),
    (document({**C, "cost": "5"}), "cost must be a number, a list.* but it is '5'", True),
    (document({**C, "cost": BIG}), "cost must be a number", False),
    (document({**C, "cost": -1}), "costs must be finite and not negative", True),
    (document({**C, "cost": [[1, 2], [3]]}), r"cost\[1\] must be a list of 2 numbers", False),
    (document({**C, "cost": [1, [2]]}), r"cost\[1\] must be a number, but it is a list of 1", True),
    (document({**C, "cost": [1, 2, 3]}), "or one for all of them, but it has shape", False),
    (document({**C, "cost": {"0": 1, "7": 2}}), "each own state, but '7' is none", False),
    (document({**C, "cost": {"0": 1}}), "each own state that can occur, but '1' has none", False),
    (document({**C, "cost": {"0": 1, "1": "x"}}), "cost of '1' must be a number", True),
    (document(A, {**B, "cost": {"1": 1}}), "each state of the parent, but '900' has none", False),
    (document(A, {**B, "cost": {"1": 1, "900": []}}), "cost of '900' must be a number", True),
    (document({**LAW, "law": 1}), "law must be a list of numbers", True),
    (document({**LAW, "law": []}), "2 columns .* shape", False),
    (document({**LAW, "law": [[]]}), "2 columns .* shape", False),
    (document({**LAW, "law": [0.5, None]}), r"law\[1\] must be a number, but it is null", True),
    (document({**LAW, "law": [[0.5, "x"]]}), r"law\[0\]\[1\] must be a number, but", True),
    (document({**LAW, "law": [0.5, True]}), r"law\[1\] must be a number, but it is true", True),
    (document({**LAW, "law": [0.5, BIG]}), r"law\[1\] must be a number that fits", False),
    (document({**LAW, "law": [0.5, 0.6]}), "must sum to 1, but those of box 'C' sum to 1.1", False),
    (document({**LAW, "law": [1.5, -0.5]}), "between 0 and 1, but .* 'C'", True),
    (document({**LAW, "law": [[[0.5]]]}), r"law\[0\]\[0\] must be a number", True),
    (document(A, {**C, "parent": "A"}), "box 'C' .a child. has a law of 1 dimensions", False),
    (document({**C, "rewards": []}), "rewards must be a list .* but it is a list of 0", True),
    (document({**C, "rewards": 5}), "rewards must be a list of numbers.* but it is 5", True),
    (document({**C, "rewards": [1, "2"]}), r"rewards\[1\] must be a number or null", True),
    (document({**C, "rewards": [1, None]}, outside=None), "need a finite outside option", False),
    (document({**C, "states": ["a"]}), "states must be a list of 2 names", False),
    (document({**C, "states": ["a", 1]}), r"states\[1\] must be text, but it is 1", True),
    (document({**C, "states": ["a", "a"]}), "must differ, but 'a' appears twice", False),
    (document({**A, "outcomes": []}), "outcomes must be an object with", True),
    (document({**A, "outcomes": {}}), "outcomes must be an object with", True),
    (document({**A, "outcomes": {"1": "x"}}), "outcomes: that of '1' must be a number", True),
    (document({**A, "outcomes": {"x": 1}}), "give 'x' none .1 such state", False),
    (document({**A, "outcomes": {"1e999": 1}}), "give '1e999' none", False),
    (document({**A, "outcomes": {"1": 0.5, "1.0": 0.5}}), "name '1.0' twice", False),
    (document({**A, "outcomes": {"1": {"2": 1}}}), "go two levels deep though it is a root", False),
    (document({**A, "rewards": {"7": 1}}), "state that occurs in outcomes, but '7' is none", False),
    (document({**A, "rewards": {"1": "x"}}), "rewards: that of '1' must be a number", True),
    (document({**A, "rewards": {"1": 1, "1.0": 1}}), "name '1.0' twice", False),
    (document({**A, "rewards": 3}), "rewards must be a mapping .* but there is 3", True),
    (document(A, {**B, "outcomes": {"1": {}, "900": {"1": 1}}}), "must name a state", True),
    (document(A, {**B, "outcomes": {"1": {"1": 1}, "90": {"1": 1}}}), "'90' is none; did", False),
    (document({**A, "length": 2}), "length needs a name and a parent", True),
    (document(A, {**B, "length": 0}), "length must be a whole number from 1 to 1000000", True),
    (document(A, {**B, "length": "forever"}), 'a whole number, or "endless", but it is', True),
    (document(A, {**B, "length": 10**12}), "length must be a whole number from 1 to", True),
    (document(A, {**B, "length": 2}, {**A, "name": "B.2"}), "'B.2' is taken", False),
]  # fmt: skip


@pytest.mark.parametrize(("broken", "message", "in_schema"), BROKEN)
def test_broken_documents_are_rejected(read, broken, message, in_schema):
    with pytest.raises((InvalidFile, InvalidForest), match=message) as caught:
        read(broken)
    assert "x.json: " in str(caught.value)
    assert VALIDATOR.is_valid(broken) != in_schema


def test_lines_have_a_largest_length(read, monkeypatch):
    monkeypatch.setattr("weitzman.files.json_format.MAX_LENGTH", 10)
    step = {"parent": "A", "cost": 1, "outcomes": {"1": 0.5, "900": 0.5}}
    two = document(A, {**step, "name": "B", "length": 6}, {**step, "name": "C", "length": 5})
    with pytest.raises(InvalidFile, match=r"boxes\[2\] .* all lines together .* at most 10 boxes"):
        read(two)
    two["boxes"][2]["length"] = 4
    assert len(read(two)) == 11


DEEP = 100_000
HOSTILE: list[tuple[bytes, str]] = [
    (b"", "there must be a JSON object, but there is nothing"),
    (b" \n", "there must be a JSON object, but there is nothing"),
    (b"\xff\xfe{\x00}\x00", r"must be UTF-8, but byte 0 \(0xff\) is not"),
    (b'{"format": "\x80"}', "must be UTF-8, but byte 12"),
    (b'{"format": "weitzman/1", "boxes": [', "at line 1, column 36. The text seems to be cut off"),
    (b"{} {}", "not valid JSON: extra data, at line 1, column 4"),
    (b'{"a": 1, "a": 2}', "must be given once, but 'a' is twice in one object"),
    (b'{"name": "B", "a": 1, "a": 2}', "twice in one object .the one named 'B'"),
    (b'{"outside": NaN}', "numbers must be finite, but there is NaN"),
    (b'{"outside": -Infinity}', "numbers must be finite, but there is -Infinity"),
    (b"[" * DEEP, "nested too deeply"),
    (b'{"a":' * DEEP, "nested too deeply"),
    (b"[" * DEEP + b"]" * DEEP, "nested too deeply"),
    (b'{"outside": ' + b"9" * 5000 + b"}", "a whole number is too long"),
    (b'{"format": "weitzman/1", "boxes": [{"cost": 1e999}]}', "'rewards' is missing"),
    (
        b'{"format": "weitzman/1", "boxes": [{"cost": 1, "rewards": [1e999], "law": [1]}]}',
        r"boxes\[0\]: rewards\[0\] must be a number that fits a 64-bit float, but it is inf",
    ),
    (b'{"format": "weitzman/1", "outside": 1e999, "boxes": [1]}', "outside must be a number that"),
    (b'{"format": "' + b"x" * 10**6 + b'"}', "but it is 'xxx.*xxx\\.\\.\\.\\. Another"),
    (b'{"format": ' + b"[" * 400 + b"]" * 400 + b"}", "but it is a list of 1"),
]


@pytest.mark.parametrize(("data", "message"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_rejected(read, data, message):
    with pytest.raises(InvalidFile, match=message) as caught:
        read(data)
    assert len(str(caught.value)) < 500


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(io.schema())
    for x in (
        document(A, B, C),
        json.loads(files("weitzman.files").joinpath("demo.json").read_text()),
    ):
        VALIDATOR.validate(x)


# -- files -------------------------------------------------------------------------------------


def test_the_ending_tells_the_format(tmp_path, read):
    forest = read(document(A))
    with pytest.raises(InvalidFile, match=r"x.yaml: .* must end in .json, .json.gz or .wz"):
        io.save(forest, tmp_path / "x.yaml")
    with pytest.raises(InvalidFile, match="must end in"):
        io.load("json")
    io.save(forest, tmp_path / "X.JSON")
    assert content(io.load(tmp_path / "X.JSON")) == content(forest)


@pytest.mark.parametrize("name", ["none.json", "none.json.gz", "none.wz"])
def test_a_missing_file(tmp_path, name):
    with pytest.raises(InvalidFile, match="cannot be read: No such file") as caught:
        io.load(tmp_path / name)
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_odd_paths(tmp_path, read):
    forest = read(document(A))
    folder = tmp_path / "folder.json"
    folder.mkdir()
    with pytest.raises(InvalidFile, match="cannot be read: it is a folder"):
        io.load(folder)
    with pytest.raises(InvalidFile, match="cannot be written: it is a folder"):
        io.save(forest, folder)
    with pytest.raises(InvalidFile, match="null character"):
        io.load("a\0.json")
    with pytest.raises(InvalidFile, match="cannot be written: No such file"):
        io.save(forest, tmp_path / "nowhere" / "x.wz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_rejected_at_once(tmp_path, read):
    forest = read(document(A))
    os.mkfifo(tmp_path / "pipe.wz")
    for action in (
        lambda: io.load(tmp_path / "pipe.wz"),
        lambda: io.save(forest, tmp_path / "pipe.wz"),
    ):
        with pytest.raises(InvalidFile, match="it is a pipe or a device"):
            action()
    assert stat.S_ISFIFO((tmp_path / "pipe.wz").stat().st_mode)


def test_gzip_damage(tmp_path):
    path = tmp_path / "x.json.gz"
    data = gzip.compress(json.dumps(document(A, B, C)).encode())
    for broken in (
        data[:-9],
        data[:12],
        b"{}",
        data[:20] + b"\0\0\0\0" + data[24:],
        data[:-8] + bytes(8),
    ):
        path.write_bytes(broken)
        with pytest.raises(InvalidFile, match=r"x\.json\.gz: not a complete gzip file") as caught:
            io.load(path)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_text_that_unpacks_to_too_much(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(documents, "MAX_BYTES", 5_000_000)
    text = b" " * 6_000_000
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(text) if suffix == ".json.gz" else text)
    with pytest.raises(InvalidFile, match="at most 5,000,000 bytes once unpacked"):
        io.load(path)


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".wz"])
def test_a_failed_write_leaves_the_old_file(tmp_path, read, suffix):
    path = tmp_path / f"old{suffix}"
    io.save(read(document(A)), path)
    before, listed = path.read_bytes(), sorted(os.listdir(tmp_path))
    bad = Forest.from_arrays(
        parent=[-1], cost=[1], rewards=[[0, 1]], law=[[0.5, 0.5]], names=["\ud800"]
    )
    with pytest.raises(InvalidForest, match="names must be valid Unicode"):
        io.save(bad, path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == listed


def test_a_full_disk_leaves_the_old_file(tmp_path, read, monkeypatch):
    path = tmp_path / "old.wz"
    forest = read(document(A))
    io.save(forest, path)
    before, listed = path.read_bytes(), sorted(os.listdir(tmp_path))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidFile, match=r"old.wz: cannot be written: No space left"):
        io.save(forest, path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == listed


def test_a_replaced_file_keeps_its_mode_and_its_link(tmp_path, read):
    forest = read(document(A))
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    io.save(forest, link)
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert len(io.load(real)) == 1


def test_readers_see_the_old_file_or_the_new(tmp_path, read):
    path = tmp_path / "x.wz"
    small, large = read(document(A)), read(document(A, {**C, "count": 3}))
    io.save(small, path)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            io.save(large, path)
            io.save(small, path)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        sizes = {len(io.load(path)) for _ in range(100)}
    finally:
        stop.set()
        writer.join()
    assert sizes <= {1, 2}


# -- the binary format -------------------------------------------------------------------------


@pytest.fixture
def binary(tmp_path, read) -> bytes:
    io.save(read(document(A, B, C)), tmp_path / "good.wz")
    return (tmp_path / "good.wz").read_bytes()


def load_binary(folder: Path, data: bytes) -> Forest:
    (folder / "x.wz").write_bytes(data)
    return io.load(folder / "x.wz")


def test_every_cut_is_noticed(tmp_path, binary):
    for end in range(len(binary)):
        with pytest.raises(InvalidFile):
            load_binary(tmp_path, binary[:end])
    with pytest.raises(InvalidFile, match=f"must have {len(binary)} bytes, but it has"):
        load_binary(tmp_path, binary + b"\0")
    with pytest.raises(InvalidFile, match="it is cut off or has been added to"):
        load_binary(tmp_path, binary[:-1])


def test_every_flipped_byte_is_noticed(tmp_path, binary):
    for place in range(len(binary)):
        with pytest.raises(InvalidFile):
            load_binary(tmp_path, flipped(binary, place))
    with pytest.raises(InvalidFile, match=r"'state_names\.length' is damaged: its checksum must"):
        load_binary(tmp_path, flipped(binary, len(binary) - 1))


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


def test_the_layout_is_as_documented(tmp_path, binary):
    header, found = unpacked(binary)
    assert packed(header, found) == binary
    assert found["names.bytes"] == b"ABC"
    assert np.frombuffer(found["parent"], "i1").tolist() == [-1, 0, -1]
    assert len(load_binary(tmp_path, binary)) == 3


# what is changed in the header (a path and a value) or in the columns, and the message
LIES: list[tuple[tuple[Any, ...], Any, str]] = [
    (("outside",), "x", "outside must be a number .*, or null"),
    (("objective",), 1, "objective must be \"maximize\" or \"minimize\", but it is 1"),
    (("columns",), {}, "columns must be a list"),
    (("columns", 0), 5, r"columns\[0\] must be an object"),
    (("columns", 0, "size"), 10**18, r"columns\[0\]: size must be a whole number from 0 to"),
    (("columns", 0, "size"), -1, r"columns\[0\]: size must be a whole number"),
    (("columns", 0, "size"), 2, "column 'parent' is damaged|the bytes before column"),
    (("columns", 5, "size"), 1000, "the file must have"),
    (("columns", 0, "dtype"), "|O", "a known type, not '|O'"),
    (("columns", 0, "dtype"), [], "a known type"),
    (("columns", 0, "dtype"), "|u1", "column 'parent' cannot be of type |u1"),
    (("columns", 0, "name"), "law", "column 'parent' is missing, repeated or unknown"),
    (("columns", 0, "name"), 3, "needs a name"),
    (("columns", 0, "more"), 3, "'more' is not a key here"),
    (("columns", 0, "crc"), "x", "crc must be a whole number"),
    (("extra",), 3, "'extra' is not a key here"),
    ("parent", np.array([1, 0, -1], "i1"), "is a cycle"),
    ("parent", np.array([-1, 9, -1], "i1"), "a parent must be the number of a box"),
    ("law", np.array([0, 77, 0], "i1"), "must point into its pool of 3"),
    ("laws.shape", np.array([1, 2, 2, 4, 0, 9], "i1"), "laws: each matrix must have rows"),
    ("laws.shape", np.array([1, 2, 2, 4, 1, 9], "i1"), "laws: the shapes must add up to the 12"),
    ("laws.data", np.full(12, np.nan), "between 0 and 1"),
    ("costs.data", np.full(3, np.inf), "costs must be finite"),
    ("names.length", np.array([1, 3, -1], "i1"), "names: the lengths must add up to the 3"),
    ("names.length", np.array([1, 1, 9], "i1"), "names: the lengths must add up to the 3"),
    ("names.bytes", np.frombuffer(b"A\xffC", "u1"), "a name must be UTF-8"),
    ("names.bytes", np.frombuffer(b"AAC", "u1"), "must differ, but 'A' appears twice"),
    ("state_names.rows", np.array([0, 0], "i1"), "rows must be numbers of rewards, in rising"),
    ("state_names.rows", np.array([0, 5], "i1"), "rows must be numbers of rewards"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value", "message"), LIES)
def test_lies_with_right_checksums(tmp_path, binary, place, value, message):
    header, found = unpacked(binary)
    if isinstance(place, str):
        assert len(value.tobytes()) == len(found[place])
        found[place] = value.tobytes()
    else:
        part: Any = header
        for step in place[:-1]:
            part = part[step]
        part[place[-1]] = value
    with pytest.raises((InvalidFile, InvalidForest), match=message):
        load_binary(tmp_path, packed(header, found))


def test_other_files_called_wz(tmp_path, binary):
    header, found = unpacked(binary)
    with pytest.raises(InvalidFile, match="must start with the bytes that mark it"):
        load_binary(tmp_path, b"PK\x03\x04 an archive")
    with pytest.raises(InvalidFile, match="the version of the format must be 1, but it is 2"):
        load_binary(tmp_path, packed(header, found, version=2))
    with pytest.raises(InvalidFile, match="header must have at most 65536 bytes, not 4294967295"):
        load_binary(tmp_path, MAGIC + struct.pack("<III", 1, 2**32 - 1, 0))
    for key in header:
        less = {k: v for k, v in header.items() if k != key}
        with pytest.raises(InvalidFile, match=f"header: '{key}' is missing"):
            load_binary(tmp_path, packed(less, found))


def test_columns_are_as_narrow_as_they_can_be(tmp_path):
    n = 1000
    forest = Forest.from_arrays(
        parent=np.full(n, -1), cost=np.ones(n), rewards=[0, 1], law=[[0.5, 0.5]] * n
    )
    io.save(forest, tmp_path / "x.wz")
    assert (tmp_path / "x.wz").stat().st_size < 5 * n + 2500


def test_a_table_is_read_like_any_other_file(tmp_path):
    forest = weitzman.line(
        ([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]), length=np.inf, rewards=[0, 10], cost=0.5
    )
    path = tmp_path / "boxes.csv"
    weitzman.files.to_pandas(forest).to_csv(path, index=False)
    again = weitzman.load(path)
    assert again.endless.tolist() == [False, True]
    assert weitzman.solve(again).value == weitzman.solve(forest).value
    path.write_text("box,cost\nA,1\n")
    with pytest.raises(
        weitzman.errors.InvalidFile, match=r"boxes.csv: a table must have the column 'prob"
    ):
        weitzman.load(path)


@pytest.mark.parametrize("one", io.FORMATS, ids=lambda one: one.suffix)
def test_one_registry_knows_every_format(tmp_path, read, one):
    if one.suffix == ".xlsx":
        pytest.importorskip("openpyxl")
    forest, path = read(document(A, B, C)), tmp_path / f"x{one.suffix}"
    if one.suffix in (".xlsm", ".ods"):
        with pytest.raises(InvalidFile, match="only read"):
            io.save(forest, path)
        return
    io.save(forest, path)
    assert io.load(path) == forest
    data = path.read_bytes()
    assert data.startswith(one.magic)
    found = io.suffix_of(data)
    assert found == one.suffix or not one.magic


RANGED = """\
unit,$,,,,,,
box,parent,parent_state,state,reward,probability,cost,cost range
A,,,good,80/100/130,0.2/0.3/0.5,10,normal(12; 2)
A,,,bad,0,0.7,10,
B,A,good,x,50,0.5/0.6/0.7,4/5/6,
B,A,good,y,0,0.4,4/5/6,
B,A,bad,x,50,0.1,5,5/5/5
B,A,bad,y,0,0.9,5,5/5/5
C,,,u,5,1,1,1/1/1
"""


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".csv", ".tsv.gz", ".xlsx"])
def test_ranges_are_kept_in_every_file_that_can_hold_them(tmp_path, suffix):
    if suffix == ".xlsx":
        pytest.importorskip("openpyxl")
    sheet, path = tmp_path / "given.csv", tmp_path / f"again{suffix}"
    sheet.write_text(RANGED)
    given = read_table(sheet)
    assert [r.title for r in given.ranges] == [
        "cost of A", "cost of B after good", "reward of good (A)", "chance of good (A)",
        "chance of x (B after good)",
    ]  # fmt: skip
    io.save(given.forest, path, given.ranges)
    again = read_table(path)
    assert len(read_ranges(path)) == 5
    assert again.forest == given.forest == io.load(path)
    same = [{(*r[:7], r.written) for r in reading.ranges} for reading in (given, again)]
    assert same[0] == same[1]
    if suffix == ".json":
        VALIDATOR.validate(json.loads(path.read_text()))


def test_a_binary_file_holds_no_ranges(tmp_path):
    forest = Builder().add("A", cost=1, outcomes={0: 0.5, 10: 0.5}).build()
    ranges = Ranges([Range("A", "cost", 1, 0.5, 3)])
    with pytest.raises(InvalidFile, match="have no ranges"):
        io.save(forest, tmp_path / "x.wz", ranges)
    assert not (tmp_path / "x.wz").exists()
    odd = Ranges([Range("A", "cost", 1, 0.5, 3, distribution=object())])
    with pytest.raises(InvalidForest, match="that no file holds"):
        io.save(forest, tmp_path / "x.json", odd)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (3, "ranges must be a list"),
        ([3], r"ranges\[0\] must be an object"),
        ([{"box": "X"}], "field must be text"),
        ([{"box": "X", "field": "cost", "range": "1/2/3"}], "no box 'X'"),
        ([{"box": "A", "field": "cost", "range": "1/2"}], "such as 80/100/130"),
        ([{"box": "A", "field": "cost", "range": "21/22/23"}], "must rise from low to base"),
        ([{"box": "A", "field": "factor", "range": "1/2/3"}], "has no factor"),
        ([{"box": "A", "field": "cost", "given": "1", "range": "1/20/30"}], "has no parent"),
        ([{"box": "A", "field": "probability", "range": "0/0.1/1"}], "is not one number"),
        ([{"box": "A", "field": "reward", "range": "0/1/2"}], "is not one number"),
        ([{"box": "A", "field": "cost", "low": 1}], "is not a key here"),
    ],
)
def test_ranges_of_a_document_that_make_no_sense(read, wrong, message):
    with pytest.raises(InvalidFile, match=message):
        read({**document(A, B, C), "ranges": wrong})


def test_a_sure_state_can_become_less_sure():
    """Its range was ignored: there is no other chance to take the rest in proportion."""
    sure = Forest.from_arrays(
        parent=[-1], cost=[1], rewards=[[9, 3, 0]], law=[[1, 0, 0]], names=["A"]
    )
    one = Range("A", "probability", 1.0, 0.4, 1.0, state="0")
    changed = Ranges([one]).changed(sure, {0: 0.4})
    np.testing.assert_allclose(changed.laws[int(changed.law[0])], [[0.4, 0.3, 0.3]])
