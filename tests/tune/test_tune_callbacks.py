"""Training loops of other libraries as runs that pause, resume from a checkpoint, and stop."""

from __future__ import annotations

import os
import shutil
import threading
import warnings

import numpy as np
import pytest

from weitzman import learn, tune
from weitzman.errors import InvalidAnswer, InvalidArgument
from weitzman.tune import Past, callbacks
from weitzman.tune.runs import Ended, Paced

LOG = {"run": [0, 0, 1, 1, 2, 2], "step": [1, 2] * 3, "score": [5, 7, 4, 4, 6, 9]}


def model(price=100):
    return learn.fit(learn.Curves.read(LOG, cost=None), price=price)


def threads():
    return [x for x in threading.enumerate() if x.name.startswith("weitzman run")]


# -- pacing -----------------------------------------------------------------------------------


def test_a_function_that_reports_is_a_run():
    def train(config, report):
        for epoch in (1, 2):
            report(config * epoch, cost=1.0)

    by_generator = tune.optimize(lambda c: iter([(c, 1.0), (2 * c, 1.0)]), [1, 5, 2], model())
    paced = tune.optimize(tune.paced(train), [1, 5, 2], model())
    assert paced == by_generator
    assert not threads()


def test_training_waits_between_steps_and_ends_where_it_waits():
    done = []

    def train(config, report):
        try:
            for epoch in range(1, 100):
                done.append(epoch)
                report(epoch, step=epoch)
        finally:
            done.append("over")

    run = Paced(train, None)
    assert run.advance() == (1, None, 1)
    assert done == [1]
    assert run.advance() == (2, None, 2)
    run.close()
    assert done == [1, 2, "over"]
    assert run.advance() is None
    run.close()
    Paced(train, None).close()  # never started
    assert done == [1, 2, "over"]


def test_what_training_raises_is_raised_where_it_is_advanced():
    def train(config, report):
        report(1.0)
        raise ValueError("no more memory")

    run = Paced(train, None)
    run.advance()
    with pytest.raises(ValueError, match="no more memory"):
        run.advance()
    result = tune.optimize(
        tune.paced(lambda c, report: 1 / 0), [1, 2], model(), catch=ZeroDivisionError
    )
    assert [run.over for run in result.runs] == ["failed", "failed"]


def test_training_that_continues_although_it_was_ended():
    def stubborn(config, report):
        for _ in range(5):
            try:
                report(1.0)
            except Ended:
                continue

    run = Paced(stubborn, None)
    run.advance()
    run.close()
    assert not threads()


def test_runs_come_back_from_checkpoints(tmp_path):
    def train(config, report):
        path = tmp_path / str(report.past.run)
        done = int(path.read_text()) if report.past.step else 0
        for epoch in range(done + 1, 3):
            path.write_text(str(epoch))
            report(config * epoch, cost=1.0, step=epoch)

    start = tune.paced(train, resumes=True)
    journal = tmp_path / "search.wz"

    def crash(report):
        if report.event == "seen" and "seen" in done:  # the second report
            raise KeyboardInterrupt
        done.append(report.event)

    done = []
    with pytest.raises(KeyboardInterrupt):
        tune.optimize(start, [1, 5, 2], model(), journal=journal, callback=crash)
    result = tune.optimize(start, [1, 5, 2], model(), journal=journal)
    assert result.best_config == 5
    assert result == tune.optimize(start, [1, 5, 2], model())
    with pytest.raises(InvalidAnswer, match="must be a function"):
        tune.paced(3)


