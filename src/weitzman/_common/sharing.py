"""Work divided among the workers of an executor, with the results in order.

An executor is anything with ``submit`` that returns futures as in PEP 3148: a pool of
``concurrent.futures`` or loky, ``dask.distributed.Client(...).get_executor()``, or Ray through
`RayExecutor`. This module is the only place that knows about workers:

* Data that all pieces of the work share goes to each worker once, if the executor allows it. For
  Dask the data is the result of a task, which workers pass to each other and which, unlike
  scattered data, can be made again. Ray puts the data into its object store, pools of processes on
  one machine read it from one file, and threads share it anyway.
* A piece whose worker dies is submitted again. A piece that no worker finishes is done in this
  process, so the work always ends. Pieces are plain functions of their arguments: the result is the
  same, bitwise, wherever and however often they run.
* An error that the work itself raises is raised here, without another try.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import queue
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeVar

from ..errors import InvalidArgument
from .optional import need

Piece = TypeVar("Piece")
Result = TypeVar("Result")
_TRIES = 3  # of a piece, before it is done here


class Executor(Protocol):
    """What has ``submit``."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """A future of ``fn(*args)``."""


def check_executor(executor: object) -> None:
    """Refuse objects without ``submit``, and Dask clients, whose futures are of another kind."""
    if executor is None:
        return
    if callable(getattr(executor, "get_executor", None)):
        raise InvalidArgument(
            f"`executor` must give the futures of concurrent.futures, but a "
            f"{type(executor).__name__} does not. Pass its get_executor()."
        )
    if not callable(getattr(executor, "submit", None)):
        raise InvalidArgument(
            f"`executor` must have a method `submit`, as a pool of concurrent.futures has, but got "
            f"a {type(executor).__name__}. For Ray there is weitzman.engine.RayExecutor."
        )


class _Outcome(NamedTuple):
    """What became of a piece: its result, or the error that the work raised."""

    result: Any
    error: Exception | None


def spread(
    executor: Executor | None,
    task: Callable[[Any, Piece], Result],
    data: Any,
    pieces: Sequence[Piece],
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """``[task(data, piece) for piece in pieces]``, by the workers of an executor; None: here.

    ``task`` is a function of a module, and everything can be pickled. ``progress`` is called with
    the pieces done and the pieces in all.
    """
    if executor is not None:
        with team(executor, data) as workers:
            return workers.do(task, pieces, progress)
    results = []
    for piece in pieces:
        results.append(task(data, piece))
        if progress is not None:
            progress(len(results), len(pieces))
    return results


@contextlib.contextmanager
def team(executor: Executor, data: Any) -> Iterator[Team]:
    """The workers of an executor, who have got the same data, for several rounds of work."""
    with _common_data(executor, data) as common:
        yield Team(executor, data, common)


class Team(NamedTuple):
    """Workers, the data, and the word by which the workers know the data."""

    executor: Executor
    data: Any
    common: Any

    def do(
        self,
        task: Callable[[Any, Piece], Result],
        pieces: Sequence[Piece],
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Result]:
        """One round: as `spread`."""
        results: dict[int, Result] = {}
        ended: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        given: dict[int, Any] = {}

        broken: dict[int, Exception] = {}  # pieces that no worker finishes, and why

        def give(i: int) -> None:
            try:
                with _large_is_fine():
                    given[i] = future = self.executor.submit(_work, task, self.common, pieces[i])
                future.add_done_callback(lambda f: ended.put((i, f)))
            except Exception as error:  # the executor takes no more work
                broken[i] = error

        def tell() -> None:
            if progress is not None:
                progress(len(results), len(pieces))

        tries = dict.fromkeys(range(len(pieces)), 1)
        try:
            for i in tries:
                give(i)
            while len(results) + len(broken) < len(pieces):
                i, future = ended.get()
                try:
                    outcome = future.result()
                except Exception as error:  # the worker, not the work
                    if tries[i] < _TRIES:
                        give(i)
                    if tries[i] == _TRIES or i in broken:
                        broken[i] = error
                    tries[i] += 1
                    continue
                if outcome.error is not None:
                    raise outcome.error
                results[i] = outcome.result
                tell()
        finally:
            for future in given.values():
                future.cancel()
        if broken:
            first = broken[min(broken)]
            warnings.warn(
                f"the executor did not finish {len(broken)} of {len(pieces)} pieces of the work "
                f"({type(first).__name__}: {first}). This process does them now; the result is the "
                f"same.",
                RuntimeWarning,
                stacklevel=4,
            )
        for i in sorted(broken):
            results[i] = task(self.data, pieces[i])
            tell()
        return [results[i] for i in range(len(pieces))]


def _work(task: Callable[[Any, Any], Any], common: Any, piece: Any) -> _Outcome:
    """On the worker: one piece. Errors of the work come back as results."""
    data = _read(common.path) if isinstance(common, _File) else common
    try:
        return _Outcome(task(data, piece), None)
    except Exception as error:
        return _Outcome(None, error)


# -- what all pieces have in common ----------------------------------------------------------------


class _File(NamedTuple):
    """Where a pool of processes on this machine finds the data."""

    path: str


@contextlib.contextmanager
def _common_data(executor: Any, data: Any) -> Iterator[Any]:
    """The data as it is passed to every piece: the data itself, or a short reference."""
    client: Any = getattr(executor, "_client", None)  # of Dask
    kinds = [kind.__module__.partition(".")[0] for kind in type(executor).__mro__]
    if data is None or isinstance(executor, ThreadPoolExecutor):
        yield data
    elif callable(getattr(executor, "scatter", None)):
        yield executor.scatter(data)
    elif callable(getattr(client, "scatter", None)):
        with _large_is_fine():
            kept = client.submit(_same, data, pure=False)
        yield kept
    elif isinstance(executor, ProcessPoolExecutor) or "loky" in kinds:
        handle, path = tempfile.mkstemp(suffix=".weitzman")
        try:
            with os.fdopen(handle, "wb") as file:
                pickle.dump(data, file, pickle.HIGHEST_PROTOCOL)
            yield _File(path)
        finally:
            os.unlink(path)
    else:
        yield data


def _same(data: Any) -> Any:
    return data


@contextlib.contextmanager
def _large_is_fine() -> Iterator[None]:
    """Dask warns of data sent along with a task; here it is sent with one task only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")
        yield


@functools.lru_cache(maxsize=1)
def _read(path: str) -> Any:
    """The data in a file; a worker reads it once."""
    with open(path, "rb") as file:
        return pickle.load(file)


class RayExecutor:
    """An executor for ``executor=`` that hands work to Ray.

    Ray must have been started: ``ray.init()``. Ray itself repeats a task whose worker died.

    Parameters
    ----------
    **options
        For ``ray.remote``: ``num_cpus``, ``resources``, ``runtime_env``, ...

    Examples
    --------
    With a cluster at hand::

        ray.init()
        weitzman.solve(forest, executor=weitzman.engine.RayExecutor(num_cpus=1))
    """

    def __init__(self, **options: Any) -> None:
        self._ray = need("ray", "ray")
        self._options = {"max_retries": 3, **options}
        self._remote: dict[Callable[..., Any], Any] = {}  # sent to the workers once each

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """A future of ``fn(*args)``; what was scattered is found on the worker."""
        if fn not in self._remote:
            self._remote[fn] = self._ray.remote(**self._options)(fn)
        future: Future[Any] = self._remote[fn].remote(*args).future()
        return future

    def scatter(self, data: Any) -> Any:
        """Put data into the object store, from which each machine takes it once."""
        return self._ray.put(data)
