"""What a search handed out and was told, changed only by events, and the journal that keeps them.

`Ledger` is the state of a search: a function of the policy and the events. `Record` writes each
event to the journal before the ledger is changed.
"""

from __future__ import annotations

import gc
import io
import math
import os
import re
import secrets
import sqlite3
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from .._common.disk import this_process
from .._common.numbers import counted
from ..engine.indices import Policy
from ..errors import InvalidAnswer, InvalidFile, InvalidForest, UnknownName, WeitzmanError
from ..files import binary as _binary
from ..files.event_log import Entry, EventLog, Path
from ..forest.model import Forest
from .frontier import Box, Copy, Id
from .walk import Walk

Rule = Literal["refuse", "nearest"] | Sequence[float]
"""What to do with a reward that is not among those of the box."""

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
    finite, name = np.unique(likely[np.isfinite(likely)]), forest.name(box)
    found = np.flatnonzero(likely == reward)
    if len(found) == 0:
        found = np.flatnonzero(rewards == reward)
    if len(found) == 0 and (rule == "refuse" or finite.size == 0):
        known = ", ".join(f"{x:.12g}" for x in finite[:_SHOWN]) or "none"
        more = f" and {len(finite) - _SHOWN} more" if len(finite) > _SHOWN else ""
        raise InvalidAnswer(
            f"{reward:.12g} is not among the rewards of box {name!r}, which are {known}{more}. "
            f'Give the state, or start the search with rewards="nearest" or with edges of bins.'
        )
    if len(found) == 0 and rule == "nearest":
        found = np.flatnonzero(likely == finite[np.argmin(np.abs(finite - reward))])
    elif len(found) == 0:
        edges = np.asarray(rule, np.float64)
        own, bins = np.searchsorted(edges, reward, "right"), np.searchsorted(edges, likely, "right")
        found = np.flatnonzero((bins == own) & np.isfinite(likely))
        if len(found) == 0:
            ends = np.concatenate([[-np.inf], edges, [np.inf]])
            raise InvalidAnswer(
                f"box {name!r} has no reward in the bin from {ends[own]:g} to {ends[own + 1]:g}, "
                f"where {reward:g} lies. Give the state."
            )
    if len(found) > 1:
        shared = ", ".join(forest.states(box)[y] for y in found[:_SHOWN].tolist())
        raise InvalidAnswer(
            f"a reward must tell the state, but {reward:g} fits {len(found)} states of box "
            f"{name!r}: {shared}. Give the state as well."
        )
    return int(found[0])


class Event(NamedTuple):
    """One thing that happened; a journal keeps all but the worker, in this order."""

    worker: str
    kind: Kind
    box: str | None = None
    state: int | None = None
    reward: float | None = None
    cost: float | None = None
    mark: int | None = None  # what the box of a lazy search was like
    by: str | None = None  # the process that resumes

    def content(self) -> list[Any]:
        """The event as a journal holds it, without the worker."""
        content = [self.kind, None if self.box is None else str(self.box), *self[3:]]
        while content[-1] is None:
            content.pop()
        return content


