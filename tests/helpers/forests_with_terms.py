"""Small forests with terms that several tests look at: time, risk and prizes."""

from __future__ import annotations

import math

from weitzman import Builder, Forest


def projects() -> Forest:
    """Weitzman's two projects, with durations and a rate."""
    b = Builder(rate=math.log(1.1))
    b.add("alpha", cost=15, outcomes={100: 0.5, 55: 0.5}, duration=1)
    b.add("omega", cost=20, outcomes={240: 0.2, 0: 0.8}, duration=2)
    return b.build()


def careful(tolerance: float | None = 8.0) -> Forest:
    """A long shot and a steady box, for a searcher who shuns risk."""
    b = Builder(risk_tolerance=tolerance)
    b.add("long shot", cost=1, outcomes={0: 0.9, 60: 0.1})
    b.add("steady", cost=1, outcomes={5: 0.5, 6: 0.5})
    return b.build().changed(unit="$")


def hires() -> Forest:
    """Three people for two jobs."""
    b = Builder(prizes=2)
    for name, p in {"Ada": 0.5, "Ben": 0.4, "Cleo": 0.3}.items():
        b.add(name, cost=1, outcomes={0: 1 - p, 10: p})
    return b.build()
