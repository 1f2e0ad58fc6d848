"""Tune with nothing but configurations and a function that trains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from contextlib import ExitStack
from typing import Any

from ..errors import InvalidArgument
from .loop import Callback, Catch, Loop, Missing, checked
from .outcome import Result
from .race import Race
from .run_store import Configs, Journal, Path, RunStore
from .runs import SECONDS, Clock, Start
from .search_space import Stated, draw, model_of, names_in


def optimize(
    start: Start,
    configs: Configs,
    model: Stated = None,
    *,
    price: float | None = None,
    full_run_cost: float | None = None,
    minimize: bool | None = None,
    limit: float | None = None,
    journal: Path | None = None,
    share: bool = False,
    outside: float | None = None,
    budget: float | None = None,
    max_runs: int | None = None,
    seed: int | None = None,
    workers: int = 1,
    executor: Any = None,
    on_missing_checkpoint: Missing = "abandon",
    catch: Catch = (),
    refit: bool | None = None,
    reprice: bool = False,
    clock: Clock = SECONDS,
    timeout: float | None = None,
    max_in_memory: int | None = None,
    progress: bool = False,
    callback: Callback | None = None,
) -> Result:
    """Start runs, advance the most promising one, and stop when nothing is worth its cost.

    Parameters
    ----------
    start : callable
        ``start(config)`` returns a run: a generator, or an object with ``advance()``. Each step
        gives a score, ``(score, cost)`` or ``(score, cost, step)``. With a second parameter
        ``past`` (a :class:`Past`) it must also bring back a run from its checkpoint.
    configs : iterable, or callable
        The configurations in the order in which to start them, or a function of the number of the
        run. Of a list of mappings from names to values, a model that knows settings chooses which
        to start. A mapping is a space, from which such a list is drawn: see :func:`draw`.
    model : RunModel or Curves, optional
        What to expect of a run, and the price of a score: see :func:`weitzman.learn.fit`. A log is
        fitted at ``price`` or ``full_run_cost``. Without either, everything is learned during the
        search; see :func:`weitzman.learn.from_nothing`.
    price, full_run_cost : float, optional
        What a point of score is worth in units of cost; or how many points a full run costs. One of
        the two is needed unless a model or a ``budget`` is given. See :func:`price_from_trade` and
        :func:`price_from_past`.
    minimize : bool, optional
        Lower scores are better; by default as the model or the log says.
    limit : float, optional
        The best possible score, such as 1 for an accuracy, for a log or without a model.
    journal : str or path, optional
        A file that makes the search survive crashes. If the file exists, the search continues from
        it, and nothing that was paid for is repeated.
    share : bool
        Let other processes take part, on any machine that reaches the journal: each makes the same
        call and returns the result of the whole search. ``start`` must take ``past``, with
        checkpoints where all processes find them.
    outside : float, optional
        The worth of what is available without any run, in units of cost.
    budget : float, optional
        Begin nothing once this much is spent. Without a price, the budget sets it: see ``reprice``.
    max_runs : int, optional
        The most runs to start in all.
    seed : int, optional
        The seed of configurations that are drawn from a space. By default each search draws others;
        a search that continues from a journal draws the same.
    workers : int
        How many runs to advance at once. One is optimal; more save time and cost payoff.
    executor : object with ``submit``, optional
        Where to advance runs: a process pool, a cluster; by default in threads of this process.
        A run is brought back there for each move, so ``start`` must take ``past``.
    on_missing_checkpoint : "abandon" or "replay"
        What becomes of a run that is not in memory (after a crash) if ``start`` takes no ``past``:
        leave it, or train it again up to where it was, and pay for that again.
    catch : exception, or several
        If a run raises one of these exceptions, the run has failed and the search continues. Any
        other exception ends the search; its attribute ``result`` holds what was found until then.
    refit : bool, optional
        Fit the model again now and then, to what it knew and what this search has shown; by default
        if the model has ``updated``, as models from :func:`weitzman.learn.fit` do.
    reprice : bool
        Replace the price of the model by the price at which the ``budget`` is spent on average.
        The price is updated as money is spent.
    clock : callable
        The cost of a step that does not give its cost: the difference of two readings.
    timeout : float, optional
        Begin nothing once this many seconds have passed; steps under way are finished.
    max_in_memory : int, optional
        How many waiting runs to keep in memory: those with the highest index. The others are
        brought back from their checkpoints when their turn comes, so ``start`` must take ``past``.
    progress : bool
        Show the state of the search on standard error.
    callback : callable, optional
        Called with a :class:`Report` after each event, once it is on disk.

    Returns
    -------
    Result

    Examples
    --------
    >>> from weitzman import learn, tune
    >>> log = {"run": [0, 0, 1, 1, 2, 2], "step": [1, 2] * 3, "score": [5, 7, 4, 4, 6, 9]}
    >>> model = learn.fit(learn.Curves.read(log, cost=None), price=100)
    >>> def start(config):
    ...     for step in (1, 2):
    ...         yield config * step, 1.0                        # score and cost
    >>> result = tune.optimize(start, [1, 5, 2], model)
    >>> result.best_config
    5

    Without any log:

    >>> found = tune.optimize(start, [1, 5, 2, 6, 3], price=100)
    >>> found.best_config
    6
    """
    known, priced = model_of(
        model, price=price, full_run_cost=full_run_cost, minimize=minimize, limit=limit,
        budget=budget, space=names_in(configs),
    )  # fmt: skip
    settings = checked(
        start, catch, callback, progress, workers=workers, executor=executor, refit=refit,
        on_missing_checkpoint=on_missing_checkpoint, reprice=reprice or not priced, clock=clock,
        timeout=timeout, max_in_memory=max_in_memory, share=share,
    )  # fmt: skip
    if share and journal is None:
        raise InvalidArgument("processes share a search through its `journal`, but there is none.")
    if isinstance(configs, str | bytes) or hasattr(configs, "columns") or not (
        callable(configs) or isinstance(configs, Iterable)
    ):  # fmt: skip
        raise InvalidArgument(
            f"configurations are a list, an iterable, a function of the number of the run or a "
            f"space, but got a {type(configs).__name__}."
        )
    with ExitStack() as stack:
        kept = None
        if journal is not None:
            kept = Journal(journal, minimize=known.minimize, share=share, seed=seed)
            stack.callback(kept.close)
        if isinstance(configs, Mapping):
            configs = draw(configs, seed=seed if kept is None else kept.seed)
        store = RunStore(configs, kept)
        supply: dict[str, Any] = {}
        if configs and isinstance(configs, Sequence) and all(
            isinstance(x, Mapping) for x in configs
        ):  # fmt: skip
            supply = {"candidates": configs}
        elif isinstance(configs, Sized):  # runs may have been started from a longer list
            supply = {"available": max(len(configs), store.begun)}
        race = Race(known, **supply, outside=outside, budget=budget, max_runs=max_runs)
        return Loop(race, store, start, settings).run()
