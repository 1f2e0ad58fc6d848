"""Results as Markdown and as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from weitzman import plot
from weitzman.backtest.backtest_result import Backtest

from .sets import CHOSE_NOTHING

AIM, HIGHER = 0.7, 3  # with a log: the share of the best peer's regret, at the higher prices
AIM_WITHOUT = 0.8  # without a log, at every price
LEAST = 1e-4  # points of score: in ratios of single tasks smaller regrets count as this much

ABOUT = """\
# Deciding which runs to continue, on public curves

`python -m benchmarks.tuning FOLDER --write` makes this page, but for the live experiment, which
`python -m benchmarks.tuning.live --write` makes. All draws are seeded. Each cell (one method on one
task) is kept as a file, so that an interrupted run goes on where it stood, and `--again index` runs
one method again.

Each search is one of [`weitzman backtest`](../../docs/backtest.md): a method may start runs and
advance any of them; every row of a curve is paid for when it is first seen; it may stop at any
time. All methods face the same searches. Methods that know settings (the index policy, TPE,
Bayesian optimization, DyHPO) choose what to start among the runs of the search; the others start
runs in a given random order. Tables show the mean **regret in points of score** to the best single
run stopped at its best moment, known only in hindsight, and its 95 % interval (bootstrap over
tasks). Each column is a price: the points of score that a full run costs on average. **Bold**: the
lowest regret in a column. *Behind, paired*: how much higher the regret of the best other method
is, search by search, with its interval by task.

* `taskset_text`: 8 tasks, 1000 runs each. The log is 150 runs; the other 850 are searched (without
  a log all 1000).
* `algoperf`: 10 tasks, about 57 runs in each of up to 5 studies. One study is searched; the others
  are the log. Costs are training times without evaluation.
* `lcdb`: every twelfth of 165 tasks, about 19 learners, 5 replicates. One replicate is searched;
  the others are the log. A step is a fit from scratch on a larger sample.
* `lcdb_new`: 15 other tasks of the same table, which no choice of a default or a rule has used.
* `trained`: 8 tasks, 400 runs each, networks, boosted trees and linear models of scikit-learn on
  its own data sets, trained by `python -m benchmarks.tuning.trained`. The log is 150 runs; the
  other 250 are searched.
* `held_out`: 7 tasks, 120 runs each, models of the same kinds on other data sets, trained by
  `python -m benchmarks.tuning.held_out`. The log is 60 runs; the other 60 are searched (without a
  log all 120).

`sets.py` has the number of logs and orders. In `algoperf`, `lcdb` and `lcdb_new` the log has the
same configurations as the search, with other seeds. In all sets a run ends where its rows end.
Methods that draw take their seed from the order of the runs.
"""

WITH = """\
## With a log

All methods learn from the same log, on which the options of the peers are chosen, the number of
runs included, unless a name has that number. Studies with TPE have the runs of the log from the
beginning. The aim: the lowest regret everywhere, and at most 0.7 of the best other method at the
three higher prices.

Some things favor one side. Defaults of the learned model were chosen by looking at the first three
sets, so its rows there are a little better than they would be on new sets. Optuna's tuned pruners
start at most 128 trials and rehearse less than the others, since each of their steps takes longer.
Methods that choose what to start by a model of the settings alone make the same search in all
orders, so their intervals rest on the tasks.

![Mean regret against the price of a full run, one panel for each set](regret.png)
"""

WITHOUT = """\
## Without a log

The index policy starts from nothing but the price. The others have documented options. No
documentation says how many runs to start, so each peer starts 10, 30 or 100 (random search 3 or
10), and DyHPO and PASHA, which never stop by themselves, end after the cost of 1, 2, 3, 5 or 10
full runs. The best of all these rows is chosen in hindsight, for each set and price. The aim: at
most 0.8 of the best other method at every price.
"""

TASK_BY_TASK = """\
Task by task: the geometric mean, over tasks, of the regret of the index policy over that of each
peer, at each price and at all, and the cells (a task and a price) in which the index policy is
worse or better by more than two standard errors of the paired difference. Regrets below 0.0001
count as 0.0001.
"""

SPEED = """\
## What deciding costs

`python -m benchmarks.tuning.speed FOLDER` makes this table. A search in vain: the 200 worst runs of
one task of `taskset_text`, with a log of 150 other runs and from nothing. Processor time; training
itself takes no time here. A decision includes a refit where one is due: most decisions need none.
The aims: 2 s for everything, 20 ms for one decision.
"""


PROMISES = """\
## Promise against fact

