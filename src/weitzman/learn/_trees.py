"""Which logged runs a run resembles, by the leaves of random trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._kernels.leaves import fall, grow, resemblance
from .._types import BoolArray, FloatArray, IntArray

_SHARE = 0.632  # of the runs in the bag of a tree


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Trees grown from runs, and where these runs fall.

    Attributes
    ----------
    category : (F,) array of bool
        Which features are categories.
    nodes : tuple of arrays
        Features, splits and left children of all nodes, and where each tree begins.
    bags : (trees, n) array of bool
        The runs that each tree was grown from.
    leaf : (trees, n) array of int
        Where each run falls.
    weight : (n,) array of float
        How much each run counts.
    """

    category: BoolArray
    nodes: tuple[IntArray, FloatArray, IntArray, IntArray]
    bags: BoolArray
    leaf: IntArray
    weight: FloatArray

    @classmethod
    def grown(
        cls,
        known: FloatArray,
        category: BoolArray,
        target: FloatArray,
        weight: FloatArray,
        *,
        trees: int,
        least: int,
        random: np.random.Generator,
    ) -> Trees:
        """Trees that tell runs apart by what is known of them where their targets differ."""
        bags = _bags(len(known), trees, random)
        seeds = random.integers(1, 2**31 - 1, trees)
        nodes = grow(known, category, target, weight, bags, seeds, least, 2)
        return cls(category, nodes, bags, fall(known, category, *nodes), weight)

    def rows(self, known: FloatArray, own: IntArray | None = None) -> FloatArray:
        """How much each run resembles each row of what is known; a row sums to 1.

        ``own`` says which of the runs a row is itself, -1 for none: such a row is compared by trees
        that it did not help to grow, and so never with itself.
        """
        own = np.full(len(known), -1) if own is None else own
        leaf = fall(known, self.category, *self.nodes)
        return np.asarray(
            resemblance(leaf, own, self.leaf, self.bags, self.weight, len(self.nodes[0]))
        )


def _bags(n: int, trees: int, random: np.random.Generator) -> BoolArray:
    """The runs of each tree: about two thirds; every run is left out of some tree, if n > 1."""
    size = max(1, min(n - 1, round(_SHARE * n)))
    bags = random.random((trees, n)).argsort(axis=1) < size
    always = bags.all(axis=0)
    bags[0, always] = n == 1
    return bags
