"""The commands ``weitzman simulate`` and ``weitzman compare``."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..policy.simulation import Simulation
    from ..strategies.comparison import Comparison

import click

from .._common.numbers import about
from .given_file import instance_argument, read_instance
from .options import COUNT, WHOLE, F, Options, command, json_option, threads_option

_SIMULATE = """\
Play the best policy many times with randomly drawn boxes, and print what it
earns, spends and opens: means with 95% confidence, and quantiles.

With --workers W the policy opens up to W boxes at once, those of highest index,
before it sees what they show. That takes fewer rounds and earns less. Both
numbers are printed beside those for one box at a time."""

_SIMULATE_JSON = """\
\b
--json prints one object:
  {"episodes": 100000, "workers": 1, "value": 94.325, "payoff": {"mean": 94.3,
    "standard_error": 0.8, "low": 92.7, "high": 95.9, "quantiles": {"5%": -18.0,
    ...}}, "reward": ..., "spend": ..., "openings": ..., "rounds": ...,
    "loss": 0.45, "boxes": [{"name": "A", "opened": 1.0}, ...]}

value is what the best policy earns, computed and not simulated. loss is the
share of episodes that end worse than opening nothing."""

_COMPARE = """\
Print what the best policy earns beside what simpler strategies earn: the best
order fixed beforehand (stopping when it is best), the best set fixed beforehand,
and rules of thumb. For large forests: the best order and set that were found,
and a bound."""

_COMPARE_JSON = """\
\b
--json prints one object:
  {"strategies": [{"key": "optimal", "name": ..., "value": 94.325, "error": 0.0,
    "bound": null, "lost": 0.0, "share": 1.0, "openings": 2.45, "spend": 26.15,
    "how": "exact"}, ...], "fixed_order": ["A", "C", "B"],
    "fixed_set": ["A", "B", "C"]}

error is a standard error, 0 unless simulated. lost and share compare with the
best policy. null stands for what is not known."""


def _played_options(command: F) -> F:
    """Add what both commands take."""
    for option in (
        threads_option,
        click.option(
            "--seed", type=WHOLE, default=0, metavar="N",
            help="Seed of the random numbers (default 0).",
        ),
        click.option(
            "--episodes", type=COUNT, default=100_000, metavar="N",
            help="Episodes to play (default 100000).",
        ),
        json_option,
        instance_argument,
    ):  # fmt: skip
        command = option(command)
    return command


@command(_SIMULATE, short="Play the best policy many times.", epilog=_SIMULATE_JSON)
@_played_options
@click.option(
    "--workers", type=COUNT, default=1, metavar="N", help="Boxes opened at once (default 1)."
)
def simulate(options: Options) -> None:
    """Carry out the command."""
    from ..engine.solver import solve
    from ..policy.simulation import simulate as play
    from .console import killable, progress_bar

    solution = solve(read_instance(options), threads=options.threads)
    with progress_bar("playing") as progress, killable():
        run = partial(play, solution, options.episodes, threads=options.threads, progress=progress)
        played = run(rng=options.seed, workers=options.workers)
        alone = run(rng=options.seed) if options.workers > 1 and not options.json else None
    if options.json:
        print(_json(_played(played, solution.value)))
        return
    say = solution.forest.amounts
    print(
        f"value {say(solution.value, solution.gap)}, computed with an error of at most "
        f"{say.margin(solution.gap)}"
    )
    print(played.table())
    if alone is not None:
        print(_difference(alone, played))


def _played(played: Simulation, value: float) -> dict[str, Any]:
    out: dict[str, Any] = {
        "episodes": played.episodes, "workers": played.workers, "value": value,
    }  # fmt: skip
    for row in played.summary():
        out[row.pop("name")] = {
            **{key: row.pop(key) for key in ("mean", "standard_error", "low", "high")},
            "quantiles": row,
        }
    names = (played.forest.name(v) for v in range(len(played.forest)))
    opened = zip(names, played.opened.tolist(), strict=True)
    return out | {
        "loss": played.loss, "boxes": [{"name": name, "opened": x} for name, x in opened],
    }  # fmt: skip


def _difference(alone: Simulation, together: Simulation) -> str:
    say = alone.forest.amounts
    return (
        f"one box at a time: payoff {say(alone.payoff.mean)} in {about(alone.rounds.mean)} "
        f"rounds; {together.workers} at once: {say(together.payoff.mean)} in "
        f"{about(together.rounds.mean)}"
    )


@command(_COMPARE, short="The best policy beside simpler strategies.", epilog=_COMPARE_JSON)
@_played_options
@click.option(
    "--budget", type=COUNT, metavar="N",
    help="Boxes that strategies with a budget open (default: the mean of the best policy).",
)  # fmt: skip
def compare(options: Options) -> None:
    """Carry out the command."""
    from ..strategies.comparison import compare as all_strategies
    from .console import killable, progress_bar

    forest = read_instance(options)
    with progress_bar("comparing") as progress, killable():
        found = all_strategies(
            forest,
            episodes=options.episodes,
            rng=options.seed,
            budget=options.budget,
            threads=options.threads,
            progress=progress,
        )
    print(_json(_compared(found)) if options.json else found.table())


def _compared(found: Comparison) -> dict[str, Any]:
    columns = found.columns()
    rows = zip(*columns.values(), strict=True)
    return {
        "strategies": [dict(zip(columns, row, strict=True)) for row in rows],
        "fixed_order": list(found.fixed_order.boxes),
        "fixed_set": list(found.fixed_set.boxes),
    }


def _json(x: Any) -> str:
    return json.dumps(_finite(x), indent=1)


def _finite(x: Any) -> Any:
    """The same with null for numbers that are not finite."""
    if isinstance(x, dict):
        return {key: _finite(value) for key, value in x.items()}
    if isinstance(x, list):
        return [_finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
