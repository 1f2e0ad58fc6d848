"""Run a policy on real boxes: ask what to open, tell what was seen.

The loop, for one box at a time, which is optimal::

    search = weitzman.Search(weitzman.solve(forest), journal="run.db")
    while (box := search.ask()) is not None:
        search.tell(box, look_into(box))
    search.best, search.best_box, search.spent

With several workers, ``ask(4)`` (or several processes that :meth:`Search.join` one journal) hands
out the available boxes with the highest indices, as long as these exceed the best answer so far.
That saves time but is no longer optimal: an answer still to come may make a box superfluous.
"""

from __future__ import annotations

import threading
from itertools import islice
from typing import Self, overload

from ..engine.indices import Policy
from ..engine.solution import Solution, as_policy
from ..errors import InvalidAnswer, JournalError
from ..files.event_log import Path
from .frontier import Box as Box
from .ledger import Event, Ledger, Record, Rule, State, replaced
from .walk import Opened as Opened
from .words import taken_back, why, why_open


class Standing:
    """How a search stands, by its record; and the end of it."""

    _record: Record

    @property
    def _ledger(self) -> Ledger:
        return self._record.ledger

    @property
    def best(self) -> float:
        """The best reward so far (least loss) or the outside option; of several prizes, the sum."""
        with self._record.lock:
            return self._ledger.best[0]

    @property
    def best_box(self) -> Box | None:
        """The box that holds the best reward; None for the outside option.

        Among equal rewards the outside option comes first, then the box of lowest number, then the
        state of lowest number, then the first copy.
        """
        with self._record.lock:
            return self._ledger.best[1]

    @property
    def spent(self) -> float:
        """All costs so far."""
        with self._record.lock:
            return self._ledger.best[2]

    @property
    def payoff(self) -> float:
        """What stopping now earns: ``best - spent``, or ``best + spent`` when minimizing.

        Discounted, where there is discounting, as if boxes had been opened one after the other.
        """
        with self._record.lock:
            best, _, spent = self._ledger.best
            if self._ledger.forest.factors is not None:
                worth, spent, _ = self._ledger.discounted()
                best *= worth
            return best - self._ledger.sign * spent

    @property
    def pending(self) -> list[Box]:
        """Boxes that are handed out and not answered, in the order of handing out."""
        with self._record.lock:
            return [self._ledger.box(box) for box in self._ledger.out]

    @property
    def history(self) -> list[Opened]:
        """What was opened, in the order of the answers."""
        with self._record.lock:
            return self._ledger.history

    def release(self, box: str | int) -> None:
        """Give a box back that was handed out and will not be opened now."""
        self._record.act(lambda ledger: ledger.giving_back(box))

    def close(self) -> None:
        """Release the journal. Nothing is lost if it is never called."""
        self._record.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Search(Standing):
    """A search under way, on real boxes.

    Asking and telling take O(log n) for n boxes that can be opened, plus O(log n) for each child of
    the box told; copies are not written out. Several threads may use one search.

    Parameters
    ----------
    policy : Policy or Solution
    journal : str or path, optional
        A new file that will hold the search, so that no crash can lose an answer. Without it the
        search lives in memory only.
    rewards : "refuse", "nearest" or edges of bins
        What to do with a reward that is not among those of the box. "refuse": an error. "nearest":
        the state of nearest reward; of two equally near ones, the lower. Rising numbers: the state
        whose reward lies in the same bin between two of them, the lower edge included. Only states
        that are possible after what the parent showed count. The best reward so far keeps the
        true number.

    Examples
    --------
    >>> import weitzman
    >>> chests = weitzman.Builder()
    >>> _ = chests.add("A", cost=20, outcomes={900: 0.1, 1: 0.9})
    >>> _ = chests.add("B", parent="A", cost=3,
    ...                outcomes={1: {21: 0.5, -9: 0.5}, 900: {920: 0.5, 890: 0.5}})
    >>> _ = chests.add("C", cost=5, outcomes={50: 0.5, 10: 0.5})
    >>> search = weitzman.Search(weitzman.solve(chests.build()))
    >>> search.ask()
    'A'
    >>> search.tell("A", 900)
    >>> search.explain()
    'Open B (cost 3): its index 914 is above the best so far (900 from A), and no box that can be \
opened has a higher one.'
    >>> search.tell(search.ask(), reward=890)
    >>> search.ask() is None, search.best, search.spent, search.payoff
    (True, 900.0, 23.0, 877.0)
    >>> search.explain()
    'Stop and take 900 from A: no box that can be opened has an index above that; the highest is \
40, of C.'
    """

    def __init__(
        self, policy: Policy | Solution, *, journal: Path | None = None, rewards: Rule = "refuse"
    ) -> None:
        self._record = Record.start(as_policy(policy, "a search"), rewards, journal)
        self._last: Box | None = None  # handed out last
        self._threads: dict[str, int] = {}  # boxes that were handed out, to which thread

    @classmethod
    def resume(cls, path: Path, *, take_over: bool = False) -> Search:
        """Continue a search from its journal, as the only process that does.

        Boxes that were handed out and not answered are handed out again first. This is rejected
        while another process uses the journal, unless with ``take_over=True``: for a process on
        another machine that is known to be gone. That one can still report answers but is not given
        any more boxes.
        """
        return cls._of(Record.open(path, alone=True, take_over=take_over))

    @classmethod
    def join(cls, path: Path, *, worker: str | None = None) -> Search:
        """Take part in a search with other processes: no box is handed out to two of them.

        What others do is seen at each call of :meth:`ask`, :meth:`tell` and :meth:`release`. If
        ``ask`` returns None and :attr:`done` is False, others are still busy: ask again later. The
        boxes of a worker whose process has ended are handed out to the others. A worker on another
        machine counts as lost once it has written nothing for an hour; see :meth:`beat`.

        ``worker`` is a name that no other worker has. If the process of the worker dies, the next
        process of that name is first given the boxes of the dead one.
        """
        return cls._of(Record.open(path, worker, alone=False))

    @classmethod
    def look(cls, path: Path) -> Search:
        """A search read from its journal, read-only: the file stays as it is."""
        return cls._of(Record.open(path, None, alone=False, look=True))

    @classmethod
    def _of(cls, record: Record) -> Search:
        self = cls.__new__(cls)
        self._record, self._last, self._threads = record, None, {}
        return self

    @overload
    def ask(self) -> Box | None: ...

    @overload
    def ask(self, boxes: int) -> list[Box]: ...

    def ask(self, boxes: int | None = None) -> Box | list[Box] | None:
        """What to open next: the same box until you call ``tell`` or ``release``.

        Threads that share a search are given different boxes. With several prizes the answer may
        also be to take one, see :attr:`Box.move`: a box whose move is "take" was opened before, and
        :meth:`take` takes its reward for good.

        Parameters
        ----------
        boxes : int, optional
            How many boxes to open at once. Boxes that this search has handed out and that are not
            answered come first, then further boxes.

        Returns
        -------
        Box or None, or list of Box
            With ``boxes`` a list of at most that many. None: no box is worth opening, given what
            is known. If boxes are still out, their answers may change that: see :attr:`done`.
        """
        wanted = 1 if boxes is None else boxes
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            raise InvalidAnswer(f"ask for at least 1 box, not {boxes!r}.")
        with self._record.lock:
            self._record.act(lambda ledger: self._choose(ledger, wanted))
            found = self._mine(self._ledger)[:wanted]
            self._threads.update(dict.fromkeys(found, threading.get_ident()))
            self._last = found[-1] if found else None
            prize = None if found else self._ledger.next_prize()
            if prize is not None:
                found = [Box(self._ledger.forest.name(prize[0]), *prize, move="take")]
        if boxes is not None:
            return found
        return found[0] if found else None

    def _mine(self, ledger: Ledger) -> list[Box]:
        """The boxes that are out with this thread, or were with a thread that has ended."""
        out = [ledger.box(box) for box in ledger.mine()]
        if not out:
            self._threads.clear()
        # a thread that is just being started has no ident, nor has a box that nobody holds
        others = {t.ident for t in threading.enumerate()} - {threading.get_ident(), None}
        return [box for box in out if self._threads.get(box) not in others]

    def _choose(self, ledger: Ledger, wanted: int) -> list[Event]:
        """Hand out as many boxes as are wanted beyond those that are out."""
        if ledger.owner != self._record.owner:
            raise JournalError(
                f"{self._record.path}: another process has resumed the search "
                f"({ledger.owned_by}), so this one is not given any more boxes. Use Search.join in "
                f"all processes to share it."
            )
        wanted -= len(self._mine(ledger))
        if wanted < 1:
            return []
        boxes = ledger.left()[:wanted]
        if len(boxes) < wanted and ledger.next() is not None:
            ranked, best = ledger.frontier.best_first(), ledger.bar
            further = islice(ranked, wanted - len(boxes))
            boxes += [box for box, index in further if index > best]
        chosen = [ledger.box(box) for box in boxes]
        for box in chosen:  # a thread that had it before has given it back
            self._threads.pop(box, None)
        return [Event(ledger.me, "ask", box) for box in chosen]

    def tell(
        self, box: str | int, state: State | None = None, *, reward: float | None = None,
        cost: float | None = None,
    ) -> None:  # fmt: skip
        """Report what a box showed. With a journal, the answer is on disk when this returns.

        Any box that can be opened is accepted, handed out or not. The same answer may be repeated;
        a different one is rejected, unless the first is undone with :meth:`undo`.

        Parameters
        ----------
        box : Box, str or int
            The box as handed out, its text, or its number if there are no copies.
        state : str or number, optional
            Name or number of its state. May be left out if the reward tells it.
        reward : float, optional
            The true reward, if it differs from that of the state. Without ``state``, the state is
            found from the reward by the rule with which the search was started.
        cost : float, optional
            What was paid, if it differs from what the model says for these states.
        """
        self._record.act(lambda ledger: ledger.answer(box, state, reward, cost))

    def take(self, box: str | int) -> None:
        """Take the reward of an opened box for good and close its tree, where there are prizes.

        With a journal, this is on disk when the call returns. Taking it again changes nothing.

        Examples
        --------
        >>> import weitzman
        >>> staff = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, count=3, prizes=2)
        >>> search = weitzman.Search(weitzman.solve(staff).policy())
        >>> for found in (10, 0, 10):
        ...     box = search.ask()
        ...     search.tell(box, reward=found)
        ...     while (move := search.ask()) is not None and move.move == "take":
        ...         search.take(move)
        >>> search.done, search.taken, search.payoff
        (True, [('0#1', 10.0), ('0#3', 10.0)], 17.0)
        """
        self._record.act(lambda ledger: ledger.taking(box))

    def undo(self, box: str | int | None = None) -> str:
        """Undo an answer. The journal keeps the answer and the fact that it was undone.

        The search continues as if the answer had never been given: if the box had been handed out,
        it is handed out again, before all others. Boxes below it are no longer out, and neither are
        those that this worker was given after the answer, which may have been because of it.

        Parameters
        ----------
        box : Box, str or int, optional
            By default the last one that was told. No box below it may be open.

        Returns
        -------
        str
            What that changes, in a sentence or two.

        Examples
        --------
        >>> import weitzman
        >>> chests = weitzman.Builder().add("A", cost=1, outcomes={0: 0.5, 9: 0.5})
        >>> search = weitzman.Search(weitzman.solve(chests.build()))
        >>> search.tell("A", reward=9)
        >>> search.undo()
        'Took back 9 from A. The best so far is 0 (the outside option) instead of 9, and 0 is \
spent instead of 1.'
        """
        with self._record.lock:
            self._record.act(lambda _: [])  # what others did is not part of the change
            ledger = self._ledger
            here = ledger.locate(ledger.taking_back(box).box or "")
            seen, before, out = ledger.answers[here], ledger.best, list(ledger.out)

            def decide(ledger: Ledger) -> list[Event]:
                late = [
                    x for x in self._mine(ledger)
                    if ledger.out[x.number, x.copy][1] > seen.number
                    and ledger.above((x.number, x.copy)) != here
                ]  # fmt: skip
                undo = ledger.taking_back(ledger.box(here))
                return [undo, *(Event(ledger.me, "release", x) for x in late)]

            self._record.act(decide)
            return taken_back(self._ledger, here, seen, before, out)

    def beat(self) -> None:
        """Give a sign of life during a long look, for workers on other machines."""
        self._record.beat()

    def replace(self, model: Solution | Policy) -> None:
        """Continue with another model of the same boxes: refitted, or with other costs.

        All answers are kept. Boxes and states are matched by name, or by number if they have no
        names. Boxes that are neither open nor handed out may be added, removed and changed; the
        others must stay, with their parents and the states seen.
        """
        policy = as_policy(model, "replace")

        def decide(ledger: Ledger) -> list[Event]:
            replaced(ledger, policy)  # or an error
            return [Event(ledger.me, "replace")]

        self._record.act(decide, policy)

    # -- how it stands -------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy that is followed."""
        return self._ledger.policy

    @property
    def expected(self) -> float:
        """What the search will earn in total, on average, if it continues optimally.

        What was spent so far is included. Boxes that are handed out count as closed. The policy
        must be the optimal one.
        """
        with self._record.lock:
            return self._ledger.worth()

    @property
    def time(self) -> float:
        """How long the search took by the model, one box after the other; 0 without durations."""
        with self._record.lock:
            timed = self._ledger.forest.factors is not None
            return self._ledger.discounted()[2] if timed else 0.0

    @property
    def done(self) -> bool:
        """Whether no box is out, no box is worth opening and no reward is worth taking."""
        with self._record.lock:
            ledger = self._ledger
            waits = ledger.out or ledger.next() is not None
            return not waits and ledger.next_prize() is None

    @property
    def taken(self) -> list[tuple[Box, float]]:
        """Rewards taken for good, in that order, where there are several prizes."""
        with self._record.lock:
            hands = self._ledger.hands
            found = () if hands is None else hands.taken.values()
            return [(self._ledger.box(box), reward) for box, reward in found]

    @property
    def filled(self) -> dict[str, int]:
        """How many rewards were taken from each group that has a quota."""
        with self._record.lock:
            hands = self._ledger.hands
            return {} if hands is None else {g: hands.filled[g] for g in hands.quotas}

    def available(self, limit: int | None = 20) -> list[tuple[Box, float]]:
        """At most ``limit`` boxes that can be opened now, best first, with their indices."""
        with self._record.lock:
            ranked = islice(self._ledger.frontier.best_first(), limit)
            sign = self._ledger.sign
            return [(self._ledger.box(box), sign * index + 0.0) for box, index in ranked]

    def explain(self, box: str | int | None = None) -> str:
        """One sentence that says why to open a box, or why to stop.

        By default about the box handed out last, or once its answer is known, the next one.
        """
        with self._record.lock:
            ledger, last = self._ledger, self._last if box is None else box
            if last is not None and (box is not None or ledger.locate(last) in ledger.out):
                return why_open(ledger, ledger.locate(last))
            return why(ledger)

    def __repr__(self) -> str:
        opened, out = len(self._ledger.answers), len(self._ledger.out)
        return f"Search(best={self.best:g}, spent={self.spent:g}, opened={opened}, out={out})"
