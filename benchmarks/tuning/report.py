"""Results as Markdown and as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from weitzman import plot
from weitzman.replay.replay_result import Replay

AIM = 0.7  # at the three higher prices: the regret of the best peer times this
HIGHER = 3

ABOUT = """\
# Deciding which runs to continue, on public curves

`python -m benchmarks.tuning FOLDER --write` makes this page; all draws are seeded. Methods may be
run one after the other: they face the same searches, which is checked by the hindsight of both.

Each search is one of [`weitzman replay`](../../docs/replay.md): a method may start runs in a given
random order and advance any of them; every row of a curve is paid for when it is first seen; it may
stop at any time. Tables show the mean **regret in points of score** to the best single run stopped
at its best moment, known only in hindsight, and its 95 % interval (bootstrap over tasks).
Each column is a price: the points of score that a full run costs on average. All methods face
the same searches and learn from the same logs, on which their options are chosen, the number of
runs included. **Bold**: the lowest regret in a column.

* `taskset_text`: 8 tasks, 1000 runs each. The log is 150 runs; the other 850 are searched.
* `algoperf`: 10 tasks, about 57 runs in each of up to 5 studies. One study is searched; the others
  are the log. Costs are training times without evaluation.
* `lcdb`: every sixth of 165 tasks, about 19 learners, 5 replicates. One replicate is searched; the
  others are the log. A step is a fit from scratch on a larger sample.

`sets.py` sets how many tasks, logs and orders are used; more of them only take more time.

The index policy is told the settings of every run, which `sets.py` reads; in `algoperf` and `lcdb`
the log has the same configurations, with other seeds. Methods that do not ask for settings
start runs in the given order. In all three sets a run ends where its rows end.

Two things favor one side. The defaults of the learned model (its rungs, neighbors, states and the
way its tail is rehearsed) were chosen by comparing about forty variants on these same sets, so
its rows are a little better than they would be on new sets. And Optuna's pruners start at most 128
trials (Wilcoxon 96) and rehearse less than the others, since each of their steps takes longer.

The aim: the index policy has the lowest regret everywhere, and at the three higher prices at least
30 % less than the best other method.

![Mean regret against the price of a full run, one panel for each set](regret.png)
"""


def page(a,b,c):
    return ''


def markdown(name: str, log: str, found: Replay) -> str:
    """The section of a set: regrets, and how the first method compares with the best other."""
    return "\n".join(_lines(name, found)) + "\n"


def _lines(name: str, found: Replay) -> Iterator[str]:
    regret = found.means("regret")[:-1]
    searches = len(found.task) * found.best.shape[-1]
    yield f"## {name}\n"
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
        yield from _against_the_best(found)


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _against_the_best(found: Replay) -> Iterator[str]:
    """The regret of the first method as a share of that of the best other, and the difference."""
    regret, behind = found.means("regret")[:-1, :, 0], found.means("behind")
    best = regret[1:].argmin(axis=0) + 1
    share = regret[0] / regret[best, np.arange(len(best))]
    yield "| index policy / best other | " + " | ".join(f"{x:.2f}" for x in share) + " |"
    ends = [behind[best[p], p].tolist() for p in range(len(best))]
    cells = [f"{mean:.4f} [{low:.4f}, {high:.4f}]" for mean, low, high in ends]
    yield "| best other behind, paired | " + " | ".join(cells) + " |"
    met = int((share < 1).sum())
    high = int((share[-HIGHER:] <= AIM).sum())
    yield (
        f"\nLowest at {met} of {len(share)} prices; at least 30 % below the best other at {high} "
        f"of the {HIGHER} higher ones."
    )


def figure(found: dict[str, Replay], path: Path) -> None:
    """Regret against price, one panel for each set."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    size = 5 * len(found), 5
    fig, axes = pyplot.subplots(1, len(found), figsize=size, layout="constrained", squeeze=False)
    for ax, (name, result) in zip(axes[0], found.items(), strict=True):
        plot.replay(result, ax=ax).set_title(name)
        ax.get_legend().remove()
    lines, labels = axes[0][0].get_legend_handles_labels()
    fig.legend(lines, labels, loc="outside lower center", ncols=4, fontsize="small")
    fig.savefig(path, dpi=110)
    pyplot.close(fig)
