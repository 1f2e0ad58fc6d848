"""Ray as an executor in the manner of PEP 3148."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from .optional import need


class RayExecutor:
    """An executor for ``executor=`` that hands work to Ray.

    Ray must have been started: ``ray.init()``. Ray itself does a task again whose worker died.

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
