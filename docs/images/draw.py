"""Draw docs/images/search.png from a real run (needs matplotlib)."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np

import weitzman

mpl.use("Agg")
import matplotlib.pyplot as plt

LEVELS = np.arange(60.0, 100.0, 5.0)  # accuracy in percent
COLOURS = {"run 1": "#0072B2", "run 4": "#D55E00", "run 7": "#009E73"}  # Okabe and Ito
MARKERS = {"run 1": "o", "run 4": "s", "run 7": "D"}
METHODS = {  # in the table: in the picture
    "index policy": "index policy",
    "Optuna TPE + SuccessiveHalvingPruner, 10 runs": "TPE + halving, 10 trials",
    "Optuna TPE + HyperbandPruner, 10 runs": "TPE + Hyperband, 10 trials",
    "successive halving": "successive halving",
    "Hyperband": "Hyperband",
    "ASHA": "ASHA",
    "percentile rule": "percentile rule",
    "full runs, Weitzman's rule": "full runs, optimal stopping",
}
BLACK, GREY = "#222222", "#8c8c8c"


def training_runs() -> weitzman.Forest:
    """Eight training runs of six steps each; the next result depends on the last one."""
    rng = np.random.default_rng(4)
    runs = []
    for i in range(8):
        start = rng.dirichlet(np.exp(-0.8 * np.arange(len(LEVELS))) * 3)
        rise, cost = [(0.5, 1.0), (0.35, 1.5), (0.2, 0.8)][i % 3]
        runs.append(
            weitzman.line(
                (start, _step(rise)), length=6, rewards=LEVELS, cost=cost, outside=60.0,
                names=[f"run {i + 1}, step {j + 1}" for j in range(6)],
            )
        )  # fmt: skip
    return weitzman.side_by_side(runs)


def _step(rise: float) -> np.ndarray:
    k = len(LEVELS)
    law = np.zeros((k, k))
    for i in range(k):
        for move, p in ((-1, 0.05), (0, 0.95 - rise), (1, 0.7 * rise), (2, 0.3 * rise)):
            law[i, min(max(i + move, 0), k - 1)] += p
    return law


def play(solution: weitzman.Solution, seed: int) -> tuple[list[tuple[str, float]], list[float]]:
    """What each opening showed, and the highest index before each decision."""
    f, rng = solution.forest, np.random.default_rng(seed)
    search, state, shown, index = weitzman.Search(solution), {}, [], []
    while True:
        index.append(search.available(1)[0][1])
        box = search.ask()
        if box is None:
            return shown, index
        up = int(f.parent[box.number])
        law = f.laws[int(f.law[box.number])][0 if up < 0 else state[up]]
        state[box.number] = int(rng.choice(len(law), p=law))
        search.tell(box, state[box.number])
        shown.append((box.split(",")[0], LEVELS[state[box.number]]))


def draw_run(ax: plt.Axes, shown: list[tuple[str, float]], index: list[float]) -> None:
    """Left: one search. Open while the highest index is above the best so far."""
    n = len(shown)
    best = np.maximum.accumulate([60.0, *(y for _, y in shown)])
    ax.step(np.arange(n + 1) + 0.5, best, where="post", color=BLACK, lw=1.8)
    ax.plot([n + 0.5, n + 1.35], [best[-1]] * 2, color=BLACK, lw=1.8)
    ax.plot(np.arange(1, n + 2), index, "--", marker="_", ms=12, color=GREY, lw=1.2)
    for name in COLOURS:
        at = [(i + 1, y) for i, (run, y) in enumerate(shown) if run == name]
        ax.plot(*zip(*at, strict=True), MARKERS[name], color=COLOURS[name], ms=7, label=name)
    ax.annotate("highest index", (1.1, index[0] + 0.9), color="#666666", ha="left", va="bottom")
    ax.annotate("best so far", (1.7, 65.7), color=BLACK, ha="left", va="bottom")
    ax.annotate("stop", (n + 1, index[-1] - 1), color=BLACK, ha="center", va="top")
    ax.set(xlim=(0.4, n + 1.5), xticks=range(1, n + 1), ylim=(57, 97))
    ax.set(xlabel="opening", ylabel="accuracy (%)")
    ax.set_title("One search: continue while an index is above the best")
    ax.legend(frameon=False, loc="lower right", handletextpad=0.2)


def measured(price: str) -> list[tuple[str, float, float, float]]:
    """Methods, mean regret and its interval, as measured on tasks that chose no default."""
    text = (Path(__file__).parents[2] / "benchmarks" / "tuning" / "RESULTS.md").read_text("utf-8")
    lines = text.partition("\n### trained")[2].partition("\n### ")[0].splitlines()
    rows = [[x.strip() for x in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    at = rows[0].index(price)
    cells = {row[0]: [float(x) for x in re.findall(r"[\d.]+", row[at])] for row in rows[2:]}
    return [(title, *cells[name]) for name, title in METHODS.items()]


def draw_regrets(ax: plt.Axes) -> None:
    """Right: what methods of tuning lose, compared with the best run known in hindsight."""
    rows = measured("0.01")
    regret, low, high = (np.array([row[i] for row in rows]) for i in (1, 2, 3))
    colors = [COLOURS["run 1"]] + [GREY] * (len(rows) - 1)
    ax.barh(range(len(rows)), regret, color=colors)
    ax.errorbar(regret, range(len(rows)), xerr=[regret - low, high - regret], fmt="none",
                ecolor=BLACK, elinewidth=0.8, capsize=2)  # fmt: skip
    ax.set(yticks=range(len(rows)), xlim=(0, None))
    ax.set_yticklabels([row[0] for row in rows])
    ax.set_xlabel("regret in points of score (lower is better)")
    ax.set_title("Tuning on eight tasks, with a log of past runs")
    ax.invert_yaxis()


def main() -> None:
    """Draw both panels."""
    plt.rcParams.update({"font.size": 9, "axes.titlesize": 10})
    solution = weitzman.solve(training_runs())
    fig, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.3), width_ratios=(1.25, 1))
    draw_run(left, *play(solution, 0))
    draw_regrets(right)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    fig.tight_layout()
    here = Path(__file__).parent
    fig.savefig(here / "search.png", dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
