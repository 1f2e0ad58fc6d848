"""A problem and its optimal policy in plain words, for instances small enough to be read.

Many findings are told by a few thresholds: the rewards at which the policy decides otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from .._common.numbers import Amounts, counted, percent, whole
from .._common.text import printable
from ..engine.indices import Policy
from ..engine.solution import Solution, as_policy, mean_cost
from ..forest.columns import label
from ..forest.model import Forest
from .frontier import Box, Id
from .walk import Answer, Hands, Walk

_OUTCOMES = 12  # states of one box that are told one by one
_CASES = 200  # ways to come to a line of the text that are told apart
_LINES = 10_000  # no explanation is longer, whatever is asked for

Steps = tuple[tuple[Id, int], ...]


def describe(forest: Forest, *, lines: int = 40) -> str:
    """The boxes in words: what each costs and may show, and what must be opened before.

    At most so many lines of text, and one that says what is left out.
    """
    say, f = forest.amounts, forest
    rate = "" if f.rate is None else f" at the rate {f.rate:g}"
    quotas = " and ".join(f"{n} of {printable(g)}" for g, n in f.quotas)
    terms = {  # the objective and all settings that are not the default
        "Rewards are losses: the least loss plus all costs counts.": f.minimize,
        "Some reward must be taken.": np.isinf(f.outside),
        f"Outside option: {say(f.outside)}.": f.outside != 0 and np.isfinite(f.outside),
        f"What comes later is discounted{rate}.": f.factors is not None,
        f"The risk tolerance is {f.risk_tolerance}.": f.risk_tolerance is not None,
        f"Up to {f.prizes} rewards may be taken, one from each tree.": f.prizes > 1,
        f"At most {quotas}.": quotas,
    }
    text = [words for words, there in terms.items() if there]
    for v in range(len(forest)):
        for line in _box(forest, v, say):
            if len(text) >= lines:
                return "\n".join([*text, f"... and {counted(len(forest) - v, 'more box')}"])
            text.append(line)
    return "\n".join(text)


def explain(solution: Solution, *, lines: int = 60) -> str:
    """The optimal policy in words: what to open first, what after each finding, when to stop.

    A box with many outcomes is described by thresholds of its reward.

    Parameters
    ----------
    solution : Solution
    lines : int
        At most this many lines: of a longer policy only the first steps are given.

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
    telling = _Telling(as_policy(solution, "explain"), max(_OUTCOMES + 2, min(lines, _LINES)))
    telling.tell(1)
    text = telling.text
    for depth in range(2, telling.lines):  # every step takes a line
        if not telling.cut:
            break
        telling.tell(depth)
        if telling.full:
            break
        text = telling.text
    return "\n".join(text)


def _box(f: Forest, v: int, say: Amounts) -> Iterator[str]:
    up, law, cost = int(f.parent[v]), f.laws[int(f.law[v])], mean_cost(f, v)
    copies = f" ({whole(f.count[v])} copies)" if f.count[v] > 1 else ""
    copies = " (and so on, without end)" if f.endless[v] else copies
    if up < 0:
        shows = f"costs {cost_text(f, v, 0, say)}{_takes(f, v, 0)}, shows {_chances(f, v, 0, say)}"
        yield f"{printable(f.name(v))}{copies}: {shows}"
        return
    same = np.ptp(cost) == 0 and len({_takes(f, v, s) for s in range(len(law))}) == 1
    price = f"costs {cost_text(f, v, 0, say)}{_takes(f, v, 0)}, " if same else ""
    yield f"{printable(f.name(v))}{copies}: {price}can be opened after {printable(f.name(up))}"
    for s in range(len(law)):
        price = "" if same else f"costs {cost_text(f, v, s, say)}{_takes(f, v, s)}, "
        yield f"  after {state_text(f, up, s, say)}: {price}shows {_chances(f, v, s, say)}"


def cost_text(f: Forest, v: int, s: int, say: Amounts) -> str:
    """What opening costs after a state of the parent, for sure or on average."""
    sure = f.costs.shape[f.cost[v], 1] == 1
    return f"{say(float(mean_cost(f, v)[s]))}{'' if sure else ' on average'}"


def _takes(f: Forest, v: int, s: int) -> str:
    """How long opening takes after a state of the parent, for sure or on average."""
    if f.durations is None:
        return ""
    times = f.durations[int(f.cost[v])]
    row = times[s if len(times) > 1 else 0]
    mean = float(row[0]) if len(row) == 1 else float(f.laws[int(f.law[v])][s] @ row)
    return f", takes {mean:g}{'' if np.ptp(row) == 0 else ' on average'}"


