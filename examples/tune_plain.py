"""Tune a neural network on the digits: which run to train on, when to start another, when to stop.

The model of a run is learned from a small log of eight runs that were trained to their end, and
then from the search itself. Afterwards all configurations are trained to their end, to see what the
same score would have cost without the tuner. Costs are epochs. Needs scikit-learn.
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from weitzman import learn, tune

EPOCHS = 16
PRICE = 100 * EPOCHS  # a hundredth of accuracy is worth one full run

images, digits = load_digits(return_X_y=True)
images = images / 16
train, test = slice(0, 600), slice(600, 1200)


def draw(seed):
    """A configuration."""
    rng = np.random.default_rng(seed)
    return {
        "learning_rate_init": float(10 ** rng.uniform(-4.5, -0.5)),
        "alpha": float(10 ** rng.uniform(-5, 0)),
        "hidden_layer_sizes": [int(rng.integers(4, 64))],
        "random_state": int(seed),
    }


def start(config):
    """A run: train for an epoch, tell the accuracy and the cost, and so on."""
    network = MLPClassifier(batch_size=100, **config)
    for _ in range(EPOCHS):
        network.partial_fit(images[train], digits[train], classes=np.arange(10))
        yield float(network.score(images[test], digits[test])), 1.0


def learned_model(runs=8):
    """What to expect of a run, from full runs of some other configurations."""
    log = [list(start(draw(1000 + i))) for i in range(runs)]
    rows = [(i, step, *row) for i, run in enumerate(log) for step, row in enumerate(run, 1)]
    columns = dict(zip(("run", "step", "score", "cost"), zip(*rows, strict=True), strict=True))
    return learn.fit(learn.Curves.read(columns), price=PRICE)


def cost_of_full_runs(tops, score):
    """Epochs that full runs in random order take, on average, until one is as good."""
    return EPOCHS * (len(tops) + 1) / (sum(top >= score for top in tops) + 1)


if __name__ == "__main__":
    configs = [draw(i) for i in range(24)]
    model = learned_model()
    began = time.perf_counter()
    result = tune.optimize(start, configs, model)
    print(f"In {time.perf_counter() - began:.1f} s: {result}")

    began = time.perf_counter()
    curves = [list(start(config)) for config in configs]
    tops = [max(score for score, _ in curve) for curve in curves]
    print(f"In {time.perf_counter() - began:.1f} s: all to their end, {EPOCHS * 24} epochs.")
    print(f"The best of all has {max(tops):.4f}.")

    rng, ours, full = np.random.default_rng(0), [], []
    for _ in range(20):  # the same configurations in other orders
        order = rng.permutation(24).tolist()
        found = tune.optimize(lambda i: iter(curves[i]), order, model)
        ours.append(found.spent)
        full.append(cost_of_full_runs(tops, found.best_score))
    print(
        f"Over 20 orders the tuner pays {np.mean(ours):.0f} epochs; to find scores as good, full "
        f"runs pay {np.mean(full):.0f}."
    )
    assert np.mean(ours) < np.mean(full)
