"""A scheduler of Syne Tune 0.13, one worker, asked through lines of JSON.

A program of its own, since Syne Tune needs an older NumPy: :mod:`.syne_tune_peers` starts it with
the Python of another environment. The first line of the input has the scheduler, a seed, the
candidates as points and the number of categories of each coordinate. Then each line of the output
asks for a level of a run, and the next line of the input has its score (null if it has diverged)
and whether the run is over.
"""

import datetime
import json
import logging
import sys
import warnings
from functools import partial

answers, sys.stdout = sys.stdout, sys.stderr  # importing Syne Tune prints

from syne_tune.backend.trial_status import Trial  # noqa: E402
from syne_tune.config_space import choice, uniform  # noqa: E402
from syne_tune.optimizer.baselines import PASHA, DyHPO  # noqa: E402
from syne_tune.optimizer.schedulers.searchers.dyhpo.dyhpo_searcher import (  # noqa: E402
    MyGPMultiFidelitySearcher,
)

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")


_new = MyGPMultiFidelitySearcher._extended_configs_new


def _new_if_any(self: object, *args: object) -> object:
    """New candidates to score; once all have been started there are none, which raises."""
    try:
        return _new(self, *args)
    except ValueError:
        return []


MyGPMultiFidelitySearcher._extended_configs_new = _new_if_any


def main() -> None:
    """Answer until the other side stops reading."""
    told = json.loads(sys.stdin.readline())
    sizes = told["sizes"]
    space = {
        f"x{d}": choice(list(range(size))) if size else uniform(0.0, 1.0)
        for d, size in enumerate(sizes)
    }
    configs = [
        {f"x{d}": int(x) if sizes[d] else float(x) for d, x in enumerate(point)}
        for point in told["points"]
    ]
    free: dict[str, list[int]] = {}
    for run, config in enumerate(configs):
        free.setdefault(json.dumps(config), []).append(run)
    make = {"DyHPO": partial(DyHPO, rung_increment=1), "PASHA": PASHA}[told["scheduler"]]
    scheduler = make(
        {**space, "epochs": told["most"]}, metric="score", resource_attr="epoch", mode="max",
        max_resource_attr="epochs", grace_period=1, random_seed=told["seed"],
        search_options={"restrict_configurations": configs, "debug_log": False},
    )  # fmt: skip
    runs: list[int] = []
    trials, levels = [], []
    while True:
        suggestion = scheduler.suggest(len(trials))
        if suggestion is None:
            return
        if suggestion.spawn_new_trial_id:
            number = len(trials)
            config = {name: suggestion.config[name] for name in space}
            runs.append(free[json.dumps(config)].pop())
            moment = datetime.datetime(2000, 1, 1)
            trials.append(Trial(trial_id=number, config=suggestion.config, creation_time=moment))
            levels.append(0)
            scheduler.on_trial_add(trials[-1])
        else:
            number = suggestion.checkpoint_trial_id
        while True:
            levels[number] += 1
            print(
                json.dumps({"run": runs[number], "level": levels[number]}), file=answers, flush=True
            )
            line = sys.stdin.readline()
            if not line:
                return
            seen = json.loads(line)
            if seen["score"] is None:
                scheduler.on_trial_error(trials[number])
                break
            result = {"score": seen["score"], "epoch": levels[number]}
            decision = scheduler.on_trial_result(trials[number], result)
            if seen["over"] or levels[number] >= told["most"]:
                scheduler.on_trial_complete(trials[number], result)
                break
            if decision != "CONTINUE":
                break


if __name__ == "__main__":
    main()