def _chances(f: Forest, v: int, s: int, say: Amounts) -> str:
    law = f.laws[int(f.law[v])][s]
    found = np.flatnonzero(law)
    parts = [f"{state_text(f, v, y, say)} ({percent(law[y])})" for y in found[:_OUTCOMES].tolist()]
    if len(found) > _OUTCOMES:
        parts.append(f"{len(found) - _OUTCOMES} more")
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def state_text(f: Forest, v: int, y: int, say: Amounts) -> str:
    """A state by its reward if that is also its name, otherwise by name and reward."""
    row = int(f.reward[v])
    rewards, names = f.rewards[row][0], f.state_names[row]
    worth = say(float(rewards[y]))
    if names is not None and names[y] == label(rewards[y]):
        return worth
    if names is None and len(np.unique(rewards)) == len(rewards) and np.isfinite(rewards[y]):
        return worth
    name = f"state {y}" if names is None else printable(names[y])
    return f"{name}, worth {worth}" if np.isfinite(rewards[y]) else name


def best_text(walk: Walk, *, copies: bool = True) -> str:
    """The best so far and the box that holds it; a copy by its number if ``copies``."""
    best, box, _ = walk.best
    if walk.hands is not None:
        return f"{walk.amounts(best)}, all prizes together"
    if not np.isfinite(best):
        return "nothing"
    if box is None:
        return f"{walk.amounts(best)}, the outside option"
    return f"{walk.amounts(best)} from {printable(box if copies else box.name)}"


