"""Logs of other libraries: each reader yields :class:`LoggedRun`.

Whatever a damaged log holds, the only errors are InvalidFile and InvalidArgument.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import FloatArray
from .._common.optional import need
from ..errors import InvalidArgument, InvalidFile
from .log_tables import Config, LogColumns, columns_of, flat, json_lines, read_log, reading

RUN = "weitzman:run"  # user attribute of a trial: its number in a search of this package
COSTS = "weitzman:costs"  # of its steps, in their order
ENDED = "weitzman:ended"  # whether it came to its own end, unlike a winner that was left
CONTINUES = "weitzman:continues"  # number of the trial whose place it takes, rows and all

_MOST_SETTINGS = 10_000  # of a run, laid out: a few lines of YAML can stand for billions
_DEEPEST = 100  # settings within settings
_LONGEST, _LONGEST_STATE = 2**20, 2**28  # bytes of hparams.yaml and of trainer_state.json
_PAGE = 1000  # runs asked for at once
_STEP, _TIME = "_step", "_runtime"  # columns of Weights & Biases
_FEW, _AT_ONCE, _PAUSE = 4, 1e-3, 20.0  # rows; seconds a row; times the usual step

Study = Any  # Optuna need not be installed here
Trial = Any


class LoggedRun(NamedTuple):
    """One run as a library has logged it."""

    name: str
    steps: Sequence[int] = ()  # in the order of the log
    scores: Sequence[float] = ()  # NaN where nothing was seen
    costs: Sequence[float] | None = None  # of each row, or the time since the run started
    settings: Config = {}  # noqa: RUF012  a tuple's default is never changed
    task: str = ""
    ended: bool | None = None  # whether the run came to its own end, if that is known
    names: Collection[str] = ()  # what the log of the run has scores of, for messages

    @classmethod
    def of(cls, name: str, rows: Iterable[tuple[float, Any, Any]], **more: Any) -> LoggedRun:
        """A run from rows (time, step, score) in any order; of a step logged twice the last row.

        A row without a step is left out. If all rows have the same step, they are counted from 1 in
        the order of time.
        """
        known = [(float(time), a_step(x), a_number(y)) for time, x, y in rows if not is_blank(x)]
        known.sort(key=lambda row: row[0])
        if len(known) > 1 and len({step for _, step, _ in known}) == 1:
            known = [(time, number, score) for number, (time, _, score) in enumerate(known, 1)]
        last = {step: (score, time) for time, step, score in known}
        order = sorted(last)
        return cls(name, order, [last[x][0] for x in order], [last[x][1] for x in order], **more)


def a_number(x: Any) -> float:
    """A number of a log; NaN where it is blank."""
    return math.nan if x is None or x == "" else float(x)


def is_blank(x: Any) -> bool:
    """Whether a log has no number here."""
    return math.isnan(a_number(x))


def a_step(x: Any) -> int:
    """A step of a log."""
    step = float(x)
    if not step.is_integer():
        raise InvalidFile(f"steps must be whole numbers, but one is {step:g}.")
    return int(step)


def number_or_text(x: Any) -> Any:
    """A setting that was logged as text, as a number if it is one."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(x)
    return {"True": True, "False": False, "None": None, "": None}.get(x, x)


def plain_settings(x: Any) -> dict[str, Any]:
    """Settings as a file holds them: a mapping that is not endless once it is laid out."""

    def size(part: Any, depth: int = 0) -> int:
        inner = part.values() if isinstance(part, dict) else part
        found = 1
        for one in inner if isinstance(part, (dict, list, tuple)) else ():
            found += size(one, depth + 1)
            if found > _MOST_SETTINGS or depth >= _DEEPEST:  # or it holds itself
                raise InvalidFile(
                    f"a run must have at most {_MOST_SETTINGS:,} settings, nested at most "
                    f"{_DEEPEST} deep."
                )
        return found

    size(x)
    found = x.items() if isinstance(x, dict) else ()
    return {str(k): None if isinstance(v, float) and math.isnan(v) else v for k, v in found}


