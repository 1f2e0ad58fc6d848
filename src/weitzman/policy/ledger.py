"""What a search handed out and was told, changed only by events; which state a reward means."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from .._common.arrays import FloatArray, IntArray
from .._common.numbers import counted
from ..engine.indices import Policy
from ..errors import InvalidAnswer, InvalidForest, UnknownName
from ..forest.model import Forest
from .frontier import Box, Copy, Id
from .walk import Walk

Rule = Literal["refuse", "nearest"] | Sequence[float]
"""What to make of a reward that is not among those of the box."""

_SHOWN = 8  # rewards told in a message

_COPY = re.compile(r"(.*)#([1-9][0-9]*(?:\.[1-9][0-9]*)*)", re.DOTALL)

State = str | int | float
Kind = Literal["ask", "tell", "take", "release", "resume", "replace", "undo"]


def checked_rule(rule: Rule) -> Literal["refuse", "nearest"] | tuple[float, ...]:
    """The rule in the form in which it is stored; an error if it is not a rule."""
    if isinstance(rule, str):
        if rule in ("refuse", "nearest"):
            return rule
        edges: tuple[float, ...] = ()
    else:
        try:
            edges = tuple(float(x) for x in rule)
        except (TypeError, ValueError):
            edges = ()
    rising = all(a < b for a, b in pairwise(edges))
    if not edges or not rising or not all(map(math.isfinite, edges)):
        raise InvalidAnswer(
            f'`rewards` must be "refuse", "nearest" or a rising list of finite edges of bins, but '
            f"got {rule!r}."
        )
    return edges


def number(x: object, what: str) -> float:
    """A finite number, or an error."""
    try:
        if isinstance(x, str | bytes | bool):
            raise TypeError
        value = float(x)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise InvalidAnswer(f"{what} must be a finite number, but got {x!r}.")
    return value + 0.0  # -0.0 and 0.0 are one number


def state_of(forest: Forest, box: int, above: int, reward: float, rule: Rule) -> int:
    """The state that a reward stands for: the state with this reward, otherwise by the rule.

    States that are impossible after ``above``, the state of the parent, only count if no possible
    state has exactly this reward.
    """
    rewards = forest.rewards[int(forest.reward[box])][0]
    likely = np.where(forest.laws[int(forest.law[box])][above] > 0, rewards, np.nan)
    found = np.flatnonzero(likely == reward)
    if len(found) == 0:
        found = np.flatnonzero(rewards == reward)
    if len(found) == 0:
        found = _by_rule(likely, reward, rule, forest.name(box))
    if len(found) > 1:
        shared = ", ".join(forest.states(box)[y] for y in found[:_SHOWN].tolist())
        raise InvalidAnswer(
            f"a reward must tell the state, but {reward:g} fits {len(found)} states of box "
            f"{forest.name(box)!r}: {shared}. Give the state as well."
        )
    return int(found[0])


def _by_rule(rewards: FloatArray, reward: float, rule: Rule, name: str) -> IntArray:
    finite = np.unique(rewards[np.isfinite(rewards)])
    if rule == "refuse" or finite.size == 0:
        known = ", ".join(f"{x:.12g}" for x in finite[:_SHOWN]) or "none"
        more = f" and {len(finite) - _SHOWN} more" if len(finite) > _SHOWN else ""
        raise InvalidAnswer(
            f"{reward:.12g} is not among the rewards of box {name!r}, which are {known}{more}. "
            f'Give the state, or start the search with rewards="nearest" or with edges of bins.'
        )
    if rule == "nearest":
        return np.flatnonzero(rewards == finite[np.argmin(np.abs(finite - reward))])
    edges = np.asarray(rule, np.float64)
    bins, own = np.searchsorted(edges, rewards, side="right"), int(np.sum(edges <= reward))
    found = np.flatnonzero((bins == own) & np.isfinite(rewards))
    if len(found) == 0:
        ends = [-math.inf, *map(float, edges), math.inf]
        raise InvalidAnswer(
            f"box {name!r} has no reward in the bin from {ends[own]:g} to {ends[own + 1]:g}, where "
            f"{reward:g} lies. Give the state."
        )
    return found


class Event(NamedTuple):
    """One thing that happened; a journal keeps all but the worker, in this order.

    ``mark`` says what the box of a lazy search was like, ``by`` names the process that resumes.
    """

    worker: str
    kind: Kind
    box: str | None = None
    state: int | None = None
    reward: float | None = None
    cost: float | None = None
    mark: int | None = None
    by: str | None = None


class Ledger(Walk):
    """The state of a search; a function of the policy, the rule and the events in their order."""

    def __init__(self, policy: Policy, rule: Rule, me: str) -> None:
        _check_names(policy)
        super().__init__(policy)
        self.rule, self.me = rule, me
        self._copies = bool(self._numbered.any())
        self.gone: set[str] = set()  # workers that have boxes out and are not there any more
        self.owner = ""  # who resumed the search last
        self.owned_by = ""  # the process of that worker, in words

    def mine(self) -> list[Id]:
        """The boxes that this worker has out, in the order in which they were handed out."""
        return [box for box, (worker, _) in self.out.items() if worker == self.me]

    def left(self) -> list[Id]:
        """The boxes that are out with workers that are gone."""
        return [box for box, (worker, _) in self.out.items() if worker in self.gone]

    def locate(self, box: str | int) -> Id:
        """The box that a handle, its text or a number stands for."""
        f = self.forest
        if isinstance(box, Box) and box.number < len(f) and f.name(box.number) == box.name:
            return box.number, box.copy
        if isinstance(box, str) and self._copies:
            name, _, copy = box.rpartition("#")
            if copy.isdecimal() and copy.isascii() and copy[0] != "0":  # most; faster
                found: Copy | None = (int(copy),)
            elif parts := _COPY.fullmatch(box):
                name, found = parts[1], tuple(map(int, parts[2].split(".")))
            else:
                found = None
            if found is not None:
                with suppress(UnknownName):  # the name of a box may look like a copy of another
                    return f.box(name), found
        return f.box(box), ()

    # -- what can happen -----------------------------------------------------------------------

    def answer(
        self, box: str | int, state: State | None, reward: object, cost: object
    ) -> Event | None:
        """The event of an answer, checked; None if it was told before."""
        here = self.locate(box)
        v = here[0]
        true = None if reward is None else number(reward, "a reward")
        paid = None if cost is None else number(cost, "a cost")
        if paid is not None and paid < 0:
            raise InvalidAnswer(f"a cost must not be negative, but got {paid:g}.")
        if here in self.answers:
            self._check_same(here, state, true, paid)
            return None
        above = self.state_above(here)
        if state is not None:
            y = self._state(here, state)
        elif true is not None:
            y = state_of(self.forest, v, above, true, self.rule)
        else:
            raise InvalidAnswer(f"say what box {self.box(here)!r} showed: a state or reward=.")
        if true is None:
            true = self.reward(v, y)
        if paid is None:
            paid = self.cost(v, above, y)
        return Event(self.me, "tell", self.box(here), y, true, paid)

    def taking(self, box: str | int) -> list[Event]:
        """The event of taking a reward, checked; none if it was taken before."""
        if self.hands is None:
            raise InvalidAnswer(
                "rewards are taken one by one where there are several prizes, but here is only one:"
                " stop, and the best reward is yours."
            )
        here = self.locate(box)
        return [Event(self.me, "take", self.box(here))] if self.hands.check(here) else []

    def giving_back(self, box: str | int) -> Event:
        """The event of a release, checked."""
        here = self.locate(box)
        if here not in self.out:
            told = here in self.answers
            why = "its answer is known already" if told else "it is not handed out"
            raise InvalidAnswer(f"box {self.box(here)!r} cannot be given back: {why}.")
        return Event(self.me, "release", self.box(here))

    def taking_back(self, box: str | int | None) -> Event:
        """The event of an answer that is taken back, by default the last one, checked."""
        if not self.answers:
            raise InvalidAnswer("there is no answer to take back.")
        here = next(reversed(self.answers)) if box is None else self.locate(box)
        if here not in self.answers:
            raise InvalidAnswer(f"box {self.box(here)!r} has no answer to take back.")
        if self.hands is not None and self.hands.tree(here) in self.hands.taken:
            raise InvalidAnswer(
                f"an answer can be taken back until a prize of its tree is taken, but that of the "
                f"tree of {self.box(here)!r} was."
            )
        below = self._open_below(here)
        if below:
            more = f" and {len(below) - 1} more" if len(below) > 1 else ""
            raise InvalidAnswer(
                f"the answer of a box can be taken back while no box below it is open, but below "
                f"{self.box(here)!r} {self.box(below[0])!r}{more} is open. Take that back first."
            )
        return Event(self.me, "undo", self.box(here))

    # -- what happens --------------------------------------------------------------------------

    def apply(self, event: Event, number: int) -> None:
        """Carry out an event that was checked, or that a journal holds."""
        worker, kind, box, state, reward, cost, _, by = event
        if kind == "resume":
            self.out.update({x: (worker, since) for x, (_, since) in self.out.items()})
            self.owner, self.owned_by = worker, by or ""
            return
        here = self.locate(box)  # type: ignore[arg-type]
        if kind == "ask":
            self.out[here] = worker, number
            self.frontier.top()  # passes it over, so that giving back does not put it in twice
        elif kind == "tell":
            asker, _ = self.out.pop(here, ("", 0))
            if here not in self.answers:
                self.state_above(here)  # or an error, which a damaged journal may deserve
                self._check_possible(here[0], state, reward, cost)
                self.open(here, state, reward, cost, number, asker)  # type: ignore[arg-type]
        elif kind == "release":
            self.frontier.put_back(here, self.state_above(here))
            self.out.pop(here, None)
        elif kind == "take" and self.hands is not None:
            self.hands.take(here, self.answers[here].reward)  # type: ignore[arg-type]
        elif kind == "undo":
            self._take_back(here)
        else:
            raise ValueError(f"there is no event {kind!r}")

    def _take_back(self, here: Id) -> None:
        """As if the answer had never been given: boxes below are not out, and this one is again."""
        answer, out = self.close(here), dict(self.out)
        self.out.clear()
        if answer.worker:
            self.out[here] = answer.worker, answer.number
            self.frontier.top()
        self.out.update({x: asked for x, asked in out.items() if self.above(x) != here})

    def _open_below(self, here: Id) -> list[Id]:
        """Open boxes right below one, the last first."""
        at, found = self.policy.child_at, list[Id]()
        children = set(self.policy.child[at[here[0]] : at[here[0] + 1]].tolist())
        for box in reversed(self.answers) if children else ():
            if box == here:  # all before were opened before
                break
            if box[0] in children and self.above(box) == here:
                found.append(box)
        return found

    def _check_possible(self, v: int, state: object, reward: object, cost: object) -> None:
        """What a journal says of an answer could be true."""
        f = self.forest
        if not (
            type(state) is int
            and 0 <= state < f.rewards.shape[f.reward[v], 1]
            and (reward is None or (type(reward) is float and math.isfinite(reward)))
            and type(cost) is float
            and math.isfinite(cost)
        ):
            raise ValueError(f"state {state}, reward {reward}, cost {cost}")

    # -- details -------------------------------------------------------------------------------

    def _state(self, box: Id, state: State) -> int:
        """The number of a state; a number that is not a state may be a reward."""
        try:
            return self.forest.state(box[0], state)
        except UnknownName as error:
            if isinstance(state, str):
                if state in (known := self.forest.states(box[0])):  # unnamed: "1" is the second
                    return known.index(state)
                raise
            told = f"tell({self.forest.name(box[0])!r}, reward={state})"
            raise UnknownName(f"{error} If {state} is its reward, call {told}.") from None

    def _check_same(
        self, box: Id, state: State | None, reward: float | None, cost: float | None
    ) -> None:
        seen = self.answers[box]
        y = None if state is None else self._state(box, state)
        told = {"reward": (reward, seen.reward), "cost": (cost, seen.cost)}
        names = self.forest.states(box[0])
        state_told = (None if y is None else names[y], names[seen.state])
        for what, (now, before) in {"state": state_told, **told}.items():
            if now is not None and now != before:
                raise InvalidAnswer(
                    f"box {self.box(box)!r} was told before, with {what} {before}, not {now}. To "
                    f"change an answer, take it back first with `undo`."
                )


def _check_names(policy: Policy) -> None:
    """No box may be called like a copy of another."""
    f = policy.forest
    if f.names is None or (f.count.max() == 1 and not f.endless.any()):
        return
    names = set(f.names)
    for name in f.names:
        if (parts := _COPY.fullmatch(name)) and parts[1] in names:
            raise InvalidForest(
                f"where boxes have copies or go on without end, no name may look like a copy of "
                f"another box, but {name!r} does. Rename it."
            )


def replaced(old: Ledger, policy: Policy) -> Ledger:
    """The same search with another policy; an error if the policy does not have the same boxes."""
    if old.hands is not None or policy.forest.prizes > 1 or policy.forest.quotas:
        raise InvalidForest(
            "with several prizes or quotas a search keeps its model: start another one."
        )
    if policy.forest.minimize != old.forest.minimize:
        raise InvalidForest("a new model must minimize if the old one does, and only then.")
    new = Ledger(policy, old.rule, old.me)
    moved: dict[Id, Id] = {}
    for box, seen in old.answers.items():  # parents come before their children
        moved[box] = _moved(old, box, new, moved)
        y = _state(old, box, new, moved[box][0])
        new.open(moved[box], y, seen.reward, seen.cost, seen.number, seen.worker)
    for box in old.out:
        moved[box] = _moved(old, box, new, moved)
        new.out[moved[box]] = old.out[box]
    new.gone, new.owner, new.owned_by = old.gone, old.owner, old.owned_by
    return new


def _moved(old: Ledger, box: Id, new: Ledger, moved: dict[Id, Id]) -> Id:
    """Where an opened box, or one that is out, is in the new model."""
    must = "a box that was opened or handed out must stay as it is in a new model, but"
    try:
        v = new.forest.box(old.forest.name(box[0]))
    except UnknownName:
        raise InvalidForest(f"{must} {old.box(box)!r} is missing.") from None
    if new.forest.endless[v] != old.forest.endless[box[0]]:
        raise InvalidForest(f"{must} {old.box(box)!r} is endless in one of the models only.")
    above, up = old.above(box), int(new.forest.parent[v])
    if above is not None and above[0] == box[0]:  # further along an endless line
        return v, (*moved[above][1][:-1], box[1][-1])
    if (-1 if above is None else moved[above][0]) != up:
        raise InvalidForest(f"{must} {old.box(box)!r} has another parent.")
    copy = () if above is None else moved[above][1]
    if new.forest.endless[v]:
        return v, (*copy, 1)
    own = box[1][-1] if old.forest.count[box[0]] > 1 else 1
    count = int(new.forest.count[v])
    if own > count:
        raise InvalidForest(
            f"{must} of {old.box(box)!r} the new problem has only {counted(count, 'copy')}."
        )
    return v, (*copy, own) if count > 1 else copy


def _state(old: Ledger, box: Id, new: Ledger, v: int) -> int:
    """The state that an opened box showed, in the new model."""
    seen = old.answers[box]
    named = old.forest.state_names[int(old.forest.reward[box[0]])] is not None
    try:
        return new.forest.state(v, old.state_name(box[0], seen.state) if named else seen.state)
    except UnknownName as error:
        raise InvalidForest(
            f"a state that was seen must stay in a new model, but {error}"
        ) from None
