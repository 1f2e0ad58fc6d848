"""``weitzman chain`` as a user types it."""

from __future__ import annotations

import json

import pytest

from weitzman.chains.chain import Chain
from weitzman.chains.endless import solve_line
from weitzman.chains.hitting import miss_bounds
from weitzman.cli import main

pytest.importorskip("scipy")

STICKY = {
    "format": "weitzman-chain/1",
    "law": [[0.99, 0.01], [0.01, 0.99]],
    "rewards": [0, 1],
    "states": ["poor", "rich"],
    "cost": 0.001,
    "start": "poor",
}


@pytest.fixture
def write(tmp_path):
    def write(document, **more) -> str:
        path = tmp_path / "chain.json"
        text = document if isinstance(document, str) else json.dumps({**document, **more})
        path.write_text(text, "utf-8")
        return str(path)

    return write


def test_report(write, capsys):
    assert main(["chain", write(STICKY)]) == 0
    assert capsys.readouterr() == (
        "states        2\n"
        "classes       1: every state leads to every other\n"
        "period        1\n"
        "mixing time   35 boxes to come within 1/4 of stationary\n"
        "distance      at most 0.5 * 0.98^t after t boxes\n"
        "top reward    1 (state rich), 50% of all boxes in the long run\n"
        "              688 boxes will show it with probability 0.999 or more\n"
        "value         0.9, of the endless line\n"
        "\n"
        "boxes to miss the top reward with probability 0.001 at most:\n"
        "bound            boxes   true probability   holds\n"
        "printed            100              0.366      no\n"
        "sign corrected     100              0.366      no\n"
        "blocks             875           0.000152     yes\n"
        "exact              688           0.000993     yes\n"
        "\n"
        "state   reward   stationary     index    then\n"
        "poor         0          0.5       0.9   go on\n"
        "rich         1          0.5   0.99899    stop\n",
        "",
    )


def test_json_says_the_same_as_the_library(write, capsys):
    assert main(["chain", write(STICKY, outside=0.5), "--json", "--delta", "1e-4"]) == 0
    found = json.loads(capsys.readouterr().out)
    chain = Chain(STICKY["law"], STICKY["rewards"])
    line, miss = solve_line(chain, STICKY["cost"]), miss_bounds(chain, 1e-4)
    assert found["stationary"] == chain.stationary().tolist()
    assert (found["C"], found["alpha"]) == tuple(chain.rate())
    assert found["mixing_time"] == chain.mixing_time()
    assert found["index"] == line.index.tolist()
    assert found["value"] == line.value_at(0, outside=0.5)
    assert found["miss"]["bounds"].keys() == miss.boxes.keys()
    for name, bound in found["miss"]["bounds"].items():
        assert bound["boxes"] == miss.boxes[name]
        assert bound["miss"] == miss.misses[name]
        assert bound["holds"] is miss.holds(name)
    assert found["boxes"] == miss.boxes["exact"]
    assert found["top"] == ["rich"]
    assert found["notes"] == []


