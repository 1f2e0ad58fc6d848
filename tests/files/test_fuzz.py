"""Damaged and hostile files: whatever the bytes, only our own errors come out, and soon.

A few seconds by default; ``WEITZMAN_FUZZ_SECONDS=180 pytest tests/files/test_fuzz.py`` goes on and
prints the number of files tried. ``WEITZMAN_FUZZ_SEED`` chooses other files.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mutations import mutate_binary, mutate_bytes, mutate_document
from random_files import content
from test_instances import BROKEN, HOSTILE, A, B, C, document

from weitzman.cli.file_commands import _summary, sizes
from weitzman.errors import InvalidFile, InvalidForest
from weitzman.files import instances as io
from weitzman.policy.words import describe

SECONDS = float(os.environ.get("WEITZMAN_FUZZ_SECONDS", "3"))
SEED = int(os.environ.get("WEITZMAN_FUZZ_SEED", "1"))
SLOWEST = 2.0  # seconds of computing that one small file may take
VALIDATOR = jsonschema.Draft202012Validator(io.schema())

STEP = {
    "rewards": [0, None, 10],
    "states": ["a", "b", "c"],
    "law": [[0.2, 0.3, 0.5]] * 3,
    "cost": 1,
}
VALID: list[dict[str, Any]] = [
    document(A, B, C, note="the example"),
    document(
        {"name": "S", "cost": {"good": 1, "bad": 2}, "outcomes": {"good": 0.3, "bad": 0.7},
         "rewards": {"good": None, "bad": 2}},
        {"name": "T", "parent": "S", "count": 3, "cost": {"good": 5, "bad": {"40": 1, "0": 2}},
         "outcomes": {"good": {"40": 0.5, "0": 0.5}, "bad": {"0": 0.9, "40": 0.1}}},
        objective="minimize", outside=50,
    ),
    document(
        {"name": "R", "kind": "step", "law": [0.5, 0, 0.5], "cost": [1, 2, 3]},
        {"name": "L", "parent": "R", "kind": "step", "length": 5, "count": 2},
        {"name": "é", "parent": "L.3", "kind": "step", "cost": [[1, 2, 3]] * 3},
        kinds={"step": STEP}, outside=-3,
    ),
    document(
        {"rewards": [1.5, 2.5], "law": [0.25, 0.75], "cost": 0, "count": 10**15},
        {"parent": 0, "rewards": [7], "law": [[1], [1]], "cost": [1, 2], "count": 10**15},
        outside=None,
    ),
]  # fmt: skip

# -- the run -----------------------------------------------------------------------------------


class Fuzz:
    """Files of one kind: how they are made, and what came of them."""

    def __init__(
        self,
        folder: Path,
        suffix: str,
        make: Callable[[random.Random], bytes],
        valid: list[bytes] | None = None,
    ) -> None:
        self.path, self.make, self.valid = folder / f"x{suffix}", make, valid
        self.ends: Counter[str] = Counter()
        self.slowest = 0.0

    def run(self, pick: random.Random) -> None:
        data = self.make(pick)
        self.path.write_bytes(data)
        start = time.process_time()
        try:
            forest = io.load(self.path)
        except (InvalidFile, InvalidForest) as error:
            end, message = type(error).__name__, str(error)
        else:
            end, message = "valid", f"{self.path}: "
            assert self.valid is None or data in self.valid  # checksums notice any change
            check_accepted(forest, data, self.path)
        self.ends[end] += 1
        self.slowest = max(self.slowest, time.process_time() - start)
        assert message.startswith(f"{self.path}: ")
        assert self.path.read_bytes() == data
        assert self.slowest < SLOWEST


def check_accepted(forest: Any, data: bytes, path: Path) -> None:
    """What is read can be told, written and read again, and the schema agrees."""
    _summary(forest, sizes(forest))
    describe(forest)
    for suffix in (".json", ".wz"):
        again = path.with_name(f"again{suffix}")
        io.save(forest, again)
        assert content(io.load(again)) == content(forest)
    if path.suffix == ".json":
        VALIDATOR.validate(json.loads(data.decode("utf-8-sig")))


def encoded(x: Any) -> bytes:
    return json.dumps(x).encode()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of files are written."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@pytest.fixture(params=["text", "document", "gzip", "binary", "columns"])
def fuzz(request, folder) -> Fuzz:
    texts = [encoded(x) for x in VALID]
    hostile = [data for data, _ in HOSTILE if len(data) < 1000] + [encoded(x) for x, *_ in BROKEN]
    raw = []
    for i, text in enumerate(texts):
        (folder / f"{i}.json").write_bytes(text)
        io.save(io.load(folder / f"{i}.json"), folder / f"{i}.wz")
        raw.append((folder / f"{i}.wz").read_bytes())

    def text(pick: random.Random) -> bytes:
        return mutate_bytes(pick.choice(texts), pick, pick.choice(texts + hostile))

    def tree(pick: random.Random) -> bytes:
        return encoded(mutate_document(pick.choice(VALID), pick))

    def zipped(pick: random.Random) -> bytes:
        if pick.random() < 0.5:
            return gzip.compress(text(pick), 1)
        return mutate_bytes(gzip.compress(pick.choice(texts), 1), pick, gzip.compress(texts[0], 1))

    def binary(pick: random.Random) -> bytes:
        return mutate_bytes(pick.choice(raw), pick, pick.choice(raw))

    def columns(pick: random.Random) -> bytes:
        return mutate_binary(pick.choice(raw), pick)

    kinds: dict[str, Any] = {
        "text": (".json", text),
        "document": (".json", tree),
        "gzip": (".json.gz", zipped),
        "binary": (".wz", binary, raw),
        "columns": (".wz", columns),
    }
    return Fuzz(folder, *kinds[request.param])


def test_only_our_errors_come_out(fuzz, capsys, request):
    pick = random.Random(f"{SEED} {request.node.name}")
    end = time.process_time() + SECONDS / 5
    while time.process_time() < end:
        fuzz.run(pick)
    assert fuzz.ends["InvalidFile"] > 10
    if "WEITZMAN_FUZZ_SECONDS" in os.environ:
        with capsys.disabled():
            sys.stdout.write(
                f"\n{request.node.name}: {fuzz.ends.total()} files, {dict(fuzz.ends)}, slowest "
                f"{fuzz.slowest:.3f} s\n"
            )


# -- the campaign ------------------------------------------------------------------------------

CAMPAIGN = Path(__file__).parents[1] / "campaigns"
RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import fuzz_readers
if sys.argv[4] == "broken":
    from weitzman.files import documents
    documents.wrong = lambda *_: {}[0]
sys.exit(fuzz_readers.main(Path(sys.argv[2]), float(sys.argv[3]), 7))
"""


def campaign(folder: Path, seconds: float, how: str = "") -> tuple[int, dict[str, int]]:
    """How many inputs went wrong, and the counts."""
    pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(CAMPAIGN), str(folder), str(seconds), how],
        env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout.endswith(" s\n"), done.stderr
    return done.returncode, json.loads((folder / "counts.json").read_text())["counts"]


def test_every_reader_by_the_api_and_by_the_command(folder):
    wrong, counts = campaign(folder, SECONDS)
    kept = [path.read_text()[-500:] for path in (folder / "bad").glob("*.txt")]
    assert (wrong, kept) == (0, [])
    tried = {name.partition(" by ")[0] for name in counts}
    assert {"JSON", ".wz", "CSV", "curves", "journal"} <= tried
    assert any("by command: refused" in name for name in counts)


def test_a_campaign_notices_a_reader_that_breaks(folder):
    wrong, counts = campaign(folder, min(SECONDS, 1), "broken")
    assert wrong > 0
    assert any(name.endswith(": error") for name in counts)
    assert "KeyError" in next((folder / "bad").glob("JSON*.txt")).read_text()