# -- files and folders ----------------------------------------------------------------------------


def files_below(source: Any, name: str, other: str = "") -> list[tuple[str, Path]]:
    """Files of a name (or another one) in a folder and below, each with a name for its run.

    ``source`` is a folder, a file, or several of them. A run is named after its file if ``name`` is
    a pattern, otherwise after its folder.
    """
    if not isinstance(source, (str, os.PathLike)):
        return [found for each in source for found in files_below(each, name, other)]
    path, by_file = Path(source), "*" in name
    if not path.exists():
        raise InvalidFile(f"{path}: there is no such file or folder.")
    if path.is_file():
        return [(path.stem if by_file else path.parent.name or path.stem, path)]
    found = sorted([*path.rglob(name), *(path.rglob(other) if other else ())])
    if not found:
        raise InvalidFile(f"{path}: the folder must hold a file {name}, but it holds none.")
    out = []
    for file in found:
        part = file.relative_to(path)
        part = part.with_suffix("") if by_file and file.name != other else part.parent
        out.append((part.as_posix() if str(part) != "." else path.resolve().name, file))
    return out


def keras_runs(source: Any, metric: str) -> Iterator[LoggedRun]:
    """Epochs count from 1, and cost 1. After a restart epochs are logged again: the last counts."""
    for name, path in files_below(source, "*.csv", "training.log"):
        epoch, score = _columns(path, "epoch", metric)
        with reading(path, "a log of Keras"):
            run = LoggedRun.of(name, zip(range(len(epoch)), epoch + 1, score, strict=True))
        yield run._replace(costs=None)


def lightning_runs(source: Any, metric: str, step: str) -> Iterator[LoggedRun]:
    """Steps count from 0, rows without the metric are left out; settings are beside the file."""
    for name, path in files_below(source, "metrics.csv"):
        when, score = _columns(path, step, metric)
        seen = np.flatnonzero(~np.isnan(score))
        with reading(path, "a log of Lightning"):
            run = LoggedRun.of(name, zip(seen, when[seen] + 1, score[seen], strict=True))
        yield _by_steps(run, _hyperparameters(path.with_name("hparams.yaml")))


def _columns(path: Path, step: str, metric: str) -> tuple[FloatArray, FloatArray]:
    """The columns of steps and scores of a file like .csv."""
    table = LogColumns(read_log(str(path), text=True))
    try:
        return table.numbers(step, blank=True), table.numbers(metric, blank=True)
    except InvalidArgument as error:
        raise InvalidFile(f"{path}: {error}") from None


def _by_steps(run: LoggedRun, settings: Config) -> LoggedRun:
    return run._replace(costs=[float(x) for x in run.steps], settings=settings)


def _document(path: Path, most: int) -> str:
    if path.stat().st_size > most:
        raise InvalidFile(f"{path}: must have at most {most:,} bytes.")
    return path.read_text("utf-8")


def _hyperparameters(path: Path) -> dict[str, Any]:
    """What Lightning has saved; tagged Python objects in it are left out."""
    if not path.exists():
        return {}
    yaml = need("yaml", "learn")
    with reading(path, "YAML"):
        text = _document(path, _LONGEST)
        try:
            found = yaml.safe_load(text)
        except yaml.YAMLError:
            kept = [line for line in text.splitlines() if "!!python" not in line]
            found = yaml.safe_load("\n".join(kept))
        return plain_settings(found)


