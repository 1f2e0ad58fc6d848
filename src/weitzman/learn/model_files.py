"""Models as files: the runs at the rungs and the settings, in JSON; the laws are learnt again.

Nothing in a file is executed, and nothing is taken on trust: every value is checked when it is
read, and a file that two readers could understand differently is refused.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from ..errors import InvalidArgument, InvalidFile
from ..files import parsing as check
from ..files.instances import MAX_BYTES
from ..files.safely import explained, read_document, replacing
from .ladder import Ladder
from .laws import Settings
from .line_model import LineModel

FORMAT = "weitzman/line-model/1"
_KEYS = ("format", "note", "price", "minimize", "settings", "rungs", "runs")
_LAST_RUNG, _MOST_ENTRIES = 2**53, 5_000_000
_MOST_WEIGHTS = 3_000_000  # of the laws learnt again, beyond four for each byte of the file
_LARGEST = 1e100  # of all numbers: products of them stay finite
_RUN_KEYS = ("best", "cost", "gone", "weight")

Path = str | os.PathLike[str]


def save(model: LineModel, path: Path) -> None:
    """Write a model to a ``.json`` file, which appears complete or not at all."""
    if not isinstance(model, LineModel):
        raise InvalidArgument(
            f"a file holds a LineModel, but this is a {type(model).__name__}. Keep its curves and "
            f"settings, and fit it again."
        )
    ladder = model.ladder
    sign = -1.0 if model.minimize else 1.0
    head = {
        "format": FORMAT,
        "price": model.price,
        "minimize": model.minimize,
        "settings": asdict(model.settings),
        "rungs": ladder.rungs.tolist(),
    }
    runs = [
        {
            "best": (sign * ladder.best[i, :seen]).tolist(),
            "cost": ladder.cost[i, :seen].tolist(),
            "gone": bool(ladder.gone[i]),
            "weight": float(ladder.weight[i]),
        }
        for i, seen in enumerate(ladder.seen.tolist())
    ]
    lines = ",\n".join(f"  {json.dumps(run)}" for run in runs)
    top = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    text = f'{{\n{top},\n "runs": [\n{lines}\n ]\n}}\n'
    name = os.fspath(path)
    with explained(name, "written"):
        _check_name(name)
        _check_weights(model.ladder, model.settings, len(text))
        with replacing(name) as file:
            file.write(text.encode())


def load(path: Path) -> LineModel:
    """Read a model that :func:`save` wrote.

    Raises
    ------
    InvalidFile
        The file cannot be read or breaks a rule; the message says which and where.
    """
    name = os.fspath(path)
    with explained(name, "read"):
        _check_name(name)
        return _model(read_document(name, MAX_BYTES), os.path.getsize(name))


def _check_name(name: str) -> None:
    if not name.lower().endswith(".json"):
        raise InvalidFile("the name of a model file must end in .json.")


def _model(x: Any, size: int) -> LineModel:
    x = _all_fields(x, "the model", _KEYS, optional=("note",))
    check.choice(x["format"], (FORMAT,), "format")
    price = _number(x["price"], "price", above=0.0)
    minimize = _bool(x["minimize"], "minimize")
    rungs = _array(x["rungs"], "rungs")
    if not len(rungs) or (rungs != np.round(rungs)).any() or (np.diff(rungs) <= 0).any():
        raise InvalidFile("rungs must be whole numbers that rise, at least one of them.")
    if abs(rungs).max() > _LAST_RUNG:
        raise InvalidFile(f"rungs must be at most {_LAST_RUNG:,}, but one is {rungs.max():g}.")
    if not isinstance(x["runs"], list) or not x["runs"]:
        raise InvalidFile("runs must be a list of at least one run.")
    ladder = _ladder(x["runs"], rungs, -1.0 if minimize else 1.0)
    settings = _settings(x["settings"])
    _check_weights(ladder, settings, size)
    try:
        return LineModel(ladder, price=price, minimize=minimize, settings=settings)
    except InvalidArgument as error:
        raise InvalidFile(str(error)) from None


def _check_weights(ladder: Ladder, settings: Settings, size: int) -> None:
    """Refuse a short file whose laws would be huge, before memory is spent on them."""
    runs, rungs = len(ladder.best), int(ladder.seen.max())
    states = min(settings.points, runs + 3) * min(settings.levels, runs + 3)
    weights, most = states * (runs + states * rungs // 2), _MOST_WEIGHTS + 4 * size
    if weights > most:
        raise InvalidFile(
            f"the laws of a model in a file of this size must have at most {most:,} weights, but "
            f"{runs:,} runs with {settings.points:,} points and {settings.levels:,} levels have "
            f"{weights:,}. Set fewer points or levels."
        )


def _settings(x: Any) -> Settings:
    names = tuple(f.name for f in fields(Settings))
    x = _all_fields(x, "settings", names)
    whole = {k: check.whole(x[k], f"settings: {k}", 1, 10_000) for k in ("points", "levels")}
    real = {k: _number(x[k], f"settings: {k}") for k in ("ratio", "neighbors", "tail")}
    limit = None if x["limit"] is None else _number(x["limit"], "settings: limit")
    try:
        return Settings(**real, points=whole["points"], levels=whole["levels"], limit=limit)
    except ValueError as error:
        raise InvalidFile(f"settings: {error}") from None


def _ladder(runs: list[Any], rungs: np.ndarray, sign: float) -> Ladder:
    n, size = len(runs), len(rungs)
    if n * size > _MOST_ENTRIES:
        raise InvalidFile(
            f"runs times rungs must be at most {_MOST_ENTRIES:,}, but there are {n:,} and {size:,}."
        )
    best, cost = np.zeros((n, size)), np.zeros((n, size))
    seen, gone, weight = np.zeros(n, np.int64), np.zeros(n, bool), np.zeros(n)
    for i, run in enumerate(runs):
        where = f"runs[{i}]"
        run = _all_fields(run, where, _RUN_KEYS)
        shown, paid = _array(run["best"], f"{where}: best"), _array(run["cost"], f"{where}: cost")
        if not 1 <= len(shown) <= size or len(paid) != len(shown):
            raise InvalidFile(
                f"{where}: best and cost must have equally many entries, from 1 to {size}, but "
                f"they have {len(shown)} and {len(paid)}."
            )
        if (np.diff(sign * shown) < 0).any():
            raise InvalidFile(f"{where}: the best score so far must never get worse.")
        if (paid < 0).any():
            raise InvalidFile(f"{where}: a cost must be at least 0.")
        seen[i], gone[i] = len(shown), _bool(run["gone"], f"{where}: gone")
        weight[i] = _number(run["weight"], f"{where}: weight", above=0.0)
        best[i], cost[i, : seen[i]] = sign * shown[-1], paid
        best[i, : seen[i]] = sign * shown
    unknown, config = np.full((n, size), np.nan), np.zeros((n, 0))
    over = gone | (seen == size)
    steps = rungs.astype(np.int64)
    return Ladder(steps, best, unknown, unknown, cost, config, seen, over, weight)


def _all_fields(
    x: Any, where: str, keys: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    found: dict[str, Any] = check.fields(x, where, keys)
    for key in keys:
        if key not in found and key not in optional:
            raise InvalidFile(f"{where} must have the key {key!r}, but it is missing.")
    return found


def _array(x: Any, where: str) -> np.ndarray:
    if not isinstance(x, list):
        check.wrong(where, "a list of numbers", x)
    found = check.numbers(x, where)
    if (np.abs(found) > _LARGEST).any():
        raise InvalidFile(
            f"{where} must be at most {_LARGEST:g} in size, but one is {np.abs(found).max():g}."
        )
    return found


def _number(x: Any, where: str, above: float | None = None) -> float:
    if not check.is_number(x) or (above is not None and not x > above) or abs(x) > _LARGEST:
        what = "a number" if above is None else f"a number above {above:g}"
        check.wrong(where, f"{what}, at most {_LARGEST:g}", x)
    return float(x)


def _bool(x: Any, where: str) -> bool:
    if not isinstance(x, bool):
        check.wrong(where, "true or false", x)
    return x
