"""Kill a process that tunes, at random instants, and see what is left.

Run as a script: ``python tune_killing.py FOLDER KILLS SEED``; see killing.py for the why and how.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from killing import Log, Reaper
from tuning_worlds import four_grades

from weitzman import tune

RUNS = 10
MODEL = four_grades()
CURVES = np.minimum(MODEL.curves(RUNS, np.random.default_rng(5)), 1)  # never good enough


def tune_once(path: str, name: str, log: Log) -> tune.Result:
    """Tune to the end, with every step and every promise in the log."""

    def start(config: dict[str, int], past: tune.Past) -> Iterator[tuple[float, float]]:
        for step, score, cost in MODEL.shown(CURVES[config["curve"]]):
            if step > past.step:
                log.add("opened", name, f"{past.run}/{step}")
                yield score, cost

    def promised(report: tune.Report) -> None:
        if report.event == "seen":
            log.add("told", name, f"{report.run}/{report.step}")

    configs = [{"curve": i} for i in range(RUNS)]
    result = tune.optimize(start, configs, MODEL, journal=path, callback=promised)
    log.add("over", name, "")
    return result


def work(path: str, name: str, log: Log) -> None:
    tune_once(path, name, log)


def repeated(log: Log) -> list[str]:
    """Steps that were paid for again after they were promised to be on disk."""
    promised: set[str] = set()
    again = []
    for kind, _, what in log.lines():
        if kind == "opened" and what in promised:
            again.append(what)
        if kind == "told":
            promised.add(what)
    return again


def main(folder: Path, wanted: int, seed: int) -> dict[str, object]:
    quiet = tune_once(str(folder / "quiet"), "quiet", Log(folder / "quiet.log"))
    reaper, wrong, searches = Reaper(seed), [], 0
    while reaper.kills < wanted:
        searches += 1
        path, log = str(folder / f"{searches}"), Log(folder / f"{searches}.log")
        reaper.slay(work, path, ["one"], log)
        wrong += [["repeated", *repeated(log)]] if repeated(log) else []
        wrong += [line for line in log.lines() if line[0] == "failed"]
        steps = len({what for kind, _, what in log.lines() if kind == "opened"})
        before = len(log.lines())
        end = tune_once(path, "after", log)
        if end != quiet or len(log.lines()) != before + 1:
            wrong.append(["different", path])
    return {"wrong": wrong, "kills": reaper.kills, "searches": searches, "steps": steps}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
