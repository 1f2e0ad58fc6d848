"""Choose a default by leaving one set out: ``python -m benchmarks.tuning.choosing FOLDER``.

Each candidate searches a part of every set, with the same logs and orders. For every set, the
candidate is chosen that is best on the *other* sets, and the table reports what this choice earns
on the set that was left out. A candidate becomes the default only if all sets agree on it, or if
the ones that disagree lose little by it. The measure is the geometric mean over tasks and prices of
the regret, over that of the present default: one lucky search does not decide, as it does in means.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

for _library in ("OPENBLAS", "MKL", "OMP"):  # before NumPy is loaded: processes share the cores
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from weitzman.backtest.driver import backtest  # noqa: E402
from weitzman.backtest.methods import Log, MethodPlan  # noqa: E402
from weitzman.backtest.peers import race  # noqa: E402
from weitzman.learn import resemblance  # noqa: E402
from weitzman.learn.resemblance import FitOptions, fit  # noqa: E402
from weitzman.tune import refit  # noqa: E402

from .sets import CHOOSING, Set  # noqa: E402


class Candidate(NamedTuple):
    """Options of the model, its ``_VAIN``, and the ``GROWTH`` of the refit."""

    options: FitOptions = FitOptions()
    vain: float = resemblance._VAIN
    growth: float = refit.GROWTH


CANDIDATES = {
    "default": Candidate(),
    "leaf 6": Candidate(FitOptions(leaf=6)),
    "64 trees": Candidate(FitOptions(trees=64)),
    "tail 0": Candidate(FitOptions(tail=0.0)),
    "tail 1": Candidate(FitOptions(tail=1.0)),
    "hope does not fade": Candidate(vain=1e9),
    "refits at a quarter more": Candidate(growth=1.25),
}
COSTS = 0.0003, 0.003, 0.03
TASKS = {"taskset_text": 8, "algoperf": 10, "lcdb": 28}
HEADING = "## One set left out"
ABOUT = (
    "`python -m benchmarks.tuning.choosing FOLDER --write` makes this table: the geometric mean "
    "regret of each candidate over\nthat of the default, on 8 tasks of `taskset_text`, 10 of "
    "`algoperf` and 28 of `lcdb`, at 0.0003, 0.003 and 0.03."
)
LEAST = 1e-4  # points of score: smaller regrets count as this much


@dataclass(frozen=True, slots=True)
class CandidatePolicy:
    """The index policy with the options of a candidate."""

    name: str

    def learn(self, log: Log, prices: Sequence[float]) -> list[MethodPlan]:
        """A model for each price. Methods search one after the other, each with its options."""
        options, resemblance._VAIN, refit.GROWTH = CANDIDATES[self.name]
        assert log.given is not None
        model = fit(log.curves, price=prices[0], options=options)
        priced = [model.at_price(price) for price in prices]
        return [MethodPlan(partial(race, model=each, refit=True)) for each in priced]


def regrets(each: Set, folder: Path, names: list[str]) -> np.ndarray:
    """The regret of each candidate: (candidates, prices, tasks)."""
    curves, instance = each.read(folder)
    some = curves.tasks[:: -(-len(curves.tasks) // TASKS[each.name])]
    keep = np.flatnonzero([task in some for task in curves.task])
    labels = None if instance is None else [instance[i] for i in keep.tolist()]
    methods = [CandidatePolicy(name) for name in names]
    found = backtest(
        curves.select(keep), full_run_cost=COSTS, instance=labels, methods=methods,
        repeats=1, orders=1,
    )  # fmt: skip
    return np.asarray(found.regret[:-1].mean(axis=-1))


def ratios(regret: np.ndarray) -> np.ndarray:
    """The geometric mean regret of each candidate over that of the first."""
    logs = np.log(np.maximum(regret, LEAST))
    return np.asarray(np.exp((logs - logs[:1]).mean(axis=(1, 2))))


def table(found: dict[str, np.ndarray], names: list[str]) -> str:
    """Ratios by set, and what leaving each set out chooses."""
    lines = [f"| | {' | '.join(names)} | chosen on the other sets | its ratio here |"]
    lines.append("|---|" + "--:|" * len(names) + "---|--:|")
    for name, own in found.items():
        others = np.prod([x for other, x in found.items() if other != name], axis=0)
        best = int(np.argmin(others))
        numbers = " | ".join(f"{x:.2f}" for x in own)
        lines.append(f"| `{name}` | {numbers} | {names[best]} | {own[best]:.2f} |")
    return "\n".join(lines)


def written(text: str, table: str) -> str:
    """The page with this table in its section."""
    before, _, rest = text.partition(HEADING)
    _, mark, after = rest.partition("\n## ")
    return f"{before}{HEADING}\n\n{ABOUT}\n\n{table}\n{mark}{after}"


def main() -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with one folder for each set")
    parser.add_argument("--candidates", default=",".join(CANDIDATES), help="names, by commas")
    parser.add_argument("--write", action="store_true", help="put the table into CHOICES.md")
    arguments = parser.parse_args()
    names = arguments.candidates.split(",")
    found = {each.name: ratios(regrets(each, arguments.folder, names)) for each in CHOOSING}
    print(text := table(found, names))
    if arguments.write:
        path = Path(__file__).parent / "CHOICES.md"
        path.write_text(written(path.read_text(), text))


if __name__ == "__main__":
    main()
