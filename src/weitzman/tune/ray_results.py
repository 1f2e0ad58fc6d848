"""The results of a trial as Ray has logged them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..learn.tuner_logs import rising_results

Trial = Any  # Ray's classes are not typed throughout


def history(trial: Trial, metric: str, step: str, cost: str) -> Iterator[tuple[int, float, float]]:
    """(step, score, cost) of all results of a trial, as Ray has logged them; rising steps only."""
    return rising_results(_results(trial), metric, step, cost)


def _results(trial: Trial) -> list[dict[str, Any]]:
    """The results in ``result.json``, here or in the storage; else the last one that is known."""
    if not trial.has_reported_at_least_once:
        return []
    texts = [""]
    local = Path(trial.local_path or ".", "result.json")
    if local.exists():
        texts.append(local.read_text("utf-8"))
    try:
        filesystem = trial.storage.storage_filesystem
        with filesystem.open_input_stream(f"{trial.path}/result.json") as file:
            texts.append(file.read().decode())
    except OSError:
        pass  # it was not synchronized
    lines = max(texts, key=len).splitlines()
    return [json.loads(line) for line in lines] or [trial.last_result]
