"""What a loop works with: books, settings, and a place to work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from ..errors import InvalidArgument
from .outcome import Report
from .runs import Clock, Row, Start, takes_past

Callback = Callable[[Report], object]
Catch = type[Exception] | Sequence[type[Exception]]
T = TypeVar("T")


class NoMore(Exception):
    """There is no further configuration."""


class TakenOver(Exception):
    """Another process has taken over a run, so what the run shows here does not count."""


class Book(Protocol):
    """A record of what was started, seen and paid.

    Several processes may write in it: ``turn`` brings the race up to date and keeps others from
    writing meanwhile.
    """

    def turn(self, do: Callable[[], T]) -> T:
        """Learn what other processes did, then decide, while nobody else does."""

    def held(self, run: int) -> bool:
        """Whether another process, which is alive, is advancing a run."""

    def take(self, run: int, until: int) -> None:
        """Note that this process advances a run that waited."""

    def begin(self, run: int, candidate: int | None) -> None:
        """Note a new run with its configuration; NoMore if there is none.

        ``candidate`` is the number of the configuration, if the race has chosen one.
        """

    def config(self, run: int) -> Any:
        """What a run is started with."""

    def seen(self, run: int, row: Row) -> None:
        """Note what a run has shown."""

    def paid(self, run: int, cost: float) -> None:
        """Note a cost that showed nothing new."""

    def over(self, run: int, how: str, why: str) -> None:
        """Note that a run has ended, failed or was lost."""

    def settled(self, runs: Sequence[int]) -> None:
        """By the current model, these runs will no longer be advanced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """How a loop does its work; see :func:`weitzman.tune.optimize`."""

    workers: int
    executor: Any
    lost: Literal["abandon", "replay"]
    catch: tuple[type[Exception], ...]
    refit: bool | None
    clock: Clock
    watchers: Sequence[Callback]
    timeout: float | None = None
    alive: int | None = None
    reprice: bool = False
    share: bool = False


class Inline:
    """An executor that does the work at once, in this thread."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def exceptions(catch: Catch) -> tuple[type[Exception], ...]:
    """One kind of exception, or several."""
    return (catch,) if isinstance(catch, type) else tuple(catch)


def check_settings(settings: LoopSettings, start: Start) -> None:
    """Refuse settings of a loop that make no sense, with one message."""
    workers, lost = settings.workers, settings.lost
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InvalidArgument(f"`workers` must be a whole number from 1 on, but it is {workers!r}.")
    if lost not in ("abandon", "replay"):
        raise InvalidArgument(f'`lost` must be "abandon" or "replay", but it is {lost!r}.')
    _check_limits(settings, start)
    if settings.share and lost != "replay" and not takes_past(start):
        raise InvalidArgument(
            "in a shared search, runs go from one process to another, so `start` must take a "
            "parameter `past`, but it does not."
        )
    if settings.executor is None:
        return
    if not hasattr(settings.executor, "submit"):
        raise InvalidArgument(f"`executor` must have `submit`, but it is {settings.executor!r}.")
    if not takes_past(start):
        raise InvalidArgument(
            "with an executor, runs are brought back for every move, so `start` must take a "
            "parameter `past`, but it does not."
        )


def _check_limits(settings: LoopSettings, start: Start) -> None:
    timeout, alive = settings.timeout, settings.alive
    if timeout is not None and not timeout > 0:
        raise InvalidArgument(f"`timeout` must be seconds above 0, but it is {timeout!r}.")
    if alive is None:
        return
    if isinstance(alive, bool) or not isinstance(alive, int) or alive < 0:
        raise InvalidArgument(f"`alive` must be a whole number from 0 on, but it is {alive!r}.")
    if not takes_past(start):
        raise InvalidArgument(
            "with `alive`, runs that wait are brought back from their checkpoints, so `start` must "
            "take a parameter `past`, but it does not."
        )
