"""A set of curves that anybody can train: ``python -m benchmarks.tuning.trained FOLDER``.

Small models of scikit-learn on its own data sets, 400 random settings for each of 8 tasks, every
run with a seed of its own. Defaults of the learned models were chosen on the other sets, so this
one tells what they do on new data. Costs are counted operations, so nothing depends on the
machine; training takes a few minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

for _library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from sklearn import datasets  # noqa: E402
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor  # noqa: E402
from sklearn.linear_model import SGDClassifier  # noqa: E402
from sklearn.neural_network import MLPClassifier, MLPRegressor  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

NAME = "trained"
RUNS, STEPS, STAGES = 400, 20, 4  # of each task, of each run; trees in a step
LEAST = -1.0  # no score is below: how bad a run is that diverged does not matter
Settings = dict[str, Any]
Curve = Iterator[tuple[float, float]]  # score and cost of each step


class Data(NamedTuple):
    """Standardized inputs and targets: the first part is trained on, the rest gives the score."""

    x: np.ndarray
    y: np.ndarray
    train: int

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Inputs and targets to train on, inputs and targets to score on."""
        n = self.train
        return self.x[:n], self.y[:n], self.x[n:], self.y[n:]


def _data(x: np.ndarray, y: np.ndarray, train: int, *, scaled: bool = False) -> Data:
    order = np.random.default_rng(1).permutation(len(x))
    y = (y - y.mean()) / y.std() if scaled else y
    return Data(StandardScaler().fit_transform(x[order]), y[order], train)


