"""A ledger and its journal, if there is one, kept in step."""

from __future__ import annotations

import gc
import io
import os
import secrets
import sqlite3
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.system import this_process
from ..engine.indices import Policy
from ..errors import InvalidAnswer, InvalidFile, InvalidForest, WeitzmanError
from ..files import binary as _binary
from ..files.event_log import Entry, EventLog, Path
from ..forest.model import Forest
from .ledger import Event, Ledger, Rule, checked_rule, replaced

Decide = Callable[[Ledger], list[Event]]
Model = Callable[[list[Event]], Policy]
"""Of a lazy search: the boxes that are seen after these events."""

# what an event that cannot be brings about
_IMPOSSIBLE = AssertionError, LookupError, TypeError, ValueError, OverflowError, AttributeError
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
        settings, parts = {"rewards": rule, "roots": roots}, {} if lazy else to_parts(policy)
        log = EventLog.create(path, _KIND[lazy], ledger.me, settings, parts)
        return cls(ledger, log, lazy=lazy)

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

        def begin(db: sqlite3.Connection) -> Record:
            policy = _policy(log, db, 0) if model is None else _lazy_policy(log, db, model)
            self = cls(Ledger(policy, _rule(log), me), log, lazy=lazy)
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

    @property
    def path(self) -> str:
        """The journal; empty without one."""
        return "" if self._log is None else self._log.path

    def act(self, decide: Decide, policy: Policy | None = None) -> None:
        """Read what others did, decide, write the decision down, and only then carry it out.

        If anything fails before it is written, nothing has happened. If anything fails after that,
        the next call finds it among the events.
        """

        def write(db: sqlite3.Connection) -> tuple[list[Event], int]:
            assert self._log is not None
            self._catch_up(db)
            events = [event._replace(mark=self._mark(event)) for event in self._decided(decide)]
            self._busy = True  # until all is applied
            parts = {} if policy is None or not events else to_parts(policy)
            return events, self._log.add(db, [_content(event) for event in events], parts)

        with self.lock:
            if self._log is not None:
                events, last = self._log.transact(write)
            else:
                if self._busy:
                    self._replay((n, *kept) for n, kept in enumerate(self._kept, 1))
                events = self._decided(decide)
                self._busy = True
                self._kept.extend([(event, policy) for event in events])
                last = len(self._kept)
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

    # -- details -------------------------------------------------------------------------------

    def _decided(self, decide: Decide) -> list[Event]:
        self._busy = True  # deciding may move what the ledger keeps in order
        try:
            events = decide(self._ledger)
        except WeitzmanError:
            self._busy = False
            raise
        self._busy = False
        return events

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


def _content(event: Event) -> list[Any]:
    """An event as a journal holds it, without the worker."""
    _, kind, box, *rest = event
    content = [kind, None if box is None else str(box), *rest]
    while content[-1] is None:
        content.pop()
    return content


def _event(log: EventLog, entry: Entry) -> Event:
    try:
        return Event(sys.intern(entry.worker), *entry.content)
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


def _lazy_policy(log: EventLog, db: sqlite3.Connection, model: Model) -> Policy:
    roots = model([]).forest
    if [box_mark(roots, v) for v in range(len(roots))] != log.settings.get("roots"):
        raise changed("one of the roots or the outside option")
    return model([_event(log, entry) for entry in log.news(db)])


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
