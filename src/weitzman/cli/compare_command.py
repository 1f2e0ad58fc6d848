"""The commands ``weitzman simulate`` and ``weitzman compare``."""

from __future__ import annotations

import argparse
import json
import math
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..policy.simulation_result import Simulation
    from ..strategies.comparison import Comparison

from .._common.numbers import about, number, rough
from .instance_file import add_instance, read_instance

_SIMULATE = """\
Play the best policy many times with randomly drawn boxes, and print what it
earns, spends and opens: means with 95% confidence, and quantiles.

With --workers W the policy opens up to W boxes at once, those of highest index,
before it sees what they show. That takes fewer rounds and earns less; both are
printed next to one box at a time."""

_SIMULATE_JSON = """\
--json prints one object:
  {"episodes": 100000, "workers": 1, "value": 94.325, "payoff": {"mean": 94.3,
    "standard_error": 0.8, "low": 92.7, "high": 95.9, "quantiles": {"5%": -18.0,
    ...}}, "reward": ..., "spend": ..., "openings": ..., "rounds": ...,
    "loss": 0.45, "boxes": [{"name": "A", "opened": 1.0}, ...]}
value is what the best policy earns, computed and not simulated; loss the share
of episodes that end worse than opening nothing."""

_COMPARE = """\
Print what the best policy earns next to what one might do instead: the best
order fixed beforehand (stopping when it is best), the best set fixed beforehand,
and simple rules. Large forests: the best order and set found, and a bound."""

_COMPARE_JSON = """\
--json prints one object:
  {"strategies": [{"key": "optimal", "name": ..., "value": 94.325, "error": 0.0,
    "bound": null, "lost": 0.0, "share": 1.0, "openings": 2.45, "spend": 26.15,
    "how": "exact"}, ...], "fixed_order": ["A", "C", "B"],
    "fixed_set": ["A", "B", "C"]}
error is a standard error, 0 unless simulated; lost and share compare with the
best policy; null stands for what is not known."""


def add_compare_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Add both commands to those of the parser; :func:`simulate` and :func:`compare` carry out."""
    played = commands.add_parser("simulate", help="play the best policy many times")
    played.description, played.epilog = _SIMULATE, _SIMULATE_JSON
    _options(played)
    _number(played, "--workers", 1, "boxes opened at once (default 1)", default=1)

    compared = commands.add_parser("compare", help="the best policy next to simpler strategies")
    compared.description, compared.epilog = _COMPARE, _COMPARE_JSON
    _options(compared)
    _number(
        compared, "--budget", 1,
        "boxes that strategies with a budget open (default: what the best policy opens on average)",
    )  # fmt: skip


def _options(parser: argparse.ArgumentParser) -> None:
    add_instance(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    _number(parser, "--episodes", 1, "episodes to play (default 100000)", default=100_000)
    _number(parser, "--seed", 0, "seed of the random numbers (default 0)", default=0)
    _number(parser, "--threads", 1, "threads to use (default: all cores)")


def _number(
    parser: argparse.ArgumentParser, name: str, least: int, text: str, default: int | None = None
) -> None:
    from .option_types import whole

    parser.add_argument(
        name, type=partial(whole, least=least), metavar="N", default=default, help=text
    )


def simulate(arguments: argparse.Namespace) -> None:
    """Carry out ``weitzman simulate``."""
    from ..engine.solver import solve
    from ..policy.simulation import simulate as play
    from .console import killable, progress_bar

    solution = solve(read_instance(arguments), threads=arguments.threads)
    with progress_bar(sys.stderr, "playing") as progress, killable():
        run = partial(
            play, solution, arguments.episodes, threads=arguments.threads, progress=progress
        )
        played = run(rng=arguments.seed, workers=arguments.workers)
        alone = run(rng=arguments.seed) if arguments.workers > 1 and not arguments.json else None
    if arguments.json:
        print(_json(_played(played, solution.value)))
        return
    print(
        f"value {number(solution.value)}, computed with an error of at most {rough(solution.gap)}"
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
    return (
        f"one box at a time: payoff {number(alone.payoff.mean)} in {about(alone.rounds.mean)} "
        f"rounds; {together.workers} at once: {number(together.payoff.mean)} in "
        f"{about(together.rounds.mean)}"
    )


def compare(arguments: argparse.Namespace) -> None:
    """Carry out ``weitzman compare``."""
    from ..strategies.comparison import compare as all_strategies
    from .console import killable, progress_bar

    forest = read_instance(arguments)
    with progress_bar(sys.stderr, "comparing") as progress, killable():
        found = all_strategies(
            forest,
            episodes=arguments.episodes,
            rng=arguments.seed,
            budget=arguments.budget,
            threads=arguments.threads,
            progress=progress,
        )
    print(_json(_compared(found)) if arguments.json else found.table())


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