def _log(random: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def net_settings(random: np.random.Generator) -> Settings:
    """Settings of a network; momentum only where the solver has one."""
    solver = str(random.choice(["sgd", "adam"]))
    told = {
        "solver": solver,
        "rate": _log(random, 1e-4, 1.0),
        "width": round(_log(random, 4, 64)),
        "decay": _log(random, 1e-6, 1.0),
        "batch": int(random.choice([16, 32, 64])),
        "activation": str(random.choice(["relu", "tanh", "logistic"])),
    }
    return told | ({"momentum": float(random.uniform(0, 0.99))} if solver == "sgd" else {})


def net_curve(data: Data, told: Settings, seed: int) -> Curve:
    """One epoch at a time; the cost is the number of multiplications."""
    x, y, new, wanted = data.parts
    classes = np.unique(data.y) if data.y.dtype.kind in "iu" else None
    make = MLPRegressor if classes is None else MLPClassifier
    net = make(
        hidden_layer_sizes=(told["width"],), solver=told["solver"], learning_rate_init=told["rate"],
        alpha=told["decay"], batch_size=told["batch"], activation=told["activation"],
        momentum=told.get("momentum", 0.9), random_state=seed,
    )  # fmt: skip
    out = 1 if classes is None else len(classes)
    for _ in range(STEPS):
        try:
            net.partial_fit(x, y, **({} if classes is None else {"classes": classes}))
            score = float(net.score(new, wanted))
        except ValueError as error:
            if not any(word in str(error) for word in ("NaN", "finite", "infinity")):
                raise
            return  # the weights are no longer finite
        yield score, 3e-6 * len(x) * told["width"] * (x.shape[1] + out)


def boosting_settings(random: np.random.Generator) -> Settings:
    """Settings of boosted trees."""
    return {
        "rate": _log(random, 0.003, 1.0),
        "depth": int(random.integers(1, 7)),
        "subsample": float(random.uniform(0.3, 1.0)),
        "features": float(random.uniform(0.1, 1.0)),
        "leaf": round(_log(random, 1, 40)),
    }


def boosting_curve(data: Data, told: Settings, seed: int) -> Curve:
    """Some trees at a time; the cost is the number of values looked at."""
    x, y, new, wanted = data.parts
    make = GradientBoostingClassifier if y.dtype.kind in "iu" else GradientBoostingRegressor
    trees = make(
        learning_rate=told["rate"], max_depth=told["depth"], subsample=told["subsample"],
        max_features=told["features"], min_samples_leaf=told["leaf"], random_state=seed,
        n_estimators=STEPS * STAGES,
    ).fit(x, y)  # fmt: skip
    each = 1e-6 * STAGES * told["depth"] * told["subsample"] * told["features"] * x.size
    for stage, guess in enumerate(trees.staged_predict(new), 1):
        if stage % STAGES == 0:
            right = y.dtype.kind in "iu"
            miss = np.square(guess - wanted).mean() / wanted.var() if not right else 0.0
            yield (float((guess == wanted).mean()) if right else 1.0 - float(miss)), each


def linear_settings(random: np.random.Generator) -> Settings:
    """Settings of a linear classifier; a rate only where the schedule has one."""
    schedule = str(random.choice(["optimal", "constant", "invscaling", "adaptive"]))
    told = {
        "schedule": schedule,
        "loss": str(random.choice(["hinge", "log_loss", "modified_huber"])),
        "decay": _log(random, 1e-7, 1.0),
        "penalty": str(random.choice(["l2", "l1", "elasticnet"])),
    }
    return told | ({} if schedule == "optimal" else {"rate": _log(random, 1e-5, 1.0)})


def linear_curve(data: Data, told: Settings, seed: int) -> Curve:
    """A pass over some of the data at a time; the cost is the number of multiplications."""
    x, y, new, wanted = data.parts
    line = SGDClassifier(
        loss=told["loss"], learning_rate=told["schedule"], alpha=told["decay"],
        penalty=told["penalty"], eta0=told.get("rate", 0.01), random_state=seed,
    )  # fmt: skip
    random, part = np.random.default_rng(seed), len(x) // 10
    for _ in range(STEPS):
        some = random.choice(len(x), part, replace=False)
        line.partial_fit(x[some], y[some], np.unique(data.y))
        yield float(line.score(new, wanted)), 3e-6 * part * x.shape[1]


Draw = Callable[[np.random.Generator], Settings]
Train = Callable[[Data, Settings, int], Curve]


def tasks() -> dict[str, tuple[Data, Draw, Train]]:
    """The tasks by name: data, how settings are drawn, how a run is trained."""
    net, boosting = (net_settings, net_curve), (boosting_settings, boosting_curve)
    hard = datasets.make_classification(
        1500, 20, n_informative=6, n_classes=4, flip_y=0.05, random_state=3
    )
    friedman = datasets.make_friedman1(900, 10, noise=1.0, random_state=4)
    digits, health = datasets.load_digits(return_X_y=True), datasets.load_diabetes(return_X_y=True)
    moons = datasets.make_moons(900, noise=0.3, random_state=5)
    waves = datasets.make_hastie_10_2(1500, random_state=6)
    hastie = waves[0], (waves[1] > 0).astype(int)
    return {
        "net-classes": (_data(*hard, 700), *net),
        "net-friedman": (_data(*friedman, 400, scaled=True), *net),
        "net-moons": (_data(*moons, 300), *net),
        "boosting-moons": (_data(*moons, 300), *boosting),
        "boosting-diabetes": (_data(*health, 250, scaled=True), *boosting),
        "boosting-hastie": (_data(*hastie, 600), *boosting),
        "linear-digits": (_data(*digits, 600), linear_settings, linear_curve),
        "linear-classes": (_data(*hard, 700), linear_settings, linear_curve),
    }


def train(folder: Path, tasks: Mapping[str, tuple[Data, Draw, Train]], runs: int = RUNS) -> None:
    """Train all runs and write the two tables of a set."""
    rows, told = [], []
    for place, (task, (data, draw, curve)) in enumerate(tasks.items()):
        random = np.random.default_rng([2, place])
        for run in range(runs):
            settings, name = draw(random), f"{task}-{run}"
            told.append({"config_id": name} | settings)
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                for step, (score, cost) in enumerate(curve(data, settings, run)):
                    rows.append((task, name, step, cost, max(score, LEAST)))
        print(f"{task}: {runs} runs", file=sys.stderr, flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    columns = ["task", "config_id", "step", "cost", "val_score"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "curves.csv.gz", index=False)
    pd.DataFrame(told).to_csv(folder / "configs.csv.gz", index=False)


def make(folder: Path) -> None:
    """Train the set."""
    train(folder / NAME, tasks())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help=f"where the folder `{NAME}` is put")
    make(parser.parse_args().folder)
