"""Which run to advance, whether to start another, when to stop: the one rule behind every driver.

A run is a line of boxes. Its model (see :class:`~weitzman.learn.RunModel`) says at which steps a
decision falls, and gives the indices of continuing a run and of starting a new one. Where the
settings of the runs that can be started are known, each of these *candidates* has an index of its
own. The rule is that of :class:`~weitzman.Policy`: make the move with the highest index while it
exceeds the worth of the best score so far; otherwise stop. Among equal indices, the run that was
started first comes first, then the first candidate, then a new run. Among equal scores, the score
of the first run counts.

A race does not train or wait. The same reports in the same order lead to the same moves.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._common.arrays import check_counts
from ..errors import InvalidAnswer, InvalidArgument
from ..learn.first_runs import BEYOND, END, UNKNOWN, FirstRuns
from ..learn.log_tables import Config
from ..learn.run_model import RunModel as RunModel
from ..learn.run_model import Shown, check_model
from ..policy.frontier import Offers

if TYPE_CHECKING:
    from ..learn.ladder import Belief, ScoreNoise

ENDLESS = 10**6  # new runs that stand for "as many as you like" when the gain is computed

Key = tuple[int, ...]
"""A move on offer, in the order of ties: ``(0, run)``, ``(1, candidate)``, new run ``(2,)``."""

_LAST_STEP = 2**53
_AWAY = 3.0  # a score this many widths of the log's scores away is in another unit
_RUN, _CANDIDATE, _NEW = range(3)


@dataclass(frozen=True, slots=True)
class Move:
    """One thing to do: advance a run until a step.

    Attributes
    ----------
    run : int or None
        The number of the run; None for a new run, whose number :meth:`Race.started` gives.
    until : int
        The step at which the next decision falls.
    index, best : float
        The index of the move, and the worth of the best score then; in units of cost.
    candidate : int or None
        For a new run the number of its candidate, if the race was given any.
    point : float
        What a point of score is worth, in units of cost; negative when minimizing.
    """

    run: int | None
    until: int
    index: float
    best: float
    candidate: int | None = None
    point: float = 1.0

    @property
    def reason(self) -> str:
        """One sentence that says why, in points of score."""
        new = "a run" if self.candidate is None else f"candidate {self.candidate}"
        what = f"Start {new}, and train it" if self.run is None else f"Advance run {self.run}"
        goal = "its end" if self.until >= END else f"step {self.until}"
        if self.until == 0 and self.index >= UNKNOWN:
            goal = "its first score"
        if not math.isfinite(self.best):
            return f"{what} to {goal}: nothing has been seen yet."
        if self.index >= UNKNOWN:
            return f"{what} to {goal}: too little is known about runs to judge any."
        side = "below" if self.point > 0 else "above"
        return (
            f"{what} to {goal}: this pays as long as the best score is {side} "
            f"{self.index / self.point:.6g} (now {self.best / self.point:.6g}), longer than any "
            f"other move."
        )


@dataclass(slots=True)
class Run:
    """What is known about a run.

    Attributes
    ----------
    number : int
    until : int or None
        The step to which the run is being advanced; None while it waits or once it is over.
    settings : mapping or None
        What the run was started with, if that is known.
    steps, scores, costs, filtered : lists
        What was seen, in the order of the steps; a score of nan means that the run had diverged.
        ``filtered`` has the means of re-evaluations, where these are the prize.
    over : str
        "" as long as the run can continue, otherwise "ended", "failed" or "left".
    """

    number: int
    until: int | None
    settings: Config | None = None
    steps: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    filtered: list[float] = field(default_factory=list)
    over: str = ""

    @property
    def shown(self) -> Shown:
        """What a model is told about the run."""
        return Shown(self.steps, self.filtered, self.costs, self.settings)


class Seen(NamedTuple):
    """A score as it came in: of which run and step, and all that had been spent by then."""

    run: int
    step: int
    score: float
    spent: float


def _is_number(x: object) -> bool:
    return isinstance(x, Real) and x == x  # not nan


class Race:
    """Decides which run to advance.

    Parameters
    ----------
    model : RunModel
        What to expect of a run: see :func:`weitzman.learn.fit`.
    available : int, optional
        How many runs can be started. By default there is no limit.
    outside, budget, max_runs : optional
        As in :func:`optimize`.
    candidates : sequence of mappings, optional
        The settings of the runs that can be started, which are then ``available``. See
        :meth:`offer` to add some later.

    Attributes
    ----------
    runs : list of Run
    spent : float
    history : list of Seen
        The scores in the order in which they came in.

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
        model: RunModel,
        *,
        available: int | None = None,
        outside: float | None = None,
        budget: float | None = None,
        candidates: Sequence[Config] | None = None,
        max_runs: int | None = None,
    ) -> None:
        check_model(model)
        if available is not None and candidates is not None:
            raise InvalidArgument("give either `available` or `candidates`.")
        check_counts(0, available=available)
        check_counts(max_runs=max_runs)
        if outside is not None and not _is_number(outside):
            raise InvalidArgument(f"`outside` must be a number, but it is {outside!r}.")
        if budget is not None and not (_is_number(budget) and budget > 0):
            raise InvalidArgument(f"`budget` must be a number above 0, but it is {budget!r}.")
        self.model = model
        self.runs: list[Run] = []
        self.history: list[Seen] = []
        self.spent = 0.0
        self.budget = math.inf if budget is None else float(budget)
        self.outside = -math.inf if outside is None else float(outside)
        self._most = math.inf if max_runs is None else max_runs
        self._halted = ""  # why nothing is to be begun, whatever it might be worth
        self._left = math.inf if available is None else available  # new runs without settings,
        self._owed = 0  # and those of them that were handed out and not yet started
        self._peak: tuple[Run, int] | None = None  # run and row of the best score
        self._best = self.outside  # its worth, or the outside option
        self._again: dict[int, None] = {}  # runs whose move was released, first come first served
        self._candidates: list[Config] = []
        self._unused: set[int] = set()  # candidates not yet handed out,
        self._picked: list[int] = []  # and those not yet started
        self._offers = Offers[Key](self._free)
        self._noise: ScoreNoise | None = getattr(model, "noise", None)
        self._beliefs: dict[int, Belief] = {}  # about runs whose scores are noisy
        self._warned = False  # that steps are counted in another unit, which one warning says
        if candidates is not None:
            self._left = 0
        self.offer(candidates or [])

    # -- deciding ------------------------------------------------------------------------------

    def next(self) -> Move | None:
        """The next move, which is then in flight: it is not offered again before it is over.

        None means that nothing is worth its cost, given what is known. If moves are in flight,
        their results may change that: see :attr:`done`.
        """
        move = self.peek()
        if move is None:
            return None
        if move.candidate is not None:
            self._unused.discard(move.candidate)
            self._picked.append(move.candidate)
        elif move.run is None:
            self._left -= 1
            self._owed += 1
        elif self._again:
            del self._again[move.run]
        else:
            self._offers.take()
            self.runs[move.run].until = move.until
        return move

    def peek(self) -> Move | None:
        """The move that :meth:`next` would hand out."""
        best, point = self._best, self._point
        if self._again:
            again = self.runs[next(iter(self._again))]
            assert again.until is not None  # released in the middle of a move
            return Move(again.number, again.until, self._index(again), best, None, point)
        top = self._top()
        if top is None or not top[1] > best:
            return None
        (kind, *which), index = top
        if UNKNOWN <= index < BEYOND and self.in_flight:
            return None  # as many first runs as are wanted were started: wait for the others
        number = which[0] if kind == _RUN else None
        until = self.model.next_rung(None if number is None else self.runs[number].steps[-1])
        assert until is not None  # the index would be -inf
        return Move(number, until, index, best, which[0] if kind == _CANDIDATE else None, point)

    @property
    def left(self) -> float:
        """How many further runs can be started."""
        return max(0, min(self._left + len(self._unused), self._most - self.begun))

    @property
    def begun(self) -> int:
        """How many runs were started, or handed out to be started."""
        return len(self.runs) + self._handed_out

    def _top(self) -> tuple[Key, float] | None:
        """The move with the highest index, and that index; None without a move or a budget."""
        return None if self._halted or self.spent >= self.budget else self._offers.top()

    def _free(self, key: Key) -> bool:
        """Whether a move is still on offer."""
        if key[0] == _RUN:
            run = self.runs[key[1]]
            return run.until is None and not run.over
        there = key[1] in self._unused if key[0] == _CANDIDATE else self._left > 0
        return there and self.left > 0

    def _index(self, run: Run) -> float:
        model = self.model
        if run.steps or run.settings is None:
            return float(model.next_indices([run.shown])[0]) if run.steps else model.fresh_index
        return float(model.start_indices([run.settings])[0])

    # -- what happened -------------------------------------------------------------------------

    def offer(self, candidates: Sequence[Config]) -> int:
        """Add runs that can be started, by their settings; gives the number of the first."""
        first = len(self._candidates)
        self._candidates.extend(candidates)
        added = range(first, len(self._candidates))
        self._unused.update(added)
        self._enlist(added)
        return first

    def _enlist(self, numbers: Sequence[int]) -> None:
        """Put candidates on offer, and a new run without settings, if there are any."""
        if self._left > 0:
            self._offers.put((_NEW,), self.model.fresh_index)
        index = self.model.start_indices([self._candidates[i] for i in numbers])
        for number, x in zip(numbers, index.tolist(), strict=True):
            self._offers.put((_CANDIDATE, number), x)

    def started(self, candidate: int | None = None) -> int:
        """A new run was started; returns its number. It is in flight until its first rung.

        Of several candidates handed out, the run takes the first, unless another is named. A race
        without candidates ignores their numbers.
        """
        if candidate is None and not self._owed:
            candidate = self._picked[0] if self._picked else min(self._unused, default=None)
        settings = None
        if candidate is not None and self._candidates:
            if candidate in self._picked:
                self._picked.remove(candidate)
            elif candidate in self._unused:  # started without having been handed out
                self._unused.remove(candidate)
            else:
                raise InvalidAnswer(f"candidate {candidate} is not there, or was started before.")
            settings = self._candidates[candidate]
        elif self._owed:
            self._owed -= 1
        elif self._left > 0:
            self._left -= 1
        else:
            raise InvalidAnswer(f"no further run is available: {len(self.runs)} were started.")
        self.runs.append(Run(len(self.runs), self.model.next_rung(None), settings))
        return len(self.runs) - 1

    def describe(self, run: int, settings: Config) -> None:
        """Say what a run was started with, as soon as that is known."""
        self._going(run).settings = settings

    def observe(self, run: int, step: int, score: float, cost: float) -> None:
        """A run has shown a score at a step, at this cost since the step before.

        Steps rise; they may lie between rungs or skip some. A score that is not finite means that
        the run has diverged, and ends the move. If the prize is a re-evaluation, the score counts
        as the mean of its re-evaluations: see ``rescored`` of :func:`weitzman.learn.fit`.
        """
        it = self.check(run, step, cost)
        if it.until is None:  # nobody asked for this move, but it has begun
            it.until = self.model.next_rung(it.steps[-1])
            self._offers.withdraw((_RUN, run))
        score = float(score) if math.isfinite(score) else math.nan
        it.scores.append(score)
        if self._noise is not None and not math.isnan(score):
            belief = self._noise.updated(self._beliefs.get(run), step, score)
            self._beliefs[run], score = belief, belief.mean
        if not it.steps and step > (end := int(self.model.rungs[-1])):
            self._warn_of_steps(
                f"run {run} begins with step {step}, but the runs of the log end at step {end}, so "
                f"nothing is known about what follows"
            )
        if self._peak is None and not math.isnan(score):
            self._check_unit(score)
        it.steps.append(step)
        it.filtered.append(score)
        it.costs.append(cost)
        self.spent += cost
        self.history.append(Seen(run, step, it.scores[-1], self.spent))
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
        first = min(0, int(self.model.rungs[0]))
        if not first <= step <= _LAST_STEP:
            raise InvalidAnswer(
                f"steps must be from {first} to {_LAST_STEP:,}, but run {run} showed step {step}."
            )
        if not (cost >= 0 and math.isfinite(cost)):
            raise InvalidAnswer(
                f"a cost must be finite and not negative, but that of run {run}, step {step} is "
                f"{cost!r}."
            )
        return it

    def ended(self, run: int) -> None:
        """A run has come to its natural end and cannot be advanced."""
        it, first = self._going(run), int(self.model.rungs[0])
        if it.steps and it.steps[-1] < first and not math.isnan(it.filtered[-1]):
            self._warn_of_steps(
                f"run {run} ended at step {it.steps[-1]}, but the first decision on a run falls at "
                f"step {first}, as the log has it"
            )
        self._stop(run, "ended")

    def _warn_of_steps(self, what: str) -> None:
        """Once in a search: if the units differ, they differ for every run."""
        if not self._warned:
            self._warned = True
            warnings.warn(f"{what}. Are steps counted in the same unit?", UserWarning, stacklevel=3)

    def _check_unit(self, score: float) -> None:
        """Warn if the first score is far from all that the log has shown; it may be the last."""
        ladder = getattr(self.model, "ladder", None)
        if ladder is None:
            return
        seen = np.arange(ladder.best.shape[1]) < ladder.seen[:, None]
        there = -ladder.best[seen] if self.model.minimize else ladder.best[seen]
        low, high = float(there.min()), float(there.max())
        far = not low - _AWAY * (high - low) <= score <= high + _AWAY * (high - low)
        # fractions beside percent: ten times beyond all of the log, and within it times 100
        other = low <= 100 * score <= high and 10 * score < low
        if far or other or (low <= score / 100 <= high and score > 10 * high):
            warnings.warn(
                f"the first score of this search is {score:.4g}, but those of the log go from "
                f"{low:.4g} to {high:.4g}. Are both in the same unit?",
                UserWarning,
                stacklevel=3,
            )

    def has_ended(self, run: Run) -> bool:
        """Whether a run has come to its end, by itself or at the last step of the model."""
        return run.over == "ended" or self.model.next_rung(run.steps[-1]) is None

    def failed(self, run: int) -> None:
        """A run has crashed, or was lost, and cannot be advanced. What it showed still counts."""
        self._stop(run, "failed")

    def leave(self, run: int) -> None:
        """Mark a run that could be advanced but should not be."""
        self._stop(run, "left")

    def release(self, run: int) -> None:
        """The move of a run is no longer carried out; it is offered again, first."""
        it = self._going(run)
        if it.until is None:
            raise InvalidAnswer(f"run {run} is not running, so it cannot be released.")
        self._again.setdefault(run)

    def take(self, run: int, until: int) -> None:
        """Someone else advances a run until a step, so it is not offered here."""
        self._going(run).until = until
        self._offers.withdraw((_RUN, run))
        self._again.pop(run, None)

    def pay(self, cost: float) -> None:
        """Add a cost that showed nothing new, such as training up to a lost checkpoint."""
        self.spent += cost

    def exhausted(self) -> None:
        """There are no more runs to start; a new one that was handed out is released."""
        self._left, self._owed = 0, 0
        self._unused.clear()
        self._picked.clear()

    def halt(self, why: str) -> None:
        """Begin nothing more, for a reason other than worth, such as time."""
        self._halted = why

    @property
    def going(self) -> list[Shown]:
        """What the runs that can continue have shown."""
        return [run.shown for run in self.runs if run.steps and not run.over]

    def change_model(self, model: RunModel) -> None:
        """Go on with another or a refitted model: all indices change, what was seen stays."""
        if model.minimize != self.model.minimize:
            raise InvalidArgument("the new model must minimize if and only if the old one does.")
        kept = sorted(key for key, _ in self._offers)
        self.model, self._offers = model, Offers[Key](self._free)
        self._enlist(sorted(self._unused))
        if self.best_score is not None:
            self._best = max(self.outside, model.worth(self.best_score))  # the price may change
        self._wait(*(self.runs[key[1]] for key in kept if key[0] == _RUN))

    def _compare(self, run: Run) -> None:
        """Whether the last score of a run is the best of all."""
        score, worth = run.filtered[-1], self.model.worth
        if math.isnan(score):
            return
        if self._peak is not None:
            holder, row = self._peak  # of equal scores the one of the first run counts
            held = worth(holder.filtered[row]), -holder.number
            if (worth(score), -run.number) <= held:
                return
        self._peak = run, len(run.filtered) - 1
        self._best = max(self.outside, worth(score))

    def _going(self, run: int) -> Run:
        if not 0 <= run < len(self.runs):
            raise InvalidAnswer(f"there is no run {run}: {len(self.runs)} were started.")
        if self.runs[run].over:
            raise InvalidAnswer(f"run {run} is over ({self.runs[run].over}): nothing can follow.")
        return self.runs[run]

    def _wait(self, *runs: Run) -> None:
        """Runs have reached a rung: they wait for the next decision, if their lines continue."""
        index = self.model.next_indices([run.shown for run in runs])
        for run, x in zip(runs, index, strict=True):
            run.until = None
            self._again.pop(run.number, None)
            over = self.model.next_rung(run.steps[-1]) is None
            self._offers.put((_RUN, run.number), -math.inf if over else float(x))

    def _stop(self, run: int, how: str) -> None:
        it = self._going(run)
        it.until, it.over = None, how
        self._again.pop(run, None)

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
        """The step at which that run showed the best score."""
        return None if self._peak is None else self._peak[0].steps[self._peak[1]]

    @property
    def best_score(self) -> float | None:
        """The best score so far."""
        return None if self._peak is None else self._peak[0].filtered[self._peak[1]]

    @property
    def payoff(self) -> float:
        """What stopping now earns: ``best - spent``."""
        return self.best - self.spent

    def settled(self) -> list[int]:
        """Runs that wait and will no longer be advanced, unless the model changes.

        The index of a run that waits does not change, and the best only rises.
        """
        return sorted(run for run, index in self.waiting.items() if not index > self.best)

    @property
    def waiting(self) -> dict[int, float]:
        """The runs that wait for a decision, each with its index."""
        return {key[1]: index for key, index in self._offers if key[0] == _RUN}

    @property
    def in_flight(self) -> list[int]:
        """The runs that are being advanced; not those whose move was released."""
        begun = [run.number for run in self.runs if run.until is not None]
        return [run for run in begun if run not in self._again]

    @property
    def done(self) -> bool:
        """Whether nothing is in flight and nothing is worth its cost."""
        going = self._handed_out or any(run.until is not None for run in self.runs)
        return not going and not self.highest_index > self.best

    @property
    def _handed_out(self) -> int:
        """New runs that were handed out and not yet started."""
        return self._owed + len(self._picked)

    @property
    def highest_index(self) -> float:
        """The highest index among the moves that could be made now; -inf if there are none."""
        top = self._top()
        return -math.inf if top is None else top[1]

    @property
    def expected_gain(self) -> float:
        """What continuing optimally is expected to add to the payoff, after all further costs.

        Moves in flight are taken as not begun. Infinite as long as nothing has been seen and there
        is no outside option.
        """
        if not math.isfinite(self.best):
            return math.inf if self.left > 0 or self.in_flight else 0.0
        unseen = [run.settings for run in self.runs if not run.steps and not run.over]
        offered = [self._candidates[i] for i in (*self._picked, *sorted(self._unused))]
        known = [*(x for x in unseen if x is not None), *offered]
        fresh = unseen.count(None) + self._owed + int(min(self._left, ENDLESS))
        if self.left == 0:
            known, fresh = [x for x in unseen if x is not None], unseen.count(None)
        starts = [Shown((), (), (), x) for x in known]
        return self.model.gain(self.best, [*self.going, *starts], fresh)

    @property
    def _point(self) -> float:
        """What one more point of score is worth; negative when minimizing."""
        return -self.model.price if self.model.minimize else self.model.price

    @property
    def reason(self) -> str:
        """One sentence: why to stop, or what the race waits for; in points of score."""
        top, flying = self._top(), len(self.in_flight) + self._handed_out
        what = f"Wait for {flying} run{'s' * (flying > 1)}" if flying else "Stop"
        if self._halted:
            return f"{what}: {self._halted}."
        if self.spent >= self.budget:
            return f"{what}: the budget of {self.budget:g} is spent."
        if top is None or top[1] == -math.inf:
            return f"{what}: no {'other ' if flying else ''}run is left to advance or to start."
        if isinstance(self.model, FirstRuns) and self.model.over and not top[1] > self.best:
            return f"{what}: {self.model.reason}."
        (kind, *which), index = top
        move = f"continuing run {which[0]}" if kind == _RUN else "starting another run"
        if index > self.best:
            return f"{what}: {move} is still worth its cost."
        best = self.best / self._point
        what += f": no move is expected to improve on {best:.6g} by more than it costs"
        if index == self.best:
            return f"{what}."
        side = "below" if self._point > 0 else "above"
        return f"{what}. {move.capitalize()} would pay if the best were {side} " + (
            f"{index / self._point:.6g}."
        )
