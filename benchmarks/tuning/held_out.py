"""Tables on which nothing was chosen: ``python -m benchmarks.tuning.held_out FOLDER``.

Networks, boosted trees (histograms) and linear models of scikit-learn on data sets that
:mod:`benchmarks.tuning.trained` does not have: 120 random settings for each of 7 tasks, every run
with a seed of its own. Scores are accuracies on held-out data (for `diabetes` the explained share
of the variance); costs are counted operations, so nothing depends on the machine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from .trained import (
    STAGES,
    STEPS,
    Curve,
    Data,
    Draw,
    Settings,
    Train,
    _data,
    _log,
    linear_curve,
    linear_settings,
    net_curve,
    net_settings,
    train,
)

NAME, RUNS = "held_out", 120


def histogram_settings(random: np.random.Generator) -> Settings:
    """Settings of boosted trees on histograms."""
    return {
        "rate": _log(random, 0.01, 1.0),
        "leaves": round(_log(random, 3, 40)),
        "least": round(_log(random, 2, 60)),
        "l2": _log(random, 1e-6, 10.0),
        "bins": int(random.choice([8, 32, 128])),
        "features": float(random.uniform(0.2, 1.0)),
    }


def histogram_curve(data: Data, told: Settings, seed: int) -> Curve:
    """Some trees at a time; the cost is the number of values looked at."""
    x, y, new, wanted = data.parts
    exact = y.dtype.kind in "iu"
    make = HistGradientBoostingClassifier if exact else HistGradientBoostingRegressor
    trees = make(
        learning_rate=told["rate"], max_leaf_nodes=told["leaves"], min_samples_leaf=told["least"],
        l2_regularization=told["l2"], max_bins=told["bins"], max_features=told["features"],
        max_iter=STEPS * STAGES, early_stopping=False, random_state=seed,
    ).fit(x, y)  # fmt: skip
    outputs = len(np.unique(y)) if exact and len(np.unique(y)) > 2 else 1
    each = 1e-6 * STAGES * outputs * np.log2(told["leaves"]) * told["features"] * x.size
    for stage, guess in enumerate(trees.staged_predict(new), 1):
        if stage % STAGES == 0:
            miss = 0.0 if exact else float(np.square(guess - wanted).mean() / wanted.var())
            yield (float((guess == wanted).mean()) if exact else 1.0 - miss), each


def tasks() -> dict[str, tuple[Data, Draw, Train]]:
    """The tasks by name: data, how settings are drawn, how a run is trained."""
    net, linear = (net_settings, net_curve), (linear_settings, linear_curve)
    trees = histogram_settings, histogram_curve
    digits = _data(*datasets.load_digits(return_X_y=True), 300)
    cancer = _data(*datasets.load_breast_cancer(return_X_y=True), 200)
    wine = _data(*datasets.load_wine(return_X_y=True), 60)
    diabetes = _data(*datasets.load_diabetes(return_X_y=True), 200, scaled=True)
    many = _data(
        *datasets.make_classification(
            1500, 20, n_informative=8, n_classes=3, flip_y=0.08, class_sep=0.8, random_state=11
        ),
        400,
    )  # fmt: skip
    return {
        "net-digits": (digits, *net),
        "net-cancer": (cancer, *net),
        "trees-many": (many, *trees),
        "trees-diabetes": (diabetes, *trees),
        "linear-many": (many, *linear),
        "linear-cancer": (cancer, *linear),
        "linear-wine": (wine, *linear),
    }


def make(folder: Path) -> None:
    """Train the set."""
    train(folder / NAME, tasks(), RUNS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help=f"where the folder `{NAME}` is put")
    make(parser.parse_args().folder)
