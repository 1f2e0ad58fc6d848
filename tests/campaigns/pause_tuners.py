"""Pause a process that tunes, and see what another one does meanwhile.

    python tests/campaigns/pause_tuners.py FOLDER KIND PAUSES [SEED]

KIND is ``journal`` (a shared search), ``optuna`` (a study) or ``ray`` (who drives an experiment). A
process stops itself (SIGSTOP) at a random instruction of the modules that keep processes apart.
While it stands still, another one takes part, for half a second alone; then both come to their end.
A paused process is alive, however long it takes: no step is trained twice, nothing is lost, and an
experiment has one driver. Prints a JSON object with what it saw.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

import tune_killing
from killing import Log, fork
from pause_searches import Pause
from tune_killing import CURVES, MODEL

from weitzman import tune
from weitzman.errors import JournalError

ALONE = 0.5  # seconds that the other process has for itself
TOGETHER = 2.0  # seconds that a driver waits for another process to try, too
LONGEST = 120.0  # seconds for both
TRIALS = 6

Task = Callable[[str, str, Log], None]


class PauseWithin(Pause):
    """Stops this process at the n-th instruction of some modules."""

    def __init__(self, at: int, files: tuple[str, ...]) -> None:
        super().__init__(at)
        self.files, self.seen = files, 0

    def may_come(self, frame: FrameType, event: str) -> bool:
        here = event == "opcode" and frame.f_code.co_filename.endswith(self.files)
        self.seen += here
        return here


def study_of(path: str) -> Any:
    import optuna  # not there where only journals are tried

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    backend = optuna.storages.journal.JournalFileBackend(path)
    return optuna.create_study(
        study_name="one", storage=optuna.storages.JournalStorage(backend), load_if_exists=True,
        sampler=optuna.samplers.RandomSampler(seed=os.getpid()), direction="maximize",
    )  # fmt: skip


def study(path: str, name: str, log: Log) -> None:
    """Take part in a study of Optuna."""
    from weitzman.tune import optuna as driver

    def objective(trial: Any, past: tune.Past) -> Iterator[tuple[float, float]]:
        trial.suggest_float("rate", 0.0, 1.0)
        for step, score, cost in MODEL.shown(CURVES[past.run]):
            if step > past.step:
                log.add("opened", name, f"{past.run}/{step}")
                yield score, cost

    driver.optimize(study_of(path), objective, MODEL, n_trials=TRIALS)
    log.add("over", name, "")


def own(path: str, name: str, log: Log) -> None:
    """Try to drive an experiment of Ray, until the other process has tried, too."""
    from weitzman.tune.ray import Owner

    try:
        owner = Owner(path)
        owner.check()
    except JournalError:
        log.add("rejected", name, "")
        return
    log.add("opened", name, "experiment")
    end = time.monotonic() + TOGETHER
    while len({who for _, who, _ in log.lines()}) < 2 and time.monotonic() < end:
        time.sleep(0.002)
    owner.check()
    log.add("over", name, "")
    owner.release()


def whole_journal(path: str, log: Log) -> bool:
    quiet = tune_killing.tune_once(f"{path}.quiet", "quiet", Log(Path(f"{path}.quiet log")))
    end, before = tune_killing.tune_once(path, "after", log), len(log.lines())
    nothing_more = log.lines()[before - 1][0] == "over"
    return nothing_more and not tune_killing.different(end, quiet, order=False)


def whole_study(path: str, log: Log) -> bool:
    """Each run is one trial, which shows its curve; the rest failed before they showed anything."""
    kept = [x for x in study_of(path).get_trials() if x.state.name != "FAIL"]
    rows = [
        (x, list(MODEL.shown(CURVES[x.user_attrs["weitzman:run"]]))[: len(x.intermediate_values)])
        for x in kept
    ]
    return sorted(x.user_attrs["weitzman:run"] for x in kept) == list(range(TRIALS)) and all(
        x.state.is_finished()
        and x.intermediate_values == {step: score for step, score, _ in shown}
        and x.user_attrs["weitzman:costs"] == [cost for *_, cost in shown]
        for x, shown in rows
    )


def one_driver(path: str, log: Log) -> bool:
    """Somebody drives, and nobody while another one does; one after the other is right."""
    said = [kind for kind, _, _ in log.lines() if kind != "rejected"]
    return said in (["opened", "over"], ["opened", "over"] * 2)


# what processes do, whether it was right, and the modules that keep them apart
KINDS: dict[str, tuple[Task, Callable[[str, Log], bool], tuple[str, ...]]] = {
    "journal": (tune_killing.share, whole_journal, ("tune/run_store.py", "files/event_log.py")),
    "optuna": (study, whole_study, ("tune/optuna_store.py", "tune/optuna.py")),
    "ray": (own, one_driver, ("tune/ray.py",)),
}


def wait(child: int, until: float) -> bool:
    """Whether a child has come to its end by then."""
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def main(folder: Path, kind: str, pauses: int, seed: int) -> dict[str, object]:
    """Pause as often as asked, each time in a new search."""
    task, whole, files = KINDS[kind]
    for file in files:  # once, before the forks
        import_module(f"weitzman.{file[:-3].replace('/', '.')}")
    pick, wrong, stopped, most = random.Random(seed), [], 0, 0
    for number in range(pauses + 1):  # the first one counts the instructions
        at = pick.randint(1, most) if number else sys.maxsize
        with tempfile.TemporaryDirectory(dir=folder) as inner:
            path, log = str(Path(inner, "search")), Log(Path(inner, "log"))

            def paused(path: str, name: str, log: Log, at: int = at, inner: str = inner) -> None:
                pause = PauseWithin(at, files)
                sys.settrace(pause)
                try:
                    task(path, name, log)
                finally:
                    sys.settrace(None)
                    Path(inner, "seen").write_text(str(pause.seen))

            first = fork(paused, path, "paused", log)
            if number == 0 and kind == "ray":  # it waits for another one
                other = fork(task, path, "other", log)
                os.waitpid(other, 0)
            _, status = os.waitpid(first, os.WUNTRACED)
            if number == 0:
                most = int(Path(inner, "seen").read_text())
                continue
            if os.WIFSTOPPED(status):
                stopped += 1
                other = fork(task, path, "other", log)
                alone = wait(other, time.monotonic() + ALONE)
                os.kill(first, signal.SIGCONT)
                end = time.monotonic() + LONGEST
                for child in (first,) if alone else (first, other):
                    if not wait(child, end):
                        wrong.append(f"at {at}: it hangs")
                        os.kill(child, signal.SIGKILL)
                        os.waitpid(child, 0)
            trained = Counter(what for word, _, what in log.lines() if word == "opened")
            twice = [what for what, n in trained.items() if n > 1 and kind != "ray"]
            failed = [line for line in log.lines() if line[0] == "failed"]
            if failed or twice or not whole(path, log):
                wrong.append(f"at {at}: {failed}, twice {twice}, {log.lines()[-6:]}")
                with suppress(OSError):
                    os.rename(inner, folder / f"wrong {kind} {at}")
                    Path(inner).mkdir()
            os.close(log.file)
    return {"wrong": wrong, "pauses": stopped, "instructions": most}


if __name__ == "__main__":
    where, which, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    where.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(json.dumps(main(where, which, count, int((*sys.argv, 0)[4]))) + "\n")