class Ledger(Walk):
    """The state of a search; a function of the policy, the rule and the events in their order."""

    def __init__(self, policy: Policy, rule: Rule, me: str) -> None:
        super().__init__(policy)
        self.rule, self.me = rule, me
        self._copies = bool(self._numbered.any())
        names = policy.forest.names or ()
        known = set(names)
        for name in names if self._copies else ():
            if (parts := _COPY.fullmatch(name)) and parts[1] in known:
                raise InvalidForest(
                    f"where boxes have copies or are endless, no name may look like a copy "
                    f"of another box, but {name!r} does. Rename it."
                )
        self.gone: set[str] = set()  # workers that have boxes out and are not there any more
        self.owner = ""  # who resumed the search last
        self.owned_by = ""  # the process of that worker, in words
        self.owned_from = 0  # the number of that event: what was out before is with the owner now

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
    ) -> list[Event]:
        """The event of an answer, checked; none if it was told before."""
        here = self.locate(box)
        v = here[0]
        true = None if reward is None else number(reward, "a reward")
        paid = None if cost is None else number(cost, "a cost")
        if paid is not None and paid < 0:
            raise InvalidAnswer(f"a cost must not be negative, but got {paid:g}.")
        if here in self.answers:
            self._check_same(here, state, true, paid)
            return []
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
        return [Event(self.me, "tell", self.box(here), y, true, paid)]

    def taking(self, box: str | int) -> list[Event]:
        """The event of taking a reward, checked; none if it was taken before."""
        if self.hands is None:
            raise InvalidAnswer(
                "rewards are taken one by one where there are several prizes, but here is only one:"
                " stop, and the best reward is yours."
            )
        here = self.locate(box)
        return [Event(self.me, "take", self.box(here))] if self.hands.check(here) else []

    def giving_back(self, box: str | int) -> list[Event]:
        """The event of a release, checked."""
        here = self.locate(box)
        if here not in self.out:
            told = here in self.answers
            why = "its answer is known already" if told else "it is not handed out"
            raise InvalidAnswer(f"box {self.box(here)!r} cannot be released: {why}.")
        return [Event(self.me, "release", self.box(here))]

    def taking_back(self, box: str | int | None) -> Event:
        """The event of an answer that is undone, by default the last one, checked."""
        if not self.answers:
            raise InvalidAnswer("there is no answer to undo.")
        here = next(reversed(self.answers)) if box is None else self.locate(box)
        if here not in self.answers:
            raise InvalidAnswer(f"box {self.box(here)!r} has no answer to undo.")
        if self.hands is not None and self.hands.tree(here) in self.hands.taken:
            raise InvalidAnswer(
                f"an answer can be undone until a prize of its tree is taken, but that of the "
                f"tree of {self.box(here)!r} was."
            )
        at, below = self.policy.child_at, list[Id]()
        children = set(self.policy.child[at[here[0]] : at[here[0] + 1]].tolist())
        for later in reversed(self.answers) if children else ():
            if later == here:  # all before were opened before
                break
            if later[0] in children and self.above(later) == here:
                below.append(later)
        if below:
            more = f" and {len(below) - 1} more" if len(below) > 1 else ""
            raise InvalidAnswer(
                f"the answer of a box can be undone while no box below it is open, but below "
                f"{self.box(here)!r} {self.box(below[0])!r}{more} is open. Take that back first."
            )
        return Event(self.me, "undo", self.box(here))

    # -- what happens --------------------------------------------------------------------------

    def apply(self, event: Event, number: int) -> None:
        """Carry out an event that was checked, or that a journal holds."""
        worker, kind, box, state, reward, cost, _, by = event
        if kind == "resume":
            self.out.update({x: (worker, since) for x, (_, since) in self.out.items()})
            self.owner, self.owned_by, self.owned_from = worker, by or "", number
            return
        here = self.locate(box)  # type: ignore[arg-type]
        if kind == "ask":
            self.out[here] = worker, number
            self.frontier.top()  # passes it over, so that giving back does not put it in twice
        elif kind == "tell":
            asker, _ = self.out.pop(here, ("", 0))
            if here not in self.answers:  # what a damaged journal says need not be possible
                self.state_above(here)
                if not (
                    type(state) is int
                    and 0 <= state < self.forest.rewards.shape[self.forest.reward[here[0]], 1]
                    and (reward is None or (type(reward) is float and math.isfinite(reward)))
                    and type(cost) is float
                    and math.isfinite(cost)
                ):
                    raise ValueError(f"state {state}, reward {reward}, cost {cost}")
                self.open(here, state, reward, cost, number, asker)
        elif kind == "release":
            self.frontier.put_back(here, self.state_above(here))
            self.out.pop(here, None)
        elif kind == "take" and self.hands is not None:
            self.hands.take(here, self.answers[here].reward)  # type: ignore[arg-type]
        elif kind == "undo":
            # as if the answer had never been given: what is below is not out, and this is again
            answer, out = self.close(here), dict(self.out)
            self.out.clear()
            if answer.worker:
                asker = self.owner if answer.number < self.owned_from else answer.worker
                self.out[here] = asker, answer.number
                self.frontier.top()
            self.out.update({x: asked for x, asked in out.items() if self.above(x) != here})
        else:
            raise ValueError(f"there is no event {kind!r}")

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
        names = self.forest.states(box[0])
        told = {
            "state": (None if y is None else names[y], names[seen.state]),
            "reward": (reward, seen.reward),
            "cost": (cost, seen.cost),
        }
        for what, (now, before) in told.items():
            if now is not None and now != before:
                raise InvalidAnswer(
                    f"box {self.box(box)!r} was answered before, with {what} {before}, not {now}. "
                    f"To change an answer, undo it first: `undo`."
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
    new.owned_from = old.owned_from
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


# -- the journal -----------------------------------------------------------------------------------

Decide = Callable[[Ledger], list[Event]]
Model = Callable[[list[Event]], Policy]
"""Of a lazy search: the boxes that are seen after these events."""

# what an event that cannot be brings about
_IMPOSSIBLE = AssertionError, LookupError, TypeError, ValueError, OverflowError, AttributeError
_KIND = {False: "search", True: "lazy search"}


class Record:
    """A ledger and its journal, if there is one, kept in step.

    An interrupt may come at any instant. While the ledger is being changed, ``_busy`` is set, and
    the next caller who finds it set rebuilds the ledger from the events.
    """

    def __init__(self, ledger: Ledger, log: EventLog | None, *, lazy: bool) -> None:
        self._ledger, self._log, self._lazy = ledger, log, lazy
        self._first = ledger.policy
        self._kept: list[tuple[Event, Policy | None]] = []  # all events, if there is no journal
        self._busy = False
        self._lock, self._process = threading.RLock(), os.getpid()
        self.owner = ""  # who had resumed the search last when this record was opened
        self.path = "" if log is None else log.path

    @classmethod
    def start(
        cls, policy: Policy, rewards: Rule, path: Path | None, *, lazy: bool = False
    ) -> Record:
        """Begin a search. The models of a lazy one are not kept, only marks of the boxes."""
        rule = checked_rule(rewards)
        ledger = Ledger(policy, rule, secrets.token_hex(8))
        if path is None:
            return cls(ledger, None, lazy=lazy)
        roots = [box_mark(policy.forest, v) for v in range(len(policy.forest))] if lazy else []
        settings, parts = {"rewards": rule, "roots": roots}, {} if lazy else to_parts(policy)
        log = EventLog.create(path, _KIND[lazy], ledger.me, settings, parts)
        return cls(ledger, log, lazy=lazy)

    @classmethod
    def open(
        cls, path: Path, worker: str | None = None, *, alone: bool, take_over: bool = False,
        model: Model | None = None, look: bool = False,
    ) -> Record:  # fmt: skip
        """Continue a search: as a worker of that name, or alone, taking it over from all others.

        With ``look`` it is only read, and the file stays as it is.
        """
        me, lazy = worker or secrets.token_hex(8), model is not None
        log = EventLog.open(path, _KIND[lazy], me)

        def begin(db: sqlite3.Connection) -> Record:
            if model is None:
                policy = _policy(log, db, 0)
            else:
                roots = model([]).forest
                if [box_mark(roots, v) for v in range(len(roots))] != log.settings.get("roots"):
                    raise changed("one of the roots or the outside option")
                policy = model([_event(log, entry) for entry in log.news(db)])
            try:
                rule = checked_rule(log.settings["rewards"])
            except (KeyError, InvalidAnswer) as error:
                raise InvalidFile(f"{log.path}: the settings are damaged: {error}.") from error
            self = cls(Ledger(policy, rule, me), log, lazy=lazy)
            self._start_again(db)
            if not look:
                log.workers.enter(db, owner=alone, take_over=take_over)
            return self

        try:
            self = log.transact(begin)
            if alone:
                self.act(lambda ledger: [Event(me, "resume", by=str(this_process()))])
        except BaseException:
            log.close()
            raise
        self.owner = self._ledger.owner
        return self

    # -- in use --------------------------------------------------------------------------------

    @property
    def lock(self) -> threading.RLock:
        """The lock to hold while the ledger is read or changed."""
        if self._process != os.getpid():  # a thread of the parent may have held the old one
            self._lock, self._process = threading.RLock(), os.getpid()
        return self._lock

    @property
    def ledger(self) -> Ledger:
        """The ledger as it is now."""
        if self._busy:
            self.act(lambda _: [])
        return self._ledger

    def act(self, decide: Decide, policy: Policy | None = None) -> None:
        """Read what others did, decide, write the decision down, and only then carry it out.

        If anything fails before it is written, nothing has happened. If anything fails after that,
        the next call finds it among the events.
        """

        def write(db: sqlite3.Connection | None) -> tuple[list[Event], int]:
            if db is not None:
                self._catch_up(db)
            elif self._busy:
                self._replay((n, *kept) for n, kept in enumerate(self._kept, 1))
            self._busy = True  # deciding may move what the ledger keeps in order
            try:
                events = decide(self._ledger)
            except WeitzmanError:
                self._busy = False
                raise
            if self._log is None or db is None:
                self._kept.extend([(event, policy) for event in events])
                return events, len(self._kept)
            events = [event._replace(mark=self._mark(event)) for event in events]
            parts = {} if policy is None or not events else to_parts(policy)
            return events, self._log.add(db, [event.content() for event in events], parts)

        with self.lock:
            events, last = write(None) if self._log is None else self._log.transact(write)
            for number, event in enumerate(events, last - len(events) + 1):
                self._apply(event, number, policy)
            self._busy = False

    def substitute(self, policy: Policy) -> None:
        """Go on with another model of the same boxes; the journal does not keep it."""
        with self.lock:
            self._ledger = replaced(self.ledger, policy)

    def beat(self) -> None:
        """Give a sign of life."""
        if self._log is not None:
            self._log.transact(self._log.workers.beat)

    def close(self) -> None:
        """Release the journal."""
        if self._log is not None:
            self._log.close()

    # -- reading a journal -----------------------------------------------------------------------

    def _apply(self, event: Event, number: int, policy: Policy | None) -> None:
        if policy is None:
            self._ledger.apply(event, number)
        else:
            self._ledger = replaced(self._ledger, policy)

    def _catch_up(self, db: sqlite3.Connection) -> None:
        """Apply what others have written."""
        assert self._log is not None
        if self._busy:
            self._start_again(db)
        self._busy = True
        for found in self._events(db):
            self._apply_found(*found)
        others = {worker for worker, _ in self._ledger.out.values()} - {self._ledger.me}
        self._ledger.gone = self._log.workers.gone(db, others) if others else set()
        self._busy = False

    def _start_again(self, db: sqlite3.Connection) -> None:
        """Rebuild the ledger from the whole journal."""
        assert self._log is not None
        self._busy = True
        self._log.rewind()
        self._replay(self._events(db))

    def _replay(self, found: Iterable[tuple[int, Event, Policy | None]]) -> None:
        """Rebuild the ledger from all events; what can be opened is found at the end."""
        old = self._ledger
        self._ledger = Ledger(old.policy if self._lazy else self._first, old.rule, old.me)
        self._ledger.frontier.asleep = True
        collects = gc.isenabled()
        gc.disable()  # a million answers are looked through again and again, and none is garbage
        try:
            for number, event, policy in found:
                self._apply_found(number, event, policy)
        finally:
            if collects:
                gc.enable()
        self._ledger.frontier.wake(self._ledger.answers)
        self._busy = False

    def _events(self, db: sqlite3.Connection) -> Iterator[tuple[int, Event, Policy | None]]:
        """What the journal has beyond what was seen."""
        assert self._log is not None
        for entry in self._log.news(db):
            event = _event(self._log, entry)
            policy = _policy(self._log, db, entry.number) if event.kind == "replace" else None
            yield entry.number, event, policy

    def _apply_found(self, number: int, event: Event, policy: Policy | None) -> None:
        """Apply what a journal says, which need not be true."""
        try:
            if event.mark is not None and event.mark != self._mark(event):
                raise changed(repr(event.box))
            if policy is None:
                self._ledger.apply(event, number)
            else:
                self._ledger = replaced(self._ledger, policy)
        except (WeitzmanError, *_IMPOSSIBLE) as error:
            if isinstance(error, InvalidForest) and self._lazy:
                raise
            raise InvalidFile(
                f"{self.path}: the journal is damaged: what it says of box {event.box!r} cannot "
                f"be ({error})."
            ) from error

    def _mark(self, event: Event) -> int | None:
        if event.box is None or not self._lazy:
            return None
        return box_mark(self._ledger.forest, self._ledger.locate(event.box)[0])


def changed(what: str) -> InvalidForest:
    """The error for a lazy forest that is not what it was."""
    return InvalidForest(
        f"the lazy forest must be what it was when the journal was written, but {what} is "
        f"missing or different. Make it with the same roots and the same function."
    )


def _event(log: EventLog, entry: Entry) -> Event:
    try:
        return Event(sys.intern(entry.worker), *entry.content)
    except TypeError as error:
        raise log.damaged(f"event {entry.number} is none ({error})") from error


def _policy(log: EventLog, db: sqlite3.Connection, number: int) -> Policy:
    """The policy that the parts of an event hold."""
    try:
        at, index = (
            np.lib.format.read_array(io.BytesIO(log.part(db, number, part)), allow_pickle=False)
            for part in ("index_at", "index")
        )
        return Policy.of(_binary.read(io.BytesIO(log.part(db, number, "forest"))), at, index)
    except (ValueError, EOFError) as error:
        raise log.damaged(f"model {number} cannot be read: {error}") from error


def to_parts(policy: Policy) -> dict[str, bytes]:
    """A policy: ``forest`` (format .wz), ``index_at`` and ``index`` (format .npy, no pickle)."""
    forest, parts = io.BytesIO(), {}
    try:
        _binary.write(policy.forest, forest)
    except UnicodeEncodeError as error:
        raise InvalidForest(
            f"names must be valid Unicode, but there is {error.object[:40]!r}. Rename it."
        ) from None
    index = policy.forest.sign * policy.index
    for name, array in (("index_at", policy.index_at), ("index", index)):
        file = io.BytesIO()
        np.lib.format.write_array(file, array, allow_pickle=False)
        parts[name] = file.getvalue()
    return {"forest": forest.getvalue(), **parts}


def box_mark(forest: Forest, v: int) -> int:
    """A checksum of everything that describes a box, its parent's name included."""
    up = int(forest.parent[v])
    words = [forest.name(v), "" if up < 0 else forest.name(up), forest.outside, forest.minimize]
    mark = zlib.crc32(repr([*words, int(forest.count[v])]).encode("utf-8", "surrogatepass"))
    pools = (forest.laws, forest.law), (forest.rewards, forest.reward), (forest.costs, forest.cost)
    for pool, place in pools:
        matrix = pool[int(place[v])]
        mark = zlib.crc32(matrix.tobytes(), zlib.crc32(repr(matrix.shape).encode(), mark))
    return mark
