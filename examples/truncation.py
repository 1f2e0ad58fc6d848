"""Five long lines, cut where what follows is certified not to matter.

Sensors that drift: each reading follows the one before, by a law of its own for each sensor, and
every reading has a price of its own. How many readings of each sensor need to be planned at all?
"""

import numpy as np

import weitzman

SENSORS, READINGS = 5, 40_000
rng = np.random.default_rng(7)
sensors = [
    weitzman.line(
        ([1, 0, 0, 0], 0.9 * np.eye(4) + 0.1 * rng.dirichlet(np.ones(4), 4)),
        length=READINGS,
        rewards=np.sort(rng.random(4)),
        cost=rng.uniform(0.001, 0.003, READINGS),
    )
    for _ in range(SENSORS)
]
whole = weitzman.side_by_side(sensors)
print(f"{len(whole):,} readings in all\n")

print("   gap   levels   readings kept   value of the whole lies between")
for gap in (0.01, 1e-3, 1e-4, 1e-5, 1e-6):
    cut = weitzman.truncate(whole, gap=gap)
    print(f"{gap:6.0e} {cut.depth:8} {cut.kept:15}   {cut.lower:.7f} and {cut.upper:.7f}")
    assert cut.gap <= gap

# the boxes kept are a problem like any other; following its policy loses no more than the gap
solution = weitzman.solve(cut.forest)
expected = weitzman.evaluate(solution)
print(f"\nplan for {cut.kept} readings: {expected.openings:.2f} are taken on average,")
print(f"for a payoff of {expected.value:.7f}; the best plan for all earns at most {cut.upper:.7f}")
assert cut.upper - expected.value <= 1.01e-6
assert abs(weitzman.solve(whole).value - expected.value) <= 1.01e-6
