"""The command: what it prints, and how it ends."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import weitzman
from weitzman import cli
from weitzman.cli import common, main
from weitzman.files import instances as io
from weitzman.forest.model import Forest
from weitzman.policy.words import describe, explain

SOURCE = str(Path(weitzman.__file__).parents[1])

POLICY = """\
Open A (cost 20).
  If A shows 1 (90%): open C (cost 5).
    If C shows 10 (50%): open B (cost 3).
      If B shows -9 (50%): stop and take 10 from C.
      If B shows 21 (50%): stop and take 21 from B.
    If C shows 50 (50%): stop and take 50 from C.
  If A shows 900 (10%): open B (cost 3).
    If B shows 890 (50%): stop and take 900 from A.
    If B shows 920 (50%): stop and take 920 from B.
"""


@pytest.fixture
def boxes(tmp_path, capsys) -> str:
    """The file of the demo."""
    assert main(["demo", "--json"]) == 0
    path = tmp_path / "boxes.json"
    path.write_text(capsys.readouterr().out)
    return str(path)


def write(path: Path, *boxes: Any, **more: Any) -> str:
    path.write_text(json.dumps({"format": "weitzman/1", "boxes": list(boxes), **more}))
    return str(path)


# -- commands ----------------------------------------------------------------------------------


def test_demo_tells_the_policy(capsys):
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "The best policy earns 94.325 on average" in out
    assert "".join(f"  {line}\n" for line in POLICY.splitlines()) in out
    assert "A: costs 20, shows 1 (90%) or 900 (10%)" in out
    assert max(map(len, out.splitlines())) < 80


def test_solve_prints_a_table(boxes, capsys):
    assert main(["solve", boxes]) == 0
    assert capsys.readouterr() == (
        "value        94.325   (exact up to rounding)\n"
        "open first   A   (index 707)\n"
        "\n"
        "box   after     cost   index\n"
        "A                 20     707\n"
        "B     A = 1        3      15\n"
        "B     A = 900      3     914\n"
        "C                  5      40\n",
        "",
    )


def test_solve_explains(boxes, capsys):
    assert main(["solve", boxes, "--explain"]) == 0
    assert capsys.readouterr().out.endswith("(index 707)\n\n" + POLICY)


def test_solve_prints_json(boxes, capsys):
    assert main(["solve", boxes, "--json", "--exact"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "value": pytest.approx(94.325),
        "gap": 0,
        "status": "exact",
        "boxes": [
            {"name": "A", "index": [pytest.approx(707)]},
            {"name": "B", "index": [pytest.approx(15), pytest.approx(914)]},
            {"name": "C", "index": [pytest.approx(40)]},
        ],
    }
    assert list(found) == ["value", "gap", "status", "boxes"]


def test_infinite_indices_are_null_in_json(tmp_path, capsys):
    path = write(tmp_path / "x.json", {"cost": 9, "rewards": [None], "law": [1]}, outside=5)
    assert main(["solve", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["boxes"] == [{"name": "0", "index": [None]}]


def test_nothing_to_open(tmp_path, capsys):
    path = write(tmp_path / "x.json", {"cost": 9, "rewards": [1], "law": [1]}, outside=5)
    assert main(["solve", path]) == 0
    assert "open first   nothing: take the outside option, 5" in capsys.readouterr().out
    assert main(["solve", path, "--explain"]) == 0
    assert "\nStop and take 5, the outside option.\n" in capsys.readouterr().out


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_table_is_cut(boxes, capsys, limit):
    assert main(["solve", boxes, "--limit", str(limit)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"... and {4 - limit} more row{'s' * (limit < 3)} (--limit 0 shows all)"
    assert len(lines) == 5 + limit
    assert main(["solve", boxes, "--limit", "0"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 8


def test_options_reach_the_solver(boxes, capsys, monkeypatch):
    seen = {}

    def solve(forest: Forest, **options: Any) -> Any:
        seen.update(options)
        return weitzman.solve(forest)

    monkeypatch.setattr("weitzman.engine.solver.solve", solve)
    options = ["--exact", "--tolerance", "1e-3", "--threads", "2"]
    assert main(["solve", boxes, *options]) == 0
    assert seen == {"exact": True, "tolerance": 1e-3, "threads": 2, "progress": None}


def test_check_says_ok_and_the_size(tmp_path, capsys):
    step = {"rewards": [0, 1, 2], "law": [[1, 0, 0]] * 3, "cost": 1}
    root = {"name": "A", "kind": "step", "law": [1, 0, 0], "count": 10}
    line = {"name": "B", "parent": "A", "kind": "step", "length": 4}
    path = write(tmp_path / "x.json", root, line, {**root, "name": "C"}, kinds={"step": step})
    assert main(["check", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ok"
    assert dict(re.split(r" {2,}", line) for line in lines[1:]) == {
        "boxes": "6",
        "with copies": "60",
        "roots": "2",
        "states": "3",
        "distinct laws": "2",
        "depth": "5",
        "objective": "maximize, outside option 0",
    }


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".wz", ".csv"])
def test_convert_there_and_back(boxes, tmp_path, capsys, suffix):
    if suffix == ".csv":
        pytest.importorskip("pandas")
    there, back = str(tmp_path / f"there{suffix}"), str(tmp_path / "back.json")
    assert main(["convert", boxes, "-o", there]) == 0
    assert main(["convert", there, "-o", back]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["solve", back]) == 0
    assert "value        94.325" in capsys.readouterr().out


def test_tables_keep_names_objective_and_outside_option(tmp_path, capsys):
    box = {"name": "NA", "cost": 1, "rewards": [5, 0.1], "states": ["007", "7"], "law": [0.5, 0.5]}
    path = write(tmp_path / "x.json", box, outside=None, objective="minimize")
    table, back = str(tmp_path / "x.csv"), str(tmp_path / "back.json")
    assert main(["convert", path, "-o", table]) == 0
    assert main(["convert", table, "-o", back]) == 0
    bare = tmp_path / "bare.csv"
    bare.write_text("".join(Path(table).read_text().splitlines(True)[2:]))
    assert main(["convert", str(bare), "-o", back, "--minimize"]) == 1
    assert "minimizing needs an outside option" in capsys.readouterr().err
    assert main(["convert", str(bare), "-o", back, "--minimize", "--outside", "none"]) == 0
    assert io.load(table).outside == float("inf")
    forest = io.load(back)
    assert (forest.names, forest.states("NA"), forest.outside) == (
        ("NA",),
        ("007", "7"),
        float("inf"),
    )


def test_bad_tables(tmp_path, capsys):
    path = tmp_path / "x.csv"
    for text, message in [(b"", "has no rows"), (b"a,b\n1,2\n", "must name the columns")]:
        path.write_bytes(text)
        assert main(["convert", str(path), "-o", str(tmp_path / "y.json")]) == 1
        assert message in capsys.readouterr().err
    assert main(["convert", str(tmp_path / "no.csv"), "-o", str(tmp_path / "y.json")]) == 3
    assert "no.csv: cannot be read: No such file" in capsys.readouterr().err
    assert not (tmp_path / "y.json").exists()


def test_schema_prints_the_schema(capsys):
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == io.schema()


# -- help and misuse ---------------------------------------------------------------------------


def test_help_teaches(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for word in ("demo", "solve", "check", "convert", "schema", "Exit codes", "130  interrupted"):
        assert word in out
    for command in ("demo", "solve", "check", "convert", "schema"):
        assert main([command, "--help"]) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 80


def test_no_command_shows_the_help(capsys):
    assert main([]) == 0
    assert "Start here:" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("weitzman ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["slove"], "No such command 'slove'. Did you mean 'solve'? See weitzman --help."),
        (
            ["explain", "x"],
            "No such command 'explain'. Did you mean weitzman solve FILE --explain?",
        ),
        (["solve"], "Missing argument 'FILE'. See weitzman solve --help."),
        (["solve", "x", "--threads", "0"], "Invalid value for '--threads': 0 is not in the range"),
        (["solve", "x", "--threads", "two"], "'two' is not a valid int"),
        (["solve", "x", "--limit", "-1"], "-1 is not in the range x>=0"),
        (["solve", "x", "--tolerance", "0"], "0 is not above 0"),
        (["solve", "x", "--tolerance", "inf"], "'inf' is not a number such as"),
        (["solve", "x", "--json", "--explain"], "--json and --explain do not go together"),
        (["solve", "x", "--jso"], "No such option '--jso'. Did you mean '--json'?"),
        (["convert", "a.json", "-o", "b.wz", "--minimize"], "are for tables"),
        (["convert", "a.json", "-o", "b.wz", "--sheet", "Plan"], "are for tables"),
        (["convert", "a.csv", "-o", "b.wz", "--outside", "x"], "'x' is not a number such as"),
    ],
)
def test_misuse(capsys, arguments, message):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("weitzman: error: ")
    assert message in err
    assert err.count("\n") == 1


# -- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["check", "solve"])
def test_invalid_instances_end_with_1(tmp_path, capsys, command):
    path = write(tmp_path / "x.json", {"name": "C\n\x1b[2J", "cost": 1, "rewards": [1], "law": [2]})
    assert main([command, path]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"weitzman: error: {path}: probabilities must lie between 0 and 1")
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_unreadable_files_end_with_3(tmp_path, capsys):
    assert main(["solve", str(tmp_path / "no.json")]) == 3
    assert capsys.readouterr().err.endswith("no.json: cannot be read: No such file or directory.\n")
    assert main(["convert", str(tmp_path / "no.wz"), "-o", str(tmp_path / "x.wz")]) == 3
    assert os.listdir(tmp_path) == []


def test_paths_cannot_disturb_the_terminal(capsys):
    assert main(["check", "no\x1b[2J\n.json"]) == 3
    assert capsys.readouterr().err.startswith(r"weitzman: error: no\x1b[2J\n.json: cannot be read")


def test_long_messages_are_cut(tmp_path, capsys):
    assert main(["check", write(tmp_path / "x.json", "x" * 10**6, note="x" * 10**6)]) == 1
    path = write(tmp_path / "x.json", {"name": "C" * 10**6, "cost": 1, "rewards": [1], "law": [2]})
    assert main(["check", path]) == 1
    assert len(capsys.readouterr().err) < 3000


def test_names_cannot_disturb_the_terminal(tmp_path, capsys):
    path = write(
        tmp_path / "x.json",
        {"name": "\x1b[2J", "cost": 1, "outcomes": {"\x07": 1}, "rewards": {"\x07": 9}},
        {"name": "N" * 100, "parent": "\x1b[2J", "cost": 1, "rewards": [10], "law": [[1]]},
    )
    for more in ([], ["--explain"]):
        assert main(["solve", path, *more]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\x07" not in out
        assert r"\x1b[2J" in out
        assert max(map(len, out.splitlines())) < 200


def test_a_bug_is_called_one(boxes, capsys, monkeypatch):
    def broken(_: Any) -> None:
        raise TypeError("oops")

    monkeypatch.setattr(cli, "_run", broken)
    monkeypatch.delenv("WEITZMAN_DEBUG", raising=False)
    assert main(["check", boxes]) == 70
    assert capsys.readouterr().err.startswith("weitzman: error: TypeError: oops. This is a bug")
    monkeypatch.setenv("WEITZMAN_DEBUG", "1")
    with pytest.raises(TypeError, match="oops"):
        main(["check", boxes])


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 3, "out of memory"),
        (OSError(errno.ENOSPC, "No space left"), 3, "the output cannot be written: No space left."),
        (BrokenPipeError(), 0, None),
    ],
)
def test_other_ends(boxes, capsys, monkeypatch, error, code, message):
    def fail(_: Any) -> None:
        raise error

    monkeypatch.setattr(cli, "_drop_output", lambda: None)
    monkeypatch.setattr(cli, "_run", fail)
    assert main(["check", boxes]) == code
    err = capsys.readouterr().err
    assert err == "" if message is None else message in err


class Terminal:
    """Something like a terminal that remembers what was written."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def test_progress_is_shown_on_a_terminal_and_wiped(monkeypatch):
    clock = iter([0.0, 0.5, 1.5, 1.55, 2.0, 3.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(threading, "Timer", FakeTimer)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with common.progress_bar() as show:
        for done in (1, 2, 3, 4, 1):
            show(done, 4)
    bars = [
        f"\rsolving  [{'#' * 15}{'-' * 15}]   50%",
        f"\rsolving  [{'#' * 30}]  100%",
        f"\rrefining  [{'#' * 7}{'-' * 23}]   25%",
    ]
    longest = len(bars[-1]) - 1
    assert terminal.text == "".join(bars) + "\r" + " " * longest + "\r"


class FakeTimer:
    """A timer that rings when told to."""

    def __init__(self, seconds, ring):
        FakeTimer.ring = ring

    def start(self):
        pass

    def cancel(self):
        pass


def test_silence_is_explained(monkeypatch):
    monkeypatch.setattr(threading, "Timer", FakeTimer)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with common.progress_bar():
        FakeTimer.ring()
    assert terminal.text.startswith("\rcompiling for this machine, the first time only")
    assert terminal.text.endswith(" " * 10 + "\r")


# -- words -------------------------------------------------------------------------------------


def test_explain_counts_copies_and_names_states(tmp_path):
    path = write(
        tmp_path / "x.json",
        {"name": "S", "cost": {"good": 2, "bad": 1}, "outcomes": {"good": 0.25, "bad": 0.75},
         "rewards": {"good": None, "bad": None}},
        {"name": "D", "parent": "S", "cost": 5, "count": 2,
         "outcomes": {"good": {"40": 0.5, "0": 0.5}, "bad": {"40": 0.1, "0": 0.9}}},
    )  # fmt: skip
    forest = io.load(path)
    assert describe(forest).splitlines() == [
        "S: costs 1.25 on average, shows good (25%) or bad (75%)",
        "D (2 copies): costs 5, can be opened after S",
        "  after good: shows 0 (50%) or 40 (50%)",
        "  after bad: shows 0 (90%) or 40 (10%)",
    ]
    assert explain(weitzman.solve(forest)).splitlines() == [
        "Open S (cost 1.25 on average).",
        "  If S shows good (25%): open one of 2 copies of D (cost 5).",
        "    If D shows 0 (50%): open D (cost 5).",
        "      If D shows 0 (50%): stop and take 0, the outside option.",
        "      If D shows 40 (50%): stop and take 40 from D.",
        "    If D shows 40 (50%): stop and take 40 from D.",
        "  If S shows bad (75%): stop and take 0, the outside option.",
    ]


def test_explain_tells_copies_apart(tmp_path):
    path = write(
        tmp_path / "x.json",
        {"name": "S", "cost": 1, "count": 2, "outcomes": {"good": 0.5, "bad": 0.5},
         "rewards": {"good": 1, "bad": None}},
        {"name": "D", "parent": "S", "cost": 1,
         "outcomes": {"good": {"40": 0.5, "2": 0.5}, "bad": {"40": 0.1, "2": 0.9}}},
    )  # fmt: skip
    text = explain(weitzman.solve(io.load(path)), lines=100)
    assert "If S shows good, worth 1 (50%): open D (cost 1).\n" in text
    assert "If S shows bad (50%): open S (cost 1).\n" in text
    assert "If S shows good, worth 1 (50%): open D behind S = good, worth 1 (cost 1).\n" in text


def test_explain_minimizes():
    forest = Forest.from_arrays(
        parent=[-1, -1], cost=[1, 1], rewards=[2.0, 9.0], law=[[0.5, 0.5]] * 2, outside=8,
        minimize=True, names=["L", "R"],
    )  # fmt: skip
    assert explain(weitzman.solve(forest)).splitlines() == [
        "Open L (cost 1).",
        "  If L shows 2 (50%): stop and take 2 from L.",
        "  If L shows 9 (50%): open R (cost 1).",
        "    If R shows 2 (50%): stop and take 2 from R.",
        "    If R shows 9 (50%): stop and take 8, the outside option.",
    ]


def test_the_explained_policy_earns_the_value(boxes):
    """Add up what the text says, line by line: it must give the value of the solution."""
    earned, chance, spent = 0.0, [1.0], [0.0]
    for line in explain(weitzman.solve(io.load(boxes)), lines=100).splitlines():
        level = (len(line) - len(line.lstrip())) // 2
        share = re.search(r"\((\d+)%\)", line)
        probability = chance[level - 1] * int(share[1]) / 100 if share else 1.0
        before = spent[level - 1] if level else 0.0
        cost = re.search(r"\(cost (\d+)\)", line)
        chance[level:] = [probability]
        spent[level:] = [before + (float(cost[1]) if cost else 0.0)]
        if taken := re.search(r"take (-?\d+)", line):
            earned += probability * (float(taken[1]) - before)
    assert earned == pytest.approx(94.325)


def test_explanations_are_bounded():
    n, k = 2000, 30
    step = [[1 / k] * k] * k
    forest = Forest.from_arrays(
        parent=list(range(-1, n - 1)), cost=[0.01] * n, rewards=list(range(k)),
        law=[step[0], *[step] * (n - 1)],
    )  # fmt: skip
    solution = weitzman.solve(forest)
    start = time.monotonic()
    for lines in (1, 20, 400):
        text = explain(solution, lines=lines).splitlines()
        assert len(text) <= max(lines, 14)
        assert any("and so on" in line for line in text)
        assert any("If 0 shows less than 28.7 (96.7%): open 1" in line for line in text)
    assert time.monotonic() - start < 10
    assert len(describe(forest, lines=10).splitlines()) == 11
    assert describe(forest, lines=10).endswith("... and 1,999 more boxes")


# -- as a process ------------------------------------------------------------------------------


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    command = [sys.executable, "-m", "weitzman", *arguments]
    return subprocess.run(
        command, env=environment, text=True, timeout=120, capture_output=True, **options
    )


def test_as_a_process(boxes, tmp_path):
    done = run("solve", boxes, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["value"] == pytest.approx(94.325)
    failed = run("check", str(tmp_path / "no.json"))
    assert (failed.returncode, failed.stdout) == (3, "")
    assert failed.stderr.startswith("weitzman: error: ")


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("arguments", ["schema", "--help"])
def test_a_reader_that_has_seen_enough(arguments):
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    command = f"'{sys.executable}' -m weitzman {arguments} | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], env=environment, capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_solving_can_be_interrupted(boxes):
    before = signal.getsignal(signal.SIGINT)
    with common.killable():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before


# -- standard input and output, and outputs that are inputs ----------------------------------------


def test_standard_input_and_output(boxes):
    text = run("convert", boxes, "-o", "-").stdout
    assert json.loads(text)["format"] == "weitzman/1"
    piped = run("solve", "-", input=text)
    assert piped.returncode == 0
    assert piped.stdout == run("solve", boxes).stdout
    bad = run("check", "-", input='{"format": 1}')
    assert bad.returncode == 1
    assert "weitzman: error: standard input: format must be" in bad.stderr


@pytest.mark.parametrize(
    "command",
    [["report", "{0}", "-o", "{0}"], ["convert", "{0}", "-o", "{0}"],
     ["truncate", "{0}", "--gap", "1", "-o", "{0}"], ["convert", "{0}", "-o", "{1}"]],
)  # fmt: skip
def test_an_output_that_is_an_input_is_rejected(boxes, tmp_path, capsys, command):
    page, link = tmp_path / "page.html", tmp_path / "link.json"
    link.symlink_to(boxes)
    if command[0] == "report":  # the ending alone would refuse a .json
        page.write_bytes(Path(boxes).read_bytes())
        boxes = str(page)
    before = Path(boxes).read_bytes()
    assert main([word.format(boxes, link) for word in command]) == 2
    assert "is the file to be read" in capsys.readouterr().err
    assert Path(boxes).read_bytes() == before


@pytest.mark.parametrize("command", [["convert", "-", "-o"], ["report", "-", "-o"]])
def test_an_output_that_is_standard_input_is_rejected(boxes, tmp_path, command):
    page = tmp_path / ("page.html" if command[0] == "report" else "page.json")
    page.write_bytes(Path(boxes).read_bytes())
    with page.open("rb") as file:
        done = run(*command, str(page), stdin=file)
    assert (done.returncode, "is the file to be read" in done.stderr) == (2, True)
    assert page.read_bytes() == Path(boxes).read_bytes()


def test_a_report_is_never_written_over_a_journal(boxes, tmp_path, capsys):
    assert main(["report", boxes, "-o", str(tmp_path / "run.db")]) == 2
    assert "a report must end in .html" in capsys.readouterr().err


def test_check_for_programs(boxes, tmp_path, capsys):
    assert main(["check", boxes, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["boxes"] == 3
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    assert main(["check", str(bad), "--json"]) == 1
    assert not json.loads(capsys.readouterr().out)["ok"]


def test_units_are_shown_with_every_amount(boxes, capsys):
    assert main(["solve", boxes, "--unit", "$", "--limit", "1"]) == 0
    assert "value        $94.33" in capsys.readouterr().out