class _Telling:
    """The tree of what can happen under the optimal policy, described to a certain depth."""

    def __init__(self, policy: Policy, lines: int) -> None:
        self.walk, self.forest, self.lines = Walk(policy), policy.forest, lines
        self._cases: dict[object, list[Case] | None] = {}

    def tell(self, depth: int) -> None:
        """Fill ``text``. Set ``cut`` if the policy continues, ``full`` if lines did not suffice."""
        self.depth, self.cut, self.full = depth, False, False
        self.text: list[str] = []
        self._tell("", 0)
        self.text[0] = self.text[0][:1].upper() + self.text[0][1:]

    def _tell(self, after: str, level: int) -> None:
        """One line for what to do now, then all that can come of it."""
        if (prize := self.walk.next_prize()) is not None and len(self.text) < self.lines:
            with self.walk.supposing_taken(prize):
                name, reward = self.walk.box(prize), self.walk.answers[prize].reward or 0.0
                what = f"take {self.walk.amounts(reward)} from {printable(name)} for good, then "
                self._tell(after + what, level)
            return
        found = self.walk.next()
        if len(self.text) >= self.lines:
            self.full = True
        elif found is None and self.walk.hands is not None:
            self.text.append(f"{after}stop with {_taken(self.walk.hands)}.")
        elif found is None:
            self.text.append(f"{after}stop and take {best_text(self.walk, copies=False)}.")
        elif level == self.depth:
            self.cut = True
            self.text.append(f"{after}{self._opening(found[0])}, and so on.")
        else:
            self.text.append(f"{after}{self._opening(found[0])}.")
            self._branch(found[0], level + 1)

    def _opening(self, box: Id) -> str:
        f, v, s = self.forest, box[0], self.walk.state_above(box)
        say = self.walk.amounts
        closed = self.walk.closed(v)
        one = f"one of {whole(closed[v, s])} copies of " if closed[v, s] > 1 else ""
        which = ""
        if len(closed) > 1:  # copies behind different findings
            up = int(f.parent[v])
            which = f" behind {printable(f.name(up))} = {state_text(f, up, s, say)}"
        return f"open {one}{printable(f.name(v))}{which} (cost {cost_text(f, v, s, say)})"

    def _branch(self, box: Id, level: int) -> None:
        f, v, say = self.forest, box[0], self.walk.amounts
        name, margin = printable(f.name(v)), "  " * level
        law = f.laws[int(f.law[v])][self.walk.state_above(box)]
        found = np.flatnonzero(law).tolist()
        told_by_best = self.walk.hands is None  # several prizes have several thresholds
        if len(found) > _OUTCOMES and told_by_best and self._wide(box, [((), 1.0)], level):
            return
        for y in found[:_OUTCOMES]:
            after = f"{margin}If {name} shows {state_text(f, v, y, say)} ({percent(law[y])}): "
            with self.walk.supposing(box, y):
                self._tell(after, level)
        if len(found) > _OUTCOMES:
            rest = percent(float(law[found[_OUTCOMES:]].sum()))
            more = counted(len(found) - _OUTCOMES, "more outcome")
            self.text.append(f"{margin}... and {more} of {name} ({rest})")

    def _wide(self, box: Id, before: list[tuple[Steps, float]], level: int) -> bool:
        """Tell what comes of a box by thresholds; False if there are too many of them."""
        if len(before) > _CASES:
            return False
        key = box, tuple(before)
        if key not in self._cases:
            self._cases[key] = cases_after(self.walk, box, before)
        cases = self._cases[key]
        found = [] if cases is None else runs(cases)
        if not 0 < len(found) <= _OUTCOMES:
            return False
        name, whole = printable(self.forest.name(box[0])), sum(chance for _, chance in before)
        about = f"{name} shows" if len(before) == 1 else "the best so far is"
        for run, words in zip(found, ranges(found, self.walk.amounts, self.walk.sign), strict=True):
            share = percent(sum(case.chance for case in run) / whole)
            after = f"If {about} {words} ({share}): " if words else f"Whatever {name} shows: "
            self._tell_run(f"{'  ' * level}{after}", run, level)
        return True

    def _tell_run(self, after: str, run: list[Case], level: int) -> None:
        """One line for what to do in all these cases, then all that can come of it."""
        if len(self.text) >= self.lines:
            self.full = True
            return
        move = run[0].move
        if move is None:
            (box, _), best = run[0].steps[-1], [case.best for case in run]
            if len(set(best)) == 1:
                with standing(self.walk, run[0].steps):
                    prize = best_text(self.walk, copies=False)
            elif all(h is not None and (h.number, h.copy) == box for _, h in best):
                prize = f"what {printable(self.forest.name(box[0]))} shows"
            else:
                prize = f"the {'least loss' if self.forest.minimize else 'best reward'} found"
            self.text.append(f"{after}stop and take {prize}.")
            return
        with standing(self.walk, run[0].steps):
            opening = self._opening(move)
        if level == self.depth:
            self.cut = True
            self.text.append(f"{after}{opening}, and so on.")
            return
        at = len(self.text)
        self.text.append(f"{after}{opening}.")
        if not self._wide(move, [(case.steps, case.chance) for case in run], level + 1):
            self.text[at] = f"{after}{opening}, and so on."


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
    """All cases after opening a box, by the number that thresholds compare; None: no thresholds.

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
                    best, holder, _ = walk.best
                    move, index = walk.next() or (None, 0.0)
                measure = best if len(before) > 1 else reward
                case = Case(
                    (*steps, (box, y)), chance * float(law[y]), measure, (best, holder), move,
                    walk.sign * index,
                )  # fmt: skip
                key = case.measure, case.move, _still_matters(walk, case.steps)
                if key in found:
                    case = found[key]._replace(chance=found[key].chance + case.chance)
                found[key] = case
    return sorted(found.values(), key=lambda case: case.measure)


def _still_matters(walk: Walk, steps: Steps) -> Steps:
    """The findings on which closed boxes depend."""
    opened, policy = {box[0] for box, _ in steps}, walk.policy

    def open_end(v: int) -> bool:
        children = policy.child[policy.child_at[v] : policy.child_at[v + 1]].tolist()
        many = any(walk.forest.count[u] > 1 or walk.forest.endless[u] for u in children)
        return bool(walk.forest.endless[v]) or many or not opened.issuperset(children)

    return tuple((box, state) for box, state in steps if open_end(box[0]))


def runs(cases: Sequence[Case]) -> list[list[Case]]:
    """Neighboring cases with the same decision."""
    return [list(run) for _, run in groupby(cases, key=lambda case: case.move)]


def ranges(found: Sequence[Sequence[Case]], say: Amounts, sign: float) -> list[str]:
    """Each run by its thresholds: ``less than 3``, ``at least 3 and less than 7``, ``at least 7``.

    Between continuing and stopping the threshold is the index of the box that would be opened.
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


def why(walk: Walk) -> str:
    """Why to open the box that is next, or why to stop."""
    found = walk.next()
    if found is None and (prize := walk.next_prize()) is not None:
        reward = walk.amounts(walk.answers[prize].reward or 0.0)
        return (
            f"Take {reward} from {_name(walk, prize)} for good and close its tree: no box that can "
            f"be opened has an index {_words(walk)[0]} that."
        )
    return why_stop(walk) if found is None else why_open(walk, found[0])


