"""What matters most, for one sheet of paper."""

from __future__ import annotations

from ..._common.numbers import about, percent
from ...forest.model import Forest
from ..page.html import Child, Markup, h, name
from .findings import Content

_NAMED = 3  # boxes


def glance(c: Content) -> Markup:
    """The numbers that matter most, and a button that prints them on one page."""
    rows = [h("div", h("dt", title), h("dd", text)) for title, text in _facts(c)]
    button = h("button", "Print one page", type="button", id="print", class_="on-screen")
    return h("div", h("dl", rows), button, id="glance", aria_label="At a glance", role="group")


def worth_title(f: Forest) -> str:
    """What the value of a solution is called."""
    if f.risk_tolerance is not None:
        return "Certainty equivalent of the search"
    later = ", discounted" if f.factors is not None else ""
    return f"{'Expected loss and costs' if f.minimize else 'Worth of the search'}{later}"


def _facts(c: Content) -> list[tuple[str, Child]]:
    f, e, s = c.forest, c.evaluation, c.simulation
    low, high = map(float, s.payoff.quantile([0.05, 0.95]))
    facts: list[tuple[str, Child]] = [
        (worth_title(f), c.say(c.solution.value)),
        ("Spent on average", c.say(e.spend)),
        ("Boxes opened on average", about(e.openings)),
        ("Nine in ten searches end between", f"{c.say(low)} and {c.say(high)}"),
    ]
    if f.durations is not None:
        facts.append(("Time to the end on average", about(e.time)))
    if s.loss > 0:
        facts.append(("End worse than opening nothing", percent(s.loss)))
    roots = [int(v) for v in c.policy.root[:_NAMED]]
    order = [[", " if i else "", name(f.name(v))] for i, v in enumerate(roots)]
    facts.append(("Best boxes to begin with", order))
    return facts