def huggingface_runs(source: Any, metric: str) -> Iterator[LoggedRun]:
    """Runs of Hugging Face's Trainer; of the checkpoints of a run the one that got furthest."""
    furthest: dict[Path, tuple[float, LoggedRun]] = {}
    for name, path in files_below(source, "trainer_state.json"):
        with reading(path, "a log of Hugging Face"):
            state = json.loads(_document(path, _LONGEST_STATE))
            if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
                raise InvalidFile(f"{path}: there must be an object with a log_history.")
            reached, folder = a_number(state.get("global_step")), path.parent
            if folder.name.startswith("checkpoint-"):
                folder, name = folder.parent, Path(name).parent.as_posix()
            rows = [x for x in state["log_history"] if isinstance(x, dict)]
            seen = [(i, x.get("step"), x[metric]) for i, x in enumerate(rows) if metric in x]
            run = LoggedRun.of(
                folder.resolve().name if name in (".", "") else name, seen,
                names={key for row in rows for key in row} - {"step", "epoch"},
            )  # fmt: skip
            run = _by_steps(run, plain_settings(state.get("trial_params") or {}))
        if folder not in furthest or not reached <= furthest[folder][0]:
            furthest[folder] = reached, run
    yield from (run for _, run in furthest.values())


def ray_runs(source: Any, metric: str, step: str, cost: str) -> Iterator[LoggedRun]:
    """The trials of a ResultGrid, or those in the folder of an experiment."""

    def run_of(name: str, results: Sequence[Mapping[str, Any]], settings: Any) -> LoggedRun:
        rows = list(rising_results(results, metric, step, cost))
        scores, paid = ([row[k] for row in rows] for k in (1, 2))
        there = {key for result in results[-3:] for key in flat(result)}
        return LoggedRun(name, [row[0] for row in rows], scores, paid, settings, names=there)

    if isinstance(source, (str, os.PathLike)):
        for name, path in files_below(source, "result.json"):
            params, settings = path.with_name("params.json"), {}
            if params.exists():
                with reading(params, "settings of Ray"):
                    settings = plain_settings(json.loads(params.read_text("utf-8")))
            with reading(path, "a log of Ray"):
                run = run_of(name, json_lines(path.read_bytes()), settings)
            yield run
        return
    if not (hasattr(source, "__iter__") or hasattr(source, "__getitem__")):
        raise InvalidArgument(
            f"trials are read from a ResultGrid or the folder of an experiment, but got a "
            f"{type(source).__name__}."
        )
    for i in range(len(source)):
        result = source[i]
        frame = result.metrics_dataframe
        rows = [] if frame is None else frame.to_dict("records")
        yield run_of(
            Path(result.path).name if result.path else f"trial {i}", rows, result.config or {}
        )


def rising_results(
    results: Iterable[Mapping[str, Any]], metric: str, step: str, cost: str
) -> Iterator[tuple[int, float, float]]:
    """(step, score, cost) of results of Ray; rising steps only.

    Results that repeat a step (trained again since a checkpoint) count with their cost. The last
    result of a trial is logged again when it is done, which costs nothing.
    """
    extra = 0.0
    seen: dict[int, Mapping[str, Any]] = {}
    for result in map(flat, results):
        if metric not in result or is_blank(result.get(step)):
            continue
        paid = 0.0 if is_blank(result.get(cost)) else float(result[cost])
        at = a_step(result[step])
        if at <= next(reversed(seen), -1):
            # the same moment is one result that was logged twice
            clocks = [x for x in ("timestamp", "time_total_s") if x in result]
            before = seen.get(at, {})
            again = clocks and all(result[x] == before.get(x) for x in clocks)
            extra += 0.0 if again else paid
            continue
        seen[at] = result
        yield at, a_number(result[metric]), paid + extra
        extra = 0.0


# -- TensorBoard ----------------------------------------------------------------------------------


