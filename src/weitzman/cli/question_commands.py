"""Further questions: ``weitzman simulate``, ``compare``, ``budget``, ``tornado``, ``truncate``."""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .._common.numbers import Amounts, about, ends, number, with_unit
from .console import as_json, killable, progress_bar
from .given_file import instance_argument, read_instance, written_file
from .options import (
    COUNT,
    NUMBER,
    POSITIVE,
    WHOLE,
    F,
    Options,
    command,
    json_option,
    limit_option,
    output_option,
    threads_option,
)

if TYPE_CHECKING:
    from ..bounds.truncation import Truncation
    from ..policy.simulation import Simulation
    from ..questions.budget import Mixture, SpendFrontier


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


@command(short="Play the best policy many times.", epilog=_SIMULATE_JSON)
@_played_options
@click.option(
    "--workers", type=COUNT, default=1, metavar="N", help="Boxes opened at once (default 1)."
)
def simulate(options: Options) -> None:
    """Simulate the best policy many times and print what it earns, spends and opens:
    means with 95% confidence intervals, and quantiles.

    With --workers W the policy opens up to W boxes at once, those with the highest
    indices, before it sees what they show. That takes fewer rounds and earns less.
    Both numbers are printed beside those for one box at a time.
    """
    from ..engine.solver import solve
    from ..policy.simulation import simulate as play

    solution = solve(read_instance(options), threads=options.threads)
    with progress_bar("playing") as progress, killable():
        run = partial(play, solution, options.episodes, threads=options.threads, progress=progress)
        played = run(rng=options.seed, workers=options.workers)
        alone = run(rng=options.seed) if options.workers > 1 and not options.json else None
    if options.json:
        print(as_json(_played(played, solution.value)))
        return
    say = solution.forest.amounts
    print(
        f"value {say(solution.value, solution.gap)}, computed with an error of at most "
        f"{say.margin(solution.gap)}"
    )
    print(played.table())
    if alone is not None:
        print(
            f"one box at a time: payoff {say(alone.payoff.mean)} in {about(alone.rounds.mean)} "
            f"rounds; {played.workers} at once: {say(played.payoff.mean)} in "
            f"{about(played.rounds.mean)}"
        )


def _played(played: Simulation, value: float) -> dict[str, Any]:
    out: dict[str, Any] = {"episodes": played.episodes, "workers": played.workers, "value": value}
    for row in played.summary():
        name = row.pop("name")
        head = {key: row.pop(key) for key in ("mean", "standard_error", "low", "high")}
        out[name] = {**head, "quantiles": row}
    boxes = [{"name": played.forest.name(v), "opened": x} for v, x in enumerate(played.opened)]
    return {**out, "loss": played.loss, "boxes": boxes}


@command(short="The best policy beside simpler strategies.", epilog=_COMPARE_JSON)
@_played_options
@click.option(
    "--budget", type=COUNT, metavar="N",
    help="Boxes that strategies with a budget open (default: the mean of the best policy).",
)  # fmt: skip
def compare(options: Options) -> None:
    """Compare the expected payoff of the best policy with that of simpler strategies:
    the best order fixed beforehand (stopping when that is best), the best set fixed
    beforehand, and rules of thumb. For large forests: the best order and set that
    were found, and a bound.
    """
    from ..strategies.comparison import compare as all_strategies

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
    if not options.json:
        print(found.table())
        return
    columns = found.columns()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    best = {"fixed_order": list(found.fixed_order.boxes), "fixed_set": list(found.fixed_set.boxes)}
    print(as_json({"strategies": rows, **best}))


@command(short="A limit on the mean spend instead of prices.")
@instance_argument
@click.option("--budget", type=NUMBER, metavar="B", help="What may be spent on average.")
@click.option("--target", type=NUMBER, metavar="R", help="A reward to be reached.")
@click.option("--chance", type=NUMBER, metavar="P", help="The probability of reaching it.")
@click.option(
    "--corners", type=COUNT, default=50, metavar="N", help="Corners to look for (default 50)."
)
@json_option
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
    forest = read_instance(options)
    if options.target is None and options.budget is None:
        curve = frontier(forest, corners=options.corners)
        found = {**curve.columns(), "gap": curve.gap}
        print(as_json(found) if options.json else _curve(curve, forest.amounts))
        return
    if options.target is not None:
        best, what = cheapest(forest, options.target, options.chance), "probability"
    else:
        best, what = within_budget(forest, options.budget), "reward"
    print(as_json(_parts(best)) if options.json else _mixture(best, what, forest.amounts))


