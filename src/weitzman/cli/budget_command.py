"""The commands ``weitzman budget`` and ``weitzman tornado``: limits on the spend, what matters."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from .console import Misused

if TYPE_CHECKING:
    from ..questions.budget import Mixture, SpendFrontier

_BUDGET = """\
Say the most expected reward for every expected spend: the corners of a concave
curve, and the price of money between them.

  --budget B            the best use of B: two policies and the share of each
  --target R --chance P the least spend that reaches a reward of R with
                        probability P"""

_TORNADO = """\
Move every cost, reward and chance by a share of it, one at a time, and solve
again: how the value moves, and whether another box comes first."""


def add_budget_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``budget`` and ``tornado`` to the commands of the parser."""
    parser = commands.add_parser("budget", help="a limit on the mean spend instead of prices")
    parser.description = _BUDGET
    parser.add_argument("file", metavar="FILE", help="instance: .json, .json.gz or .wz")
    parser.add_argument("--budget", type=float, metavar="B", help="what may be spent on average")
    parser.add_argument("--target", type=float, metavar="R", help="a reward to be reached")
    parser.add_argument("--chance", type=float, metavar="P", help="with this probability")
    parser.add_argument("--corners", type=int, default=50, help="corners to look for (default 50)")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    other = commands.add_parser("tornado", help="which numbers matter")
    other.description = _TORNADO
    other.add_argument("file", metavar="FILE", help="instance: .json, .json.gz or .wz")
    other.add_argument("--share", type=float, default=0.1, help="how far (default 0.1)")
    other.add_argument("--boxes", type=int, default=20, help="boxes to look at (default 20)")
    other.add_argument("--json", action="store_true", help="print JSON, for programs")


def budget(arguments: argparse.Namespace) -> None:
    """Carry ``weitzman budget`` out."""
    from ..files.instances import load
    from ..questions.budget import cheapest, frontier, within_budget

    if (arguments.target is None) != (arguments.chance is None):
        raise Misused("--target and --chance go together.")
    forest = load(arguments.file)
    if arguments.target is not None:
        best = cheapest(forest, arguments.target, arguments.chance)
        print(_mixture_json(best) if arguments.json else _mixture(best, "probability"))
    elif arguments.budget is not None:
        best = within_budget(forest, arguments.budget)
        print(_mixture_json(best) if arguments.json else _mixture(best, "reward"))
    else:
        curve = frontier(forest, corners=arguments.corners)
        print(
            json.dumps({**curve.columns(), "gap": curve.gap}) if arguments.json else _curve(curve)
        )


def tornado(arguments: argparse.Namespace) -> None:
    """Carry ``weitzman tornado`` out."""
    from ..files.instances import load
    from ..questions.robustness import tornado as run

    found = run(load(arguments.file), share=arguments.share, boxes=arguments.boxes)
    if arguments.json:
        print(json.dumps({"value": found.solution.value, **found.columns()}))
    else:
        print(found.table())


def _curve(curve: SpendFrontier) -> str:
    from .._common.text import columns

    c = curve.columns()
    rows = [
        (f"{x:.6g}", f"{y:.6g}", f"{p:.6g}")
        for x, y, p in zip(c["spend"], c["reward"], c["price"], strict=True)
    ]
    lines = columns([("spend", "reward", "price beyond"), *rows], right=0)
    more = [f"between corners the curve is higher by {curve.gap:.2g} at most"] if curve.gap else []
    return "\n".join([*lines, *more])


def _mixture(best: Mixture, what: str) -> str:
    lines = [
        f"expected {what} {best.reward:.8g}, expected spend {best.spend:.8g}",
        f"one more unit of spend adds {best.price:.6g}",
    ]
    for share, corner in ((1 - best.share, best.cheap), (best.share, best.dear)):
        if share > 0:
            lines.append(
                f"with probability {share:.6g} follow the policy at price {corner.price:.6g}: "
                f"{what} {corner.reward:.6g}, spend {corner.spend:.6g}"
            )
    return "\n".join(lines)


def _mixture_json(best: Mixture) -> str:
    policies = [
        {"share": share, "price": c.price, "spend": c.spend, "reward": c.reward}
        for share, c in ((1 - best.share, best.cheap), (best.share, best.dear))
        if share > 0
    ]
    head = {name: getattr(best, name) for name in ("reward", "spend", "price")}
    return json.dumps({**head, "policies": policies})
