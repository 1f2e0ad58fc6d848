"""The same as tune_plain.py with Ray Tune: trials are paused with a checkpoint and resumed from it.

Needs Ray and scikit-learn.
"""

import logging
import tempfile
from pathlib import Path

import joblib
import numpy as np
import ray
from ray import tune
from sklearn.neural_network import MLPClassifier
from tune_plain import EPOCHS, cost_of_full_runs, digits, draw, images, learned_model, start
from tune_plain import test as test_rows
from tune_plain import train as train_rows

from weitzman.tune.ray import IndexScheduler

train_set = images[train_rows], digits[train_rows]
test_set = images[test_rows], digits[test_rows]


class Digits(tune.Trainable):
    """One step is one epoch."""

    def setup(self, config):
        self.network = MLPClassifier(batch_size=100, **config["network"])

    def step(self):
        self.network.partial_fit(*train_set, classes=np.arange(10))
        return {"accuracy": float(self.network.score(*test_set)), "epochs": 1.0}

    def save_checkpoint(self, folder):
        joblib.dump(self.network, Path(folder, "network"))

    def load_checkpoint(self, folder):
        self.network = joblib.load(Path(folder, "network"))

    def reset_config(self, config):  # so that Ray can use the process for another trial
        self.setup(config)
        return True


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
configs = [draw(i) for i in range(24)]
scheduler = IndexScheduler(learned_model(), cost="epochs", workers=1)
tuner = tune.Tuner(
    Digits,
    param_space={"network": tune.grid_search(configs)},
    tune_config=tune.TuneConfig(
        metric="accuracy", mode="max", scheduler=scheduler, reuse_actors=True
    ),
    run_config=tune.RunConfig(storage_path=tempfile.mkdtemp(), verbose=0),
)
results = tuner.fit()
best = results.get_best_result(scope="all")
spent = scheduler.race.spent
print(scheduler.debug_string())
print(f"Ray says: {max(best.metrics_dataframe.accuracy):.4f} with {best.config['network']}")
print(f"Its network lies in {Path(best.checkpoint.path).name}.")

started = [config for config, run in zip(configs, scheduler.race.runs, strict=False) if run.steps]
tops = [max(score for score, _ in start(config)) for config in started]
full = cost_of_full_runs(tops, scheduler.race.best_score)
print(
    f"The same {len(tops)} trials to their end: {len(tops) * EPOCHS} epochs, best {max(tops):.4f}."
)
print(f"In random order until one is as good: {full:.0f} epochs on average; here {spent:g}.")
assert spent < len(tops) * EPOCHS
