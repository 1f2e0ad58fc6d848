"""Twenty training runs, checked after every step: go on with which one, and when to stop?

Also what opening several boxes at once saves in time and costs in payoff.
"""

import weitzman

step = [[0.6, 0.3, 0.1, 0.0], [0.1, 0.6, 0.25, 0.05], [0.0, 0.1, 0.7, 0.2], [0.0, 0.0, 0.2, 0.8]]
runs = weitzman.line(
    ([0.7, 0.2, 0.1, 0.0], step),
    length=5, rewards=[0, 4, 7, 10], cost=0.4, count=20,
    states=["poor", "fair", "good", "great"],
)  # fmt: skip
solution = weitzman.solve(runs)
print(f"{runs.boxes} boxes, worth {solution.value:.4f}")
for number in range(1, 5):
    row = "  ".join(f"{s}: {solution.index(number, s):6.3f}" for s in runs.states(number - 1))
    print(f"index of step {number + 1} after a result that was   {row}")

print("\nworkers   payoff   boxes   rounds")
for workers in (1, 2, 4):
    played = weitzman.simulate(solution, 50_000, rng=0, workers=workers)
    print(
        f"{workers:7d} {played.payoff.mean:8.3f} {played.openings.mean:7.2f} "
        f"{played.rounds.mean:8.2f}"
    )
    if workers == 1:
        low, high = played.payoff.interval(0.9999)
        assert low < solution.value < high
