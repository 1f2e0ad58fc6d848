"""Which run to advance, whether to start another, when to stop: the one rule behind every driver.

A run is a line of boxes. Its model (usually a :class:`~weitzman.learn.LineModel`) says at which
steps a decision falls, and gives the index of going on with a run that has shown certain scores,
and that of starting a new one. The rule is that of :class:`~weitzman.Policy`: make the move of
highest index while it exceeds the worth of the best score so far; otherwise stop. Equal indices:
the run that was started first, a new run last, as on a forest of lines side by side.

A race trains nothing and waits for nothing. It is told what was seen, in whatever order that comes,
and says what to do next; the same reports in the same order lead to the same moves.
"""

from __future__ import annotations

import heapq
import math

from ..engine.solver import solve
from ..errors import InvalidAnswer, InvalidArgument
from .moves import Model as Model
from .moves import Move as Move
from .moves import Run as Run

ENDLESS = 10**6  # new runs that stand for "as many as you like" when the gain is computed


class Race:
    """Decides which run to advance. See :class:`~weitzman.learn.LineModel` for the model.

    Parameters
    ----------
    model : Model
    available : int, optional
        How many runs can be started. By default as many as one likes.
    outside : float, optional
        The worth of what one has without any run, in units of cost. By default nothing, so at
        least one run is started.
    budget : float, optional
        No move is begun once this much is spent, whatever it might be worth.

    Examples
    --------
    >>> from weitzman import learn
    >>> log = {"run": [0, 0, 1, 1, 2, 2], "step": [1, 2] * 3, "score": [5, 7, 4, 4, 6, 9]}
    >>> model = learn.fit(learn.Curves.read(log, cost=None), price=1)
    >>> race = Race(model, available=2)
    >>> move = race.next()
    >>> move.reason
    'Start a run, and train it to step 1: nothing has been seen yet.'
    >>> race.observe(race.started(), step=1, score=5, cost=1)
    >>> race.best_score, race.spent
    (5.0, 1.0)
    """

    def __init__(
        self,
        model: Model,
        *,
        available: int | None = None,
        outside: float | None = None,
        budget: float | None = None,
    ) -> None:
        if available is not None and available < 0:
            raise InvalidArgument(f"`available` must be 0 or more, but it is {available}.")
        if outside is not None and math.isnan(outside):
            raise InvalidArgument("`outside` must be a number, but it is nan.")
        if budget is not None and not budget > 0:
            raise InvalidArgument(f"`budget` must be a number above 0, but it is {budget!r}.")
        self.model = model
        self.runs: list[Run] = []
        self.spent = 0.0
        self.budget = math.inf if budget is None else float(budget)
        self.outside = -math.inf if outside is None else float(outside)
        self._left = math.inf if available is None else available
        self._owed = 0  # new runs handed out and not yet started
        self._peak: tuple[Run, int] | None = None  # run and row of the best score
        self._best = self.outside  # its worth, or the outside option
        self._again: list[int] = []  # runs whose move was given back, first come first served
        self._waiting: list[tuple[float, int]] = []  # heap of (-index, run)

    # -- deciding ------------------------------------------------------------------------------

    def next(self) -> Move | None:
        """The next move, which is then in flight: it is not offered again before it is over.

        None: nothing is worth its cost, given what is known. If moves are in flight, what they
        show may change that: see :attr:`done`.
        """
        move = self.peek()
        if move is None:
            return None
        if move.run is None:
            self._left -= 1
            self._owed += 1
        elif self._again:
            self._again.pop(0)
        else:
            heapq.heappop(self._waiting)
            self.runs[move.run].until = move.until
        return move

    def peek(self) -> Move | None:
        """The move that :meth:`next` would hand out."""
        best = self._best
        if self._again:
            run = self.runs[self._again[0]]
            assert run.until is not None  # given back in the middle of a move
            return Move(run.number, run.until, self._index(run), best)
        top = self._top()
        if top is None or not top[0] > best:
            return None
        index, number = top
        until = self.model.next_rung(None if number is None else self.runs[number].steps[-1])
        assert until is not None  # the index would be -inf
        return Move(number, until, index, best)

    def _top(self) -> tuple[float, int | None] | None:
        """The highest index, and whose it is; runs that are over are thrown away on the way."""
        if self.spent >= self.budget:
            return None
        while self._waiting and self.runs[self._waiting[0][1]].over:
            heapq.heappop(self._waiting)
        fresh = self.model.fresh_index if self._left > 0 else -math.inf
        if self._waiting and -self._waiting[0][0] >= fresh:
            return -self._waiting[0][0], self._waiting[0][1]
        return (fresh, None) if self._left > 0 else None

    def _index(self, run: Run) -> float:
        if not run.steps:
            return self.model.fresh_index
        return self.model.next_index(run.steps, run.scores, run.costs)

    # -- what happened -------------------------------------------------------------------------

    def started(self) -> int:
        """A new run was started; returns its number. It is in flight until its first rung."""
        if self._owed:
            self._owed -= 1
        elif self._left > 0:
            self._left -= 1
        else:
            raise InvalidAnswer(f"no further run is available: {len(self.runs)} were started.")
        run = Run(len(self.runs), [], [], [], self.model.next_rung(None))
        self.runs.append(run)
        return run.number

    def observe(self, run: int, step: int, score: float, cost: float) -> None:
        """A run has shown a score at a step, for which so much was paid since the step before.

        Steps rise; they may lie between rungs or skip some. A score that is not finite means that
        the run has diverged, and ends the move.
        """
        it = self.check(run, step, cost)
        if it.until is None:  # nobody asked for it: a move has begun all the same
            it.until = self.model.next_rung(it.steps[-1])
            self._waiting = [x for x in self._waiting if x[1] != run]
            heapq.heapify(self._waiting)
        score = float(score) if math.isfinite(score) else math.nan
        it.steps.append(step)
        it.scores.append(score)
        it.costs.append(cost)
        self.spent += cost
        self._compare(it)
        if it.until is None or step >= it.until or math.isnan(score):
            self._wait(it)

    def check(self, run: int, step: int, cost: float) -> Run:
        """Whether a run could show this; an error if not."""
        it = self._going(run)
        if it.steps and step <= it.steps[-1]:
            raise InvalidAnswer(
                f"the steps of a run must rise, but run {run} showed step {step} after "
                f"{it.steps[-1]}."
            )
        if not (cost >= 0 and math.isfinite(cost)):
            raise InvalidAnswer(
                f"a cost must be finite and not negative, but that of run {run}, step {step} is "
                f"{cost!r}."
            )
        return it

    def ended(self, run: int) -> None:
        """A run has come to its natural end and cannot be advanced."""
        self._stop(run, "ended")

    def failed(self, run: int) -> None:
        """A run has crashed, or was lost, and cannot be advanced. What it showed still counts."""
        self._stop(run, "failed")

    def leave(self, run: int) -> None:
        """A run is no longer to be advanced, though it could be."""
        self._stop(run, "left")

    def release(self, run: int) -> None:
        """The move of a run is no longer carried out; it is offered again, first."""
        it = self._going(run)
        if it.until is None:
            raise InvalidAnswer(f"run {run} is not in flight, so it cannot be given back.")
        if run not in self._again:
            self._again.append(run)

    def pay(self, cost: float) -> None:
        """Something was paid that showed nothing new: training up to a lost checkpoint, say."""
        self.spent += cost

    def exhausted(self) -> None:
        """There are no more runs to start; a new one that was handed out is taken back."""
        self._left, self._owed = 0, 0

    def change_model(self, model: Model) -> None:
        """Go on with another model, fitted anew: all indices change, what was seen stays."""
        if model.minimize != self.model.minimize:
            raise InvalidArgument("the new model must minimize if and only if the old one does.")
        waiting = [number for _, number in self._waiting if not self.runs[number].over]
        self.model, self._waiting = model, []
        if self.best_score is not None:
            self._best = max(self.outside, model.worth(self.best_score))  # the price may change
        for number in waiting:
            self._wait(self.runs[number])

    def _compare(self, run: Run) -> None:
        """Whether the last score of a run is the best of all."""
        score, before = run.scores[-1], self.best_score
        worth = self.model.worth
        if math.isnan(score) or (before is not None and not worth(score) > worth(before)):
            return
        self._peak = run, len(run.scores) - 1
        self._best = max(self.outside, worth(score))

    def _going(self, run: int) -> Run:
        if not 0 <= run < len(self.runs):
            raise InvalidAnswer(f"there is no run {run}: {len(self.runs)} were started.")
        if self.runs[run].over:
            raise InvalidAnswer(f"run {run} is over ({self.runs[run].over}): nothing can follow.")
        return self.runs[run]

    def _wait(self, run: Run) -> None:
        """A run has reached a rung: it waits for the next decision, if its line goes on."""
        run.until = None
        index = self._index(run) if self.model.next_rung(run.steps[-1]) is not None else -math.inf
        heapq.heappush(self._waiting, (-index, run.number))

    def _stop(self, run: int, how: str) -> None:
        it = self._going(run)
        it.until, it.over = None, how
        if run in self._again:
            self._again.remove(run)

    # -- how it stands -------------------------------------------------------------------------

    @property
    def best(self) -> float:
        """The worth of the best score so far, or of the outside option; in units of cost."""
        return self._best

    @property
    def best_run(self) -> int | None:
        """The run that showed the best score, the first of several; None if there is none."""
        return None if self._peak is None else self._peak[0].number

    @property
    def best_step(self) -> int | None:
        """The step at which it did."""
        return None if self._peak is None else self._peak[0].steps[self._peak[1]]

    @property
    def best_score(self) -> float | None:
        """The best score so far."""
        return None if self._peak is None else self._peak[0].scores[self._peak[1]]

    @property
    def payoff(self) -> float:
        """What stopping now earns: ``best - spent``."""
        return self.best - self.spent

    def settled(self) -> list[int]:
        """Runs that wait and will no longer be advanced, unless the model changes.

        The index of a run that waits stays what it is, and the best only rises.
        """
        going = [(number, -key) for key, number in self._waiting if not self.runs[number].over]
        return sorted(number for number, index in going if not index > self.best)

    @property
    def in_flight(self) -> list[int]:
        """The runs that are being advanced; not those whose move was given back."""
        begun = [run.number for run in self.runs if run.until is not None]
        return [run for run in begun if run not in self._again]

    @property
    def done(self) -> bool:
        """Whether nothing is in flight and nothing is worth its cost."""
        top = self._top()
        going = self._owed or any(run.until is not None for run in self.runs)
        return not going and (top is None or not top[0] > self.best)

    @property
    def highest_index(self) -> float:
        """The highest index among the moves that could be made now; -inf if there are none."""
        top = self._top()
        return -math.inf if top is None else top[0]

    @property
    def expected_gain(self) -> float:
        """What going on optimally is expected to add to the payoff, after all further costs.

        Moves in flight are taken as not begun. Infinite as long as nothing has been seen and there
        is no outside option.
        """
        best = self.best
        if not math.isfinite(best):
            return math.inf if self._left > 0 or self.in_flight else 0.0
        seen = [run for run in self.runs if run.steps and not run.over]
        going = [(r.steps, r.scores, r.costs) for r in seen if self._index(r) > best]  # else 0
        unseen = sum(not run.steps and not run.over for run in self.runs) + self._owed
        fresh = int(min(self._left + unseen, ENDLESS)) if self.model.fresh_index > best else 0
        rest = self.model.rest(going, fresh) if going or fresh else None
        if rest is None:
            return 0.0
        return max(solve(rest.changed(outside=best)).value - best, 0.0)

    @property
    def reason(self) -> str:
        """One sentence why to stop, or what it waits for."""
        top, flying = self._top(), len(self.in_flight) + self._owed
        what = f"Wait for {flying} run{'s' * (flying > 1)}" if flying else "Stop"
        if self.spent >= self.budget:
            return f"{what}: the budget of {self.budget:g} is spent."
        if top is None or not math.isfinite(top[0]):
            return f"{what}: no {'other ' if flying else ''}run is left to advance or to start."
        whose = "of a new run" if top[1] is None else f"of run {top[1]}"
        return (
            f"{what}: the highest index, {top[0]:.6g} {whose}, is "
            f"{'' if top[0] > self.best else 'not '}above the best so far, worth {self.best:.6g}."
        )
