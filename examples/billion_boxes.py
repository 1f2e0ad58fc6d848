"""A forest of a billion boxes, described by counts: equal subtrees are solved once."""

import weitzman

portfolio = weitzman.Builder()
portfolio.add(
    "region", count=1000, cost=1,
    outcomes={"rich": 0.1, "poor": 0.9}, rewards={"rich": None, "poor": None},
)  # fmt: skip
portfolio.add(
    "site", parent="region", count=1000, cost=2,
    outcomes={"rich": {0: 0.7, 20: 0.3}, "poor": {0: 0.99, 20: 0.01}},
)  # fmt: skip
portfolio.add(
    "well", parent="site", count=1000, cost=5, outcomes={0: {0: 1}, 20: {0: 0.5, 60: 0.5}}
)
forest = portfolio.build()
solution = weitzman.solve(forest)
report = weitzman.evaluate(solution)
print(f"{forest.boxes:,} boxes, worth {solution.value:.4f}")
print(f"of these about {report.openings:.1f} will be opened:")
for box in range(3):
    print(f"  {forest.name(box):8} {report.opened[box]:8.3f}")
assert forest.boxes == 1_001_001_000
assert abs(report.value - solution.value) < 1e-6
