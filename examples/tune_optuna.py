"""The same as tune_plain.py, in an Optuna study: trials wait and are resumed, the sampler learns.

Needs Optuna and scikit-learn.
"""

import optuna
from tune_plain import EPOCHS, cost_of_full_runs, learned_model, start

from weitzman.tune.optuna import optimize

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    """A trial: suggest, train for an epoch, yield the accuracy and the cost, and so on."""
    config = {
        "learning_rate_init": trial.suggest_float("learning_rate_init", 3e-5, 0.3, log=True),
        "alpha": trial.suggest_float("alpha", 1e-5, 1.0, log=True),
        "hidden_layer_sizes": [trial.suggest_int("units", 4, 63)],
        "random_state": trial.number,
    }
    trial.set_user_attr("config", config)
    yield from start(config)


model = learned_model()
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
result = optimize(study, objective, model, n_trials=24)
print(result)
print(f"The study says: {study.best_value:.4f} with {study.best_params}")
for trial in study.get_trials()[:5]:
    print(f"  trial {trial.number}: {trial.state.name}, {len(trial.intermediate_values)} epochs")

configs = [trial.user_attrs["config"] for trial in study.get_trials()]
tops = [max(score for score, _ in start(config)) for config in configs]
full = cost_of_full_runs(tops, study.best_value)
print(
    f"The same {len(tops)} trials to their end: {len(tops) * EPOCHS} epochs, best {max(tops):.4f}."
)
print(f"In random order until one is as good: {full:.0f} epochs on average; here {result.spent:g}.")
assert result.spent < len(tops) * EPOCHS
