"""Boxes that have nothing to do with each other: Weitzman's rule of 1979.

Without parents the index of a box is its reservation value, and the best order is fixed. Here the
prizes are uniform on 0, 1, ..., 100 and only the costs differ.
"""

import numpy as np

import weitzman

prizes = np.arange(101.0)
costs = [1.0, 4.0, 9.0, 16.0]
forest = weitzman.Forest.from_arrays(
    parent=[-1] * 4, cost=costs, rewards=prizes, law=[np.full(101, 1 / 101)] * 4
)
solution = weitzman.solve(forest)

for box, cost in enumerate(costs):
    index = solution.index(box)
    gain = np.maximum(prizes - index, 0).mean()
    print(f"cost {cost:4.1f}   index {index:7.3f}   E(prize - index)^+ = {gain:.6f}")
    assert abs(gain - cost) < 1e-9  # the equation that defines the index

opened = weitzman.evaluate(solution).opened
print(f"worth {solution.value:.4f}; chances of being opened: {np.round(opened, 4)}")
assert list(opened) == sorted(opened, reverse=True)