def test_what_a_chain_lacks_is_said(write, capsys):
    ends = {**STICKY, "law": [[1, 0], [0, 1]], "cost": [1, 0]}
    del ends["start"]
    assert main(["chain", write(ends)]) == 0
    out = capsys.readouterr().out
    assert "classes      2, of which 2 cannot be left" in out
    assert 'value        unknown without a "start"' in out
    assert "no stationary distribution: " in out
    assert "states 0 and 1 never meet" in out
    assert out.count("never meet") == 1  # and once is enough
    assert "no number of boxes: " in out
    assert main(["chain", write(ends), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    lacking = ["stationary", "mixing_time", "C", "alpha", "boxes", "miss", "value"]
    assert [found[key] for key in lacking] == [None] * len(lacking)
    assert len(found["notes"]) == 2


def test_where_costs_differ_the_state_before_the_first_box_counts(write, capsys):
    law, rewards, cost = [[0.6, 0.4], [0.2, 0.8]], [0, 10], [1, 3]
    chain = {"format": "weitzman-chain/1", "law": law, "rewards": rewards, "cost": cost}
    line = solve_line(Chain(law, rewards), cost)
    for state in (0, 1):
        assert main(["chain", write({**chain, "start": str(state)}), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["value"] == line.value_at(state)
    assert main(["chain", write({**chain, "start": [0.5, 0.5]})]) == 0
    out = capsys.readouterr().out
    assert "no value: where the cost depends on the state before" in out
    assert "unknown without" not in out


def test_periodic_chains_and_signals(write, capsys):
    law = [[0.5, 0.25, 0.25], [0, 0, 1], [0, 1, 0]]
    document = {"format": "weitzman-chain/1", "law": law, "rewards": [0, 1, None]}
    assert main(["chain", write(document)]) == 0
    out = capsys.readouterr().out
    assert "period       2: the start is never forgotten" in out
    assert "11 boxes will show it with probability 0.999" in out
    assert "2         none          0.5" in out
    assert "index" not in out  # there is no cost
    assert main(["chain", write(document), "--limit", "1"]) == 0
    assert capsys.readouterr().out.endswith("... and 2 more states (--limit 0 shows all)\n")


def test_an_index_that_is_infinite_is_null(write, capsys):
    document = {**STICKY, "law": [[1, 0], [0, 1]], "rewards": [None, 1]}
    assert main(["chain", write(document), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["index"] == [None, 0.999]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "weitzman/1"}, "That is an instance; see weitzman solve."),
        ({"format": "chain"}, "format must be \"weitzman-chain/1\", but it is 'chain'."),
        ({"laws": []}, "'laws' is not a key here; did you mean 'law'?"),
        ({"law": [[0.9, 0.2], [0, 1]]}, "those after state 0 sum to 1.1"),
        ({"law": [[1, 0], [0]]}, "law[1] must be a list of 2 numbers"),
        ({"law": [[1, "0"], [0, 1]]}, "law[0][1] must be a number, but it is '0'"),
        ({"rewards": [0]}, "there are 2 states and rewards of shape (1,)"),
        ({"rewards": [0, "x"]}, "rewards[1] must be a number, or null"),
        ({"rewards": 3}, "rewards must be a list with a number for each state, but it is 3"),
        ({"rewards": [None, None]}, "an endless line needs a state with a reward"),
        ({"states": ["a"]}, "states must be a list of 2 names"),
        ({"states": ["a", "a"]}, "names of states must differ, but 'a' appears twice"),
        ({"cost": -1}, "costs must be from 0 to 1e+300, but after state 0 it is -1"),
        ({"cost": True}, "cost must be a list of numbers"),
        ({"start": "riche"}, "there is no state 'riche'; did you mean 'rich'?"),
        ({"start": 1}, "start must be the name of a state, or a list of probabilities"),
        ({"start": [0.5, 0.6]}, "must be of numbers from 0 to 1 that sum to 1"),
        ({"outside": None}, "outside must be a number, but it is null"),
    ],
)
def test_wrong_files_are_refused_in_one_line(write, capsys, change, message):
    assert main(["chain", write(STICKY, **change)]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert message in error
    assert error.startswith("weitzman: error: ")
    assert error.count("\n") == 1


def test_what_is_missing_or_unreadable(write, capsys, tmp_path):
    assert main(["chain", write({"format": "weitzman-chain/1", "law": [[1]]})]) == 1
    assert "needs `law` and `rewards`, but there is no `rewards`" in capsys.readouterr().err
    assert main(["chain", write("[1, 2]")]) == 1
    assert "the document must be an object, but it is a list of 2" in capsys.readouterr().err
    assert main(["chain", write('{"law": NaN}')]) == 1
    assert "numbers must be finite" in capsys.readouterr().err
    assert main(["chain", str(tmp_path / "nowhere.json")]) == 3
    assert "nowhere.json: cannot be read" in capsys.readouterr().err
    assert main(["chain", str(tmp_path)]) == 3
    assert "it is a folder" in capsys.readouterr().err
    assert main(["chain", write(STICKY), "--delta", "2"]) == 1
    assert "`delta` must lie" in capsys.readouterr().err


def test_scipy_is_asked_for(write, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "scipy.sparse", None)
    assert main(["chain", write(STICKY)]) == 1
    assert 'pip install "weitzman[scipy]"' in capsys.readouterr().err
