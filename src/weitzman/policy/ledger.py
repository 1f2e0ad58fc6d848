"""What a search has handed out and been told, changed only by events."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..engine.indices import Policy
from ..errors import InvalidAnswer, InvalidForest, UnknownName
from .answers import Rule, number, state_of
from .frontier import Box, Id
from .walk import Walk

_COPY = re.compile(r"(.*)#([1-9][0-9]*(?:\.[1-9][0-9]*)*)", re.DOTALL)

State = str | int | float
Kind = Literal["ask", "tell", "take", "release", "resume", "replace"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, as the journal keeps it. ``model`` belongs to a replacement."""

    kind: Kind
    worker: str
    box: str | None = None
    state: int | None = None
    reward: float | None = None
    cost: float | None = None
    model: int | None = None


class Ledger(Walk):
    """The state of a search; a function of the policy, the rule and the events in their order."""

    def __init__(self, policy: Policy, rule: Rule, me: str) -> None:
        _check_names(policy)
        super().__init__(policy)
        self.rule, self.me = rule, me
        self._copies = bool(self._numbered.any())
        self.again: dict[Id, None] = {}  # out to this worker, which has yet to be given them
        self.owner = ""  # who resumed the search last
        self.model = 0  # how often the policy was replaced

    def locate(self, box: str | int) -> Id:
        """The box that a handle, its text or a number stands for."""
        f = self.forest
        if isinstance(box, Box) and box.number < len(f) and f.name(box.number) == box.name:
            return box.number, box.copy
        if isinstance(box, str) and self._copies and (parts := _COPY.fullmatch(box)):
            try:
                return f.box(parts[1]), tuple(map(int, parts[2].split(".")))
            except UnknownName:  # the name of a box may look like a copy of another
                pass
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
        if here in self.told:
            self._check_same(here, state, true, paid)
            return None
        above = self.state_above(here)
        if state is not None:
            y = self.forest.state(v, state)
        elif true is not None:
            y = state_of(self.forest, v, above, true, self.rule)
        else:
            raise InvalidAnswer(f"say what box {self.box(here)!r} showed: a state or reward=.")
        if true is None:
            true = self.reward(v, y)
        if paid is None:
            paid = self.cost(v, above, y)
        return Event("tell", self.me, self.box(here), y, true, paid)

    def taking(self, box: str | int) -> list[Event]:
        """The event of taking a reward, checked; none if it was taken before."""
        if self.hands is None:
            raise InvalidAnswer(
                "rewards are taken one by one where there are several prizes, but here is only one:"
                " stop, and the best reward is yours."
            )
        here = self.locate(box)
        return [Event("take", self.me, self.box(here))] if self.hands.check(here) else []

    def giving_back(self, box: str | int) -> Event:
        """The event of a release, checked."""
        here = self.locate(box)
        if here not in self.out:
            told = here in self.told
            why = "its answer is known already" if told else "it is not handed out"
            raise InvalidAnswer(f"box {self.box(here)!r} cannot be given back: {why}.")
        return Event("release", self.me, self.box(here))

    def apply(self, event: Event) -> None:
        """Let something checked happen. Half of it done before is no harm."""
        if event.kind == "resume":
            self.out.update(dict.fromkeys(self.out, event.worker))
            self.again = dict.fromkeys(self.out) if event.worker == self.me else {}
            self.owner = event.worker
            return
        assert event.box is not None
        here = self.locate(event.box)
        if event.kind == "ask":
            self.out[here] = event.worker
            if event.worker == self.me:
                self.again[here] = None
            self.frontier.top()  # passes it over, so that giving back does not put it in twice
            return
        if event.kind == "take":
            assert self.hands is not None
            reward = self.told[here].reward
            assert reward is not None
            self.hands.take(here, reward)
            return
        if event.kind == "release":
            self.frontier.put_back(here, self.state_above(here))
        elif here not in self.told:
            assert event.state is not None
            assert event.cost is not None
            self.open(here, event.state, event.reward, event.cost)
        self.out.pop(here, None)
        self.again.pop(here, None)

    # -- details -------------------------------------------------------------------------------

    def _check_same(
        self, box: Id, state: State | None, reward: float | None, cost: float | None
    ) -> None:
        seen = self.told[box]
        y = None if state is None else self.forest.state(box[0], state)
        told = {"reward": (reward, seen.reward), "cost": (cost, seen.cost)}
        names = self.forest.states(box[0])
        state_told = (None if y is None else names[y], names[seen.state_number])
        for what, (now, before) in {"state": state_told, **told}.items():
            if now is not None and now != before:
                raise InvalidAnswer(
                    f"box {self.box(box)!r} was told before, with {what} {before}, not {now}. An "
                    f"answer cannot be changed."
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
