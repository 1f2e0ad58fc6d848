"""What is it worth to adapt? The paper's example, and one where not adapting loses nearly all."""

import weitzman

boxes = weitzman.Builder()
boxes.add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
boxes.add("B", parent="A", cost=3, outcomes={1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}})
boxes.add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
table = weitzman.compare(boxes.build(), episodes=20_000)
print(table)
values = [table[key].value for key in ("fixed_set", "fixed_order", "optimal")]
assert all(abs(a - b) < 1e-9 for a, b in zip(values, (92.475, 93.825, 94.325), strict=True))

signal = weitzman.line(
    [[0.9, 0.1, 0.0], [[0.98, 0.01, 0.01], [0.01, 0.01, 0.98], [0.98, 0.01, 0.01]]],
    rewards=[0, 0.001, 1], cost=[0, 0.2],
)  # fmt: skip
table = weitzman.compare(signal, episodes=20_000)
print(f"\na cheap signal: optimum {table['optimal'].value:.6f}, ", end="")
print(f"best fixed set {table['fixed_set'].value:.6f}")
assert table.share("fixed_set") < 0.0015
