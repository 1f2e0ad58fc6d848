"""A campaign of damaged logs of other tools: Ray, Lightning, Keras, Hugging Face, W&B, JSON lines.

    python tests/campaigns/fuzz_logs.py FOLDER INPUTS [SEED]

Every input must be read or end in an error of this package, within five seconds of computing. What
does otherwise is kept in FOLDER/bad. The suite tries a few thousand of the same inputs.
"""

from __future__ import annotations

import pickle
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from log_specimens import LOGS, damaged, written

from weitzman.errors import WeitzmanError

SLOWEST = 5.0  # seconds of computing for an input


def main(folder: Path, inputs: int, seed: int) -> int:
    """Run a campaign; the number of inputs that went wrong."""
    (folder / "bad").mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", UserWarning)
    pick, ends, slowest, wrong = random.Random(seed), Counter[str](), 0.0, 0
    for i in range(inputs):
        kind = list(LOGS)[i % len(LOGS)]
        files, fault = damaged(kind, pick), ""
        with tempfile.TemporaryDirectory(dir=folder) as name:
            written(Path(name), files)
            start = time.process_time()
            try:
                LOGS[kind].read(Path(name))
                ends[f"{kind}: read"] += 1
            except WeitzmanError:
                ends[f"{kind}: rejected"] += 1
            except Exception:
                fault = traceback.format_exc()
            took = time.process_time() - start
        slowest = max(slowest, took)
        if fault or took > SLOWEST:
            wrong += 1
            (folder / "bad" / f"{i}.pickle").write_bytes(pickle.dumps(files))
            (folder / "bad" / f"{i}.txt").write_text(f"{kind}, {took:.1f} s\n{fault}")
    sys.stdout.write(f"{inputs:,} logs, {dict(sorted(ends.items()))}, {wrong} went wrong; slowest "
                     f"{slowest:.2f} s\n")  # fmt: skip
    return wrong


if __name__ == "__main__":
    start = int(sys.argv[3]) if len(sys.argv) > 3 else time.time_ns()
    sys.exit(min(main(Path(sys.argv[1]), int(sys.argv[2]), start), 100))
