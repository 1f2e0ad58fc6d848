"""Models as files: the runs at the rungs and the options, in JSON; the laws are learned again.

Nothing in a file is executed, and nothing is taken on trust: every value is checked when it is
read, and a file that two readers could understand differently is rejected.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from .._common.arrays import FloatArray
from .._common.disk import replacing
from ..errors import InvalidArgument, InvalidFile
from ..files import documents as check
from ..files.documents import explained, parse, unpacked
from .ladder import Belief, Ladder, ScoreNoise
from .log_tables import Encoder
from .resemblance import FitOptions, ResemblanceModel

FORMAT = "weitzman/resemblance-model/1"
_KEYS = ("format", "note", "price", "minimize", "options", "rungs", "settings", "noise", "runs")
_NOISE_KEYS = ("noise", "first", "step", "rise", "drift")
_LAST_RUNG, _MOST_ENTRIES = 2**53, 5_000_000
_MOST_TREES = 100_000_000  # trees times runs times rungs
_LARGEST = 1e100  # of all numbers: products of them stay finite
_RUN_KEYS = ("best", "cost", "gone", "weight", "last", "mean", "settings")
_WHOLE = {"trees": 1, "leaf": 1, "states": 3}  # options that are whole numbers, and the least

Path = str | os.PathLike[str]


def save(model: ResemblanceModel, path: Path) -> None:
    """Write a model to a ``.json`` file, which appears complete or not at all."""
    if not isinstance(model, ResemblanceModel):
        raise InvalidArgument(
            f"a file holds a model from `learn.fit`, but this is a {type(model).__name__}."
        )
    ladder, encoder = model.ladder, model.encoder
    sign = -1.0 if model.minimize else 1.0
    pairs = zip(encoder.names, encoder.categories, strict=True)

    def with_nulls(x: FloatArray) -> list[float | None]:
        return [None if np.isnan(v) else v for v in x.tolist()]

    head = {
        "format": FORMAT, "price": model.price, "minimize": model.minimize,
        "options": asdict(model.options), "rungs": ladder.rungs.tolist(),
        "settings": [[name, None if kind is None else list(kind)] for name, kind in pairs],
    }  # fmt: skip
    if model.noise is not None:
        found = model.noise
        lists = {name: getattr(found, name).tolist() for name in _NOISE_KEYS[2:]}
        head["noise"] = {"noise": found.noise, "first": list(found.first[:2]), **lists}
    runs = [{
        "best": (sign * ladder.best[i, :seen]).tolist(), "cost": ladder.cost[i, :seen].tolist(),
        "gone": bool(ladder.gone[i]), "weight": float(ladder.weight[i]),
        "last": with_nulls(sign * ladder.last[i, :seen]),
        "mean": with_nulls(sign * ladder.mean[i, :seen]), "settings": with_nulls(ladder.config[i]),
    } for i, seen in enumerate(ladder.seen.tolist())]  # fmt: skip
    lines = ",\n".join(f"  {json.dumps(run)}" for run in runs)
    top = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    with _named(path, "written") as name, replacing(name) as file:
        file.write(f'{{\n{top},\n "runs": [\n{lines}\n ]\n}}\n'.encode())


def load(path: Path) -> ResemblanceModel:
    """Read a model that :func:`save` wrote.

    Raises
    ------
    InvalidFile
        The file cannot be read or breaks a rule; the message says which and where.
    """
    with _named(path, "read") as name:
        x = parse(unpacked(name))
        model = _model(x)
        model.noise = _noise(x["noise"]) if "noise" in x else None
        return model


@contextmanager
def _named(path: Path, done: str) -> Iterator[str]:
    """The name of a file; errors within name it."""
    name = os.fspath(path)
    with explained(name, done):
        if not name.lower().endswith(".json"):
            raise InvalidFile("the name of a model file must end in .json.")
        yield name


def _model(x: Any) -> ResemblanceModel:
    x = _all_fields(x, "the model", _KEYS, optional=("note", "noise"))
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
    encoder = _encoder(x["settings"])
    ladder = _ladder(x["runs"], rungs, -1.0 if minimize else 1.0, len(encoder.names))
    options = _options(x["options"])
    # trees grow again: no short file may take long
    size = options.trees * len(ladder) * int(ladder.seen.max())
    if size > _MOST_TREES:
        raise InvalidFile(
            f"trees times runs times rungs must be at most {_MOST_TREES:,}, but they are {size:,}."
        )
    try:
        return ResemblanceModel(ladder, encoder, price=price, minimize=minimize, options=options)
    except InvalidArgument as error:
        raise InvalidFile(str(error)) from None


def _noise(x: Any) -> ScoreNoise:
    x = _all_fields(x, "noise", _NOISE_KEYS)
    noise, first = _number(x["noise"], "noise: noise"), _array(x["first"], "noise: first")
    step, rise, drift = (_array(x[name], f"noise: {name}") for name in _NOISE_KEYS[2:])
    if noise < 0 or (drift < 0).any() or len(first) != 2 or first[1] < 0:
        raise InvalidFile("noise: noise, drift and the second number of first must be at least 0.")
    if not len(step) == len(rise) == len(drift):
        raise InvalidFile("noise: step, rise and drift must have equally many entries.")
    if (step != np.round(step)).any() or (np.diff(step) <= 0).any():
        raise InvalidFile("noise: step must have whole numbers that rise.")
    return ScoreNoise(noise, Belief(*first.tolist()), step.astype(np.int64), rise, drift)


def _encoder(x: Any) -> Encoder:
    """The settings that are known: a name with its categories, or null for a number."""
    if not isinstance(x, list):
        check.wrong("settings", "a list of settings", x)
    kinds: dict[str, dict[str, int] | None] = {}
    for i, pair in enumerate(x):
        words = pair[1] if isinstance(pair, list) and len(pair) == 2 else ()
        texts = isinstance(words, list) and all(isinstance(w, str) for w in words)
        different = texts and len(set(words)) == len(words)
        if not (words is None or different) or not isinstance(pair[0], str):
            check.wrong(f"settings[{i}]", "a name and its different categories, or null", pair)
        kinds[pair[0]] = None if words is None else {word: k for k, word in enumerate(words)}
    if len(kinds) < len(x):
        raise InvalidFile("settings: each setting must be named once.")
    return Encoder(tuple(kinds), tuple(kinds.values()))


def _options(x: Any) -> FitOptions:
    x = _all_fields(x, "options", tuple(f.name for f in fields(FitOptions)))
    read: dict[str, Any] = {
        k: check.whole(v, f"options: {k}", _WHOLE[k], 10_000) if k in _WHOLE
        else None if v is None and k == "limit" else _number(v, f"options: {k}")
        for k, v in x.items()
    }  # fmt: skip
    try:
        return FitOptions(**read)
    except ValueError as error:
        raise InvalidFile(f"options: {error}") from None


def _ladder(runs: list[Any], rungs: FloatArray, sign: float, settings: int) -> Ladder:
    n, size = len(runs), len(rungs)
    if n * size > _MOST_ENTRIES:
        raise InvalidFile(
            f"runs times rungs must be at most {_MOST_ENTRIES:,}, but there are {n:,} and {size:,}."
        )
    best, cost, weight = np.zeros((n, size)), np.zeros((n, size)), np.zeros(n)
    last, mean, config = (np.full((n, x), np.nan) for x in (size, size, settings))
    seen, gone = np.zeros(n, np.int64), np.zeros(n, bool)
    for i, run in enumerate(runs):
        where = f"runs[{i}]"
        run = _all_fields(run, where, _RUN_KEYS)
        shown, paid = _array(run["best"], f"{where}: best"), _array(run["cost"], f"{where}: cost")
        k = seen[i] = len(shown)
        if not 1 <= k <= size or len(paid) != k:
            raise InvalidFile(
                f"{where}: best and cost must have equally many entries, from 1 to {size}, but "
                f"they have {k} and {len(paid)}."
            )
        if (np.diff(sign * shown) < 0).any():
            raise InvalidFile(f"{where}: the best score so far must never get worse.")
        if (paid < 0).any():
            raise InvalidFile(f"{where}: a cost must be at least 0.")
        gone[i] = _bool(run["gone"], f"{where}: gone")
        weight[i] = _number(run["weight"], f"{where}: weight", above=0.0)
        best[i], best[i, :k], cost[i, :k] = sign * shown[-1], sign * shown, paid
        for name, out in ("last", last), ("mean", mean):
            out[i, :k] = sign * _array(run[name], f"{where}: {name}", k)
        config[i] = _array(run["settings"], f"{where}: settings", settings)
    steps = rungs.astype(np.int64)
    return Ladder(steps, best, last, mean, cost, config, seen, gone | (seen == size), weight)


def _all_fields(
    x: Any, where: str, keys: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    found: dict[str, Any] = check.fields(x, where, keys)
    for key in keys:
        if key not in found and key not in optional:
            raise InvalidFile(f"{where} must have the key {key!r}, but it is missing.")
    return found


def _array(x: Any, where: str, blank: int | None = None) -> FloatArray:
    """A vector of numbers; with ``blank``, of so many numbers or nulls, which are NaN."""
    if not isinstance(x, list) or blank not in (None, len(x)):
        of = "a list of numbers" if blank is None else f"a list of {blank} numbers or nulls"
        check.wrong(where, of, x)
    some = [i for i, v in enumerate(x) if blank is None or v is not None]
    out = np.full(len(x), np.nan)
    out[some] = check.numbers([x[i] for i in some], where)
    if len(some) and np.nanmax(np.abs(out)) > _LARGEST:
        raise InvalidFile(
            f"{where} must be at most {_LARGEST:g} in size, but one is {np.nanmax(np.abs(out)):g}."
        )
    return out


def _number(x: Any, where: str, above: float | None = None) -> float:
    if not check.is_number(x) or (above is not None and not x > above) or abs(x) > _LARGEST:
        what = "a number" if above is None else f"a number above {above:g}"
        check.wrong(where, f"{what}, at most {_LARGEST:g}", x)
    return float(x)


def _bool(x: Any, where: str) -> bool:
    if not isinstance(x, bool):
        check.wrong(where, "true or false", x)
    return x
