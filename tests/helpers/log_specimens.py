"""Logs of other tools as folders of files, valid ones and damaged ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from mutations import mutate_bytes, mutate_document

from weitzman.learn import Curves

NAN = float("nan")
ODD: list[Any] = [None, "", "x", "1", True, NAN, float("inf"), -1, 0, 1.5, 1e308, 10**400, [], {},
                  [1], {"a": {"b": 1}}, "\ud800", "2020-13-45"]  # fmt: skip
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
)
YAMLS = [
    BOMB, "a: &a\n  b: *a\n", "d: 2020-13-45\n", "x: !!python/object:a.B {}\n", "[" * 400,
    "- 1\n- 2\n", "a: {" * 400, "n: .nan\ni: .inf\n", "? [1, 2]\n: 3\n", "\0", "a: !!int x",
]  # fmt: skip
CELLS = ["", "nan", "inf", "-inf", "x", "1e999", "9" * 400, "-1", "1.5", '"', "é", "2020-01-01"]


class Log(NamedTuple):
    """The files of a log by name, and its reader."""

    files: dict[str, bytes]
    read: Callable[[Path], Any]


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


RAY_ROWS = [
    {"acc": 0.1 * i, "training_iteration": i, "time_this_iter_s": 2.0, "timestamp": i}
    for i in range(1, 5)
]
STATE = {
    "global_step": 40, "trial_params": {"lr": 0.1},
    "log_history": [{"step": 10 * i, "epoch": i, "eval_acc": 0.2 * i} for i in range(1, 5)],
}  # fmt: skip
CSV = b"epoch,step,acc\n" + b"".join(b"%d,%d,0.%d\n" % (i, 10 * i, i) for i in range(5))
CHART = b'"Step","a - acc","b - acc"\n"0","0.1",""\n"1","0.2","0.4"\n"2","0.3","0.5"\n'

LOGS: dict[str, Log] = {
    "Ray": Log(
        {"t/result.json": _lines(RAY_ROWS), "t/params.json": b'{"lr": 0.1, "net": {"width": 8}}'},
        lambda folder: Curves.from_ray(folder, "acc"),
    ),
    "Lightning": Log(
        {"v/metrics.csv": CSV, "v/hparams.yaml": b"lr: 0.1\nname: x\n"},
        lambda folder: Curves.from_lightning(folder, "acc"),
    ),
    "Keras": Log({"training.log": CSV}, lambda folder: Curves.from_keras(folder, "acc")),
    "Hugging Face": Log(
        {"r/checkpoint-40/trainer_state.json": json.dumps(STATE).encode()},
        lambda folder: Curves.from_huggingface(folder, "eval_acc"),
    ),
    "W&B": Log({"chart.csv": CHART}, lambda folder: Curves.from_wandb(folder / "chart.csv", "acc")),
    "JSON lines": Log(
        {"log.jsonl": _lines([{"run": "a", "score": 0.1, **row} for row in RAY_ROWS])},
        lambda folder: Curves.read(
            folder / "log.jsonl", step="training_iteration", cost="time_this_iter_s"
        ),
    ),
}


def damaged(kind: str, pick: random.Random) -> dict[str, bytes]:
    """The files of a log, one of them damaged: in its bytes, its values or its cells."""
    files = dict(LOGS[kind].files)
    name = pick.choice(list(files))
    data = files[name]
    how = pick.random()
    if name.endswith("yaml") and how < 0.3:
        data = pick.choice(YAMLS).encode("utf-8", "replace")
    elif name.endswith(("csv", ".log")) and how < 0.6:
        rows = [row.split(",") for row in data.decode().splitlines()]
        for _ in range(pick.choice([1, 1, 3])):
            row = pick.choice(rows)
            row[pick.randrange(len(row))] = pick.choice(CELLS)
        data = "\n".join(map(",".join, rows)).encode(pick.choice(["utf-8", "latin-1"]))
    elif name.endswith(("result.json", "jsonl")) and how < 0.6:
        rows_ = [json.loads(line) for line in data.splitlines()]
        row = pick.choice(rows_)
        row[pick.choice(list(row))] = pick.choice(ODD)
        data = _lines(rows_)
    elif name.endswith(".json") and how < 0.6 and not name.endswith("result.json"):
        document = mutate_document(json.loads(data), pick)
        if pick.random() < 0.5 and isinstance(document.get("log_history"), list):
            rows_ = [x for x in document["log_history"] if isinstance(x, dict) and x]
            if rows_:
                row = pick.choice(rows_)
                row[pick.choice(list(row))] = pick.choice(ODD)
        data = json.dumps(document).encode()
    else:
        data = pick.choice([b"", b"\xff\xfe", b"{", mutate_bytes(data, pick, data)])
    files[name] = data
    return files


def written(folder: Path, files: dict[str, bytes]) -> None:
    """Write the files of a log."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
