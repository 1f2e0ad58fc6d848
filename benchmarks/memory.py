"""Memory that solving takes on top of the instance, in a process of its own.

``python -m benchmarks.memory trees 1000000`` prints it as JSON.
"""

from __future__ import annotations

import json
import sys

import weitzman
from weitzman import Forest

from . import instances
from .measure import peak_during

_LENGTH = 50  # boxes of each of many lines


def build(kind: str, boxes: int) -> Forest:
    """The instances whose memory is measured."""
    if kind == "trees":
        return instances.random_trees(boxes)
    if kind == "lines":
        return instances.many_lines(boxes // _LENGTH, _LENGTH, 8).forest
    return instances.many_lines(1, boxes, 16).forest


def instance_bytes(forest: Forest) -> int:
    """What the columns and pools of a forest take."""
    f = forest
    columns = [f.parent, f.law, f.reward, f.cost, f.count]
    pools = [x for p in (f.laws, f.rewards, f.costs) for x in (p.data, p.start, p.shape)]
    return sum(x.nbytes for x in columns + pools)


def main(kind: str, boxes: int) -> dict[str, float]:
    """Bytes of the instance, of the process before the solve, and more at its highest."""
    weitzman.solve(build(kind, 100))  # compiles
    forest = build(kind, boxes)
    before, more = peak_during(lambda: weitzman.solve(forest))
    return {"instance": instance_bytes(forest), "before": before, "more": more}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
