"""Logs of other tools as folders of files, valid ones and damaged ones."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from collections.abc import Callable
from importlib import import_module
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


# -- logs that a library has to write: made once, and damaged within their format ------------------


def _tensorboard() -> dict[str, bytes]:
    events = import_module("tensorboard.compat.proto.event_pb2")
    make = import_module("tensorboard.util.tensor_util").make_tensor_proto
    every = [events.Event(wall_time=1e9, file_version="brain.Event:2")]
    for i in range(1, 5):
        event = events.Event(wall_time=1e9 + 2 * i, step=i)
        event.summary.value.add(tag="acc", simple_value=0.1 * i)
        event.summary.value.add(tag="loss", tensor=make(1.0 / i))
        every.append(event)
    return {"r/events.out.tfevents.1": _framed(every, import_module("io").BytesIO())}


def _framed(events: list[Any], file: Any) -> bytes:
    writer = import_module("tensorboard.summary.writer.record_writer").RecordWriter(file)
    for event in events:
        writer.write(event.SerializeToString())
    return bytes(file.getvalue())


def _damaged_tensorboard(pick: random.Random) -> dict[str, bytes]:
    import io

    events = import_module("tensorboard.compat.proto.event_pb2")
    ((name, data),) = MADE["TensorBoard"].items()
    every, at = [], 0
    while at < len(data):  # length, checksum, event, checksum
        size = int.from_bytes(data[at : at + 8], "little")
        every.append(events.Event.FromString(data[at + 12 : at + 12 + size]))
        at += size + 16
    for _ in range(pick.choice([1, 1, 3])):
        event = pick.choice(every)
        values = list(event.summary.value) or [event]
        value = pick.choice(values)
        match pick.randrange(7):
            case 0:
                event.wall_time = pick.choice([NAN, float("inf"), -1.0, 0.0, 1e308])
            case 1:
                event.step = pick.choice([0, -1, 2**62, -(2**62), 1])
            case 2 if value is not event:
                value.simple_value = pick.choice([NAN, float("inf"), -1e30, 0.0])
            case 3 if value is not event:
                value.tag = pick.choice(["", "acc", "loss", "_hparams_/session_start_info", "x/y"])
                value.metadata.plugin_data.content = pick.choice([b"", b"\xff\x01", b"hparams"])
                value.metadata.plugin_data.plugin_name = pick.choice(["", "hparams", "scalars"])
            case 4 if value is not event:
                value.tensor.dtype = pick.randrange(0, 30)
                value.tensor.tensor_content = mutate_bytes(b"\0\0\0\0", pick, b"")
            case 5 if value is not event:
                value.tensor.tensor_shape.dim.add(size=pick.choice([-1, 0, 2, 2**40]))
            case _:
                every.append(event)
    data = _framed(every, io.BytesIO())
    return {name: data if pick.random() < 0.7 else mutate_bytes(data, pick, data)}


def _wandb() -> dict[str, bytes]:
    return {"run-a.wandb": _wandb_file(_wandb_records())}


def _wandb_records() -> list[Any]:
    record = import_module("wandb.proto.wandb_internal_pb2").Record
    every = [record()]
    every[0].run.display_name = "a"
    every[0].run.config.update.add(key="lr", value_json="0.1")
    for i in range(1, 5):
        row = record()
        row.history.step.num = i
        for key, value in ("acc", 0.1 * i), ("_runtime", 2.0 * i):
            row.history.item.add(key=key, value_json=json.dumps(value))
        every.append(row)
    return every


def _wandb_file(records: list[Any]) -> bytes:
    out = b":W&B\0\0\0"
    for record in records:
        data = record.SerializeToString()
        out += b"\0\0\0\0" + len(data).to_bytes(2, "little") + b"\1" + data
    return out


def _damaged_wandb(pick: random.Random) -> dict[str, bytes]:
    every = _wandb_records()
    for _ in range(pick.choice([1, 1, 3])):
        record = pick.choice(every)
        items = list(record.history.item) or [record.run.config.update.add()]
        match pick.randrange(5):
            case 0:
                pick.choice(items).value_json = json.dumps(pick.choice(ODD))
            case 1:
                pick.choice(items).value_json = pick.choice(["", "{", "1e999", "NaN", "[" * 9999])
            case 2:
                pick.choice(items).key = pick.choice(["", "acc", "_runtime", "_step", "_wandb"])
            case 3:
                record.history.step.num = pick.choice([0, -1, 2**62, 1])
            case _:
                pick.choice(items).nested_key.append("acc")
    data = _wandb_file(every)
    return {"run-a.wandb": data if pick.random() < 0.7 else mutate_bytes(data, pick, data)}


def _optuna() -> dict[str, bytes]:
    optuna = import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def make(url: str) -> None:
        study = optuna.create_study(study_name="s", storage=url, direction="maximize")
        for i in range(3):
            trial = study.ask({"lr": optuna.distributions.FloatDistribution(0.0, 1.0)})
            for step in range(1, 4):
                trial.report(0.1 * i * step, step)
            study.tell(trial, 0.3 * i)

    return {"study.db": _database(make)}


def _mlflow() -> dict[str, bytes]:
    mlflow = import_module("mlflow")

    def make(url: str) -> None:
        client = mlflow.MlflowClient(tracking_uri=url)
        experiment = client.create_experiment("e", artifact_location="x")
        for i in range(2):
            run = client.create_run(experiment, start_time=1_700_000_000_000).info.run_id
            client.log_param(run, "lr", 0.1)
            for k in range(1, 4):
                client.log_metric(run, "acc", 0.1 * k * i, 1_700_000_000_000 + 2000 * k, k)

    return {"mlflow.db": _database(make)}


def _database(make: Callable[[str], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        make(f"sqlite:///{folder}/made.db")
        return (Path(folder) / "made.db").read_bytes()


def _damaged_database(kind: str, pick: random.Random) -> dict[str, bytes]:
    ((name, data),) = MADE[kind].items()
    if pick.random() < 0.3:
        return {name: mutate_bytes(data, pick, data)}
    base = sqlite3.connect(":memory:")
    base.deserialize(data)
    tables = [row[0] for row in base.execute("select name from sqlite_master where type='table'")]
    for _ in range(pick.choice([1, 1, 3])):
        full = [x for x in tables if base.execute(f'select count(*) from "{x}"').fetchone()[0]]
        table = pick.choice(full)
        columns = [row[1] for row in base.execute(f'pragma table_info("{table}")')]
        number = pick.choice(base.execute(f'select rowid from "{table}"').fetchall())[0]
        odd = pick.choice([None, "", "x", "{", b"\xff", -1, 0, 1e308, float("inf"), 2**62, "NaN"])
        try:
            base.execute(
                f'update "{table}" set "{pick.choice(columns)}" = ? where rowid = ?', (odd, number)
            )
        except sqlite3.Error:  # a rule of the table
            base.execute(f'delete from "{table}" where rowid = ?', (number,))
    base.commit()
    return {name: base.serialize()}


def _read_optuna(folder: Path) -> Curves:
    return Curves.from_optuna(f"sqlite:///{folder}/study.db")


def _read_mlflow(folder: Path) -> Curves:
    return Curves.from_mlflow("e", "acc", tracking_uri=f"sqlite:///{folder}/mlflow.db")


MAKERS: dict[str, tuple[str, Callable[[], dict[str, bytes]], Callable[[Path], Any]]] = {
    "TensorBoard": (
        "tensorboard", _tensorboard, lambda folder: Curves.from_tensorboard(folder, "acc"),
    ),
    "W&B offline": ("wandb", _wandb, lambda folder: Curves.from_wandb(folder, "acc")),
    "Optuna": ("optuna", _optuna, _read_optuna),
    "MLflow": ("mlflow", _mlflow, _read_mlflow),
}  # fmt: skip
MADE: dict[str, dict[str, bytes]] = {}


def made(kind: str) -> Log:
    """A log that its library has written, which must be installed."""
    _, make, read = MAKERS[kind]
    if kind not in MADE:
        MADE[kind] = make()
    return Log(MADE[kind], read)


def damaged_within(kind: str, pick: random.Random) -> dict[str, bytes]:
    """The file of such a log, damaged."""
    if kind == "TensorBoard":
        return _damaged_tensorboard(pick)
    return _damaged_wandb(pick) if kind == "W&B offline" else _damaged_database(kind, pick)
