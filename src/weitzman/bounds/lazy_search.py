"""Search a lazy forest: ask, tell, and expand what the answers make interesting.

:class:`weitzman.Search` does all bookkeeping, journal included. Its model holds the boxes opened so
far and their children; after each answer the model is replaced by one with the new children and the
current lower bounds of the indices. The journal does not hold these models, because the lazy forest
can make them again: each event has a checksum of its box, to compare.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray, check_amounts, check_counts
from ..engine.indices import Policy
from ..errors import UnknownName
from ..forest.model import Forest
from ..policy.frontier import Box
from ..policy.ledger import Event, Record, changed
from ..policy.search import Search, Standing
from ..policy.walk import Opened, Walk
from .lazy_forest import LazyForest
from .refining import Closed, Decision, InPlay, Situation, refine

if TYPE_CHECKING:
    from ..files.event_log import Path
    from ..policy.ledger import Rule, State


class _Found(NamedTuple):
    """What is known about the current situation; higher is better."""

    decision: Decision
    lower: float
    upper: float
    expanded: int


class LazySearch(Standing):
    """A search through a lazy forest, one box at a time; the forest is expanded as answers come in.

    Decisions depend on the answers alone, so a search resumed from its journal continues as if it
    never stopped.

    Parameters
    ----------
    lazy : LazyForest
    gap : float
        Expand until the decision at hand is proven, or loses at most this.
    budget : int
        Nodes expanded for one decision, at most.
    journal, rewards
        As in :class:`weitzman.Search`.

    Examples
    --------
    >>> from weitzman import LazyForest, LazySearch, Node
    >>> def box(law):
    ...     return Node(law=law, rewards=[0.0, 8.0], cost=1.0)
    >>> tree = LazyForest([box([0.5, 0.5])], lambda node: [box([[0.5, 0.5], [0.9, 0.1]])] * 2,
    ...                   least_cost=1.0, branching=2)
    >>> search = LazySearch(tree)
    >>> search.tell(search.ask(), reward=0)
    >>> search.ask()
    '0.0'
    >>> search.tell("0.0", reward=8)
    >>> search.ask() is None, search.proven, search.payoff
    (True, True, 6.0)
    """

    def __init__(
        self, lazy: LazyForest, *, gap: float = 0.0, budget: int = 10_000,
        journal: Path | None = None, rewards: Rule = "refuse",
    ) -> None:  # fmt: skip
        self._set(lazy, gap, budget)
        policy = self._decide([], lazy.outside)
        self._record = Record.start(policy, rewards, journal, lazy=True)
        self._search = Search._of(self._record)

    @classmethod
    def resume(
        cls, lazy: LazyForest, path: Path, *, gap: float = 0.0, budget: int = 10_000,
        take_over: bool = False,
    ) -> LazySearch:  # fmt: skip
        """Continue a search from its journal, as the only process that does.

        The lazy forest must be made in the same way as before; the boxes in the journal are
        compared with what its function returns now. ``take_over`` as in :meth:`Search.resume
        <weitzman.Search.resume>`.
        """
        self = cls.__new__(cls)
        self._set(lazy, gap, budget)

        def model(events: list[Event]) -> Policy:
            opened = [str(event.box) for event in events if event.kind == "tell"]
            forest = self._visible(opened)[1]
            return Policy.of(forest, *_no_indices(forest))

        self._record = Record.open(path, alone=True, take_over=take_over, model=model)
        self._search = Search._of(self._record)
        self._told = -1  # the model has no indices yet
        return self

    def _set(self, lazy: LazyForest, gap: float, budget: int) -> None:
        check_amounts(gap=gap)
        check_counts(0, budget=budget)
        self._lazy, self._gap, self._budget = lazy, gap, budget
        self._told = 0  # answers that the model has
        self._found: _Found

    # -- asking and telling --------------------------------------------------------------------

    def ask(self) -> Box | None:
        """The box to open next; None: stop. The same box until you call ``tell`` or ``release``."""
        if pending := self.pending:
            return pending[0]
        self._now()
        return self._search.ask()

    def tell(
        self, box: str, state: State | None = None, *, reward: float | None = None,
        cost: float | None = None,
    ) -> None:  # fmt: skip
        """Say what a box showed, as in :meth:`Search.tell <weitzman.Search.tell>`.

        With a journal, it is on disk when this returns.
        """
        try:
            self._search.policy.forest.box(box)
        except UnknownName:  # perhaps a child of the box told last
            self._now()
        self._search.tell(box, state, reward=reward, cost=cost)

    def undo(self, box: str | None = None) -> str:
        """Take an answer back, as in :meth:`Search.undo <weitzman.Search.undo>`."""
        self._now()
        said = self._search.undo(box)
        self._told = -1
        return said

    # -- how it stands -------------------------------------------------------------------------

    @property
    def proven(self) -> bool:
        """Whether the decision at hand is optimal for sure."""
        return self._now().decision.proven

    @property
    def regret(self) -> float:
        """The most that the decision at hand may lose."""
        return self._now().decision.regret

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds on the payoff from now on: the final reward less (or plus) the costs to come."""
        _, low, high, _ = self._now()
        return (-high, -low) if self._lazy.minimize else (low, high)

    @property
    def expanded(self) -> int:
        """Nodes expanded for the decision at hand."""
        return self._now().expanded

    @property
    def done(self) -> bool:
        """Whether no box is out and none is worth opening."""
        self._now()
        return self._search.done

    def available(self, limit: int | None = 20) -> list[tuple[Box, float]]:
        """The boxes that can be opened now, best first, with the lower bounds of their indices."""
        self._now()
        return self._search.available(limit)

    def explain(self) -> str:
        """Why to open the box that is next, or why to stop, and how sure that is."""
        found = self._now()
        sure = "This is proven" if found.decision.proven else (
            f"This is not proven and may lose up to {found.decision.regret:.3g}"
        )  # fmt: skip
        return f"{self._search.explain()} {sure}, with {found.expanded} nodes expanded."

    def __repr__(self) -> str:
        return f"Lazy{self._search!r}"

    # -- details -------------------------------------------------------------------------------

    def _now(self) -> _Found:
        """What is known, decided again if there are answers that the model does not have."""
        history = self.history
        if len(history) != self._told:
            self._record.substitute(self._decide(history, self.best))
            self._told = len(history)
        return self._found

    def _decide(self, history: list[Opened], best: float) -> Policy:
        """Expand until the decision is good enough; the lower bounds of the indices as a policy."""
        seen, forest = self._visible([told.box.name for told in history])
        at, index = _no_indices(forest)
        left = Walk.along(Policy.of(forest, at, index), history).closed()
        # in the order of ties, so that what is decided is what the search will hand out
        ranked = [Closed(seen.node[v], state, left[v, state]) for v, state in sorted(left)]
        if not ranked:
            sign = forest.sign
            held = sign * best
            self._found = _Found(Decision(None, 0.0, True, held), held, held, 0)
            return Policy.of(forest, at, index)
        outcome = refine(
            self._lazy.in_play(Situation(ranked, best)),
            lambda now, _: now.proven or now.regret <= self._gap, self._budget,
        )  # fmt: skip
        expanded, low, high = outcome.history[-1]
        self._found = _Found(outcome.decision, low, high, expanded)
        place, bracket = {v: i for i, v in enumerate(seen.node)}, outcome.bracket
        for closed, low in zip(ranked, bracket.low_index.tolist(), strict=True):
            index[at[place[closed.node]] + closed.state] = bracket.sign * low
        return Policy.of(forest, at, index)

    def _visible(self, opened: Iterable[str]) -> tuple[InPlay, Forest]:
        """What was opened, and all children of it."""
        seen = self._lazy.in_play(None)
        place: dict[str, int] = {}
        expanded: set[str] = set()
        for box in opened:
            for i in range(len(place), len(seen)):
                place[seen.tree.nodes[seen.node[i]].name] = i
            name = box if box in place else box.rpartition("#")[0]
            if name not in place:
                raise changed(repr(box))
            if name not in expanded:  # else another copy of it was
                expanded.add(name)
                seen.expand(place[name])
        return seen, seen.forest(named=True)


def _no_indices(forest: Forest) -> tuple[IntArray, FloatArray]:
    """Indices for all boxes, each as low as possible."""
    rows = forest.laws.shape[forest.law, 0]
    index = np.full(int(rows.sum()), np.inf if forest.minimize else -np.inf)
    return np.cumsum(rows) - rows, index
