"""A box that depends on two others: no index rule, but small cases can be enumerated."""

import weitzman

agree = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]  # full if the two coins agree
coins = weitzman.strategies.Dag(
    parents=[[], [], [0, 1]],
    cost=[1, 1, 1],
    rewards=[[0, 0], [0, 0], [0, 16]],
    law=[[0.5, 0.5], [0.5, 0.5], agree],
    names=["first coin", "second coin", "chest"],
)
best = weitzman.strategies.exhaustive(coins)
print(f"worth {best.value:g}, begin with the {best.first_box}; ", end="")
print(f"{best.situations} situations were looked at")
assert best.value == -2 + 0.5 * (16 - 1)
