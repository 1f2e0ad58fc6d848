"""Small problems that the documentation looks at, each a :class:`~weitzman.Forest`.

>>> import weitzman
>>> round(weitzman.solve(weitzman.examples.paper()).value, 9)
94.325
"""

from __future__ import annotations

from .forest.builder import Builder
from .forest.model import Forest


def paper() -> Forest:
    """The example of the paper: what B holds depends on A above it; C is a box of its own.

    Examples
    --------
    >>> from weitzman.examples import paper
    >>> paper().names
    ('A', 'B', 'C')
    """
    search = Builder()
    search.add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
    search.add("B", parent="A", cost=3, outcomes={1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}})
    search.add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
    return search.build()


def drilling() -> Forest:
    """A survey that costs little says how likely oil is at each of three wells.

    Examples
    --------
    >>> import weitzman
    >>> weitzman.solve(weitzman.examples.drilling()).index("drill", "good")
    30.0
    """
    search = Builder()
    search.add(
        "survey", cost=1, outcomes={"good": 0.3, "bad": 0.7}, rewards={"good": None, "bad": None}
    )
    search.add(
        "drill", parent="survey", cost=5, count=3,
        outcomes={"good": {0: 0.5, 40: 0.5}, "bad": {0: 0.9, 40: 0.1}},
    )  # fmt: skip
    return search.build()


def hiring() -> Forest:
    """Two engineers and a designer are wanted; interviews cost money.

    Examples
    --------
    >>> from weitzman.examples import hiring
    >>> hiring().quotas, hiring().prizes
    ((('designer', 1), ('engineer', 2)), 3)
    """
    search = Builder(quotas={"engineer": 2, "designer": 1})
    for name, p in {"Ada": 0.5, "Ben": 0.4, "Cleo": 0.3}.items():
        search.add(name, cost=1, outcomes={10: p, 0: 1 - p}, group="engineer")
    for name, p in {"Dan": 0.6, "Eve": 0.2}.items():
        search.add(name, cost=1, outcomes={12: p, 0: 1 - p}, group="designer")
    return search.build()
