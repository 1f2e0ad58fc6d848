"""A plan fixed beforehand on a forest of one transition matrix: what does it lose?

Two trees of training recipes: each recipe can be varied in three ways, six times over. What a
recipe scores depends on the one it came from, by the same law everywhere; what it costs to try
differs. Suppose that all jobs must be submitted tonight. Which ones, and what does that lose?
"""

import numpy as np

import weitzman
from weitzman import strategies

step = [
    [0.70, 0.20, 0.08, 0.02],
    [0.15, 0.60, 0.20, 0.05],
    [0.05, 0.20, 0.60, 0.15],
    [0.02, 0.08, 0.30, 0.60],
]
roots, degree, depth = 2, 3, 6
parent, level = [-1] * roots, list(range(roots))
for _ in range(depth - 1):
    start = len(parent)
    parent += [v for v in level for _ in range(degree)]
    level = list(range(start, len(parent)))
cost = np.random.default_rng(1).uniform(1, 4, len(parent))
forest = weitzman.Forest.from_arrays(
    parent=parent,
    cost=cost,
    rewards=[0, 20, 50, 100],
    law=[step[0] if p < 0 else step for p in parent],
)
solution = weitzman.solve(forest)
chosen = strategies.best_nonadaptive(forest, limit=200, solution=solution)
line = strategies.best_line(forest)
print(f"{len(forest)} recipes; trying them one by one is worth {solution.value:.3f}\n")
for name, plan in (("set", chosen), ("line", line)):
    share = plan.value / solution.value
    print(f"best {name} for tonight, worth {plan.value:.3f} ({share:.0%}): {', '.join(plan.boxes)}")
assert line.value < chosen.value < solution.value
assert line.value < line.followed < solution.value
