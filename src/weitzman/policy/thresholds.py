"""Many findings told by few thresholds: at which rewards the policy decides otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._common.numbers import Amounts
from .frontier import Box, Id
from .walk import Walk

Steps = tuple[tuple[Id, int], ...]


class Case(NamedTuple):
    """One way in which things may have gone, and what the policy does then."""

    steps: Steps  # what boxes have shown since the text branched
    chance: float
    measure: float  # what thresholds are about: the reward just shown, or the best so far
    best: tuple[float, Box | None]
    move: Id | None  # the box to open; None: stop
    threshold: float  # the index of that box


@contextmanager
def standing(walk: Walk, steps: Steps) -> Iterator[None]:
    """Stand as if boxes had shown states, one after the other; afterwards as before."""
    with ExitStack() as stack:
        for box, state in steps:
            stack.enter_context(walk.supposing(box, state))
        yield


def cases_after(walk: Walk, box: Id, before: Sequence[tuple[Steps, float]]) -> list[Case] | None:
    """All that can come of opening a box, by what thresholds are about; None: no thresholds.

    Cases with the same future are one. ``before`` are the ways to come here, with their chances.
    """
    found: dict[object, Case] = {}
    for steps, chance in before:
        with standing(walk, steps):
            law = walk.forest.laws[int(walk.forest.law[box[0]])][walk.state_above(box)]
            for y in np.flatnonzero(law).tolist():
                reward = walk.reward(box[0], y)
                if reward is None:
                    return None
                with walk.supposing(box, y):
                    case = _case(walk, (*steps, (box, y)), chance * float(law[y]))
                case = case if len(before) > 1 else case._replace(measure=reward)
                key = case.measure, case.move, _still_matters(walk, case.steps)
                if key in found:
                    case = found[key]._replace(chance=found[key].chance + case.chance)
                found[key] = case
    return sorted(found.values(), key=lambda case: case.measure)


def _case(walk: Walk, steps: Steps, chance: float) -> Case:
    best, holder, _ = walk.best
    box, index = walk.next() or (None, 0.0)
    return Case(steps, chance, best, (best, holder), box, walk.sign * index)


def _still_matters(walk: Walk, steps: Steps) -> Steps:
    """The findings that closed boxes look at."""
    opened, policy = {box[0] for box, _ in steps}, walk.policy

    def open_end(v: int) -> bool:
        children = policy.child[policy.child_at[v] : policy.child_at[v + 1]].tolist()
        many = any(walk.forest.count[u] > 1 or walk.forest.endless[u] for u in children)
        return bool(walk.forest.endless[v]) or many or not opened.issuperset(children)

    return tuple((box, state) for box, state in steps if open_end(box[0]))


def runs(cases: Sequence[Case]) -> list[list[Case]]:
    """Neighbors that decide alike."""
    out: list[list[Case]] = []
    for case in cases:
        if not out or out[-1][-1].move != case.move:
            out.append([])
        out[-1].append(case)
    return out


def ranges(found: Sequence[Sequence[Case]], say: Amounts, sign: float) -> list[str]:
    """Each run by its thresholds: ``less than 3``, ``at least 3 and less than 7``, ``at least 7``.

    Between going on and stopping the threshold is the index of the box that would be opened.
    """
    lower, upper = [""], []
    for below, above in pairwise(found):
        going_on, stopping = (below, above) if sign > 0 else (above, below)
        index = going_on[0].threshold
        low, high = below[-1].measure, above[0].measure
        if stopping[0].move is not None or going_on[0].move is None or not low <= index <= high:
            lower.append(f"at least {say(high)}")
            upper.append(f"less than {say(high)}")
        elif sign > 0:
            lower.append(f"at least {say(index)}")
            upper.append(f"less than {say(index)}")
        else:
            lower.append(f"more than {say(index)}")
            upper.append(f"at most {say(index)}")
    ends = zip(lower, [*upper, ""], strict=True)
    return [" and ".join(filter(None, pair)) for pair in ends]