def tensorboard_runs(folder: Any, tag: str, cost: str) -> Iterator[LoggedRun]:
    """The folders whose event files have a tag, with the settings of the HParams plugin."""
    backend = need("tensorboard.backend.event_processing.event_accumulator", "tensorboard")
    make = need("tensorboard.util.tensor_util", "tensorboard").make_ndarray
    names: dict[Path, str] = {}
    logs: dict[Path, Any] = {}
    settings: dict[Path, dict[str, Any]] = {}
    for name, file in files_below(folder, "*tfevents*"):
        part = Path(name).parent
        names[file.parent] = part.as_posix() if str(part) != "." else file.parent.name
    for path in names:
        with reading(path, "a log of TensorBoard"):
            every = {"scalars": 0, "tensors": 0}
            logs[path] = backend.EventAccumulator(str(path), size_guidance=every).Reload()
            settings[path] = _hparams(logs[path])
    for path, log in logs.items():
        with reading(path, "a log of TensorBoard"):
            tags, rows = log.Tags(), []
            if tag in tags["scalars"]:  # written by PyTorch's writer
                rows = [(x.wall_time, x.step, x.value) for x in log.Scalars(tag)]
            elif tag in tags["tensors"]:  # by TensorFlow's
                found = log.Tensors(tag)
                rows = [(x.wall_time, x.step, float(make(x.tensor_proto))) for x in found]
            # SummaryWriter.add_hparams makes a folder of its own within the folder of the run
            inner = (x for at, x in settings.items() if at.parent == path and x)
            start = log.FirstEventTimestamp() if rows else 0.0
            run = LoggedRun.of(
                names[path], [(max(time - start, 0.0), *row) for time, *row in rows],
                settings=settings[path] or next(inner, {}),
                names={*tags["scalars"], *tags["tensors"]},
            )  # fmt: skip
        yield priced(run, cost)


def priced(run: LoggedRun, cost: str) -> LoggedRun:
    """A run whose costs are times, or with ``cost="steps"`` its steps; odd times give a warning."""
    if cost not in ("time", "steps"):
        raise InvalidArgument(f'`cost` must be "time" or "steps", but it is {cost!r}.')
    if cost == "steps":
        return _by_steps(run, run.settings)
    if odd := odd_times(run.costs or ()):
        warnings.warn(f"run {run.name!r}: {odd}", UserWarning, stacklevel=6)
    return run


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


def _hparams(log: Any) -> dict[str, Any]:
    """The hyperparameters that were logged, as numbers, texts and truth values."""
    metadata = need("tensorboard.plugins.hparams.metadata", "tensorboard")
    content = log.summary_metadata.get(metadata.SESSION_START_INFO_TAG)
    if content is None:
        return {}
    info = metadata.parse_session_start_info_plugin_data(content.plugin_data.content)
    kinds = {name: value.WhichOneof("kind") for name, value in info.hparams.items()}
    known = {name: kind for name, kind in kinds.items() if kind not in (None, "null_value")}
    return {name: getattr(info.hparams[name], kind) for name, kind in known.items()}


# -- Weights & Biases -----------------------------------------------------------------------------


