"""The commands ``weitzman budget`` and ``weitzman tornado``: limits on the spend, what matters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from .._common.numbers import Amounts, number
from .given_file import instance_argument, read_instance
from .options import COUNT, NUMBER, POSITIVE, Options, command, json_option

if TYPE_CHECKING:
    from ..questions.budget import Corner, Mixture, SpendFrontier

_BUDGET = """\
Print the largest expected reward for every expected spend: the corners of a
concave curve, and the price of money between two corners.

\b
  --budget B              the best use of B: two policies and the share of each
  --target R --chance P   the least spend that reaches a reward of R with
                          probability P"""

_TORNADO = """\
Move every cost, reward and chance up and down, one at a time, and solve again.
The table shows how far the value moves, and whether another box comes first."""


@command(_BUDGET, short="A limit on the mean spend instead of prices.")
@instance_argument
@click.option("--budget", type=NUMBER, metavar="B", help="What may be spent on average.")
@click.option("--target", type=NUMBER, metavar="R", help="A reward to be reached.")
@click.option("--chance", type=NUMBER, metavar="P", help="The probability of reaching it.")
@click.option(
    "--corners", type=COUNT, default=50, metavar="N", help="Corners to look for (default 50)."
)
@json_option
def budget(options: Options) -> None:
    """Carry out the command."""
    from ..questions.budget import cheapest, frontier, within_budget

    if (options.target is None) != (options.chance is None):
        raise click.UsageError("--target and --chance go together.")
    forest = read_instance(options)
    if options.target is not None:
        best = cheapest(forest, options.target, options.chance)
        print(
            _mixture_json(best) if options.json else _mixture(best, "probability", forest.amounts)
        )
    elif options.budget is not None:
        best = within_budget(forest, options.budget)
        print(_mixture_json(best) if options.json else _mixture(best, "reward", forest.amounts))
    else:
        curve = frontier(forest, corners=options.corners)
        print(
            json.dumps({**curve.columns(), "gap": curve.gap})
            if options.json
            else _curve(curve, forest.amounts)
        )


@command(_TORNADO, short="Which numbers matter most.")
@instance_argument
@click.option(
    "--share", type=POSITIVE, default=0.1, metavar="S",
    help="How far each number is moved, as a share of it (default 0.1).",
)  # fmt: skip
@click.option("--boxes", type=COUNT, default=20, metavar="N", help="Boxes to look at (default 20).")
@json_option
def tornado(options: Options) -> None:
    """Carry out the command."""
    from ..questions.robustness import tornado as run

    found = run(read_instance(options), share=options.share, boxes=options.boxes)
    if options.json:
        print(json.dumps({"value": found.solution.value, **found.columns()}))
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
            lines.append(
                f"with probability {number(share)} {_followed(corner)}: {what} "
                f"{reward(corner.reward)}, spend {say(corner.spend)}"
            )
    return "\n".join(lines)


def _followed(corner: Corner) -> str:
    if corner.spend == 0:
        return "open nothing"
    return f"follow the policy at price {number(corner.price)}"


def _mixture_json(best: Mixture) -> str:
    policies = [
        {"share": share, "price": c.price, "spend": c.spend, "reward": c.reward}
        for share, c in ((1 - best.share, best.cheap), (best.share, best.costly))
        if share > 0
    ]
    head = {name: getattr(best, name) for name in ("reward", "spend", "price")}
    return json.dumps({**head, "policies": policies})
