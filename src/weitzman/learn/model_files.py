"""Models as files: the runs at the rungs and the settings, in JSON; the laws are learned again.

Nothing in a file is executed, and nothing is taken on trust: every value is checked when it is
read, and a file that two readers could understand differently is refused.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from .._common.disk import replacing
from ..errors import InvalidArgument, InvalidFile
from ..files import parsing as check
from ..files.instances import MAX_BYTES
from ..files.safely import explained, read_document
from .known import NOTHING, Encoder
from .ladder import Ladder
from .laws import Recipe, Settings
from .line_model import LineModel
from .noise import Belief, ScoreNoise
from .resemblance import Resemblance, ResemblanceModel

FORMAT = "weitzman/line-model/1"
RESEMBLING = "weitzman/resemblance-model/1"
_KEYS = ("format", "note", "price", "minimize", "settings", "rungs", "known", "noise", "runs")
_NOISE_KEYS = ("noise", "first", "step", "rise", "drift")
_LAST_RUNG, _MOST_ENTRIES = 2**53, 5_000_000
_MOST_WEIGHTS = (
    3_000_000  # weights of the laws learned again, beyond four for each byte of the file
)
_MOST_TREES = 100_000_000  # trees times runs times rungs
_LARGEST = 1e100  # of all numbers: products of them stay finite
_RUN_KEYS = ("best", "cost", "gone", "weight")
_MORE_KEYS = ("last", "mean", "settings")  # of a run in a model by resemblance
_WHOLE = {"points": 1, "levels": 1, "trees": 1, "leaf": 1, "states": 3}  # and the least of each

Path = str | os.PathLike[str]


def save(model: LineModel | ResemblanceModel, path: Path) -> None:
    """Write a model to a ``.json`` file, which appears complete or not at all."""
    if not isinstance(model, LineModel | ResemblanceModel):
        raise InvalidArgument(
            f"a file holds a LineModel or a ResemblanceModel, but this is a {type(model).__name__}."
        )
    ladder, resembling = model.ladder, isinstance(model, ResemblanceModel)
    sign = -1.0 if model.minimize else 1.0
    head = {
        "format": RESEMBLING if resembling else FORMAT,
        "price": model.price,
        "minimize": model.minimize,
        "settings": asdict(model.settings),
        "rungs": ladder.rungs.tolist(),
    }
    if resembling:
        pairs = zip(model.encoder.names, model.encoder.categories, strict=True)
        head["known"] = [[name, None if kind is None else list(kind)] for name, kind in pairs]
    if model.noise is not None:
        head["noise"] = model.noise.as_dict()
    runs = [
        {
            "best": (sign * ladder.best[i, :seen]).tolist(),
            "cost": ladder.cost[i, :seen].tolist(),
            "gone": bool(ladder.gone[i]),
            "weight": float(ladder.weight[i]),
            **(_more(ladder, i, sign) if resembling else {}),
        }
        for i, seen in enumerate(ladder.seen.tolist())
    ]
    lines = ",\n".join(f"  {json.dumps(run)}" for run in runs)
    top = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    text = f'{{\n{top},\n "runs": [\n{lines}\n ]\n}}\n'
    name = os.fspath(path)
    with explained(name, "written"):
        _check_name(name)
        if isinstance(model, LineModel):
            _check_weights(model.ladder, model.settings, len(text))
        with replacing(name) as file:
            file.write(text.encode())


def _more(ladder: Ladder, i: int, sign: float) -> dict[str, Any]:
    """What a resemblance model knows about a run besides its best scores; null where nothing."""
    seen = int(ladder.seen[i])
    rows = {"last": sign * ladder.last[i, :seen], "mean": sign * ladder.mean[i, :seen]}
    rows["settings"] = ladder.config[i]
    return {k: [None if np.isnan(v) else v for v in x.tolist()] for k, x in rows.items()}


def load(path: Path) -> LineModel | ResemblanceModel:
    """Read a model that :func:`save` wrote.

    Raises
    ------
    InvalidFile
        The file cannot be read or breaks a rule; the message says which and where.
    """
    name = os.fspath(path)
    with explained(name, "read"):
        _check_name(name)
        x = read_document(name, MAX_BYTES)
        model = _model(x, os.path.getsize(name))
        model.noise = _noise(x["noise"]) if "noise" in x else None
        return model


def _check_name(name: str) -> None:
    if not name.lower().endswith(".json"):
        raise InvalidFile("the name of a model file must end in .json.")


def _model(x: Any, size: int) -> LineModel | ResemblanceModel:
    x = _all_fields(x, "the model", _KEYS, optional=("note", "known", "noise"))
    check.choice(x["format"], (FORMAT, RESEMBLING), "format")
    resembling = x["format"] == RESEMBLING
    if resembling != ("known" in x):
        raise InvalidFile("a resemblance model, and no other, must say which settings it knows.")
    price = _number(x["price"], "price", above=0.0)
    minimize = _bool(x["minimize"], "minimize")
    rungs = _array(x["rungs"], "rungs")
    if not len(rungs) or (rungs != np.round(rungs)).any() or (np.diff(rungs) <= 0).any():
        raise InvalidFile("rungs must be whole numbers that rise, at least one of them.")
    if abs(rungs).max() > _LAST_RUNG:
        raise InvalidFile(f"rungs must be at most {_LAST_RUNG:,}, but one is {rungs.max():g}.")
    if not isinstance(x["runs"], list) or not x["runs"]:
        raise InvalidFile("runs must be a list of at least one run.")
    encoder = _encoder(x["known"]) if resembling else None
    ladder = _ladder(x["runs"], rungs, -1.0 if minimize else 1.0, encoder)
    settings = _settings(x["settings"], Resemblance if resembling else Settings)
    try:
        if isinstance(settings, Resemblance):
            _check_trees(ladder, settings)
            return ResemblanceModel(
                ladder, encoder or NOTHING, price=price, minimize=minimize, settings=settings
            )
        assert isinstance(settings, Settings)
        _check_weights(ladder, settings, size)
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


def _check_trees(ladder: Ladder, settings: Resemblance) -> None:
    """Refuse a file whose trees would take too long to grow."""
    size = settings.trees * len(ladder) * int(ladder.seen.max())
    if size > _MOST_TREES:
        raise InvalidFile(
            f"trees times runs times rungs must be at most {_MOST_TREES:,}, but they are {size:,}."
        )


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
        check.wrong("known", "a list of settings", x)
    names, kinds = [], []
    for i, pair in enumerate(x):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            check.wrong(f"known[{i}]", "a name and its categories, or null", pair)
        words = pair[1]
        if words is not None:
            texts = isinstance(words, list) and all(isinstance(w, str) for w in words)
            if not texts or len(set(words)) < len(words):
                check.wrong(f"known[{i}]", "a name and different categories, or null", pair)
        names.append(pair[0])
        kinds.append(None if words is None else {word: k for k, word in enumerate(words)})
    if len(set(names)) < len(names):
        raise InvalidFile("known: each setting must be named once.")
    return Encoder(tuple(names), tuple(kinds))


def _settings(x: Any, recipe: type[Recipe]) -> Recipe:
    names = tuple(f.name for f in fields(recipe))
    x = {"least": 0.0} | _all_fields(x, "settings", names, optional=("least",))
    whole = [k for k in names if k in _WHOLE]
    read: dict[str, Any] = {
        k: check.whole(x[k], f"settings: {k}", _WHOLE[k], 10_000) for k in whole
    }
    read |= {k: _number(x[k], f"settings: {k}") for k in names if k not in (*whole, "limit")}
    limit = None if x["limit"] is None else _number(x["limit"], "settings: limit")
    try:
        return recipe(**read, limit=limit)
    except ValueError as error:
        raise InvalidFile(f"settings: {error}") from None


def _ladder(runs: list[Any], rungs: np.ndarray, sign: float, known: Encoder | None) -> Ladder:
    n, size = len(runs), len(rungs)
    keys = _RUN_KEYS if known is None else (*_RUN_KEYS, *_MORE_KEYS)
    config = np.full((n, 0 if known is None else len(known.names)), np.nan)
    if n * size > _MOST_ENTRIES:
        raise InvalidFile(
            f"runs times rungs must be at most {_MOST_ENTRIES:,}, but there are {n:,} and {size:,}."
        )
    best, cost = np.zeros((n, size)), np.zeros((n, size))
    last, mean = np.full((n, size), np.nan), np.full((n, size), np.nan)
    seen, gone, weight = np.zeros(n, np.int64), np.zeros(n, bool), np.zeros(n)
    for i, run in enumerate(runs):
        where = f"runs[{i}]"
        run = _all_fields(run, where, keys)
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
        if known is not None:
            last[i, : seen[i]] = sign * _blanks(run["last"], f"{where}: last", len(shown))
            mean[i, : seen[i]] = sign * _blanks(run["mean"], f"{where}: mean", len(shown))
            config[i] = _blanks(run["settings"], f"{where}: settings", config.shape[1])
    over = gone | (seen == size)
    steps = rungs.astype(np.int64)
    return Ladder(steps, best, last, mean, cost, config, seen, over, weight)


def _blanks(x: Any, where: str, size: int) -> np.ndarray:
    """Numbers, NaN where there is null."""
    if not isinstance(x, list) or len(x) != size:
        check.wrong(where, f"a list of {size} numbers or nulls", x)
    told = _array([v for v in x if v is not None], where)
    out = np.full(size, np.nan)
    out[[i for i, v in enumerate(x) if v is not None]] = told
    return out


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
