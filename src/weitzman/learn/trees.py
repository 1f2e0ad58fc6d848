"""Which logged runs a run resembles, by the leaves of random trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.arrays import BoolArray, FloatArray, IntArray
from .._kernels.leaves import Fallen, Known, Nodes, Outcomes, fall, grow, resemblance

_SHARE = 0.632  # of the runs in the bag of a tree


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Trees grown from runs, and where these runs fall.

    Attributes
    ----------
    category : (F,) array of bool
        Which features are categories.
    nodes : Nodes
        Features, splits and left children of all nodes, and where each tree begins.
    bags : (trees, n) array of bool
        The runs that each tree was grown from.
    leaf : (trees, n) array of int
        Where each run falls.
    weight : (n,) array of float
        How much each run counts.
    """

    category: BoolArray
    nodes: Nodes
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
        leaf: int,
        random: np.random.Generator,
    ) -> Trees:
        """Trees that tell runs apart, by what is known of them, where their targets differ."""
        bags = _bags(len(known), trees, random)
        seeds = random.integers(1, 2**31 - 1, trees)
        seen = Known(np.ascontiguousarray(known), category)
        nodes = grow(seen, Outcomes(target, weight), bags, seeds, leaf)
        return cls(category, nodes, bags, fall(seen, nodes), weight)

    def rows(self, known: FloatArray, own: IntArray) -> FloatArray:
        """How much each run resembles each row of what is known; a row sums to 1.

        ``own`` says which of the runs a row is itself, -1 for none. Such a row is compared by trees
        that it did not help to grow, so that no run resembles itself.
        """
        leaf = fall(Known(np.ascontiguousarray(known), self.category), self.nodes)
        runs = Fallen(self.leaf, self.bags, self.weight)
        return np.asarray(resemblance(leaf, own, runs, len(self.nodes.feature)))


def _bags(n: int, trees: int, random: np.random.Generator) -> BoolArray:
    """The runs of each tree: about two thirds, and of one run that one."""
    size = max(1, min(n - 1, round(_SHARE * n)))
    places = random.random((trees, n)).argsort(axis=1)
    bags = np.zeros((trees, n), bool)
    np.put_along_axis(bags, places[:, :size], True, axis=1)
    return bags