def why_open(walk: Walk, box: Id) -> str:
    """Why to open, or not to open, a box that is out or can be opened."""
    state = walk.state_above(box)
    index, best = walk.frontier.index(box[0], state), walk.bar
    above, higher = _words(walk)
    name, shown = _name(walk, box), walk.amounts(walk.sign * index)
    if box in walk.answers:
        shown = printable(walk.state_name(box[0], walk.answers[box].state))
        return f"{name} was opened already and showed {shown}."
    if index <= best and box not in walk.out:
        return f"Do not open {name}: its index {shown} is not {above} {_so_far(walk)}."
    if index <= best:
        return (
            f"{name} is handed out, but its index {shown} is not {above} {_so_far(walk)} any "
            f"more: give it back if it is not being opened yet."
        )
    what = f"Open {name} (cost {cost_text(walk.forest, box[0], state, walk.amounts)})"
    top = walk.top()
    rest = ""
    if top is None or top[1] <= index:
        rest = f", and no box that can be opened has a {higher} one"
    return f"{what}: its index {shown} is {above} {_so_far(walk)}{rest}."


def why_stop(walk: Walk) -> str:
    """Why to open no further box."""
    if walk.hands is not None and not walk.out:
        places = f"{_taken(walk.hands)} taken"
        why = "all places are filled" if walk.hands.full else (
            f"no index and no reward in hand is {_words(walk)[0]} the outside option"
        )  # fmt: skip
        return f"Stop, {places}: {why}."
    above, higher = _words(walk)
    most = higher[:-1] + "st"
    top = walk.top()
    if walk.out:
        names = [_name(walk, box) for box in list(walk.out)[:4]]
        more = f" and {len(walk.out) - 4} more" if len(walk.out) > 4 else ""
        what = f"Wait for {', '.join(names)}{more}"
        over = _so_far(walk)
    else:
        what, over = f"Stop and take {best_text(walk)}", "that"
    if top is None:
        return f"{what}: no other box can be opened now." if walk.out else (
            f"{what}: no box is left to open."
        )  # fmt: skip
    (box, index), other = top, "other " if walk.out else ""
    best = ""
    if math.isfinite(index):
        best = f"; the {most} is {walk.amounts(walk.sign * index)}, of {_name(walk, box)}"
    return f"{what}: no {other}box that can be opened has an index {above} {over}{best}."


def taken_back(
    walk: Walk, box: Id, seen: Answer, before: tuple[float, Box | None, float], out: Sequence[Id]
) -> str:
    """What is different now that an answer was undone; ``before`` and ``out`` as they were."""
    say = walk.amounts
    shown = walk.state_name(box[0], seen.state) if seen.reward is None else say(seen.reward)
    best, _, spent = walk.best
    what = "The least loss so far" if walk.forest.minimize else "The best so far"
    if best == before[0]:
        better = f"{what} stays {best_text(walk)}"
    else:
        where = "the outside option" if walk.best[1] is None else f"from {printable(walk.best[1])}"
        held = f"{say(best)} ({where})" if math.isfinite(best) else "nothing"
        better = f"{what} is {held} instead of {say(before[0])}"
    lost = [_name(walk, box) for box in out if box not in walk.out]
    more = f" Not handed out any more: {', '.join(lost)}." if lost else ""
    paid = f"{say(spent)} is spent instead of {say(before[2])}"
    return f"Took back {printable(shown)} from {_name(walk, box)}. {better}, and {paid}.{more}"


def _taken(hands: Hands) -> str:
    """How many places are filled, with quotas also by group."""
    filled = [f"{hands.filled[g]} of {n} {printable(g)}" for g, n in hands.quotas.items()]
    groups = f" ({', '.join(filled)})" if filled else ""
    return f"{len(hands.taken)} of {hands.places} prizes{groups}"


def _name(walk: Walk, box: Id) -> str:
    return printable(walk.box(box))


def _words(walk: Walk) -> tuple[str, str]:
    return ("below", "lower") if walk.forest.minimize else ("above", "higher")


def _so_far(walk: Walk) -> str:
    if walk.hands is not None:
        return f"every reward in hand and the outside option ({walk.amounts(walk.sign * walk.bar)})"
    what = "the least loss so far" if walk.forest.minimize else "the best so far"
    return f"{what} ({best_text(walk)})"
