"""The example of the paper: what to open, when to stop, what it is worth."""

import weitzman

boxes = weitzman.Builder()
boxes.add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
boxes.add("B", parent="A", cost=3, outcomes={1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}})
boxes.add("C", cost=5, outcomes={50: 0.5, 10: 0.5})

solution = weitzman.solve(boxes.build())
print(weitzman.explain(solution))
print()
print(solution)

assert abs(solution.value - 94.325) < 1e-9
assert abs(solution.index("A") - 707) < 1e-9
assert abs(solution.index("B", 900) - 914) < 1e-9
