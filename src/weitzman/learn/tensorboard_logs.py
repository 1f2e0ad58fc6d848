"""Scalars of TensorBoard as logged runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .._common.optional import need
from .logged_runs import LoggedRun, files_below, last_of_each

_EVENTS = "*tfevents*"
_BACKEND = "tensorboard.backend.event_processing.event_accumulator"


def tensorboard_runs(folder: Any, tag: str) -> Iterator[LoggedRun]:
    """The folders whose event files have a tag, with the settings of the HParams plugin.

    ``SummaryWriter.add_hparams`` makes a folder of its own within that of the run.
    """
    backend = need(_BACKEND, "tensorboard")
    folders = {path.parent: name for name, path in _found(folder)}
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
        yield LoggedRun(folders[path], steps, scores, times, known)


def _found(folder: Any) -> Iterator[tuple[str, Path]]:
    for name, path in files_below(folder, _EVENTS):
        part = Path(name).parent
        yield part.as_posix() if str(part) != "." else path.parent.name, path


def _loaded(backend: Any, path: Path) -> Any:
    log = backend.EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0})
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
