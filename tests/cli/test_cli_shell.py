"""The command in a shell: completions, pipes, and a fast start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import weitzman
from weitzman.cli import main, program
from weitzman.files import load

SOURCE = str(Path(weitzman.__file__).parents[1])
PROBLEM = (Path(weitzman.__file__).parent / "files" / "demo.json").read_text("utf-8")

CURVES = "run,step,score,cost\n" + "".join(
    f"r{r},{t},{(r * 7 % 10) / 10 + t / 50},1\n" for r in range(12) for t in range(1, 5)
)


def run(*arguments: str, given: str | bytes = "", **environment: str):
    """The command in a process of its own, with standard input."""
    data = given.encode() if isinstance(given, str) else given
    return subprocess.run(
        [sys.executable, "-m", "weitzman", *arguments],
        input=data, capture_output=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": SOURCE, **environment},
    )  # fmt: skip


# -- completions -------------------------------------------------------------------------------


def completed(words: str, at: int) -> list[str]:
    """What bash would be offered."""
    done = run(_WEITZMAN_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(at))
    assert done.returncode == 0, done.stderr
    return [line.partition(",")[2] for line in done.stdout.decode().splitlines()]


def test_the_shell_completes_commands_and_options():
    assert completed("weitzman so", 1) == ["solve"]
    assert completed("weitzman solve --ex", 2) == ["--explain", "--exact"]
    assert completed("weitzman solve --decimal ", 3) == ["point", "comma"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell, capsys):
    assert main(["completions", shell]) == 0
    text = capsys.readouterr().out
    assert f"_WEITZMAN_COMPLETE={shell}_complete" in text


@pytest.fixture
def shell_environment(tmp_path):
    """A home of its own, with `weitzman` on the path."""
    command = tmp_path / "bin" / "weitzman"
    command.parent.mkdir()
    command.write_text(
        f"#!/bin/sh\nPYTHONPATH='{SOURCE}' exec '{sys.executable}' -m weitzman \"$@\"\n"
    )
    command.chmod(0o755)
    (tmp_path / "boxes.json").write_text(PROBLEM)
    path = f"{command.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(tmp_path), "TERM": "dumb"}


def in_shell(shell: str, script: str, environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [shell, *(["-f"] if shell == "zsh" else []), "-c", script], capture_output=True, text=True,
        timeout=120, env=environment, cwd=environment["HOME"], check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_takes_the_script(shell_environment):
    """A real bash, with `weitzman` on its path, is asked to complete a word."""
    script = (
        'eval "$(weitzman completions bash)"; COMP_WORDS=(weitzman tor); COMP_CWORD=1; '
        '_weitzman_completion weitzman; echo "${COMPREPLY[@]}"'
    )
    assert in_shell("bash", script, shell_environment) == ["tornado"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_takes_the_script(shell_environment):
    script = 'weitzman completions fish | source; complete -C "weitzman tor"'
    assert in_shell("fish", script, shell_environment)[0] == "tornado"
    script = 'weitzman completions fish | source; complete -C "weitzman solve box"'
    assert in_shell("fish", script, shell_environment) == ["boxes.json"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize("loaded", ["", "autoload -Uz compinit; compinit -u; "])
def test_zsh_takes_the_script(shell_environment, loaded):
    """A bare zsh has no `compdef` yet: there was "command not found", and no completion."""
    script = (
        f'{loaded}eval "$(weitzman completions zsh)"; print $_comps[weitzman]; '
        "zmodload zsh/zpty; zpty z zsh -f -i; zpty -w z 'PS1=; stty -echo'; "
        f"zpty -w z '{loaded}eval \"$(weitzman completions zsh)\"; echo re''ady'; "
        "zpty -r z found '*ready*'; "
        "zpty -n -w z $'weitzman tor\\t'; zpty -r z found '*tornado*'; print tornado; zpty -d z"
    )
    assert in_shell("zsh", script, shell_environment) == ["_weitzman_completion", "tornado"]


def test_a_completion_needs_no_numpy():
    """Every press of Tab starts the program: the start must not load the libraries that compute."""
    code = (
        "import sys; from weitzman.cli import main; main(['--help']);"
        "assert not {'numpy', 'numba'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


# -- standard input and output -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "given", "found"),
    [
        (["solve", "-"], PROBLEM, "94.325"),
        (["solve", "-", "--explain"], PROBLEM, "Open A (cost 20)."),
        (["evaluate", "-"], PROBLEM, "openings 2.45"),
        (["compare", "-", "--episodes", "100"], PROBLEM, "fixed order"),
        (["simulate", "-", "--episodes", "100"], PROBLEM, "100 episodes"),
        (["budget", "-", "--budget", "20"], PROBLEM, "expected spend 20"),
        (["tornado", "-"], PROBLEM, "cost of A"),
        (["truncate", "-", "--gap", "1"], PROBLEM, "boxes kept"),
        (["check", "-"], PROBLEM, "depth           2"),
        (["convert", "-", "-o", "-"], PROBLEM, '"weitzman/1"'),
        (["report", "-", "-o", "-"], PROBLEM, "<!doctype html>"),
        (["template", "-o", "-"], "", "Survey North"),
        (["backtest", "-", "--price=10", "--methods", "index", "--workers", "1"], CURVES, "index"),
    ],
)  # fmt: skip
def test_a_dash_is_standard_input(arguments, given, found):
    if arguments[0] == "backtest":
        pytest.importorskip("pandas")
    done = run(*arguments, given=given)
    assert done.returncode == 0, done.stderr
    assert found.lower() in done.stdout.decode().lower()


def test_every_command_that_takes_a_file_takes_a_dash():
    taking = {
        name
        for name, command in program.commands.items()
        if any(parameter.param_type_name == "argument" for parameter in command.params)
    }
    piped = {
        "solve", "evaluate", "compare", "simulate", "budget", "tornado", "truncate", "check",
        "convert", "report", "backtest",
    }  # fmt: skip
    assert taking == piped | {"search", "explore", "completions"}  # tested on their own


@pytest.mark.parametrize("suffix", [".json.gz", ".wz", ".csv", ".tsv", ".xlsx"])
def test_standard_input_is_known_by_its_contents(tmp_path, suffix):
    if suffix == ".xlsx":
        pytest.importorskip("openpyxl")
    plain, other = tmp_path / "boxes.json", tmp_path / f"boxes{suffix}"
    plain.write_text(PROBLEM)
    assert main(["convert", str(plain), "-o", str(other)]) == 0
    done = run("solve", "-", given=other.read_bytes())
    assert "94.325" in done.stdout.decode(), done.stderr


def test_a_template_is_filled_in_solved_and_reported(tmp_path):
    """The way of a spreadsheet: write it, fill it in by hand, solve it, report it, export it."""
    openpyxl = pytest.importorskip("openpyxl")
    sheet, page, book, back = (
        str(tmp_path / name) for name in ("a.xlsx", "a.html", "report.xlsx", "back.xlsx")
    )
    assert main(["template", "-o", sheet]) == 0
    work = openpyxl.load_workbook(sheet)
    cells = work["boxes"]
    cells["B3"], cells["B4"] = 5000, "EUR"  # outside option, unit
    cells.delete_rows(6, 20)
    for row in (
        ("Lab", None, None, "good", None, "40%", "1.5k"),
        (None, None, None, "bad", None, "60%", None),
        ("Pilot", "Lab", "good", "works", 150_000, "2/3", "20,000"),
        (None, None, None, "fails", 0, "1/3", None),
        (None, None, "bad", "works", 150_000, 0.1, None),
        (None, None, None, "fails", 0, 0.9, None),
        (None,) * 7,
        ("License", None, None, "yes", "60,000", 0.5, 8000),
        (None, None, None, "no", 0, 0.5, None),
    ):
        cells.append(row)
    work.save(sheet)
    # after bad news, and after a failure, the permit; nothing else is worth its cost
    permit = -8000 + 0.5 * 60_000 + 0.5 * 5000
    value = -1500 + 0.4 * (-20_000 + 2 / 3 * 150_000 + permit / 3) + 0.6 * permit
    assert weitzman.solve(load(sheet)).value == pytest.approx(value, rel=1e-12)
    assert main(["report", sheet, "-o", page]) == 0
    assert "48,467 EUR" in Path(page).read_text("utf-8")
    assert main(["report", sheet, "-o", book]) == 0
    told = dict(openpyxl.load_workbook(book)["decision"].iter_rows(values_only=True))
    assert (told["open first"], told["unit"]) == ("Lab", "EUR")
    assert told["value"] == pytest.approx(value, rel=1e-12)
    assert main(["convert", sheet, "-o", back]) == 0
    assert weitzman.solve(load(back)).value == pytest.approx(value, rel=1e-12)


def test_what_is_cut_goes_through_a_pipe(tmp_path):
    done = run("truncate", "-", "--gap", "1", "-o", "-", given=PROBLEM)
    (tmp_path / "cut.json").write_bytes(done.stdout)
    assert len(load(tmp_path / "cut.json")) == 3
    assert b"boxes kept" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal")
def test_a_problem_from_a_pipe_is_answered_at_the_terminal(tmp_path):
    """`run -` reads the problem from the pipe and the answers from the terminal."""
    import pty

    (tmp_path / "boxes.json").write_text(PROBLEM)
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["PYTHONPATH"] = SOURCE
        line = f"cat '{tmp_path}/boxes.json' | '{sys.executable}' -m weitzman search -"
        os.execvp("sh", ["sh", "-c", line])
    os.write(terminal, b"900\n\n890\n\n\n")
    text = b""
    try:
        while chunk := os.read(terminal, 4096):
            text += chunk
    except OSError:  # the other end was closed
        pass
    os.waitpid(pid, 0)
    assert b"A showed 900. Right?" in text
    assert b"Stop and take 900 from A" in text


def test_a_problem_from_a_pipe_needs_a_terminal():
    code = (
        "import os, sys; os.setsid();from weitzman.cli import main; sys.exit(main(['search', '-']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=PROBLEM, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert done.returncode == 2
    assert "there is no terminal for the answers" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["template", "-o", "stages.xlsx"],
        ["convert", "boxes.json", "-o", "boxes.xlsx"],
        ["report", "boxes.json", "-o", "results.xlsx"],
        ["solve", "sheet.xlsx"],
    ],
)
def test_a_missing_package_is_no_bug(tmp_path, arguments):
    """The core install has no openpyxl: the first command of a newcomer said "this is a bug"."""
    (tmp_path / "boxes.json").write_text(PROBLEM)
    with zipfile.ZipFile(tmp_path / "sheet.xlsx", "w") as sheet:  # what is no archive is damaged
        sheet.writestr("xl/workbook.xml", "<workbook/>")
    code = (
        "import sys; sys.modules['openpyxl'] = None\n"
        "from weitzman.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert done.returncode == 1
    assert 'this needs openpyxl, which is not installed. Run: pip install "weitzman[excel]"' in (
        done.stderr
    )
    assert "bug" not in done.stderr
    assert not (tmp_path / "stages.xlsx").exists()


def test_what_a_table_leaves_out_is_said(tmp_path, capsys):
    """Columns that are not read and states without rows are never passed over in silence."""
    path = tmp_path / "s.csv"
    path.write_text(
        "Stage,After,If,Outcome,NPV ($),Chance,Cost,Owner\n"
        "Survey,,,good,,40%,10,x\nSurvey,,,bad,,60%,,\n"
        "Drill,Survey,good,oil,500,50%,100,\nDrill,Survey,good,dry,0,50%,,\n"
    )
    assert main(["solve", str(path)]) == 0
    said = capsys.readouterr()
    assert "$50" in said.out
    assert "note: columns not read: Owner" in said.err
    assert "note: Drill cannot be opened after bad" in said.err
    assert main(["check", str(path)]) == 0
    said = capsys.readouterr().out
    assert "NPV ($) (reward)" in said
    assert "outside option: $0 (not given)" in said