@command(short="Which numbers matter most.")
@instance_argument
@click.option(
    "--by", type=POSITIVE, default=0.1, metavar="S",
    help="How far each number is moved, relative to it (default 10%).",
)  # fmt: skip
@limit_option("Boxes whose numbers are moved, those opened most often", 20)
@json_option
def tornado(options: Options) -> None:
    """Move every cost, reward and chance up and down, one at a time, and solve again.
    The table shows how far the value moves, and whether another box comes first.
    """
    from ..questions.robustness import tornado as run

    found = run(read_instance(options), share=options.by, boxes=options.limit or sys.maxsize)
    if options.json:
        print(as_json({"value": found.solution.value, **found.columns()}))
    else:
        print(found.table())


def _curve(curve: SpendFrontier, say: Amounts) -> str:
    from .._common.text import columns

    c = curve.columns()
    rows = [
        (say(x), say(y), number(p))
        for x, y, p in zip(c["spend"], c["reward"], c["price"], strict=True)
    ]
    lines = columns([("spend", "reward", "price beyond"), *rows], right=0)
    gap = say.margin(curve.gap)
    more = [f"between corners the curve is higher by {gap} at most"] if curve.gap else []
    return "\n".join([*lines, *more])


def _mixture(best: Mixture, what: str, say: Amounts) -> str:
    reward = say if what == "reward" else number
    lines = [
        f"expected {what} {reward(best.reward)}, expected spend {say(best.spend)}",
        f"one more unit of spend adds {number(best.price)}",
    ]
    for share, corner in ((1 - best.share, best.cheap), (best.share, best.costly)):
        if share > 0:
            then = f"follow the policy at price {number(corner.price)}"
            lines.append(
                f"with probability {number(share)} {then if corner.spend else 'open nothing'}: "
                f"{what} {reward(corner.reward)}, spend {say(corner.spend)}"
            )
    return "\n".join(lines)


def _parts(best: Mixture) -> dict[str, Any]:
    policies = [
        {"share": share, "price": c.price, "spend": c.spend, "reward": c.reward}
        for share, c in ((1 - best.share, best.cheap), (best.share, best.costly))
        if share > 0
    ]
    head = {name: getattr(best, name) for name in ("reward", "spend", "price")}
    return {**head, "policies": policies}


_TRUNCATE_JSON = """\
\b
--json prints one object:
  {"depth": 25, "kept": 25, "of": 100000, "lower": 9.3, "upper": 9.301,
   "gap": 0.001}

kept and of count boxes as they are described, without copies."""


@command(short="Cut off what lies too deep to matter.", epilog=_TRUNCATE_JSON)
@instance_argument
@click.option(
    "--gap", type=POSITIVE, required=True, metavar="G",
    help="The most that may be lost: absolute, in the unit of the rewards.",
)  # fmt: skip
@output_option(
    "File for the kept boxes, replaced if it exists. - is standard output, in place of the table.",
    required=False,
)
@json_option
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

    with written_file(options.output or "", options.file, suffix=".json") as path:
        cut = run(read_instance(options), gap=options.gap)
        if path:
            save(cut.forest, path)
    out = sys.stderr if options.output == "-" else sys.stdout
    if options.json:
        keys = ("depth", "kept", "of", "lower", "upper", "gap")
        found = {key: getattr(cut, key) for key in keys}
        print(as_json(found), file=out)
        return
    for line in columns(_rows(cut)):
        print(line, file=out)


def _rows(cut: Truncation) -> list[tuple[str, str]]:
    unit = cut.forest.unit
    low, high = (with_unit(text, unit) for text in ends(cut.lower, cut.upper))
    share = "all" if cut.kept == cut.of else f"{about(cut.kept / cut.of)} of them"
    of = f"{cut.of}   ({share})" if cut.of < math.inf else "endlessly many"
    return [
        ("depth", f"{cut.depth}"),
        ("boxes kept", f"{cut.kept} of {of}"),
        ("lower", low),
        ("upper", high),
        ("lost", f"at most {with_unit(about(cut.gap), unit)}"),
    ]
