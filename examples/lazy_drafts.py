"""Drafts and revisions: a tree of 10^19 boxes that is never written down.

There are three first drafts: cheap, better and costly. Each can be revised in three ways, each of
these in three ways again, and so on, forty deep. What a revision costs is known beforehand
and different for each (here: a hash of the way to it). What it brings is not: it may be better, no
better, or worse than what it started from. Keep the best draft.
"""

import hashlib

import numpy as np

import weitzman
from weitzman import Node

LEVELS, DEPTH, LEAST, MOST = 6, 40, 0.5, 1.5
WORTH = 10.0 * np.arange(LEVELS)
REVISED = np.zeros((LEVELS, LEVELS))  # from a quality to the next
for y in range(LEVELS):
    for move, chance in ((1, 0.35), (2, 0.05), (0, 0.35), (-1, 0.25)):
        REVISED[y, min(max(y + move, 0), LEVELS - 1)] += chance


def share(way):
    """A number between 0 and 1 that looks random and is always the same for the same text."""
    return int.from_bytes(hashlib.blake2b(way.encode(), digest_size=7).digest()) / 2**56


def revisions(node):
    ways = [node.name + way for way in "abc"] if len(node.name) < DEPTH else []
    costs = [LEAST + (MOST - LEAST) * share(f"price of {way}") for way in ways]
    return [
        Node(name=way, law=REVISED, rewards=WORTH, cost=cost)
        for way, cost in zip(ways, costs, strict=True)
    ]


FIRST = {"a": (1.5, REVISED[0]), "b": (2.0, REVISED[2]), "c": (16.0, REVISED[4])}
first_drafts = [
    Node(name=way, law=law, rewards=WORTH, cost=cost) for way, (cost, law) in FIRST.items()
]
tree = weitzman.LazyForest(first_drafts, revisions, least_cost=LEAST, branching=3)
found = weitzman.solve(tree, gap=0.3)
print(f"{3 * (3**DEPTH - 1) // 2:.3g} boxes")
for expanded, lower, upper in found.history[::2]:
    print(f"{expanded:6} expanded: worth {lower:8.4f} to {upper:8.4f}")
print(found)
assert found.gap <= 0.3 < 0.01 * found.lower
assert found.proven

# Work on it: what a draft turns out to be decides where the tree is looked into next.
search = weitzman.LazySearch(tree, gap=0.5, budget=300)
while (box := search.ask()) is not None and len(search.history) < 12:
    if len(box) == 1:
        chances = FIRST[box][1]
    else:
        (before,) = (seen for seen in search.history if seen.box == box[:-1])
        chances = REVISED[before.state_number]
    quality = int(np.searchsorted(np.cumsum(chances), share(f"quality of {box}")))
    search.tell(box, quality)
    print(f"opened {box:8} quality {quality}   spent {search.spent:6.2f}")
print(search.explain())
assert search.history
