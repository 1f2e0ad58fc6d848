"""A ledger and its journal, if there is one, kept in step."""

from __future__ import annotations

import io
import os
import secrets
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.numbers import counted
from .._common.system import this_process
from ..engine.indices import Policy
from ..errors import InvalidAnswer, InvalidFile, InvalidForest, UnknownName, WeitzmanError
from ..files import binary as _binary
from ..files.event_log import Entry, EventLog, Path
from ..forest.model import Forest
from .frontier import Id
from .ledger import Event, Ledger, Rule, checked_rule

# what an event that cannot be brings about
_IMPOSSIBLE = AssertionError, LookupError, TypeError, ValueError, OverflowError
Decide = Callable[[Ledger], list[Event]]
Happened = tuple[int, Event, Policy | None]
Model = Callable[[list[Event]], Policy]
"""Of a lazy search: the boxes that are seen after these events."""

_KIND = {False: "search", True: "lazy search"}


class Record:
    """What happens to a search, one thing after the other.

    An interrupt may come at any instant. While the ledger is being changed, ``_busy`` is set, and
    the next caller who finds it set rebuilds the ledger from the events. So nothing stays half
    done.

    Attributes
    ----------
    owner : str
        Who had resumed the search last when this record was opened.
    """

    def __init__(self, ledger: Ledger, log: EventLog | None, *, lazy: bool) -> None:
        self._ledger, self._log, self._lazy = ledger, log, lazy
        self._first = ledger.policy
        self._kept: list[tuple[Event, Policy | None]] = []  # all events, if there is no journal
        self._undone: set[int] = set()  # numbers of answers that were taken back
        self._busy = False
        self._lock, self._process = threading.RLock(), os.getpid()
        self.owner = ""

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
        settings = {"rewards": rule, "roots": roots}
        parts = {} if lazy else to_parts(policy)
        return cls(
            ledger, EventLog.create(path, _KIND[lazy], ledger.me, settings, parts), lazy=lazy
        )

    @classmethod
    def open(
        cls,
        path: Path,
        worker: str | None = None,
        *,
        alone: bool,
        take_over: bool = False,
        model: Model | None = None,
        look: bool = False,
    ) -> Record:
        """Continue a search: as a worker of that name, or alone, taking it over from all others.

        With ``look`` it is only read, and the file stays as it is.
        """
        me, lazy = worker or secrets.token_hex(8), model is not None
        log = EventLog.open(path, _KIND[lazy], me)

        def begin(db: sqlite3.Connection) -> tuple[Record, list[Happened]]:
            policy = _first_policy(log, db) if model is None else _lazy_policy(log, db, model)
            self = cls(Ledger(policy, _rule(log), me), log, lazy=lazy)
            self._start_again(db)
            if not look:
                log.workers.enter(db, owner=alone, take_over=take_over)
            who = str(this_process())
            return self, self._write(db, [Event("resume", me, by=who)] if alone else [], None)

        try:
            self, new = log.transact(begin)
            self._let_happen(new)
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

    @property
    def path(self) -> str:
        """The journal; empty without one."""
        return "" if self._log is None else self._log.path

    def act(self, decide: Decide, policy: Policy | None = None) -> None:
        """Read what others did, decide, write the decision down, and only then carry it out.

        If anything fails before it is written, nothing has happened. If anything fails after that,
        the next call finds it in the journal.
        """
        with self.lock:
            if self._log is None:
                new = self._remember(decide, policy)
            else:
                new = self._log.transact(lambda db: self._decide_and_write(db, decide, policy))
            self._let_happen(new)
        if any(event.kind == "undo" for _, event, _ in new):
            self.act(lambda _: [])  # rebuilds the ledger

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

    # -- details -------------------------------------------------------------------------------

    def _remember(self, decide: Decide, policy: Policy | None) -> list[Happened]:
        if self._busy:
            self._make_anew([(n, e, p) for n, (e, p) in enumerate(self._kept, 1)])
        events = self._decided(decide)
        self._kept.extend([(event, policy) for event in events])
        first = len(self._kept) - len(events) + 1
        return [(n, event, policy) for n, event in enumerate(events, first)]

    def _decide_and_write(
        self, db: sqlite3.Connection, decide: Decide, policy: Policy | None
    ) -> list[Happened]:
        self._catch_up(db)
        return self._write(db, self._decided(decide), policy)

    def _write(
        self, db: sqlite3.Connection, events: list[Event], policy: Policy | None
    ) -> list[Happened]:
        assert self._log is not None
        if self._lazy:
            events = [replace(e, mark=self._mark(e)) for e in events]
        parts = None if policy is None or not events else to_parts(policy)
        entries = self._log.add(db, [e.content() for e in events], parts)
        return [(entry.number, e, policy) for entry, e in zip(entries, events, strict=True)]

    def _decided(self, decide: Decide) -> list[Event]:
        self._busy = True  # deciding may move what the ledger keeps in order
        try:
            events = decide(self._ledger)
        except WeitzmanError:
            self._busy = False
            raise
        self._busy = False
        return events

    def _let_happen(self, new: list[Happened]) -> None:
        """Apply what is written."""
        self._busy = True
        for number, event, policy in new:
            if event.kind == "undo":
                return  # and stay busy
            self._apply(number, event, policy)
            if self._log is not None:
                self._log.step()
        self._busy = False

    def _catch_up(self, db: sqlite3.Connection) -> None:
        """Apply what others have written."""
        assert self._log is not None
        if self._busy:
            self._start_again(db)
        self._busy = True
        for entry in self._log.news(db):
            number, event, policy = self._read(db, entry)
            if event.kind == "undo":
                self._start_again(db)
                break
            self._replay(number, event, policy)
        others = set(self._ledger.out.values()) - {self._ledger.me}
        self._ledger.gone = self._log.workers.gone(db, others) if others else set()
        self._busy = False

    def _start_again(self, db: sqlite3.Connection) -> None:
        """Rebuild the ledger from the whole journal."""
        assert self._log is not None
        self._busy = True
        self._log.rewind()
        self._make_anew([self._read(db, entry) for entry in self._log.news(db)])

    def _make_anew(self, events: Iterable[Happened]) -> None:
        self._busy = True
        events = list(events)
        self._undone = {e.undone for _, e, _ in events if e.undone is not None}
        old = self._ledger
        self._ledger = Ledger(old.policy if self._lazy else self._first, old.rule, old.me)
        for number, event, policy in events:
            if number not in self._undone and event.kind != "undo":
                self._replay(number, event, policy)
        self._busy = False

    def _read(self, db: sqlite3.Connection, entry: Entry) -> Happened:
        assert self._log is not None
        event = _event(self._log, entry)
        policy = _policy(self._log, db, entry.number) if event.kind == "replace" else None
        return entry.number, event, policy

    def _replay(self, number: int, event: Event, policy: Policy | None) -> None:
        try:
            if self._undone and event.kind in ("ask", "release"):
                assert event.box is not None
                if not self._ledger.can_open(event.box):
                    return  # it depended on an answer that was taken back
            if event.mark is not None and event.mark != self._mark(event):
                raise changed(repr(event.box))
            self._apply(number, event, policy)
        except (WeitzmanError, *_IMPOSSIBLE) as error:
            if isinstance(error, InvalidForest) and self._lazy:
                raise
            raise InvalidFile(
                f"{self.path}: the journal is damaged: what it says of box {event.box!r} cannot "
                f"be ({error})."
            ) from error

    def _apply(self, number: int, event: Event, policy: Policy | None) -> None:
        if policy is None:
            self._ledger.apply(event, number)
        else:
            self._ledger = replaced(self._ledger, policy)

    def _mark(self, event: Event) -> int | None:
        if event.box is None:
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
        return Event(worker=entry.worker, **entry.content)
    except TypeError as error:
        raise log.damaged(f"event {entry.number} is none ({error})") from error


