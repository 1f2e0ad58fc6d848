"""Ray experiments on given curves, small and quick."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Rows = list[tuple[int, float, float]]


def trainable(log: Path, fail: int = -1, until: Path | None = None) -> type:
    """A class that goes along the curve of its configuration and logs every step it does.

    It is made here so that Ray sends it to its workers by value. With ``until`` it waits after its
    first step until there is a file of that name.
    """
    from ray import tune

    where = str(log)

    class Along(tune.Trainable):
        def setup(self, config: dict[str, Any]) -> None:
            self.done = 0

        def step(self) -> dict[str, Any]:
            _, score, cost = self.config["rows"][self.done]
            self.done += 1
            while until is not None and self.done > 1 and not until.exists():
                time.sleep(0.02)
            if self.config["run"] == fail:
                raise RuntimeError("out of memory")
            with open(where, "a") as file:
                file.write(f"{self.config['run']} {self.done}\n")
            last = self.done == len(self.config["rows"]) < 9  # one that the model takes for longer
            return {"score": score, "paid": cost, "done": last}

        def save_checkpoint(self, folder: str) -> None:
            Path(folder, "done").write_text(str(self.done))

        def load_checkpoint(self, folder: str) -> None:
            self.done = int(Path(folder, "done").read_text())

        def reset_config(self, config: dict[str, Any]) -> bool:
            self.setup(config)
            return True

    return Along


def function(log: Path) -> Callable[[dict[str, Any]], None]:
    """The same as a function, which saves a checkpoint with every report."""
    from ray import tune

    where = str(log)

    def along(config: dict[str, Any]) -> None:
        done, checkpoint = 0, tune.get_checkpoint()
        if checkpoint is not None:
            with checkpoint.as_directory() as folder:
                done = int(Path(folder, "done").read_text())
        for step, score, cost in config["rows"][done:]:
            with open(where, "a") as file:
                file.write(f"{config['run']} {step}\n")
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "done").write_text(str(step))
                saved = tune.Checkpoint.from_directory(folder)
                tune.report({"score": score, "paid": cost}, checkpoint=saved)

    return along


def space(curves: list[Rows]) -> dict[str, Any]:
    """One trial for each curve."""
    from ray import tune

    return {
        "run": tune.grid_search(list(range(len(curves)))),
        "rows": tune.sample_from(lambda spec: curves[spec.config.run]),
    }


def tuner(log: Path, curves: list[Rows], scheduler: Any, *, mode: str = "max", **options: Any):
    """A tuner that is as quiet as Ray can be; its folder is that of the log."""
    from ray import tune

    made = options.pop("made", None) or trainable(log)
    return tune.Tuner(
        made,
        param_space=space(curves),
        tune_config=tune.TuneConfig(
            metric="score", mode=mode, scheduler=scheduler, reuse_actors=True
        ),
        run_config=tune.RunConfig(
            storage_path=str(log.parent), name="experiment", verbose=0, **options
        ),
    )


def steps(log: Path) -> list[tuple[int, int]]:
    """(run, step) in the order in which they were done."""
    rows = [line.split() for line in log.read_text().splitlines()]
    return [(int(run), int(step)) for run, step in rows]
