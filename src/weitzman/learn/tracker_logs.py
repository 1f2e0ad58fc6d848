"""Logs of MLflow, TensorBoard and Weights & Biases."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._common.optional import need
from ..errors import InvalidArgument, InvalidFile
from .log_tables import LogColumns, columns_of, numbers
from .logged_runs import (
    LoggedRun,
    files_below,
    last_of_each,
    number_or_text,
    plain_settings,
    reading,
)

_PAGE = 1000  # runs asked for at once

_EVENTS = "*tfevents*"
_BACKEND = "tensorboard.backend.event_processing.event_accumulator"

_STEP, _TIME = "_step", "_runtime"
_OFFLINE = ".wandb"
_FEW, _AT_ONCE, _PAUSE = 4, 1e-3, 20.0  # rows; seconds a row; times the usual step

# A file of a run is a log in the format of LevelDB: blocks of 32 KiB with records, each with a
# checksum, a length and a kind (whole, or the first, a middle or the last part), after seven bytes
# that name the format. A record is a message of wandb's protocol.
_BLOCK, _HEAD, _MARK = 2**15, 7, b":W&B"
_FIRST, _MIDDLE = 2, 3


def mlflow_runs(
    experiments: Any, metric: str, tracking_uri: str | None, online: bool
) -> Iterator[LoggedRun]:
    """The runs that have logged a metric, with their parameters as settings."""
    mlflow = need("mlflow", "mlflow")
    uri = str(tracking_uri or mlflow.get_tracking_uri())
    if not (online or "://" not in uri or uri.startswith(("file:", "sqlite:"))):
        raise InvalidArgument(
            f"the tracking server {uri} is reached over the network. Say `online=True`, or give "
            f"the folder or database as `tracking_uri`."
        )
    client = mlflow.MlflowClient(tracking_uri=tracking_uri)
    wanted = [experiments] if isinstance(experiments, str) else list(experiments)
    for experiment in [_experiment(client, str(name)) for name in wanted]:
        for run in _all_runs(client, experiment.experiment_id):
            logged = client.get_metric_history(run.info.run_id, metric)
            times = [(x.timestamp - run.info.start_time) / 1000 for x in logged]
            steps, scores, elapsed = last_of_each(
                [x.step for x in logged], [x.value for x in logged], [max(x, 0.0) for x in times]
            )
            settings = {name: number_or_text(x) for name, x in run.data.params.items()}
            name = run.info.run_name or run.info.run_id
            task = experiment.name if len(wanted) > 1 else ""
            there = getattr(run.data, "metrics", ())
            yield LoggedRun(name, steps, scores, elapsed, settings, task, names=there)


def _experiment(client: Any, name: str) -> Any:
    experiment = client.get_experiment_by_name(name)
    if experiment is None and name.isdigit():
        experiment = client.get_experiment(name)
    if experiment is None:
        there = ", ".join(repr(x.name) for x in client.search_experiments())
        raise InvalidArgument(f"MLflow has no experiment {name!r}; there are {there or 'none'}.")
    return experiment


def _all_runs(client: Any, experiment: str) -> Sequence[Any]:
    runs: list[Any] = []
    token = None
    while True:
        page = client.search_runs(
            [experiment],
            max_results=_PAGE,
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        runs += page
        token = page.token
        if not token:
            return runs


def tensorboard_runs(folder: Any, tag: str, cost: str) -> Iterator[LoggedRun]:
    """The folders whose event files have a tag, with the settings of the HParams plugin.

    ``SummaryWriter.add_hparams`` makes a folder of its own within the folder of the run.
    """
    if cost not in ("time", "steps"):
        raise InvalidArgument(f'`cost` must be "time" or "steps", but it is {cost!r}.')
    backend = need(_BACKEND, "tensorboard")
    folders = {path.parent: name for name, path in _folders(folder)}
    logs = {path: _loaded(backend, path) for path in folders}
    settings = {path: _settings(log) for path, log in logs.items()}
    for path, log in logs.items():
        rows = _scalars(log, tag)
        inner = (x for at, x in settings.items() if at.parent == path and x)
        start = log.FirstEventTimestamp() if rows else 0.0
        steps, scores, times = last_of_each(
            [x[1] for x in rows], [x[2] for x in rows], [max(x[0] - start, 0.0) for x in rows]
        )
        known = settings[path] or next(inner, {})
        if cost == "steps":
            times = [float(x) for x in steps]
        elif odd := odd_times(times):
            warnings.warn(f"run {folders[path]!r}: {odd}", UserWarning, stacklevel=5)
        tags = log.Tags()
        there = {*tags["scalars"], *tags["tensors"]}
        yield LoggedRun(folders[path], steps, scores, times, known, names=there)


def odd_times(times: Sequence[float]) -> str:
    """What is wrong with the times of a run as costs: a pause, or all written at once."""
    rises = np.diff(times)
    if len(rises) < _FEW:
        return ""
    usual, longest = float(np.median(rises)), float(rises.max())
    if times[-1] < _AT_ONCE * len(times):
        return (
            "all of its scores were written at about the same time, so that they seem to cost "
            'nothing. Say `cost="steps"` if steps cost about the same.'
        )
    if longest > _PAUSE * max(usual, float(np.mean(np.sort(rises)[:-1]))):
        return (
            f"one step took {longest:.3g} seconds where {usual:.3g} are usual: a pause, perhaps "
            f'between two parts of a resumed run, counts as cost. Say `cost="steps"` if steps '
            f"cost about the same."
        )
    return ""


def _folders(folder: Any) -> Iterator[tuple[str, Path]]:
    for name, path in files_below(folder, _EVENTS):
        part = Path(name).parent
        yield part.as_posix() if str(part) != "." else path.parent.name, path


def _loaded(backend: Any, path: Path) -> Any:
    log = backend.EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0})
    with reading(path, "a log of TensorBoard"):
        return log.Reload()


def _scalars(log: Any, tag: str) -> Sequence[tuple[float, int, float]]:
    """(time, step, value), whether written by PyTorch's writer or by TensorFlow's."""
    tags = log.Tags()
    if tag in tags["scalars"]:
        return [(x.wall_time, x.step, x.value) for x in log.Scalars(tag)]
    if tag in tags["tensors"]:
        make = need("tensorboard.util.tensor_util", "tensorboard").make_ndarray
        return [(x.wall_time, x.step, float(make(x.tensor_proto))) for x in log.Tensors(tag)]
    return []


def _settings(log: Any) -> dict[str, Any]:
    """The hyperparameters that were logged, as numbers, texts and truth values."""
    metadata = need("tensorboard.plugins.hparams.metadata", "tensorboard")
    content = log.summary_metadata.get(metadata.SESSION_START_INFO_TAG)
    if content is None:
        return {}
    info = metadata.parse_session_start_info_plugin_data(content.plugin_data.content)
    kinds = {name: value.WhichOneof("kind") for name, value in info.hparams.items()}
    return {
        name: getattr(info.hparams[name], kind)
        for name, kind in kinds.items()
        if kind is not None and kind != "null_value"
    }


def wandb_runs(source: Any, metric: str, online: bool) -> Iterator[LoggedRun]:
    """Runs of a project, of a folder, of the table of a chart, of histories, or of run objects."""
    if isinstance(source, (str, os.PathLike)) and (
        os.path.isdir(source) or os.fspath(source).endswith(_OFFLINE)
    ):
        yield from _offline(source, metric)
        return
    if isinstance(source, (str, os.PathLike)) and not _is_file(source):
        if not online:
            raise InvalidFile(
                f"{os.fspath(source)}: there is no such file or folder. If it is a project "
                f"ENTITY/PROJECT of Weights & Biases, say `online=True`: it is read over the "
                f"network."
            )
        source = need("wandb", "wandb").Api().runs(os.fspath(source))
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "columns"):
        yield from _charted(columns_of(source), metric)
    elif isinstance(source, Mapping):
        for name, history in source.items():
            yield _history(str(name), columns_of(history), metric, {})
    else:
        for run in source:
            rows = list(run.scan_history(keys=[_STEP, _TIME, metric]))
            settings = {k: v for k, v in dict(run.config).items() if not k.startswith("_")}
            if rows:
                yield _history(run.name or run.id, columns_of(rows), metric, settings)


def _offline(source: Any, metric: str) -> Iterator[LoggedRun]:
    """Runs that were logged offline and evaluated at least once."""
    for _, path in files_below(source, f"*{_OFFLINE}"):
        with reading(path, "a log of Weights & Biases"):
            name, settings, rows = offline_run(path)
            shown = [row for row in rows if row.get(metric) is not None]
            kept = [{k: row[k] for k in (_STEP, _TIME, metric) if k in row} for row in shown]
            there = {key for row in rows for key in row if not key.startswith("_")}
            run = LoggedRun(name, (), (), None, names=there)
            if shown:
                run = _history(name, columns_of(kept), metric, plain_settings(settings))
        yield run


def _is_file(source: str | os.PathLike[str]) -> bool:
    path = os.fspath(source)
    return os.path.exists(path) or path.endswith((".csv", ".csv.gz", ".parquet", ".jsonl"))


def _history(name: str, table: LogColumns, metric: str, settings: Any) -> LoggedRun:
    """One run; rows without the metric were not evaluated."""
    score = numbers(table, metric, blank=True)
    when = numbers(table, table.role("step", "step"), blank=True)
    seen = ~np.isnan(score) & ~np.isnan(when)
    steps = when[seen]
    times = numbers(table, _TIME)[seen] if _TIME in table.names else steps + 1
    return LoggedRun(
        name, *last_of_each(steps.tolist(), score[seen].tolist(), times.tolist()), settings
    )


def _charted(table: LogColumns, metric: str) -> Iterator[LoggedRun]:
    """The table of a chart: a column for the step, and one called "RUN - METRIC" for each run."""
    end = f" - {metric}"
    columns = [name for name in table.names if name.endswith(end)]
    if not columns:
        raise InvalidArgument(
            f"the export of a chart must have a column 'RUN{end}' for each run, but its columns "
            f"are {', '.join(table.names[:6])}. Read a table with a column that names the run by "
            f"`Curves.read`."
        )
    when = next((x for x in table.names if " - " not in x), "Step")
    for name in columns:
        score = numbers(table, name, blank=True)
        seen = ~np.isnan(score)
        steps = numbers(table, when, blank=True)[seen]
        rows = last_of_each(steps.tolist(), score[seen].tolist(), (steps + 1).tolist())
        yield LoggedRun(name.removesuffix(end), *rows)


# -- files of runs that were logged offline: run-ID.wandb ----------------------------------------


def offline_run(path: Path) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """The name of a run, its configuration, and the rows of its history."""
    record = need("wandb.proto.wandb_internal_pb2", "wandb").Record
    name, config, rows = path.stem.removeprefix("run-"), {}, []
    for data in _records(path):
        try:
            said = record.FromString(data)
        except Exception as error:  # protobuf's own kinds differ between its versions
            raise InvalidFile(f"{path}: a record is damaged: {error}") from None
        if said.HasField("run"):
            name = said.run.display_name or said.run.run_id or name
            config.update(_values(said.run.config.update))
        elif said.HasField("config"):
            config.update(_values(said.config.update))
        elif said.HasField("history"):
            rows.append({"_step": said.history.step.num, **_values(said.history.item)})
    return name, {k: v for k, v in config.items() if not k.startswith("_")}, rows


def _values(items: Any) -> dict[str, Any]:
    return {"/".join(x.nested_key) or x.key: json.loads(x.value_json) for x in items}


def _records(path: Path) -> Iterator[bytes]:
    """The records of a file; a last one that was cut off is left out."""
    data = path.read_bytes()
    if not data.startswith(_MARK):
        raise InvalidFile(f"{path}: it is no log of Weights & Biases.")
    at, whole = _HEAD, b""
    while at + _HEAD <= len(data):
        if (room := _BLOCK - at % _BLOCK) < _HEAD:  # padding at the end of a block
            at += room
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        part = data[at + _HEAD : at + _HEAD + size]
        at += _HEAD + size
        if kind == 0 or len(part) < size:
            return
        whole += part
        if kind not in (_FIRST, _MIDDLE):
            yield whole
            whole = b""
