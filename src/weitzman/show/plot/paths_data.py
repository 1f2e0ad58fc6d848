"""What happens step by step: a search, a line of boxes, a training run, a cut at some depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._common.arrays import FloatArray, IntArray
from ..._common.numbers import number
from ...engine.solution import Solution
from ...errors import InvalidArgument
from ...forest.model import Forest
from ...learn.run_model import RunModel
from ...policy.payoff_laws import state_called
from ...policy.search import Search
from .boxes_data import check_solution
from .tree_data import children


@dataclass(frozen=True, slots=True, eq=False)
class SearchPath:
    """A search, decision by decision. Entry 0 stands before the first opening.

    Attributes
    ----------
    names : list of str
        What was opened, in order.
    reward : (t,) array of float
        What each box showed; NaN for a signal without a reward.
    best, spent : (t + 1,) arrays of float
        Best reward so far and all costs so far.
    step, index : arrays
        Indices of the boxes that could be opened, and the opening (from 0) that came next.
    highest : (t + 1,) array of float
        The best of these indices; NaN if there was none.
    minimize, done : bool
    """

    names: list[str]
    reward: FloatArray
    best: FloatArray
    spent: FloatArray
    step: IntArray
    index: FloatArray
    highest: FloatArray
    minimize: bool
    done: bool


def search_path(search: Search, available: int = 12) -> SearchPath:
    """Replay a search and note which boxes could be opened before each step.

    The indices are those of the policy that is followed now.

    Examples
    --------
    >>> import weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=2)
    >>> search = weitzman.Search(weitzman.solve(chest))
    >>> search.tell(search.ask(), 0)
    >>> path = search_path(search)
    >>> path.best.tolist(), path.spent.tolist(), path.highest.tolist()
    ([0.0, 0.0], [0.0, 1.0], [8.0, 8.0])
    """
    policy, history = search.policy, search.history
    f = policy.forest
    again = Search(policy)
    step: list[int] = []
    index: list[float] = []
    highest = np.full(len(history) + 1, np.nan)
    for t in range(len(history) + 1):
        if t:
            o = history[t - 1]
            state = state_called(f, o.box.number, o.state_number)
            again.tell(o.box, state, reward=o.reward, cost=o.cost)
        seen = [x for _, x in again.available(available) if np.isfinite(x)]
        step += [t] * len(seen)
        index += seen
        highest[t] = seen[0] if seen else np.nan
    return SearchPath(
        names=[str(o.box) for o in history],
        reward=np.array([np.nan if o.reward is None else o.reward for o in history]),
        best=np.array([f.outside, *(o.best for o in history)]),
        spent=np.array([0.0, *(o.spent for o in history)]),
        step=np.array(step, np.int64),
        index=np.array(index, np.float64),
        highest=highest,
        minimize=f.minimize,
        done=search.done,
    )


@dataclass(frozen=True, slots=True, eq=False)
class LineGrid:
    """The indices of a line of boxes with the same states.

    Attributes
    ----------
    boxes : list of str
        The boxes after the first.
    states : list of str
        By rising reward; the rewards themselves where states have no names.
    named : bool
    index : (k, t) array
        ``index[s, j]`` of ``boxes[j]`` after the box before it showed ``states[s]``.
    go_on : (k, t) array of bool
        Whether it is worth opening when that state is the best reward seen so far.
    reward : (k,) array
    first : float
        Index of the first box.
    """

    boxes: list[str]
    states: list[str]
    named: bool
    index: FloatArray
    go_on: NDArray[np.bool_]
    reward: FloatArray
    first: float


def line_grid(solution: Solution, box: str | int | None = None) -> LineGrid:
    """The indices of the line that starts with a root, as a table of states and steps.

    Parameters
    ----------
    solution : Solution
    box : str or int, optional
        The first box of the line; by default the root of highest index.

    Examples
    --------
    >>> import weitzman
    >>> law = [[0.5, 0.5], [0.25, 0.75]]
    >>> line = weitzman.line(([1, 0], law), length=2, rewards=[0, 8], cost=1)
    >>> grid = line_grid(weitzman.solve(line))
    >>> grid.index[0].tolist(), grid.go_on.tolist()
    ([6.0], [[True], [False]])
    """
    check_solution(solution, "the picture of a line")
    f, policy = solution.forest, solution.policy()
    top = int(policy.root[0]) if box is None else f.box(box)
    way = follow_line(f, top)
    if way is None:
        raise InvalidArgument(
            f"a heat map needs a line: boxes with the same states, each behind the one before, "
            f"but the tree of box {f.name(top)!r} is not a line. Use plot.forest."
        )
    reward = f.rewards[int(f.reward[top])][0]
    sign = f.sign
    by = np.argsort(sign * reward, kind="stable")
    named = f.state_names[int(f.reward[top])] is not None
    index = np.stack([solution.indices(v)[by] for v in way[1:]], axis=1)
    in_hand = np.maximum(sign * reward[by], sign * f.outside)
    return LineGrid(
        boxes=[f.name(v) for v in way[1:]],
        states=[f.states(top)[s] for s in by] if named else [number(x) for x in reward[by]],
        named=named,
        index=index,
        go_on=sign * index > in_hand[:, None],
        reward=reward[by],
        first=float(solution.indices(top)[0]) if f.parent[top] < 0 else np.nan,
    )


def follow_line(f: Forest, top: int) -> list[int] | None:
    """The boxes of the line that starts here; None if the subtree is no line with equal states."""
    below, way = children(f), [top]
    while next_boxes := below(way[-1]):
        v = next_boxes[0]
        if len(next_boxes) > 1 or (f.reward[v] != f.reward[top] and not _same_states(f, v, top)):
            return None
        way.append(v)
    return way if len(way) > 1 else None


def _same_states(f: Forest, a: int, b: int) -> bool:
    same = np.array_equal(f.rewards[int(f.reward[a])], f.rewards[int(f.reward[b])])
    return same and f.states(a) == f.states(b)


def decision_region(
    model: RunModel, scores: ArrayLike, best: float | None = None
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Where a run is worth continuing.

    Parameters
    ----------
    model : LineModel
    scores : (m,) numbers
    best : float, optional
        The best score in hand; by default that of the run itself.

    Returns
    -------
    steps : (t,) array
        The steps at which there is something to decide.
    go_on : (m, t) array of bool
        Whether a run with ``scores[i]`` at ``steps[j]`` should go on.
    """
    y = np.asarray(scores, np.float64)
    steps = np.asarray(model.rungs)[:-1]  # after the last there is nothing to decide
    better = min if model.minimize else max
    go_on = np.zeros((len(y), len(steps)), bool)
    for i, score in enumerate(y.tolist()):
        in_hand = model.worth(score if best is None else better(score, best))
        for j, step in enumerate(steps.tolist()):
            go_on[i, j] = model.next_index([step], [score]) > in_hand
    return steps, go_on


class Cut(Protocol):
    """A forest cut off at some depth, with bounds on the value of the whole."""

    @property
    def forest(self) -> Forest:
        """The part that is kept."""
        ...

    @property
    def depth(self) -> int:
        """How many levels are kept."""
        ...

    @property
    def lower(self) -> float:
        """A lower bound on the value of the whole forest."""
        ...

    @property
    def upper(self) -> float:
        """An upper bound on the value of the whole forest."""
        ...


def truncation_data(cuts: Sequence[Cut], value: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Depth, certified bound and true loss of several cuts of one forest.

    Parameters
    ----------
    cuts : Truncations
        What ``weitzman.truncate`` returns for several gaps.
    value : float
        The true value of the whole forest.
    """
    depth = np.array([c.depth for c in cuts], np.float64)
    bound = np.array([c.upper - c.lower for c in cuts])
    loss = np.array([c.upper - value if c.forest.minimize else value - c.lower for c in cuts])
    return depth, bound, loss
