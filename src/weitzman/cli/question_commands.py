"""Further questions: ``weitzman simulate``, ``compare``, ``budget``, ``tornado``, ``truncate``."""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .._common.numbers import Amounts, about, ends, number, with_unit
from . import common
from .common import F, Options, command

if TYPE_CHECKING:
    from ..policy.simulation import Simulation
    from ..questions.budget import Corner, Mixture


_SIMULATE_JSON = """\
\b
--json prints one object:
  {"episodes": 100000, "workers": 1, "value": 94.325, "payoff": {"mean": 94.3,
    "standard_error": 0.8, "low": 92.7, "high": 95.9, "quantiles": {"5%": -18.0,
    ...}}, "reward": ..., "spend": ..., "openings": ..., "rounds": ...,
    "loss": 0.45, "boxes": [{"name": "A", "opened": 1.0}, ...]}

value is the expected payoff of the best policy, computed and not simulated. loss is the
share of episodes that end worse than opening nothing."""


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
    for option in (
        common.threads_option,
        common.number_option("--seed", "Seed of the random numbers", 0, common.WHOLE),
        common.number_option("--episodes", "Episodes to play", 100_000),
        common.json_option,
        common.instance_argument,
    ):
        command = option(command)
    return command


@command(short="Play the best policy many times.", epilog=_SIMULATE_JSON)
@_played_options
@common.number_option("--workers", "Boxes opened at once", 1)
def simulate(options: Options) -> None:
    """Simulate the best policy many times and print what it earns, spends and opens:
    means with 95% confidence intervals, and quantiles.

    With --workers W the policy opens up to W boxes at once, those with the highest
    indices, before it sees what they show. That takes fewer rounds and earns less.
    Both numbers are printed next to those for one box at a time.
    """
    from ..engine.solver import solve
    from ..policy.simulation import simulate as play

    solution = solve(common.read_instance(options), threads=options.threads)
    with common.progress_bar("playing") as progress, common.killable():
        run = partial(play, solution, options.episodes, threads=options.threads, progress=progress)
        played = run(rng=options.seed, workers=options.workers)
        alone = run(rng=options.seed) if options.workers > 1 and not options.json else None
    if options.json:
        print(common.as_json(_played(played, solution.value)))
        return
    say = solution.forest.amounts
    error = f"computed with an error of at most {say.margin(solution.gap)}"
    print(f"value {say(solution.value, solution.gap)}, {error}\n{played.table()}")
    if alone is not None:
        one, many = (f"{say(x.payoff.mean)} in {about(x.rounds.mean)}" for x in (alone, played))
        print(f"one box at a time: payoff {one} rounds; {played.workers} at once: {many}")


def _played(played: Simulation, value: float) -> dict[str, Any]:
    out: dict[str, Any] = {"episodes": played.episodes, "workers": played.workers, "value": value}
    for row in played.summary():
        name = row.pop("name")
        head = {key: row.pop(key) for key in ("mean", "standard_error", "low", "high")}
        out[name] = {**head, "quantiles": row}
    boxes = [{"name": played.forest.name(v), "opened": x} for v, x in enumerate(played.opened)]
    return {**out, "loss": played.loss, "boxes": boxes}


@command(short="The best policy and simpler strategies.", epilog=_COMPARE_JSON)
@_played_options
@click.option(
    "--budget", type=common.COUNT, metavar="N",
    help="Boxes that strategies with a budget open (default: the mean of the best policy).",
)  # fmt: skip
def compare(options: Options) -> None:
    """Compare the expected payoff of the best policy with that of simpler strategies:
    the best order fixed in advance (stopping when that is best), the best set fixed
    in advance, and rules of thumb. For large forests: the best order and set that
    were found, and a bound.
    """
    from ..strategies.comparison import compare as all_strategies

    forest = common.read_instance(options)
    with common.progress_bar("comparing") as progress, common.killable():
        found = all_strategies(
            forest, episodes=options.episodes, rng=options.seed, budget=options.budget,
            threads=options.threads, progress=progress,
        )  # fmt: skip
    if not options.json:
        print(found.table())
        return
    columns = found.columns()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    best = {"fixed_order": list(found.fixed_order.boxes), "fixed_set": list(found.fixed_set.boxes)}
    print(common.as_json({"strategies": rows, **best}))


