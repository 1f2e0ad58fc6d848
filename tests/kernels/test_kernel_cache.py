"""Compiled code on disk: kept where that is possible, never in the way."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import pytest
from quick_processes import Starter

import weitzman

PACKAGE = Path(weitzman.__file__).parent
# a small kernel for arrays of two kinds, and how often it was found on disk
CODE = """
import numpy as np
from weitzman._kernels.blocks import extent
found = [extent(x, 0, 3) for x in (np.array([0.0, 2.0]), np.array([0.0, 0.0, 2.0])[::2])]
print(*found, sum(extent.stats.cache_hits.values()))
"""
COMPILED, FOUND = ["60", "60", "0"], ["60", "60", "2"]


@pytest.fixture(scope="module", autouse=True)
def starter():
    """Where processes come from."""
    started.append(Starter())
    yield
    started.pop().close()


started: list[Starter] = []


def begin(code=CODE, *, package=PACKAGE, longest_file=None, **env):
    """Begin to run code against a copy of the package."""
    kept = {k: v for k, v in os.environ.items() if "CACHE" not in k and k != "PYTHONPATH"}
    env = kept | {"PYTHONPATH": str(package.parent), "WEITZMAN_COMPILE": "always"} | env
    return started[-1].start(code, env, longest_file=longest_file)


def run_code(code=CODE, **options):
    """The words of a process, and its complaints."""
    done = begin(code, **options)()
    assert done.returncode == 0, done.err[-2000:]
    return done.out.split(), done.err


def test_what_was_compiled_is_found_again(warm):
    assert run_code(WEITZMAN_CACHE_DIR=str(warm)) == (FOUND, "")


@pytest.fixture
def copy(tmp_path):
    """The package in a folder of its own, in which nothing can be kept."""
    target = tmp_path / "weitzman"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    (target / "_kernels" / "__pycache__").touch()  # even the superuser cannot make a folder of it
    return target


def test_nothing_can_be_kept(copy):
    words, complaint = run_code(package=copy, XDG_CACHE_HOME="/dev/null/none", HOME="/dev/null")
    assert words == COMPILED
    assert complaint.count("compiled code cannot be kept") == 1
    assert "WEITZMAN_CACHE_DIR" in complaint


def test_without_a_folder_in_the_package_the_users_is_taken(copy, tmp_path):
    env = {"XDG_CACHE_HOME": str(tmp_path / "user")}
    assert run_code(package=copy, **env) == (COMPILED, "")
    assert run_code(package=copy, **env) == (FOUND, "")


def test_what_the_package_brings_is_read_even_where_nothing_can_be_written(copy):
    (copy / "_kernels" / "__pycache__").unlink()
    run_code(package=copy)
    words, complaint = run_code(package=copy, longest_file=100, XDG_CACHE_HOME="/dev/null/none")
    assert (words, complaint) == (FOUND, "")


def test_a_full_disk(tmp_path):
    words, complaint = run_code(longest_file=100, WEITZMAN_CACHE_DIR=str(tmp_path))
    assert words == COMPILED
    assert complaint.count("compiled code cannot be kept") == 1
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A folder with what was compiled."""
    folder = tmp_path_factory.mktemp("warm")
    run_code(WEITZMAN_CACHE_DIR=str(folder))
    return folder


def flip(data):
    """The same but for one bit in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


DAMAGES = [(lambda _: b"", lambda data: data[:-100]), (lambda _: b"nonsense" * 99, flip)]


@pytest.mark.parametrize("damages", DAMAGES, ids=["short", "changed"])
def test_a_damaged_file_is_made_anew(warm, tmp_path, damages):
    folder = shutil.copytree(warm, tmp_path / "cache")
    files = sorted(folder.rglob("*.bin"))
    whole = [path.read_bytes() for path in files]
    for path, data, damage in zip(files, whole, damages, strict=True):
        path.write_bytes(damage(data))
    assert run_code(WEITZMAN_CACHE_DIR=str(folder)) == (COMPILED, "")
    assert [len(path.read_bytes()) for path in files] == [len(data) for data in whole]


def test_a_change_in_another_file_counts(copy, tmp_path):
    """The size of a block depends on a number in another module."""
    cache = {"WEITZMAN_CACHE_DIR": str(tmp_path / "cache")}
    assert run_code(package=copy, **cache)[0] == COMPILED
    path = copy / "_kernels" / "lanes.py"
    path.write_text(path.read_text("utf-8").replace("LANES = 8", "LANES = 16"), "utf-8")
    assert run_code(package=copy, **cache)[0] == ["108", "108", "0"]


def test_processes_that_start_together(tmp_path):
    crowd = [begin(WEITZMAN_CACHE_DIR=str(tmp_path)) for _ in range(3)]
    for wait in crowd:
        done = wait()
        assert (done.out.split()[:2], done.err, done.returncode) == (COMPILED[:2], "", 0)
    assert run_code(WEITZMAN_CACHE_DIR=str(tmp_path)) == (FOUND, "")


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("variable", ["WEITZMAN_CACHE_DIR", "NUMBA_CACHE_DIR"])
def test_folders_of_the_user_stay(tmp_path, variable):
    """Nothing is deleted, whatever has a name like what this package writes."""
    for i in range(7):
        for folder in ("", f"weitzman-kernels-{sys.implementation.cache_tag}/"):
            mine = tmp_path / f"{folder}weitzman-experiment-{i}"
            mine.mkdir(parents=True)
            (mine / "result.bin").write_text("a week of work")
    before = files_below(tmp_path)
    run_code(**{variable: str(tmp_path)})
    assert before < files_below(tmp_path)


def test_files_of_another_version_are_replaced_and_foreign_files_stay(warm, tmp_path):
    """The checksum covers the sources, so each file is as good as none: but it keeps its name."""
    folder = shutil.copytree(warm, tmp_path / "cache")
    (own,) = folder.iterdir()
    (own / "notes.bin").write_text("mine")
    before = files_below(folder)
    for path in own.glob("*-*.bin"):
        content = path.read_bytes()[32:]
        path.write_bytes(hashlib.sha256(b"another version" + content).digest() + content)
    assert run_code(WEITZMAN_CACHE_DIR=str(folder)) == (COMPILED, "")
    assert run_code(WEITZMAN_CACHE_DIR=str(folder)) == (FOUND, "")
    assert files_below(folder) == before
    assert (own / "notes.bin").read_text() == "mine"


@pytest.mark.skipif(sys.platform == "win32", reason="owners and modes of POSIX")
def test_code_that_others_could_have_written_is_not_run(warm, tmp_path):
    folder = shutil.copytree(warm, tmp_path / "cache")
    for path in folder.rglob("*.bin"):
        path.chmod(0o666)
    assert run_code(WEITZMAN_CACHE_DIR=str(folder))[0] == COMPILED
    for path in folder.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o644)
    words, complaint = run_code(WEITZMAN_CACHE_DIR=str(folder))
    assert words == COMPILED
    assert "others can write to" in complaint