`python -m benchmarks.tuning.promises FOLDER` makes these tables, on runs that the model was not
learned from. First, the share of runs whose last score lies in the interval that should hold 90 %
of them; the aim is 87 to 93 %. Then, by price, what searches were expected to earn before they
began and what they earned, in points above the best score of the log: means over tasks, and the
standard error of their difference.
"""


BEFOREHAND = """\
## Which method should I pick beforehand?

The mean regret of each method over that of the index policy: the geometric mean over cells (a set
at a price), the worst cell for the index policy, which is the lowest ratio, and the worst cell for
the method, which is the highest. Every method is as fixed as a user would have to fix it
beforehand, except where its name says that the best of several is taken in hindsight in each cell.
"""


def page(
    with_log: dict[str, Backtest], without: dict[str, Backtest], folder: Path, speed: str, kept: str
) -> str:
    """The whole page; ``folder`` has the live experiment and remarks on the results.

    ``speed`` and ``kept`` are tables: what deciding costs, and how far promises are kept.
    """
    said = remarks(folder / "REMARKS.md")
    parts = [ABOUT, BEFOREHAND, to_pick(with_log, "with"), to_pick(without, "without")]
    parts += [said.get("beforehand", ""), WITH]
    parts += [
        markdown(name, x) + said.get(f"{name}, with a log", "") for name, x in with_log.items()
    ]
    parts += [WITHOUT]
    for name, x in without.items():
        parts.append(markdown(name, x, every=True))
        if name in CHOSE_NOTHING["without"]:
            parts.append(f"{TASK_BY_TASK}\n{task_by_task(x)}")
        parts.append(said.get(f"{name}, without a log", ""))
    live = folder / "LIVE.md"
    text = live.read_text().replace("# Real training", "## Real training") if live.exists() else ""
    ends = [f"{SPEED}\n{speed}\n", said.get("speed", "")]
    ends += [f"{PROMISES}\n{kept}\n", said.get("promises", "")]
    return "\n".join([*parts, text, *ends])


def to_pick(found: dict[str, Backtest], log: str) -> str:
    """The table of methods to pick beforehand: sets that chose no default, then those that did."""
    parts = []
    for heading, chose in (
        ("Sets that chose nothing", False),
        ("Sets on which defaults were chosen", True),
    ):
        some = {k: x for k, x in found.items() if (k not in CHOSE_NOTHING[log]) == chose}
        if some and len(next(iter(some.values())).methods) > 2:
            parts.append(f"#### {heading}, {log} a log\n\n{beforehand(some)}")
    return "\n".join(parts)


def beforehand(found: dict[str, Backtest]) -> str:
    """A row for each method: how its regret compares with that of the first method.

    A method that was not run on all sets is compared on those where it was, and its row says so.
    """
    cells: dict[str, np.ndarray] = {}
    where: dict[str, list[str]] = {}
    for set_, result in found.items():
        mean = result.means("regret")[..., 0]
        rows = dict(zip(result.methods[1:-1], mean[1:-1] / mean[0], strict=True))
        for family in sorted({name.partition(",")[0] for name in rows}):
            some = [row for name, row in rows.items() if name.partition(",")[0] == family]
            if len(some) > 1 and family != "full runs":  # two methods with a word in common
                rows[f"{family}, best in hindsight"] = np.min(some, axis=0)
        for name, row in rows.items():
            cells[name] = np.append(cells.get(name, []), row)
            where.setdefault(name, []).append(f"`{set_}`")
    for name, some in where.items():
        if len(some) < len(found):
            cells[f"{name} (only {', '.join(some)})"] = cells.pop(name)
    means = {name: float(np.exp(np.log(row).mean())) for name, row in cells.items()}
    lines = [
        f"Sets: {', '.join(f'`{name}`' for name in found)}.\n",
        "| | geometric mean | lowest | highest | cells in which it is ahead |\n"
        "|---|--:|--:|--:|--:|",
    ]
    for name in sorted(cells, key=lambda name: means[name]):
        row = cells[name]
        ahead = f"{int((row < 1).sum())} of {len(row)}"
        shown = " | ".join(f"{x:.2f}" for x in (means[name], row.min(), row.max()))
        lines.append(f"| {name} | {shown} | {ahead} |")
    return "\n".join(lines) + "\n"


def task_by_task(found: Backtest) -> str:
    """A row for each other method: how the first one compares with it on single tasks."""
    regret = found.regret[:-1]
    regret = np.stack(  # method, price, task, search
        [regret[:, :, found.task == t].reshape(*regret.shape[:2], -1) for t in set(found.task)],
        axis=2,
    )
    mean = np.maximum(regret.mean(axis=-1), LEAST)
    apart = regret[:1] - regret
    error = apart.std(axis=-1, ddof=1) / regret.shape[-1] ** 0.5
    worse = (apart.mean(axis=-1) > 2 * error).sum(axis=(1, 2))
    better = (apart.mean(axis=-1) < -2 * error).sum(axis=(1, 2))
    share = np.log(mean[:1] / mean)
    head = " | ".join(f"{x:g}" for x in found.quoted)
    lines = [f"| | {head} | all | worse | better |", "|---|" + "--:|" * (share.shape[1] + 3)]
    for m, name in enumerate(found.methods[1:-1], 1):
        each = [*np.exp(share[m].mean(axis=-1)), np.exp(share[m].mean())]
        numbers = " | ".join(f"{x:.2f}" for x in each)
        lines.append(f"| {name} | {numbers} | {worse[m]} of {share[m].size} | {better[m]} |")
    return "\n".join(lines) + "\n"


def remarks(path: Path) -> dict[str, str]:
    """What a reader should know about a result, above all what limits it, by heading."""
    parts = path.read_text().split("\n## ")[1:] if path.exists() else []
    split = [part.partition("\n") for part in parts]
    return {heading.strip(): f"\n{text.strip()}\n" for heading, _, text in split}


def markdown(name: str, found: Backtest, *, every: bool = False) -> str:
    """The section of a set: regrets, and how the first method compares with the best other.

    ``every``: the aim is that without a log, at every price.
    """
    return "\n".join(_lines(name, found, every)) + "\n"


def _lines(name: str, found: Backtest, every: bool) -> Iterator[str]:
    regret = found.means("regret")[:-1]
    searches = len(found.task) * found.best.shape[-1]
    yield f"### {name}\n"
    yield f"{len(found.tasks)} tasks, {len(found.task)} logs, {searches} searches.\n"
    yield "| | " + " | ".join(f"{x:g}" for x in found.quoted) + " |"
    yield "|---|" + "--:|" * len(found.quoted)
    lowest = regret[..., 0].argmin(axis=0)
    for m, method in enumerate(found.methods[:-1]):
        cells = [
            _bold(f"{mean:.4f}", lowest[p] == m) + f" [{low:.4f}, {high:.4f}]"
            for p, (mean, low, high) in enumerate(regret[m].tolist())
        ]
        yield f"| {method} | " + " | ".join(cells) + " |"
    if len(regret) > 1:
        yield from _against_the_best(found, every)


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _against_the_best(found: Backtest, every: bool) -> Iterator[str]:
    """The regret of the first method as a share of that of the best other, and the difference."""
    regret, behind = found.means("regret")[:-1, :, 0], found.means("behind")
    best = regret[1:].argmin(axis=0) + 1
    share = regret[0] / regret[best, np.arange(len(best))]
    yield "| index policy / best other | " + " | ".join(f"{x:.2f}" for x in share) + " |"
    ends = [behind[best[p], p].tolist() for p in range(len(best))]
    cells = [f"{mean:.4f} [{low:.4f}, {high:.4f}]" for mean, low, high in ends]
    yield "| best other behind, paired | " + " | ".join(cells) + " |"
    met, most = int((share < 1).sum()), AIM_WITHOUT if every else AIM
    counted = share if every else share[-HIGHER:]
    where = (
        f"{int((counted <= most).sum())} of the {len(counted)} {'' if every else 'higher '}prices"
    )
    yield (
        f"\nLowest at {met} of {len(share)} prices; at most {most:g} of the best other at {where}."
    )


def figure(found: dict[str, Backtest], path: Path) -> None:
    """Regret against price, one panel for each set."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    size = 5 * len(found), 5
    fig, axes = pyplot.subplots(1, len(found), figsize=size, layout="constrained", squeeze=False)
    for ax, (name, result) in zip(axes[0], found.items(), strict=True):
        plot.backtest(result, ax=ax).set_title(name)
        ax.get_legend().remove()
    lines, labels = axes[0][0].get_legend_handles_labels()
    fig.legend(lines, labels, loc="outside lower center", ncols=4, fontsize="small")
    fig.savefig(path, dpi=110)
    pyplot.close(fig)
