"""The decision in plain words: what to open, what to expect, when to stop."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from ..._common import numbers
from ..._common.arrays import FloatArray
from ..._common.numbers import about, is_currency_sign, percent
from ...engine.solution import Status, mean_cost
from ...forest.model import Forest
from ...policy.words import explain
from ..page import Child, Markup, h, name
from ..page.data import alone
from .findings import Content, RunnerUp

_LINES = 40  # of the plan
_ROUNDING = 1e-9  # smaller differences, as a share of the value, count as none
_ENDS = 4  # boxes named among those taken in the end


def headline(c: Content) -> Markup:
    """The decision in one sentence."""
    first = c.solution.first_box
    if c.advice is not None:
        takes = c.advice.startswith("Take")
        return h("h1", "Stop here." if _over(c) else "Take a prize." if takes else "Go on.")
    if first is None:
        return h("h1", "Open nothing.")
    return h("h1", "Open ", name(first), " first.")


def decision(c: Content) -> Iterator[Child]:
    """Paragraphs: what to open, what to expect, when to stop."""
    if c.advice is not None:
        yield from _under_way(c)
        return
    f, e, first = c.forest, c.evaluation, c.solution.first_box
    if first is None:
        what = "least loss" if f.minimize else "best reward"
        yield h(
            "p", "No box is worth its cost: the outside option, ", c.say(f.outside),
            f", is the {what} available on average.", class_="lead",
        )  # fmt: skip
        return
    index = float(c.solution.indices(first)[0])
    yield h(
        "p", "Opening it costs ", c.say(float(mean_cost(f, f.box(first))[0])), "; its index, ",
        c.say(index), ", is the ", _extreme(c), " of all boxes that can be opened now. ",
        _expect(c), class_="lead",
    )  # fmt: skip
    yield h("p", _stop(c))
    yield h("p", _ends(c, e.wins), " ", _spread(c))


def _under_way(c: Content) -> Iterator[Child]:
    f, last = c.forest, c.told[-1]
    yield h("p", str(c.advice), class_="lead")
    paid = "loss and costs" if f.minimize else "payoff"
    later = ", discounted to the start," if f.factors is not None else ""
    mean = " as certainty equivalent" if f.risk_tolerance is not None else " on average"
    going_on = "" if _over(c) else f", going on {c.say(c.expected)}{mean}"
    boxes = "1 box was" if len(c.told) == 1 else f"{len(c.told)} boxes were"
    yield h(
        "p", f"So far {boxes} opened and {c.say(last.spent)} spent. Stopping now gives a ",
        f"{paid}{later} of {c.say(c.now)}{going_on}. At the start {c.say(c.solution.value)} was "
        "expected.",
    )  # fmt: skip
    if c.taken:
        won = [
            [", " if i else "", name(str(box)), f" ({c.say(reward)})"]
            for i, (box, reward) in enumerate(c.taken)
        ]
        yield h("p", f"Taken for good, {len(c.taken)} of {f.prizes} prizes: ", won, ".")
    if c.pending:
        out = [[", " if i else "", name(str(box))] for i, box in enumerate(c.pending[:_ENDS])]
        more = f" and {len(c.pending) - _ENDS} more" if len(c.pending) > _ENDS else ""
        yield h("p", "Handed out and not answered yet: ", out, f"{more}.")


def _over(c: Content) -> bool:
    return c.advice is not None and c.advice.startswith("Stop")


def _expect(c: Content) -> str:
    e, f = c.evaluation, c.forest
    boxes = f"{about(e.openings)} of {f.boxes:,} boxes"
    if f.endless.any():  # there is no number of all
        boxes = "1 box" if e.openings == 1 else f"{about(e.openings)} boxes"
    value, reward, spend = map(c.say, (c.solution.value, e.reward, e.spend))
    if f.risk_tolerance is not None:
        kind, sign = ("loss", "and") if f.minimize else ("reward", "less")
        return (
            f"With a risk tolerance of {c.say(f.risk_tolerance)} the whole search is worth as much "
            f"as a sure {value}. On average it ends with a {kind} of {reward}, {sign} {spend} "
            f"spent on opening {boxes}."
        )
    later = " All amounts are discounted to the start." if f.factors is not None else ""
    takes = (
        f" The search lasts {about(e.time)} units of time on average."
        if f.durations is not None
        else ""
    )
    if f.minimize:
        found = f"{f.prizes} losses of {reward} in total" if f.prizes > 1 else f"a loss of {reward}"
        return (
            f"Expect a total of {value}: {found} on average, and {spend} spent on opening {boxes}."
            f"{later}{takes}"
        )
    found = f"{f.prizes} prizes of {reward} in total" if f.prizes > 1 else f"a reward of {reward}"
    return (
        f"Expect {value} from the whole search: {found} on average, less {spend} spent on opening "
        f"{boxes}.{later}{takes}"
    )


def _stop(c: Content) -> str:
    """When to stop: the general rule, and the reward that ends the search."""
    f = c.forest
    if f.prizes > 1:
        best = "lowest" if f.minimize else "highest"
        return (
            f"Compare the indices of all boxes that can be opened with the best reward found in "
            f"each tree. If the {best} of all is an index, open that box. If it is a reward, take "
            f"it for good and close its tree. Stop once {f.prizes} prizes are taken, or once "
            f"nothing is better than the outside option."
        )
    index = c.policy.index
    highest = float(index[np.isfinite(index)].max())
    sign = f.sign
    if f.minimize:
        rule = "the least loss is no more than"
        least = f"a loss of {c.say(sign * highest)} or less"
    else:
        rule = "the best reward is no less than"
        least = f"a reward of {c.say(highest)} or more"
    return (
        f"Stop as soon as {rule} the index of every box that can still be opened; then take it. "
        f"Once you hold {least}, no further box is worth opening."
    )


def _ends(c: Content, wins: FloatArray) -> Markup:
    """What is taken in the end, and how often."""
    f = c.forest
    by = [int(v) for v in np.argsort(-wins, kind="stable")[:_ENDS] if wins[v] > 0.0005]
    parts: list[Child] = [
        [name(f.name(v)), f" ({often(c, v, float(wins[v]))})", ", " if v != by[-1] else ""]
        for v in by
    ]
    rest = f.prizes - c.evaluation.outside - sum(float(wins[v]) for v in by)
    if f.prizes > 1:
        others = f", and {about(rest)} others on average" if rest > 0.0005 else ""
        empty = f" {about(c.evaluation.outside)} of {f.prizes} places stay empty on average."
        return h("span", "Taken as prizes: ", parts, others, ".", empty)
    if rest > 0.0005:
        parts.append(f", another box ({percent(rest)})")
    if c.evaluation.outside > 0.0005:
        parts.append(f"; the outside option ({percent(c.evaluation.outside)})")
    return h("span", "What is taken in the end: ", parts, ".")


def often(c: Content, v: int, times: float) -> str:
    """A chance; or a mean, where copies of a box may all be prizes."""
    many = c.forest.prizes > 1 and not alone(c.forest, v)
    return f"{about(times)} of them" if many else percent(times)


def _spread(c: Content) -> str:
    s = c.simulation
    low, high = map(float, s.payoff.quantile([0.05, 0.95]))
    what = "costs in all" if c.forest.minimize else "earns"
    loss = f" {percent(s.loss)} end worse than opening nothing." if s.loss > 0 else ""
    return (
        f"Of {s.episodes:,} simulated searches, one in twenty {what} less than {c.say(low)}, one "
        f"in twenty more than {c.say(high)}.{loss}"
    )


def index_meaning(c: Content) -> str:
    """What an index is, and what to do with it."""
    f = c.forest
    kind, best, above, held = (
        ("loss", "lowest", "below", "least loss")
        if f.minimize
        else ("reward", "highest", "above", "best reward")
    )
    rule = (
        f"The best policy opens the box with the {best} index while that index is {above} the "
        f"{held} so far"
    )
    rule += (
        f" in every tree, takes a {kind} that no index is {above}, and stops once all prizes are "
        f"taken."
        if f.prizes > 1
        else ", and then stops."
    )
    careful = (
        " It is a certainty equivalent: the more uncertain a box, the less it is worth to a "
        "careful searcher."
        if f.risk_tolerance is not None
        else ""
    )
    return (
        f"The index of a box is the {kind} in hand at which opening it makes no difference. It "
        f"takes into account everything behind the box.{careful} {rule} Opening boxes does not "
        f"change the indices."
    )


def plan(c: Content) -> Markup:
    """The policy step by step, as a nested text."""
    lines = explain(c.solution, lines=_LINES).splitlines()
    items = [h("li", line.strip(), data_level=_level(line)) for line in lines]
    return h("ol", items, class_="plan")


def _level(line: str) -> int:
    return min((len(line) - len(line.lstrip())) // 2, 12)


def certainty(c: Content) -> Iterator[Markup]:
    """How far the numbers can be trusted."""
    s = c.solution
    if s.status is Status.EXACT:
        text = "The value and the indices are exact up to rounding"
    elif s.status is Status.CERTIFIED:
        text = f"The value is certified: its error is {_at_most(c, s.gap)}"
    elif s.status is Status.DISCRETIZED:
        text = f"Distributions were made discrete: the value is off by {_at_most(c, s.gap)}"
    else:
        text = f"The value may be off by {_at_most(c, s.gap)}, which is more than was asked for"
    yield h("p", f"{text}, given the costs, rewards and probabilities of the model.")
    if c.runner_up is not None and not c.told:
        yield h("p", _margin(c, c.runner_up))
    if c.between is not None:
        low, high = map(c.say, c.between)
        yield h(
            "p", "The model was learned from a log. Nine in ten of the models that the log could "
            f"also have led to give a value between {low} and {high}.",
        )  # fmt: skip
        return
    yield h(
        "p", "The model itself is taken as given: this report cannot know how true its numbers "
        "are. The table of costs above shows how far some of them may be off before the decision "
        "changes.",
    )  # fmt: skip


def _at_most(c: Content, error: float) -> str:
    """A bound on an error; nobody needs the digits of a fraction of a cent."""
    cent = c.say(0.01)
    if is_currency_sign(c.forest.unit) and error < 0.01 and c.amounts.spread >= 10:
        return f"less than {cent}"
    return f"at most {c.amounts.margin(error)}"


def _margin(c: Content, second: RunnerUp) -> Markup:
    """How much the choice of the first box matters."""
    loss = abs(c.solution.value - second.value)
    mean = " on average" if c.forest.risk_tolerance is None else ", by the certainty equivalent"
    what = (
        "would make no difference"
        if loss <= _ROUNDING * abs(c.solution.value)
        else f"instead would {'cost' if c.forest.minimize else 'earn'} {c.say(loss)} "
        f"{'more' if c.forest.minimize else 'less'}{mean}"
    )
    begin = ["Beginning with the second best box, ", name(c.forest.name(second.box)), ", "]
    return h("span", begin, f"{what}, if the search is optimal after that.")


def footer() -> Markup:
    """What made the file."""
    try:
        made = f"weitzman {version('weitzman')}"
    except PackageNotFoundError:  # run from a checkout
        made = "weitzman"
    return h("footer", h("p", f"Made with {made}. This file is self-contained."))


def _extreme(c: Content) -> str:
    return "lowest" if c.forest.minimize else "highest"


def number(x: float) -> str:
    """A number as people read it."""
    return numbers.number(x).replace("-", "−")


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