@command(short="A limit on the mean spend instead of prices.")
@common.instance_argument
@click.option("--budget", type=common.NUMBER, metavar="B", help="What may be spent on average.")
@click.option("--target", type=common.NUMBER, metavar="R", help="A reward to be reached.")
@click.option("--chance", type=common.NUMBER, metavar="P", help="The probability of reaching it.")
@common.number_option("--corners", "Corners to look for", 50)
@common.json_option
def budget(options: Options) -> None:
    """Print the largest expected reward for every expected spend: the corners of a
    concave curve, and the price of money between two corners.

    \b
      --budget B              the best use of B: two policies and the share of each
      --target R --chance P   the least spend that reaches a reward of R with
                              probability P
    """
    from ..questions.budget import cheapest, frontier, within_budget

    if (options.target is None) != (options.chance is None):
        raise click.UsageError("--target and --chance go together.")
    forest = common.read_instance(options)
    if options.target is None and options.budget is None:
        curve = frontier(forest, corners=options.corners)
        found = {**curve.columns(), "gap": curve.gap}
        print(common.as_json(found) if options.json else curve.table())
        return
    if options.target is not None:
        best, what = cheapest(forest, options.target, options.chance), "probability"
    else:
        best, what = within_budget(forest, options.budget), "reward"
    print(common.as_json(_parts(best)) if options.json else _mixture(best, what, forest.amounts))


@command(short="Which numbers matter most.")
@common.instance_argument
@click.option(
    "--by", type=common.POSITIVE, default=0.1, metavar="S",
    help="How far each number is moved, relative to it (default 10%).",
)  # fmt: skip
@common.limit_option("Boxes whose numbers are moved, those opened most often", 20)
@common.json_option
def tornado(options: Options) -> None:
    """Move every cost, reward and chance up and down, one at a time, and solve again.
    The table shows how far the value moves, and whether another box comes first.
    """
    from ..questions.robustness import tornado as run

    found = run(common.read_instance(options), share=options.by, boxes=options.limit or sys.maxsize)
    columns = {"value": found.solution.value, **found.columns()}
    print(common.as_json(columns) if options.json else found.table())


def _mixture(best: Mixture, what: str, say: Amounts) -> str:
    reward = say if what == "reward" else number
    lines = [
        f"expected {what} {reward(best.reward)}, expected spend {say(best.spend)}",
        f"one more unit of spend adds {number(best.price)}",
    ]
    for share, corner in _shares(best):
        then = f"follow the policy at price {number(corner.price)}"
        lines.append(
            f"with probability {number(share)} {then if corner.spend else 'open nothing'}: "
            f"{what} {reward(corner.reward)}, spend {say(corner.spend)}"
        )
    return "\n".join(lines)


def _shares(best: Mixture) -> list[tuple[float, Corner]]:
    return [(x, c) for x, c in ((1 - best.share, best.cheap), (best.share, best.costly)) if x > 0]


def _parts(best: Mixture) -> dict[str, Any]:
    policies = [
        {"share": share, "price": c.price, "spend": c.spend, "reward": c.reward}
        for share, c in _shares(best)
    ]
    head = {key: getattr(best, key) for key in ("reward", "spend", "price")}
    return {**head, "policies": policies}


_TRUNCATE_JSON = """\
\b
--json prints one object:
  {"depth": 25, "kept": 25, "of": 100000, "lower": 9.3, "upper": 9.301,
   "gap": 0.001}

kept and of count boxes as they are described, without copies."""


@command(short="Cut off what lies too deep to matter.", epilog=_TRUNCATE_JSON)
@common.instance_argument
@click.option(
    "--gap", type=common.POSITIVE, required=True, metavar="G",
    help="The most that may be lost: absolute, in the unit of the rewards.",
)  # fmt: skip
@common.output_option(
    "File for the kept boxes, replaced if it exists. - is standard output, in place of the table.",
    required=False,
)
@common.json_option
def truncate(options: Options) -> None:
    """Cut lines and trees at a depth that is certified to lose no more than --gap, and
    print what is kept and what the whole search is worth.

    \b
      lower   lower bound: the payoff of searching the kept boxes
      upper   upper bound on the payoff of searching all boxes

    The value of the whole search lies between lower and upper. Their difference is
    all that is lost by never looking deeper. (When minimizing, upper is reached.)

    With -o the kept boxes are written to a file for solve, search and all other
    commands. Boxes keep their names. Boxes without names whose numbers change are
    named by their old numbers.
    """
    from .._common.text import columns
    from ..bounds.truncation import truncate as run
    from ..files.instances import save

    with common.written_file(options.output or "", options.file, suffix=".json") as path:
        cut = run(common.read_instance(options), gap=options.gap)
        if path:
            save(cut.forest, path)
    unit, keys = cut.forest.unit, ("depth", "kept", "of", "lower", "upper", "gap")
    low, high = (with_unit(text, unit) for text in ends(cut.lower, cut.upper))
    share = "all" if cut.kept == cut.of else f"{about(cut.kept / cut.of)} of them"
    of = f"{cut.of}   ({share})" if cut.of < math.inf else "endlessly many"
    rows = [
        ("depth", f"{cut.depth}"), ("boxes kept", f"{cut.kept} of {of}"), ("lower", low),
        ("upper", high), ("lost", f"at most {with_unit(about(cut.gap), unit)}"),
    ]  # fmt: skip
    text = common.as_json({key: getattr(cut, key) for key in keys}) if options.json else None
    out = sys.stderr if options.output == "-" else sys.stdout
    print(text or "\n".join(columns(rows)), file=out)
