"""Logs of Optuna's studies and of Ray Tune's experiments."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._common.optional import need
from ..errors import InvalidArgument, InvalidFile
from .features import flat
from .logged_runs import LoggedRun, a_number, files_below, json_lines, plain_settings, reading

RUN = "weitzman:run"  # user attribute of a trial: its number in a search of this package
COSTS = "weitzman:costs"  # of its steps, in their order
ENDED = "weitzman:ended"  # whether it came to its own end, unlike a winner that was left
CONTINUES = "weitzman:continues"  # number of the trial whose place it takes, rows and all

Study = Any  # Optuna need not be installed here
Trial = Any


def minimizes(studies: Any) -> bool:
    """Whether studies minimize; they must agree."""
    ways = {study.direction.name for study in _several(studies)}
    if len(ways) != 1:
        raise InvalidArgument("studies to be read together must all maximize or all minimize.")
    return ways == {"MINIMIZE"}


def studies_of(source: Any) -> Any:
    """The studies of a storage URL such as ``sqlite:///study.db``; anything else as it is."""
    if not isinstance(source, str):
        return source
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
    return found


def optuna_runs(studies: Any) -> Iterator[LoggedRun]:
    """The trials that show something, with their parameters as settings."""
    several = _several(studies)
    for study in several:
        trials = _without_copies(study.get_trials(deepcopy=False))
        whole = not any(trial.intermediate_values for trial in trials)
        usual = _usual_cost(trials, whole)
        for trial in trials:
            shown = _shown(trial, whole)
            yield LoggedRun(
                f"trial {trial.number}",
                sorted(shown),
                [shown[step] for step in sorted(shown)],
                _costs(trial, len(shown), usual),
                trial.params,
                study.study_name if len(several) > 1 else "",
                _ended(trial),
            )


def _without_copies(trials: Sequence[Trial]) -> list[Trial]:
    """Each run once: a trial that was taken over counts in its first copy."""
    first: dict[int, int] = {}
    for trial in trials:
        first.setdefault(trial.user_attrs.get(CONTINUES, -1 - trial.number), trial.number)
    kept = [trial for trial in trials if trial.number in first.values()]
    return [t for t in kept if not (t.number in first and t.state.name == "FAIL")]


def _several(studies: Any) -> Sequence[Study]:
    found = list(studies) if isinstance(studies, (list, tuple)) else [studies]
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
    return found


def _shown(trial: Trial, whole: bool) -> dict[int, float]:
    """What a trial has reported, by step; the value of a complete trial if no trial reports."""
    if not whole:
        return dict(trial.intermediate_values)
    return {1: trial.value} if trial.state.name == "COMPLETE" and trial.value is not None else {}


def _seconds(trial: Trial) -> float | None:
    return None if trial.duration is None else float(trial.duration.total_seconds())


def _costs(trial: Trial, size: int, usual: float) -> list[float]:
    noted = trial.user_attrs.get(COSTS)
    if noted is not None and len(noted) >= size:
        return list(noted[:size])
    took = _seconds(trial)
    return [usual if took is None else took / max(size, 1)] * size


def _usual_cost(trials: Sequence[Trial], whole: bool) -> float:
    """What a report costs on average, for trials that are not over; 1 if unknown."""
    over = [(_seconds(t), len(_shown(t, whole))) for t in trials]
    paid = [(took, size) for took, size in over if took is not None and size]
    total = sum(took for took, _ in paid)
    return total / sum(size for _, size in paid) if total > 0 else 1.0


def _ended(trial: Trial) -> bool:
    if RUN in trial.user_attrs:
        return ENDED in trial.user_attrs
    return bool(trial.state.name == "COMPLETE")


def ray_runs(source: Any, metric: str, step: str, cost: str) -> Iterator[LoggedRun]:
    """The trials of a ResultGrid, or those in the folder of an experiment."""
    names = metric, step, cost
    if isinstance(source, (str, os.PathLike)):
        for name, path in files_below(source, "result.json"):
            params = path.with_name("params.json")
            settings: dict[str, Any] = {}
            if params.exists():
                with reading(params, "settings of Ray"):
                    settings = plain_settings(json.loads(params.read_text("utf-8")))
            with reading(path, "a log of Ray"):
                run = _run(name, json_lines(path.read_bytes()), settings, names)
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
        name = Path(result.path).name if result.path else f"trial {i}"
        yield _run(name, rows, result.config or {}, names)


def _run(
    name: str, results: Iterable[Mapping[str, Any]], settings: Any, names: tuple[str, str, str]
) -> LoggedRun:
    results = list(results)
    rows = list(rising_results(results, *names))
    there = {key for result in results[-3:] for key in flat(result)}
    return LoggedRun(
        name, [x[0] for x in rows], [x[1] for x in rows], [x[2] for x in rows], settings,
        names=there,
    )  # fmt: skip


def rising_results(
    results: Iterable[Mapping[str, Any]], metric: str, step: str, cost: str
) -> Iterator[tuple[int, float, float]]:
    """(step, score, cost) of results; rising steps only.

    Results that repeat a step (trained again since a checkpoint) count with their cost. The last
    result of a trial is logged again when it is done, which costs nothing.
    """
    last, extra = -1, 0.0
    told: dict[int, Mapping[str, Any]] = {}
    for result in map(flat, results):
        if metric not in result or math.isnan(a_number(result.get(step))):
            continue
        paid = a_number(result.get(cost))
        paid = 0.0 if math.isnan(paid) else paid
        if int(result[step]) <= last:
            extra += 0.0 if _same_moment(result, told.get(int(result[step]), {})) else paid
            continue
        last = int(result[step])
        told[last] = result
        yield last, a_number(result[metric]), paid + extra
        extra = 0.0


def _same_moment(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two results are the same one, logged twice."""
    names = "timestamp", "time_total_s"
    return any(name in a for name in names) and all(a.get(x) == b.get(x) for x in names)
