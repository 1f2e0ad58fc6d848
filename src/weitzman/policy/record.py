"""A ledger and the journal that it is kept in, if any, in step with each other."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from ..engine.indices import Policy
from ..errors import InvalidAnswer, InvalidFile, WeitzmanError
from .answers import Rule, checked_rule
from .journal import Journal, Path
from .ledger import Event, Ledger
from .replacing import replaced


class Record:
    """What happens to a search, one thing after the other.

    Attributes
    ----------
    ledger : Ledger
    lock : RLock
        To be held while the ledger is read or changed.
    owner : str
        Who had resumed the search last when this record was opened.
    """

    def __init__(self, ledger: Ledger, journal: Journal | None) -> None:
        self.ledger, self._journal = ledger, journal
        self.lock = threading.RLock()
        self.owner = ""

    @classmethod
    def start(cls, policy: Policy, rewards: Rule, path: Path | None) -> Record:
        """Begin a search."""
        rule = checked_rule(rewards)
        ledger = Ledger(policy, rule, secrets.token_hex(8))
        settings = {"rewards": rule}
        return cls(ledger, None if path is None else Journal.create(path, policy, settings))

    @classmethod
    def open(cls, path: Path, worker: str | None, *, alone: bool) -> Record:
        """Continue a search: as a worker of that name, or alone, taking it over from all others."""
        journal = Journal.open(path)
        with journal.turn() as db:
            policy = journal.policy(db, 0)
        try:
            rule = checked_rule(journal.settings["rewards"])
        except (KeyError, InvalidAnswer) as error:
            raise InvalidFile(f"{journal.path}: the settings are damaged: {error}.") from error
        self = cls(Ledger(policy, rule, worker or secrets.token_hex(8)), journal)
        self.act(lambda ledger: [Event("resume", ledger.me)] if alone else [])
        self.owner = self.ledger.owner
        return self

    def act(self, decide: Callable[[Ledger], list[Event]], policy: Policy | None = None) -> None:
        """Learn what others did, decide, write it down, and only then let it happen.

        If anything fails before it is written, nothing has happened. If anything fails after that,
        the next call finds it in the journal.
        """
        with self.lock:
            if self._journal is None:
                for event in decide(self.ledger):
                    self._apply(event, policy)
                return
            with self._journal.turn() as db:
                for event in self._journal.news(db):
                    new = None if event.model is None else self._journal.policy(db, event.model)
                    self._replay(event, new)
                events = decide(self.ledger)
                self._journal.add(db, events, policy)
            for event in events:
                self._apply(event, policy)
                self._journal.step()

    def close(self) -> None:
        """Let go of the journal."""
        if self._journal is not None:
            self._journal.close()

    @property
    def path(self) -> str:
        """The journal; empty without one."""
        return "" if self._journal is None else self._journal.path

    def _replay(self, event: Event, policy: Policy | None) -> None:
        try:
            self._apply(event, policy)
        except (WeitzmanError, AssertionError, IndexError, TypeError) as error:
            raise InvalidFile(
                f"{self.path}: the journal is damaged: what it says of box {event.box!r} cannot "
                f"be ({error})."
            ) from error

    def _apply(self, event: Event, policy: Policy | None) -> None:
        if policy is None:
            self.ledger.apply(event)
        else:
            self.ledger = replaced(self.ledger, policy)
