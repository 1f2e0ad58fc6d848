"""The runs of MLflow experiments as logged runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._common.optional import need
from ..errors import InvalidArgument
from .logged_runs import LoggedRun, last_of_each, number_or_text

_PAGE = 1000  # runs asked for at once


def mlflow_runs(experiments: Any, metric: str, tracking_uri: str | None) -> Iterator[LoggedRun]:
    """The runs that have logged a metric, with their parameters as settings."""
    client = need("mlflow", "mlflow").MlflowClient(tracking_uri=tracking_uri)
    wanted = [experiments] if isinstance(experiments, str) else list(experiments)
    for experiment in [_found(client, str(name)) for name in wanted]:
        for run in _all_runs(client, experiment.experiment_id):
            logged = client.get_metric_history(run.info.run_id, metric)
            times = [(x.timestamp - run.info.start_time) / 1000 for x in logged]
            steps, scores, elapsed = last_of_each(
                [x.step for x in logged], [x.value for x in logged], [max(x, 0.0) for x in times]
            )
            settings = {name: number_or_text(x) for name, x in run.data.params.items()}
            name = run.info.run_name or run.info.run_id
            task = experiment.name if len(wanted) > 1 else ""
            yield LoggedRun(name, steps, scores, elapsed, settings, task)


def _found(client: Any, name: str) -> Any:
    experiment = client.get_experiment_by_name(name)
    if experiment is None and name.isdigit():
        experiment = client.get_experiment(name)
    if experiment is None:
        there = ", ".join(repr(x.name) for x in client.search_experiments())
        raise InvalidArgument(f"MLflow has no experiment {name!r}; there are {there or 'none'}.")
    return experiment


def _all_runs(client: Any, experiment: str) -> Sequence[Any]:
    runs: list[Any] = []
    token = None
    while True:
        page = client.search_runs(
            [experiment],
            max_results=_PAGE,
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        runs += page
        token = page.token
        if not token:
            return runs
