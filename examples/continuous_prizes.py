"""Prizes with continuous distributions: bracket the value between two discretizations."""

from scipy.stats import lognorm, norm

import weitzman


def value(method: str, states: int) -> float:
    """What the search is worth with both laws made discrete in one way."""
    offers = weitzman.Builder()
    for name, cost, law in (("quick", 0.1, norm(10, 2)), ("slow", 0.5, lognorm(0.5, scale=10))):
        offers.add(name, cost=cost, outcomes=weitzman.forest.discretize(law, states, method=method))
    return weitzman.solve(offers.build()).value


print("states   at least   at most")
for states in (10, 40, 160):
    low, high = value("mean", states), value("spread", states)
    print(f"{states:6d} {low:10.5f} {high:9.5f}")
    assert low <= high + 1e-6
assert high - low < 0.01
