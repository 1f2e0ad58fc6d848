"""Long lines: solving all of them against cutting them first, and what the cut loses.

Run ``python benchmarks/truncation.py`` (some minutes and GB) or with ``--quick`` (seconds);
``--write`` also writes ``benchmarks/truncation.md`` and ``benchmarks/truncation.png``.

Lines of one sticky law each, eight states, rewards from 0 to 1, and costs that differ from box to
box, so that no two boxes are equal; each line starts after its worst state. All times of a row come
from one run, in which the contestants took turns; the forest was there before the clock started.
They are processor time on one thread, so that what else the machine does hardly counts. Two
contestants solve all boxes: one as usual, one no better than the gap. The true loss comes from
the full solution and was asserted to lie within the certified one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import ROOT, Table, machine, race, seconds
from weitzman import Forest, solve, truncate
from weitzman.bounds import Truncation

GAP = 1e-3
K = 8
PAGE = ROOT / "benchmarks" / "truncation.md"
FIGURE = ROOT / "benchmarks" / "truncation.png"


@dataclass(frozen=True)
class Row:
    """One race."""

    lines: int
    length: int
    times: dict[str, float]
    cut: Truncation
    loss: float

    @property
    def cutting(self) -> float:
        return self.times["truncate"] + self.times["solve kept"]


def forest_of(lines: int, length: int, seed: int = 0) -> Forest:
    """Lines side by side, each starting after its worst state; shorter ones begin longer ones."""
    rng = np.random.default_rng(seed)
    law = 0.8 * np.eye(K) + 0.2 * rng.dirichlet(np.full(K, 0.5), (lines, K))
    rewards = np.sort(rng.random((lines, K)))
    cost = rng.uniform(0.002, 0.006, (length, lines)).T
    parent = np.arange(lines * length) - 1
    parent[::length] = -1
    return Forest.from_arrays(
        parent=parent,
        cost=cost.reshape(-1),
        rewards=[r for r in rewards for _ in range(length)],
        law=[p for one in law for p in [one[0], *([one] * (length - 1))]],
    )


def compare(lines: int, length: int) -> Row:
    """Race, and check the answers."""
    forest, answer = forest_of(lines, length), dict[str, Any]()
    cut = truncate(forest, gap=GAP)

    def keep(name: str, run: Callable[[], Any]) -> Callable[[], None]:
        return lambda: answer.update({name: run()})

    tasks = {
        "solve all": keep("whole", lambda: solve(forest, threads=1)),
        "no better than the gap": keep("rough", lambda: solve(forest, tolerance=GAP, threads=1)),
        "truncate": keep("cut", lambda: truncate(forest, gap=GAP)),
        "solve kept": keep("kept", lambda: solve(cut.forest, threads=1)),
    }
    times = race(tasks, 1 if len(forest) > 300_000 else 4, clock=time.process_time, free=0)
    whole, kept = answer["whole"], answer["kept"]
    loss = whole.value - kept.value
    assert abs(answer["rough"].value - whole.value) <= GAP
    assert (answer["cut"].lower, answer["cut"].upper) == (cut.lower, cut.upper)
    assert cut.gap <= GAP
    assert whole.gap <= 1e-8
    assert cut.lower - 1e-12 <= kept.value <= whole.value + 1e-12
    assert whole.value - whole.gap <= cut.upper + 1e-12
    assert loss <= cut.gap + whole.gap + 1e-12
    return Row(lines, length, times, cut, max(loss, 0.0))


def race_table(rows: list[Row]) -> Table:
    """The races as a table."""
    table = Table(
        ["lines", "length", "kept", "solve all", "no better than the gap", "truncate", "solve kept",
         "all / cut", "no better / cut", "certified loss", "true loss"],
        title=f"{K} states, gap {GAP:g}; cut: truncate and solve kept",
    )  # fmt: skip
    for r in rows:
        times = [seconds(t) for t in r.times.values()]
        ratios = [f"{r.times[name] / r.cutting:.3g}" for name in list(r.times)[:2]]
        table.rows.append(
            [f"{r.lines}", f"{r.length:,}", f"{r.cut.kept:,}", *times, *ratios,
             f"{r.cut.gap:.3g}", f"{r.loss:.3g}"]
        )  # fmt: skip
    return table


def depths(quick: bool) -> dict[int, list[tuple[float, int]]]:
    """Depth kept for gaps of one to nine digits, by number of lines."""
    gaps = [10.0**-d for d in range(1, 5 if quick else 10)]
    length = 200 if quick else 10_000
    found = {}
    for lines in (1, 10) if quick else (1, 10, 100):
        forest = forest_of(lines, length)
        found[lines] = [(gap, truncate(forest, gap=gap).depth) for gap in gaps]
        assert all(depth < length for _, depth in found[lines])
    return found


def depth_table(found: dict[int, list[tuple[float, int]]]) -> Table:
    """The same as a table."""
    gaps = [gap for gap, _ in found[1]]
    table = Table(["lines", *(f"gap {gap:g}" for gap in gaps)], title="Levels kept")
    for lines, depth in found.items():
        table.rows.append([f"{lines}", *(f"{d}" for _, d in depth)])
    return table


def draw(rows: list[Row], found: dict[int, list[tuple[float, int]]], path: Path) -> None:
    """Times against the length, losses, and depth against the gap."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    colors = dict(zip(found, ["#0072B2", "#D55E00", "#009E73"], strict=False))  # Okabe and Ito
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for q, color in colors.items():
        mine = [r for r in rows if r.lines == q]
        size = [r.length for r in mine]
        word = "line" if q == 1 else "lines"
        left.loglog(
            size, [r.times["solve all"] for r in mine], "o-", color=color, label=f"{q} {word}"
        )
        left.loglog(size, [r.cutting for r in mine], "o--", color=color, mfc="white")
        middle.semilogx(size, [r.cut.gap / GAP for r in mine], "o-", color=color, mfc="white")
        middle.semilogx(size, [r.loss / GAP for r in mine], "x", color=color, ms=8)
        right.semilogx(*zip(*[(1 / g, d) for g, d in found[q]], strict=True), "o-", color=color)
    left.set(title="Processor time", xlabel="length of a line", ylabel="seconds")
    left.plot([], [], "o-", color="#555555", label="solve all")
    left.plot([], [], "o--", color="#555555", mfc="white", label="truncate, solve kept")
    left.legend(frameon=False, fontsize=8)
    middle.axhline(1, color="#555555", lw=1, ls=":")
    middle.plot([], [], "o-", color="#555555", mfc="white", label="certified")
    middle.plot([], [], "x", color="#555555", ms=8, label="true")
    middle.set(title="Loss", xlabel="length of a line", ylabel=f"share of the gap, {GAP:g}")
    middle.set_ylim(0, 1.1)
    middle.legend(frameon=False, fontsize=8, loc="lower right")
    right.set(title="Levels kept, of 10,000", xlabel="1 / gap", ylim=(0, None))
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter lines")
    parser.add_argument("--write", action="store_true", help="write the page and the figure")
    options = parser.parse_args()
    if options.quick and options.write:
        parser.error("quick figures are not written")
    compare(1, 30)  # compiles
    sizes = {1: 6, 10: 6, 100: 5} if not options.quick else {1: 3, 10: 2}
    rows = []
    for lines, digits in sizes.items():
        for d in range(2, digits + 1):
            rows.append(compare(lines, 10**d))
            print(f"{lines} x {10**d}: {rows[-1].cut!r}", file=sys.stderr, flush=True)
    found = depths(options.quick)
    text = f"{race_table(rows).markdown()}\n\n{depth_table(found).markdown()}\n"
    print(text)
    if options.write:
        PAGE.write_text(page(text), "utf-8")
        draw(rows, found, FIGURE)


def page(tables: str) -> str:
    """The tables with what a reader must know."""
    about = (__doc__ or "").split("\n\n")[2].strip()
    computer = "\n".join(f"- {key}: {value}" for key, value in machine().items())
    return (
        "# Cutting long lines\n\nWritten by `python benchmarks/truncation.py --write`; what it "
        f"means is explained in [docs/horizons.md](../docs/horizons.md#truncation-two-bounds)."
        "\n\n![Time, certified and true loss, and levels kept.](truncation.png)"
        f"\n\n{about}\n\n{computer}"
        f"\n\n{tables}\n*Measured {date.today().isoformat()}; load of the machine at the end "
        f"{os.getloadavg()[0]:.1f}.*\n"
    )


if __name__ == "__main__":
    main()
