"""What if it cost more? Derivatives for free, and the costs at which decisions change."""

import weitzman

site = weitzman.Builder()
site.add("survey", cost=1, outcomes={"good": 0.3, "bad": 0.7}, rewards={"good": None, "bad": None})
site.add(
    "drill", parent="survey", cost=5,
    outcomes={"good": {0: 0.4, 40: 0.6}, "bad": {0: 0.9, 40: 0.1}},
)  # fmt: skip
site.add("market", cost=2, outcomes={8: 0.5, 16: 0.5})
forest = site.build()
solution = weitzman.solve(forest)
slopes = weitzman.sensitivity(solution)

print(f"worth {solution.value:.4f}")
for name in ("survey", "drill", "market"):
    slope = slopes.cost[name].sum()
    print(f"one unit more for {name:7} changes the value by {slope:+.3f} at first")

turning = weitzman.break_even(solution, "survey")
print(f"the survey pays up to a cost of {turning.opened_below:.4f}, ", end="")
print(f"and comes first up to {turning.first_below:.4f}")
just_below = weitzman.solve(forest.changed(cost={"survey": turning.first_below - 1e-6}))
just_above = weitzman.solve(forest.changed(cost={"survey": turning.first_below + 1e-6}))
assert just_below.first_box == "survey"
assert just_above.first_box == "market"
