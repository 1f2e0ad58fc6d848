"""Kill a process that tunes, at random instants, and see what is left.

Run as a script: ``python tune_killing.py FOLDER KILLS SEED [PROCESSES]``; see killing.py for the
why and how. With several processes, they share the search.
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


def tune_once(path: str, name: str, log: Log, *, share: bool = False) -> tune.Result:
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
    result = tune.optimize(start, configs, MODEL, journal=path, callback=promised, share=share)
    log.add("over", name, "")
    return result


def work(path: str, name: str, log: Log) -> None:
    tune_once(path, name, log)


def share(path: str, name: str, log: Log) -> None:
    tune_once(path, name, log, share=True)


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


def different(one: tune.Result, other: tune.Result, *, order: bool) -> bool:
    """Whether two searches came to other ends; the order of costs may change their sum a bit."""
    if order:
        return one != other
    apart = abs(one.spent - other.spent)
    return (one.runs, one.best_score) != (other.runs, other.best_score) or apart > 1e-9


def main(folder: Path, wanted: int, seed: int, processes: int = 1) -> dict[str, object]:
    names, task = [f"process {i}" for i in range(processes)], share if processes > 1 else work
    quiet = tune_once(str(folder / "quiet"), "quiet", Log(folder / "quiet.log"))
    reaper, wrong, searches = Reaper(seed), [], 0
    while reaper.kills < wanted:
        searches += 1
        path, log = str(folder / f"{searches}"), Log(folder / f"{searches}.log")
        reaper.slay(task, path, names, log)
        wrong += [["repeated", *repeated(log)]] if repeated(log) else []
        wrong += [line for line in log.lines() if line[0] == "failed"]
        steps = len({what for kind, _, what in log.lines() if kind == "opened"})
        before = len(log.lines())
        end = tune_once(path, "after", log)
        if different(end, quiet, order=processes == 1) or len(log.lines()) != before + 1:
            wrong.append(["different", path])
    return {"wrong": wrong, "kills": reaper.kills, "searches": searches, "steps": steps}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), *map(int, sys.argv[2:]))))
