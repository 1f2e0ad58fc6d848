"""Every code block of the documentation runs and gives what it says.

In each file, in order and in one namespace: ``python`` blocks are executed, those with ``>>>`` as
doctests; ``console`` blocks with ``$ weitzman ...`` are run and their output is compared. A block
after the line ``<!-- no-run -->`` is left alone. Relative links must lead somewhere.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import weitzman
from weitzman import cli

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SKIP = "<!-- no-run -->"


class Block(NamedTuple):
    """A fenced block: its language, the line it starts on (from 1), its text."""

    language: str
    line: int
    text: str


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a Markdown text that are not to be skipped."""
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        fence = re.match(r"( *)(`{3,})(\S*)", lines[i])
        if fence is None:
            i += 1
            continue
        margin, ticks, language = fence.groups()
        end = next(j for j in range(i + 1, len(lines)) if lines[j] == margin + ticks)
        before = next((x for x in reversed(lines[:i]) if x.strip()), "")
        if before.strip() != SKIP:
            body = [x.removeprefix(margin) for x in lines[i + 1 : end]]
            yield Block(language, i + 2, "\n".join(body) + "\n")
        i = end + 1


def assert_python_runs(block: Block, where: str, names: dict[str, Any]) -> None:
    """Execute a block, or check it as a doctest."""
    if ">>>" not in block.text:
        padded = "\n" * (block.line - 1) + block.text  # so that errors show the line in the file
        exec(compile(padded, where, "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(block.text, names, where, where, block.line - 1)
    report = io.StringIO()
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.write, clear_globs=False)
    names.update(test.globs)
    assert not report.getvalue(), report.getvalue()


def assert_console_runs(block: Block, where: str) -> None:
    """Run the ``weitzman`` commands of a session and compare what they print."""
    code = 0
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, wanted = part.partition("\n")
        words = shlex.split(command)
        if command == "echo $?":
            found = f"{code}\n"
        elif words[0] == "weitzman":
            code, found = run_command(words[1:])
        else:
            continue
        same = doctest.OutputChecker().check_output(wanted, found, OPTIONS)
        assert same, f"{where}: $ {command}\nwanted:\n{wanted}\nfound:\n{found}"


def run_command(words: list[str]) -> tuple[int, str]:
    """Exit code and output (with errors); ``> FILE`` and ``< FILE`` work as in a shell."""
    out, source = io.StringIO(), io.StringIO()
    target = None
    if "<" in words:
        i = words.index("<")
        source = io.StringIO(Path(words[i + 1]).read_text())
        del words[i : i + 2]
    if ">" in words:
        i = words.index(">")
        target = Path(words[i + 1])
        del words[i : i + 2]
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("sys.stdin", source)
        code = cli.main(words)
    if target is not None:
        target.write_text(out.getvalue())
        return code, ""
    return code, out.getvalue()


def names_of(files: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in files]


@pytest.mark.parametrize("name", names_of(FILES))
def test_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    names: dict[str, Any] = {"__name__": "__docs__"}
    for block in blocks((ROOT / name).read_text("utf-8")):
        where = f"{name}:{block.line}"
        if block.language == "python":
            assert_python_runs(block, where, names)
        elif block.language == "console":
            assert_console_runs(block, where)


def anchors(path: Path) -> set[str]:
    """The anchors of the headings of a file, as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", [*names_of(FILES), "CHANGELOG.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(name: str) -> None:
    path = ROOT / name
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
        if "://" not in link and not link.startswith("reference/"):  # pages that the site makes
            target, _, anchor = link.partition("#")
            file = (path.parent / target).resolve() if target else path
            assert file.exists(), f"{name} links to {link}"
            assert not anchor or anchor in anchors(file), f"{name} links to {link}"


def test_api_page_names_all_that_is_public() -> None:
    page = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "api.md").read_text("utf-8")))
    assert set(weitzman.__all__) <= page


# -- guarantees and design -----------------------------------------------------------------------


def test_every_guarantee_names_tests_that_exist() -> None:
    """Each item of the page names its tests; there is no sentence outside of the lists."""
    text = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
    intro, *sections = re.split(r"^## .*$", text, flags=re.MULTILINE)
    named = [re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", intro)]
    for section in sections:
        before, *items = re.split(r"^\* ", section, flags=re.MULTILINE)
        assert not before.strip()
        assert all("\n\n" not in item.strip() for item in items)
        named += [re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", item) for item in items]
    assert len(named) > 30
    assert all(named)
    for file, name in {test for row in named for test in row}:
        source = (ROOT / file).read_text("utf-8")
        assert re.search(rf"^def {name}\(", source, re.MULTILINE), f"{file}::{name} does not exist"


def test_the_design_page_is_true() -> None:
    """Files that it names exist, and its table of packages is in the order of imports."""
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    source = ROOT / "src" / "weitzman"
    for name in set(re.findall(r"`([\w/]+\.(?:py|md))`", text)):
        there = (source / name).exists() or (ROOT / name).exists()
        assert there, f"docs/design.md names {name}"
    listed = re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
    order = ast.parse((ROOT / "tests" / "test_package.py").read_text("utf-8"))
    rooms = next(
        ast.literal_eval(node.value)
        for node in order.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ROOMS"
    )
    assert listed == rooms
    for room in listed:
        assert (source / room).is_dir() or (source / f"{room}.py").exists()


# -- figures of the first page -------------------------------------------------------------------


def _row(table: str, title: str) -> list[str]:
    """The cells of a row of a Markdown table, without marks and intervals."""
    row = rf"\| *{re.escape(title)} *(\(only .*\) )?\|"
    line = next(x for x in table.splitlines() if re.match(row, x))
    return [re.sub(r"\*|\[.*?\]", "", cell).strip() for cell in line.split("|")[2:-1]]


def _to_pick(log: str) -> str:
    """The table of methods to pick beforehand, on sets that chose nothing."""
    text = (ROOT / "benchmarks" / "tuning" / "RESULTS.md").read_text("utf-8")
    return text.partition(f"#### Sets that chose nothing, {log} a log\n")[2].partition("\n#")[0]


def test_regrets_on_the_first_page_are_the_measured_ones():
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    tpe, halving = "Optuna TPE + SuccessiveHalvingPruner", "successive halving"
    with_log = re.search(
        r"successive halving with 30 runs has ([\d.]+) times the regret of the index policy, "
        r"Optuna's TPE with successive halving and 30 trials ([\d.]+) times, and cost-aware "
        r"Bayesian optimization ([\d.]+) times",
        readme,
    )
    assert with_log is not None
    names = f"{halving}, 30 runs", f"{tpe}, 30 runs", "full runs, cost-aware BO"
    assert [_row(_to_pick("with"), name)[0] for name in names] == list(with_log.groups())
    without = re.search(
        r"Without a log, successive halving with ten runs has ([\d.]+) times the regret, TPE with "
        r"halving and ten trials ([\d.]+) times, and DyHPO, stopped after the cost of three full "
        r"runs, ([\d.]+) times",
        readme,
    )
    assert without is not None
    names = f"{halving}, 10 runs", f"{tpe}, 10 runs", "Syne Tune DyHPO, cost of 3 full runs"
    assert [_row(_to_pick("without"), name)[0] for name in names] == list(without.groups())


def test_the_time_on_the_first_page_is_the_measured_one():
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    said = re.search(
        r"take ([\d.]+) seconds on one thread, with a certified gap of (\S+?)\*", readme
    )
    assert said is not None
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text("utf-8")
    table = text.partition("**random trees, 1,000,000 boxes, k = 2 to 8")[2].partition("\n## ")[0]
    time, unit = _row(table, "solve, one thread")[0].split()
    assert f"{float(time) / (1000 if unit == 'ms' else 1):.1f}" == said[1]
    assert f"certified gap {said[2]}." in table
