"""A problem and its optimal policy in plain words, for instances small enough to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .._common.text import printable
from ..engine.solution import Solution, mean_cost
from ..forest.columns import label
from ..forest.model import Forest

_OUTCOMES = 12  # states of one box that are told one by one
_LINES = 10_000  # no explanation is longer, whatever is asked for


def describe(forest: Forest, *, lines: int = 40) -> str:
    """The boxes in words: what each costs and may show, and what must be opened before.

    Parameters
    ----------
    forest : Forest
    lines : int
        At most so many lines of text, and one that says what is left out.
    """
    text: list[str] = []
    for v in range(len(forest)):
        for line in _box(forest, v):
            if len(text) >= lines:
                return "\n".join([*text, f"... and {len(forest) - v} more boxes"])
            text.append(line)
    return "\n".join(text)


def explain(solution: Solution, *, lines: int = 60) -> str:
    """The optimal policy in words: what to open first, what after each finding, when to stop.

    Parameters
    ----------
    solution : Solution
    lines : int
        At most so many lines of text. If the whole policy is longer, its first steps are told.

    Examples
    --------
    >>> import weitzman
    >>> forest = weitzman.Forest.from_arrays(
    ...     parent=[-1, -1], cost=[1, 2], rewards=[0.0, 10.0], law=[[0.5, 0.5], [0.2, 0.8]],
    ...     names=["left", "right"])
    >>> print(explain(weitzman.solve(forest)))
    Open left (cost 1).
      If left shows 0 (50%): open right (cost 2).
        If right shows 0 (20%): stop and take 0, the outside option.
        If right shows 10 (80%): stop and take 10 from right.
      If left shows 10 (50%): stop and take 10 from left.
    """
    walk = _Walk(solution, max(_OUTCOMES + 2, min(lines, _LINES)))
    walk.tell(1)
    text = walk.text
    for depth in range(2, walk.lines):  # every step takes a line
        if not walk.cut:
            break
        walk.tell(depth)
        if walk.full:
            break
        text = walk.text
    return "\n".join(text)


# -- boxes -------------------------------------------------------------------------------------


def _box(f: Forest, v: int) -> Iterator[str]:
    up, law, cost = int(f.parent[v]), f.laws[int(f.law[v])], mean_cost(f, v)
    copies = f" ({f.count[v]} copies)" if f.count[v] > 1 else ""
    copies = " (and so on, without end)" if f.endless[v] else copies
    if up < 0:
        yield f"{printable(f.name(v))}{copies}: costs {_cost(f, v, 0)}, shows {_chances(f, v, 0)}"
        return
    price = f"costs {_cost(f, v, 0)}, " if np.ptp(cost) == 0 else ""
    yield f"{printable(f.name(v))}{copies}: {price}can be opened after {printable(f.name(up))}"
    for s in range(len(law)):
        price = f"costs {_cost(f, v, s)}, " if np.ptp(cost) > 0 else ""
        yield f"  after {_state(f, up, s)}: {price}shows {_chances(f, v, s)}"


def _cost(f: Forest, v: int, s: int) -> str:
    sure = f.costs.shape[f.cost[v], 1] == 1
    return f"{mean_cost(f, v)[s]:.6g}{'' if sure else ' on average'}"


def _chances(f: Forest, v: int, s: int) -> str:
    law = f.laws[int(f.law[v])][s]
    found = np.flatnonzero(law)
    parts = [f"{_state(f, v, y)} ({_percent(law[y])})" for y in found[:_OUTCOMES].tolist()]
    if len(found) > _OUTCOMES:
        parts.append(f"{len(found) - _OUTCOMES} more")
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def _state(f: Forest, v: int, y: int) -> str:
    """A state by its reward if that says it all, else by name and reward."""
    row = int(f.reward[v])
    rewards, names = f.rewards[row][0], f.state_names[row]
    worth = f"{rewards[y]:.6g}"
    if names is not None and names[y] == label(rewards[y]):
        return worth
    if names is None and len(np.unique(rewards)) == len(rewards) and np.isfinite(rewards[y]):
        return worth
    name = f"state {y}" if names is None else printable(names[y])
    return f"{name}, worth {worth}" if np.isfinite(rewards[y]) else name


def _percent(p: float) -> str:
    return f"{100 * p:.3g}%"


# -- the policy --------------------------------------------------------------------------------

Key = tuple[int, int]  # a box and the state of its parent (0 for a root)


class _Best(NamedTuple):
    reward: float
    source: str

    def __str__(self) -> str:
        return f"{self.reward:.6g}{self.source}" if np.isfinite(self.reward) else "nothing"


class _Walk:
    """The tree of what can happen under the optimal policy, told to a certain depth."""

    def __init__(self, solution: Solution, lines: int) -> None:
        f = solution.forest
        self.solution, self.forest, self.lines = solution, f, lines
        self.sign = f.sign
        self.by_parent = np.argsort(f.parent, kind="stable")
        self.parents = f.parent[self.by_parent]
        roots = sorted(f.roots.tolist(), key=lambda v: -self._index((v, 0)))
        self.start = Counter({(v, 0): int(f.count[v]) for v in roots[:lines]})  # enough for all

    def tell(self, depth: int) -> None:
        """Fill ``text``. Set ``cut`` if the policy goes on, ``full`` if lines did not suffice."""
        self.depth, self.cut, self.full = depth, False, False
        self.text: list[str] = []
        self._tell("", _Best(self.forest.outside, ", the outside option"), self.start, 0)
        self.text[0] = self.text[0][:1].upper() + self.text[0][1:]

    def _index(self, key: Key) -> float:
        return self.sign * float(self.solution.indices(key[0])[key[1]])

    def _tell(self, after: str, best: _Best, closed: Counter[Key], level: int) -> None:
        """One line for what to do now, then all that can come of it."""
        top = max(closed, key=lambda key: (self._index(key), -key[0]), default=None)
        if len(self.text) >= self.lines:
            self.full = True
        elif top is None or self._index(top) <= self.sign * best.reward:
            self.text.append(f"{after}stop and take {best}.")
        elif level == self.depth:
            self.cut = True
            self.text.append(f"{after}{self._opening(top, closed)}, and so on.")
        else:
            self.text.append(f"{after}{self._opening(top, closed)}.")
            self._branch(top, best, closed, level + 1)

    def _opening(self, top: Key, closed: Counter[Key]) -> str:
        f, (v, s) = self.forest, top
        one = f"one of {closed[top]} copies of " if closed[top] > 1 else ""
        which = ""
        if any(u == v and state != s for u, state in closed):  # copies behind different findings
            up = int(f.parent[v])
            which = f" behind {printable(f.name(up))} = {_state(f, up, s)}"
        return f"open {one}{printable(f.name(v))}{which} (cost {_cost(f, v, s)})"

    def _branch(self, top: Key, best: _Best, closed: Counter[Key], level: int) -> None:
        f, v = self.forest, top[0]
        name, margin = printable(f.name(v)), "  " * level
        law, rewards = f.laws[int(f.law[v])][top[1]], f.rewards[int(f.reward[v])][0]
        lo, hi = np.searchsorted(self.parents, [v, v + 1])
        children = [v] if f.endless[v] else self.by_parent[lo:hi].tolist()
        left = closed - Counter([top])
        found = np.flatnonzero(law).tolist()
        for y in found[:_OUTCOMES]:
            better = self.sign * rewards[y] > self.sign * best.reward
            now = _Best(float(rewards[y]), f" from {name}") if better else best
            below = Counter({(u, y): int(f.count[u]) for u in children})
            after = f"{margin}If {name} shows {_state(f, v, y)} ({_percent(law[y])}): "
            self._tell(after, now, left + below, level)
        if len(found) > _OUTCOMES:
            rest = _percent(float(law[found[_OUTCOMES:]].sum()))
            self.text.append(
                f"{margin}... and {len(found) - _OUTCOMES} more outcomes of {name} ({rest})"
            )