def wandb_runs(source: Any, metric: str, online: bool, cost: str) -> Iterator[LoggedRun]:
    """Runs of a project, of a folder, of the table of a chart, of histories, or of run objects."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if os.path.isdir(path) or path.endswith(".wandb"):
            for _, file in files_below(path, "*.wandb"):
                with reading(file, "a log of Weights & Biases"):
                    run = _offline(file, metric, cost)
                yield run
            return
        if os.path.exists(path) or path.endswith((".csv", ".csv.gz", ".parquet", ".jsonl")):
            yield from _charted(columns_of(path), metric)
            return
        if not online:
            raise InvalidFile(
                f"{path}: there is no such file or folder. If it is a project ENTITY/PROJECT of "
                f"Weights & Biases, say `online=True`: it is read over the network."
            )
        source = need("wandb", "wandb").Api().runs(path)
    if hasattr(source, "columns"):
        yield from _charted(columns_of(source), metric)
    elif isinstance(source, Mapping):
        for name, history in source.items():
            yield _history(str(name), columns_of(history), metric, {}, cost)
    else:
        for run in source:
            rows = list(run.scan_history(keys=[_STEP, _TIME, metric]))
            if rows:
                name, config = run.name or run.id, dict(run.config)
                yield _history(name, columns_of(rows), metric, config, cost)


def _history(name: str, table: LogColumns, metric: str, config: Config, cost: str) -> LoggedRun:
    """One run; rows without the metric were not evaluated."""
    score = table.numbers(metric, blank=True)
    when = table.numbers(table.role("step", "step"), blank=True)
    seen = ~np.isnan(score) & ~np.isnan(when)
    timed = _TIME in table.names and cost == "time"
    times = table.numbers(_TIME)[seen] if timed else when[seen] + 1
    settings = plain_settings({k: v for k, v in config.items() if not k.startswith("_")})
    rows = zip(times, when[seen], score[seen], strict=True)
    run = LoggedRun.of(name, rows, settings=settings)
    return priced(run, cost) if timed or cost != "time" else run


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
        score = table.numbers(name, blank=True)
        seen = ~np.isnan(score)
        steps = table.numbers(when, blank=True)[seen]
        yield LoggedRun.of(name.removesuffix(end), zip(steps + 1, steps, score[seen], strict=True))


def _offline(path: Path, metric: str, cost: str) -> LoggedRun:
    """A run that was logged offline: its name, configuration and history from run-ID.wandb."""
    record = need("wandb.proto.wandb_internal_pb2", "wandb").Record
    name, config, rows = path.stem.removeprefix("run-"), {}, []

    def values(items: Any) -> dict[str, Any]:
        return {"/".join(x.nested_key) or x.key: json.loads(x.value_json) for x in items}

    for data in _records(path):
        said = record.FromString(data)
        if said.HasField("run"):
            name = said.run.display_name or said.run.run_id or name
            config.update(values(said.run.config.update))
        elif said.HasField("config"):
            config.update(values(said.config.update))
        elif said.HasField("history"):
            rows.append({_STEP: said.history.step.num, **values(said.history.item)})
    there = {key for row in rows for key in row if not key.startswith("_")}
    shown = (row for row in rows if row.get(metric) is not None)
    kept = [{k: row[k] for k in (_STEP, _TIME, metric) if k in row} for row in shown]
    if not kept:
        return LoggedRun(name, names=there)
    return _history(name, columns_of(kept), metric, config, cost)


# A file of a run is a log in the format of LevelDB: blocks of 32 KiB with records, each with a
# checksum, a length and a kind (whole, or the first, a middle or the last part), after seven bytes
# that name the format. A record is a message of wandb's protocol.
_BLOCK, _HEAD, _MARK = 2**15, 7, b":W&B"
_FIRST, _MIDDLE = 2, 3


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


# -- MLflow and Optuna ----------------------------------------------------------------------------


def mlflow_runs(
    experiments: Any, metric: str, tracking_uri: str | None, online: bool, cost: str
) -> Iterator[LoggedRun]:
    """The runs that have logged a metric, with their parameters as settings."""
    mlflow = need("mlflow", "mlflow")
    uri = str(tracking_uri or mlflow.get_tracking_uri())
    if not (online or "://" not in uri or uri.startswith(("file:", "sqlite:"))):
        raise InvalidArgument(
            f"the tracking server {uri} is reached over the network. Say `online=True`, or give "
            f"the folder or database as `tracking_uri`."
        )
    with reading(uri, "a store of MLflow"):
        client = mlflow.MlflowClient(tracking_uri=tracking_uri)
        wanted = [experiments] if isinstance(experiments, str) else list(experiments)
        found = []
        for name in map(str, wanted):
            experiment = client.get_experiment_by_name(name)
            if experiment is None and name.isdigit():
                experiment = client.get_experiment(name)
            if experiment is None:
                there = ", ".join(repr(x.name) for x in client.search_experiments()) or "none"
                raise InvalidArgument(f"MLflow has no experiment {name!r}; there are {there}.")
            found.append(experiment)
        for experiment in found:
            for run in _all_runs(client, experiment.experiment_id):
                start = run.info.start_time
                rows = [
                    (max((x.timestamp - start) / 1000, 0.0), x.step, x.value)
                    for x in client.get_metric_history(run.info.run_id, metric)
                ]
                settings = {name: number_or_text(x) for name, x in run.data.params.items()}
                yield priced(LoggedRun.of(
                    run.info.run_name or run.info.run_id, rows, settings=settings,
                    task=experiment.name if len(wanted) > 1 else "",
                    names=getattr(run.data, "metrics", ()),
                ), cost)  # fmt: skip


def _all_runs(client: Any, experiment: str) -> Iterator[Any]:
    token, order = None, ["attributes.start_time ASC"]
    while True:
        page = client.search_runs([experiment], max_results=_PAGE, order_by=order, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def studies_of(source: Any) -> Sequence[Study]:
    """Studies of one objective: one, several, or all of a storage URL."""
    found = list(source) if isinstance(source, (list, tuple)) else [source]
    if isinstance(source, str):
        if "://" not in source:
            raise InvalidArgument(
                f"studies are an optuna.Study, several, or the URL of a storage such as "
                f"sqlite:///study.db, but got {source!r}."
            )
        path = source.partition(":///")[2].partition("?")[0]
        if source.startswith("sqlite") and not os.path.isfile(path):  # it would be made
            raise InvalidFile(f"{path}: there is no such file.")
        optuna = need("optuna", "optuna")
        with reading(source, "a storage of Optuna"):
            names = optuna.get_all_study_names(source)
            found = [optuna.load_study(study_name=name, storage=source) for name in names]
        if not found:
            raise InvalidArgument(f"{source}: the storage holds no study.")
    with reading(source if isinstance(source, str) else "studies", "a storage of Optuna"):
        for study in found:
            if not hasattr(study, "get_trials"):
                raise InvalidArgument(
                    f"trials are read from an optuna.Study or a list of them, but got a "
                    f"{type(study).__name__}."
                )
            if len(study.directions) != 1:
                raise InvalidArgument(
                    f"a study must have one objective, but {study.study_name!r} has "
                    f"{len(study.directions)}."
                )
        if len({study.direction for study in found}) != 1:
            raise InvalidArgument("studies to be read together must all maximize or all minimize.")
    return found


def optuna_runs(studies: Sequence[Study]) -> Iterator[LoggedRun]:
    """The trials that show something, with their parameters as settings."""
    for study in studies:
        with reading(f"study {study.study_name!r}", "a study of Optuna"):
            trials = _without_copies(study.get_trials(deepcopy=False))
            yield from _trials_of(trials, study.study_name if len(studies) > 1 else "")


def _trials_of(trials: Sequence[Trial], task: str) -> Iterator[LoggedRun]:
    """The trials of one study; if none reports on the way, they are runs of one step."""
    whole = not any(trial.intermediate_values for trial in trials)
    shown, seconds = {}, {}
    for t in trials:
        over = whole and t.state.name == "COMPLETE" and t.value is not None
        shown[t.number] = {1: t.value} if over else t.intermediate_values
        seconds[t.number] = None if t.duration is None else float(t.duration.total_seconds())
    # what a report costs on average, for trials that are not over; 1 if unknown
    paid = [(took, len(shown[n])) for n, took in seconds.items() if took is not None and shown[n]]
    total, reports = (sum(x) for x in zip((0.0, 0), *paid, strict=True))
    usual = total / reports if total > 0 else 1.0
    for trial in trials:
        rows, took = sorted(shown[trial.number].items()), seconds[trial.number]
        noted = trial.user_attrs.get(COSTS) or ()
        if len(noted) < len(rows):
            noted = [usual if took is None else took / len(rows)] * len(rows)
        steps, scores = [x for x, _ in rows], [a_number(y) for _, y in rows]
        costs, mark = [float(x) for x in noted[: len(rows)]], ENDED in trial.user_attrs
        over = mark if RUN in trial.user_attrs else trial.state.name == "COMPLETE"
        yield LoggedRun(f"trial {trial.number}", steps, scores, costs, trial.params, task, over)


def _without_copies(trials: Sequence[Trial]) -> list[Trial]:
    """Each run once: a trial that was taken over counts in its first copy."""
    first: dict[int, int] = {}
    for trial in trials:
        first.setdefault(trial.user_attrs.get(CONTINUES, -1 - trial.number), trial.number)
    kept = [trial for trial in trials if trial.number in first.values()]
    return [t for t in kept if not (t.number in first and t.state.name == "FAIL")]