# -- plain objectives of Optuna ---------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the runs of this search cost")  # the log counts steps
def test_a_plain_objective_of_optuna():
    optuna = pytest.importorskip("optuna")
    from weitzman.tune.optuna import optimize, plain

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        x = trial.suggest_float("x", 0, 6)
        for step in (1, 2):
            trial.report(x * step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x * 2

    def generator(trial):
        x = trial.suggest_float("x", 0, 6)
        yield from (x, 2 * x)

    ticks = iter(range(10**6))
    found = []
    for each in (plain(objective), generator):
        sampler = optuna.samplers.RandomSampler(seed=0)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        result = optimize(study, each, model(), n_trials=6, clock=lambda: next(ticks) * 0.0)
        found.append((study.best_value, [t.state.name for t in study.get_trials()],
                      [run.scores for run in result.runs]))  # fmt: skip
    assert found[0] == found[1]
    # scores as in the log, which a search warns to be far from otherwise
    study = optuna.create_study(direction="maximize")
    optimize(study, plain(lambda trial: trial.suggest_float("x", 4, 9)), model(), n_trials=3)
    assert {t.last_step for t in study.get_trials()} == {1}
    study = optuna.create_study(direction="maximize")

    def prunes(trial):
        trial.report(trial.suggest_float("x", 4, 9), 1)
        raise optuna.TrialPruned

    optimize(study, plain(prunes), model(), n_trials=3)
    assert len(study.get_trials()) == 3
    assert not threads()


# -- libraries --------------------------------------------------------------------------------


def whole(train, config=None):
    """(step, score) of a run that is never interrupted."""
    run, rows = Paced(train, config, Past(0)), []
    while (row := run.advance()) is not None:
        rows.append((row[2], row[0]))
    return rows


def check(train, steps, same=True):
    """Pause, stop, and go on from the checkpoint in another run."""
    full = whole(train)
    assert [step for step, _ in full] == list(range(1, steps + 1))
    run = Paced(train, None, Past(0))
    first = [run.advance(), run.advance()]
    run.close()
    assert not threads()
    again = Paced(train, None, Past(0, (1, 2), tuple(row[0] for row in first)))
    later = [again.advance(), again.advance()]
    again.close()
    assert [row[2] for row in first + later] == [1, 2, 3, 4]
    if same:
        assert [row[0] for row in first + later] == pytest.approx([x for _, x in full[:4]])
    return full


@pytest.fixture(scope="module")
def data():
    sklearn = pytest.importorskip("sklearn.datasets")
    x, y = sklearn.make_classification(400, 10, random_state=0)
    return x.astype("float32"), y


def test_partial_fit_of_scikit_learn(tmp_path, data):
    linear = pytest.importorskip("sklearn.linear_model")
    x, y = data

    def train(config, report):
        callbacks.partial_fits(
            report,
            lambda: linear.SGDClassifier(random_state=0),
            fit=lambda m: m.partial_fit(x[:300], y[:300], classes=[0, 1]),
            score=lambda m: m.score(x[300:], y[300:]),
            steps=6,
            checkpoint=tmp_path / "model.pickle",
        )

    check(train, 6)


def test_xgboost(tmp_path, data):
    xgboost = pytest.importorskip("xgboost")
    x, y = data
    path = tmp_path / "model.json"

    def train(config, report):
        done = report.past.step
        xgboost.train(
            {"objective": "binary:logistic", "eval_metric": "logloss", "nthread": 1},
            xgboost.DMatrix(x[:300], y[:300]), 6 - done,
            evals=[(xgboost.DMatrix(x[300:], y[300:]), "val")], verbose_eval=False,
            xgb_model=str(path) if done else None,
            callbacks=[callbacks.for_xgboost(report, "val", "logloss", checkpoint=path)],
        )  # fmt: skip

    rows = check(train, 6)
    assert rows[-1][1] < rows[0][1]

    def wrong(config, report):
        callback = callbacks.for_xgboost(report, "none", "logloss")
        xgboost.train({}, xgboost.DMatrix(x, y), 2, callbacks=[callback])

    with pytest.raises(InvalidAnswer, match="no evaluation of 'none'; there are none"):
        Paced(wrong, None).advance()


def test_lightgbm(tmp_path, data):
    lightgbm = pytest.importorskip("lightgbm")
    x, y = data
    path = tmp_path / "model.txt"

    def train(config, report):
        done = report.past.step
        kept = lightgbm.Dataset(x[:300], y[:300], free_raw_data=False)
        lightgbm.train(
            {"objective": "binary", "verbose": -1, "num_threads": 1, "deterministic": True},
            kept, 6 - done,
            valid_sets=[lightgbm.Dataset(x[300:], y[300:], reference=kept, free_raw_data=False)],
            valid_names=["val"], init_model=str(path) if done else None,
            callbacks=[callbacks.for_lightgbm(report, "val", "binary_logloss", checkpoint=path)],
        )  # fmt: skip

    rows = check(train, 6)
    assert rows[-1][1] < rows[0][1]


def test_keras(tmp_path, data):
    os.environ.setdefault("KERAS_BACKEND", "jax")
    keras = pytest.importorskip("keras")
    x, y = data
    path = tmp_path / "model.keras"

    def train(config, report):
        if report.past.step:
            net = keras.models.load_model(path)
        else:
            keras.utils.set_random_seed(0)
            net = keras.Sequential(
                [keras.layers.Dense(8, "relu"), keras.layers.Dense(1, "sigmoid")]
            )
            net.compile(keras.optimizers.SGD(0.1), "binary_crossentropy", metrics=["accuracy"])
        net.fit(
            x[:300], y[:300], validation_data=(x[300:], y[300:]), epochs=5, verbose=0,
            shuffle=False, initial_epoch=report.past.step,
            callbacks=[callbacks.for_keras(report, "val_loss", checkpoint=path)],
        )  # fmt: skip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(train, 5)


def test_lightning(tmp_path, data):
    lightning = pytest.importorskip("lightning.pytorch")
    torch = pytest.importorskip("torch")
    x, y = (torch.as_tensor(a) for a in data)
    path = tmp_path / "last.ckpt"

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(10, 2)

        def _loss(self, batch):
            return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

        def training_step(self, batch, number):
            return self._loss(batch)

        def validation_step(self, batch, number):
            self.log("val_loss", self._loss(batch))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    def train(config, report):
        def load(part):
            return torch.utils.data.DataLoader(
                torch.utils.data.TensorDataset(x[part], y[part]), batch_size=50
            )

        trainer = lightning.Trainer(
            max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False,
            callbacks=[callbacks.for_lightning(report, "val_loss", checkpoint=path)],
        )  # fmt: skip
        back = {"ckpt_path": path, "weights_only": False} if report.past.step else {}
        trainer.fit(Net(), load(slice(0, 300)), load(slice(300, 400)), **back)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = check(train, 5)
    assert rows[-1][1] < rows[0][1]


def test_huggingface(tmp_path, data):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    x, y = data

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(10, 2)

        def forward(self, x=None, labels=None):
            logits = self.layer(x)
            return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

    rows = [{"x": torch.as_tensor(a), "labels": int(b)} for a, b in zip(x, y, strict=True)]

    def train(config, report):
        if not report.past.step:  # a run of its own: no checkpoints of the one before
            shutil.rmtree(tmp_path)
        arguments = transformers.TrainingArguments(
            str(tmp_path), num_train_epochs=5, per_device_train_batch_size=300, use_cpu=True,
            eval_strategy="epoch", save_strategy="no", report_to=[], learning_rate=0.1,
            disable_tqdm=True, logging_strategy="no", save_total_limit=1,
        )  # fmt: skip
        trainer = transformers.Trainer(
            Net(), arguments, train_dataset=rows[:300], eval_dataset=rows[300:],
            callbacks=[callbacks.for_huggingface(report, "eval_loss", save=True)],
        )  # fmt: skip
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train(resume_from_checkpoint=bool(report.past.step) or None)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check(train, 5)  # one batch an epoch: steps are epochs
    assert found[-1][1] < found[0][1]


def test_a_metric_that_is_not_there():
    with pytest.raises(InvalidAnswer, match="no metric 'acc'; there are 'loss'"):
        callbacks._found({"loss": 1.0}, "acc")
    assert callbacks._found({"loss": [3.0, 1.0]}, "loss") == 1.0
    assert np.isfinite(callbacks._found({"loss": np.float32(2)}, "loss"))


# -- limits of a loop ---------------------------------------------------------------------------


def counted(curves):
    """A start that takes `past`, and how many of its runs are in memory, at most."""
    here, peak = set(), [0]

    def start(config, past):
        here.add(past.run)
        peak[0] = max(peak[0], len(here))
        try:
            for step in range(past.step + 1, len(curves[config]) + 1):
                yield curves[config][step - 1], 0.01, step
        finally:
            here.discard(past.run)

    return start, peak


def learned_from_half():
    """Sixty saturating runs of eight steps, and a model of the first thirty."""
    rng = np.random.default_rng(0)
    top = rng.random((60, 1))
    curves = np.maximum.accumulate(
        top * (1 - 0.6 ** np.arange(1, 9)) + 0.1 * rng.random((60, 8)), axis=1
    )
    table = {
        "run": np.repeat(np.arange(30), 8), "step": np.tile(np.arange(1, 9), 30),
        "score": curves[:30].ravel(), "cost": np.full(240, 0.01),
    }  # fmt: skip
    law = learn.fit(learn.Curves.read(table), price=5, options=learn.FitOptions())
    return curves, law


@pytest.mark.parametrize("workers", [1, 3])
def test_waiting_runs_are_let_go_of_beyond_a_cap(workers):
    curves, law = learned_from_half()
    options = {"refit": False, "workers": workers}
    free, most = counted(curves[30:])
    plain = tune.optimize(free, range(30), law, **options)
    assert most[0] > 2 + workers  # or the cap would say nothing
    start, peak = counted(curves[30:])
    capped = tune.optimize(start, range(30), law, max_in_memory=2, **options)
    assert peak[0] <= 2 + workers
    if workers == 1:
        assert capped == plain
        none, peak = counted(curves[30:])
        assert tune.optimize(none, range(30), law, max_in_memory=0, **options) == plain
        assert peak[0] == 1


def test_limits_that_make_no_sense():
    def start(config):
        yield 1.0, 1.0

    with pytest.raises(InvalidArgument, match="`start` must take a parameter `past`"):
        tune.optimize(start, [1], model(), max_in_memory=2)
    with pytest.raises(InvalidArgument, match="`max_in_memory` must be a whole number"):
        tune.optimize(counted([[1.0]])[0], [0], model(), max_in_memory=-1)
    with pytest.raises(InvalidArgument, match="`timeout` must be seconds above 0"):
        tune.optimize(start, [1], model(), timeout=0)


def test_nothing_is_begun_after_the_timeout(monkeypatch):
    from weitzman.tune import loop

    now = [0.0]
    monkeypatch.setattr(loop.time, "monotonic", lambda: now[0])
    begun = []

    def start(config):
        begun.append(config)
        now[0] += 10.0
        yield 0.1, 1e-9
        yield 0.1, 1e-9

    result = tune.optimize(start, list(range(50)), model(), timeout=35, refit=False)
    assert len(begun) <= 4
    assert result.reason == "Stop: the time of 35 seconds is up."


def test_the_sampler_sees_a_waiting_trial_as_running_never_as_a_bad_one():
    optuna = pytest.importorskip("optuna")
    from weitzman.tune.optuna import optimize

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    curves, law = learned_from_half()
    seen = []  # what the sampler is shown before each new trial: (number, state, steps)

    class Spy(optuna.samplers.RandomSampler):
        def before_trial(self, study, trial):
            for each in study.get_trials(deepcopy=False):
                seen.append((each.number, each.state.name, len(each.intermediate_values)))

    def objective(trial):
        trial.suggest_float("x", 0, 1)
        for score in curves[30 + trial.number]:
            yield score, 0.01

    study = optuna.create_study(direction="maximize", sampler=Spy(seed=0))
    optimize(study, objective, law, n_trials=30, refit=False)
    ends = {t.number: len(t.intermediate_values) for t in study.get_trials()}
    waited = [state for number, state, steps in seen if 0 < steps < ends[number]]
    assert waited  # some trials were resumed after others had started
    assert set(waited) == {"RUNNING"}


@pytest.mark.parametrize(
    "make",
    [
        lambda report: callbacks.for_keras(report, "x"),
        lambda report: callbacks.for_lightning(report, "x"),
        lambda report: callbacks.for_huggingface(report, "x"),
        lambda report: callbacks.for_xgboost(report, "x", "y"),
        lambda report: callbacks.for_lightgbm(report, "x", "y"),
        lambda report: callbacks.partial_fits(report, dict, list, float, steps=1),
    ],
)
def test_a_wrong_object_in_place_of_the_report(make):
    with pytest.raises(InvalidArgument, match=r"takes the `report` that `tune\.paced` hands"):
        make(object())