def _rule(log: EventLog) -> Rule:
    try:
        return checked_rule(log.settings["rewards"])
    except (KeyError, InvalidAnswer) as error:
        raise InvalidFile(f"{log.path}: the settings are damaged: {error}.") from error


def _policy(log: EventLog, db: sqlite3.Connection, number: int) -> Policy:
    try:
        return from_parts(lambda part: log.part(db, number, part))
    except (ValueError, EOFError) as error:
        raise log.damaged(f"model {number} cannot be read: {error}") from error


def _first_policy(log: EventLog, db: sqlite3.Connection) -> Policy:
    return _policy(log, db, 0)


def _lazy_policy(log: EventLog, db: sqlite3.Connection, model: Model) -> Policy:
    roots = model([]).forest
    if [box_mark(roots, v) for v in range(len(roots))] != log.settings.get("roots"):
        raise changed("one of the roots or the outside option")
    events = {entry.number: _event(log, entry) for entry in log.news(db)}
    undone = {event.undone for event in events.values()}
    return model([event for number, event in events.items() if number not in undone])


def to_parts(policy: Policy) -> dict[str, bytes]:
    """A policy: ``forest`` (format .wz), ``index_at`` and ``index`` (format .npy, no pickle)."""
    forest = io.BytesIO()
    try:
        _binary.write(policy.forest, forest)
    except UnicodeEncodeError as error:
        raise InvalidForest(
            f"names must be valid Unicode, but there is {error.object[:40]!r}. Rename it."
        ) from None
    return {
        "forest": forest.getvalue(),
        "index_at": _npy(policy.index_at),
        "index": _npy(policy.forest.sign * policy.index),
    }


def from_parts(part: Callable[[str], bytes]) -> Policy:
    """A policy from its parts; a ValueError says what is wrong."""
    at, index = (
        np.lib.format.read_array(io.BytesIO(part(name)), allow_pickle=False)
        for name in ("index_at", "index")
    )
    return Policy.of(_binary.read(io.BytesIO(part("forest"))), at, index)


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


def _npy(array: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def replaced(old: Ledger, policy: Policy) -> Ledger:
    """The same search with another policy; an error if the policy does not have the same boxes."""
    if old.hands is not None or policy.forest.prizes > 1:
        raise InvalidForest("with several prizes a search keeps its model: start another one.")
    if policy.forest.minimize != old.forest.minimize:
        raise InvalidForest("a new model must minimize if the old one does, and only then.")
    new = Ledger(policy, old.rule, old.me)
    moved: dict[Id, Id] = {}
    for box, seen in old.told.items():  # parents come before their children
        moved[box] = _moved(old, box, new, moved)
        new.open(moved[box], _state(old, box, new, moved[box][0]), seen.reward, seen.cost)
        new.numbers[moved[box]] = old.numbers[box]
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
    seen = old.told[box]
    named = old.forest.state_names[int(old.forest.reward[box[0]])] is not None
    try:
        return new.forest.state(v, seen.state if named else seen.state_number)
    except UnknownName as error:
        raise InvalidForest(
            f"a state that was seen must stay in a new model, but {error}"
        ) from None
