"""What a report says: the first screen, tables, and the rule with its indices at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._common.arrays import FloatArray
from ..._common.numbers import Amounts, about, is_currency_sign, percent
from ...engine.solution import Status, mean_cost
from ...forest.model import Forest
from ...policy.simulation import two_sided
from ...policy.words import explain
from ..page import Child, Markup, h, name
from .decision_tree import chart, fitting, shown
from .findings import Content, Profile, alone

if TYPE_CHECKING:
    from ...files.ranges import Range
    from ...strategies.comparison import Comparison

_LINES = 40  # of the plan
_ROUNDING = 1e-9  # smaller differences, as a share of the value, count as none
_NAMED = 4  # boxes named in a sentence
_NEVER = 0.0005  # what happens less often is left out of sentences
_STATES = 3  # indices listed one by one; with more, only their range
_SCALES = ((1e9, "bn"), (1e6, "M"))


def brief(say: Amounts, x: float) -> str:
    """An amount with three significant digits.

    >>> brief(Amounts("$"), 1269948.0), brief(Amounts("EUR"), -94.325), brief(Amounts("$"), 0.4)
    ('$1.27M', '−94.3 EUR', '$0.40')
    """
    if not math.isfinite(x) or abs(x) < 1e-9 * say.spread:
        return say.typeset(x)
    short = float(f"{x:.3g}")
    for size, letter in _SCALES:
        if abs(short) >= size and is_currency_sign(say.unit):
            return f"{'−' * (x < 0)}{say.unit}{about(abs(short) / size)}{letter}"
    return Amounts(say.unit).typeset(short)


# -- the first screen ------------------------------------------------------------------------------


def first_screen(c: Content, verb: str) -> Iterator[Child]:
    """One sentence, three figures, the risk profile and the first decisions."""
    yield headline(c)
    if c.advice is not None:
        yield from _under_way(c)
    yield h("dl", [h("div", h("dt", t), h("dd", x), h("dd", more, class_="hint"))
                   for t, x, more in figures(c)], id="glance")  # fmt: skip
    turns = None if c.told else changing(c)
    if turns is not None:
        yield h("p", h("b", "What would change this: "), turns, class_="changing")
    how = f"{'Exact' if c.exact else f'From {c.law.how}'}."
    say = how if c.forest.minimize else f"{how} The further right a line, the better."
    profile = h(
        "figure", h("figcaption", h("b", "Risk profile. "), say),
        h("div", h("noscript", "The picture needs JavaScript."), id="profile"),
    )  # fmt: skip
    yield h("div", profile, _tree(c, verb), class_="pair")
    yield h("p", h("button", "Print one page", type="button", id="print", class_="on-screen"))


def headline(c: Content) -> Markup:
    """The decision in one sentence."""
    f, first = c.forest, c.solution.first_box
    if c.advice is not None:
        said = {"Stop": "Stop here.", "Take": "Take a prize."}
        return h("h1", said.get(c.advice[:4], "Continue."))
    if first is None:
        kept = [": keep ", near(c, f.outside)] if f.outside else None
        return h("h1", "Do nothing", kept, ". Nothing is worth its cost.")
    start = ["Start with ", name(first), ": "]
    nothing = f.prizes * f.outside
    if not math.isfinite(nothing):
        return h("h1", start, worth_title(f).lower(), " ", near(c, c.solution.value), ".")
    kind, where = ("cheaper", "above") if f.minimize else ("better", "below")
    worse = f"{_chance(c)} chance of ending" if c.law.worse > 0 else "never"
    gain = near(c, abs(c.solution.value - nothing))
    return h("h1", start, gain, f" {kind} than doing nothing, {worse} {where} it.")


def figures(c: Content) -> Iterator[tuple[str, Child, Child]]:
    """The three figures: what each is, its number, and a remark."""
    f, e = c.forest, c.evaluation
    later = "discounted to the start; " if f.factors is not None else ""
    nothing = f.prizes * f.outside
    rest = ["doing nothing: ", near(c, nothing)] if math.isfinite(nothing) else None
    yield worth_title(f), near(c, c.solution.value), [later, rest]
    of = "" if f.endless.any() else f" of {f.boxes:,}"
    boxes = "1 box" if e.openings == 1 and not of else f"{about(e.openings)}{of} boxes"
    time = f", {about(e.time)} units of time" if f.durations is not None else ""
    yield "Expected cost", near(c, e.spend), f"{boxes} opened on average{time}"
    low, high = (near(c, x) for x in c.quantiles)
    loss = "Chance of a loss" if nothing == 0 else "Worse than doing nothing"
    loss = "Chance of costing more" if f.minimize else loss
    what = (loss, _chance(c)) if math.isfinite(nothing) else ("Nine in ten", "")
    yield *what, ["nine in ten end between ", low, " and ", high]


def _chance(c: Content) -> str:
    return percent(c.law.worse) if c.exact else f"about {c.law.worse:.0%}"


def near(c: Content, x: float) -> Markup:
    """An amount with three digits; the whole number shows when it is pointed at."""
    short, full = brief(c.amounts, x), c.forest.amounts.typeset(x)
    return h("span", short, title=full if full != short else None, class_="amount")


def worth_title(f: Forest) -> str:
    """What the value of a solution is called."""
    if f.risk_tolerance is not None:
        return "Certainty equivalent"
    return "Expected loss and costs" if f.minimize else "Expected value"


def changing(c: Content) -> Child:
    """Changes of single numbers that lead to another first decision, the smallest ones."""
    parts: list[Child] = []
    for w in c.what_if:
        title, most = c.forest.name(w.box), w.break_even.first_below or math.inf
        if title == c.solution.first_box and most < math.inf:
            tied = most <= w.now * (1 + _ROUNDING)
            more = [] if tied else [" above ", near(c, most), " (now ", near(c, w.now), ")"]
            parts.append([f"{'any higher' if tied else 'a'} cost of ", name(title), *more])
    swings = c.answers["swings"] or {"rows": []}
    rows = [
        row for row in swings["rows"]
        if row["number"] != "cost" and math.isfinite(row["turnsAt"] or math.nan)
    ]  # fmt: skip
    for row in sorted(rows, key=lambda row: abs(row["turnsAt"]))[: 2 - len(parts[:1])]:
        size, way = abs(row["turnsAt"]), "lower" if row["turnsAt"] < 0 else "higher"
        of = [" of ", name(row["box"])] if row["box"] else None
        number = "loss" if c.forest.minimize and row["number"] == "reward" else row["number"]
        tied = size <= _ROUNDING
        parts.append([f"any {way} {number}" if tied else f"the {number}", of,
                      None if tied else f" {percent(size)} {way}"])  # fmt: skip
    return [_listed(parts, " or "), "."] if parts else None


def _tree(c: Content, verb: str) -> Child:
    """The first decisions as a tree that fits beside the risk profile."""
    if c.solution.first_box is None or c.told:
        return None
    found, cut = fitting(c.policy)
    dashed = " A dashed frame continues under “Step by step”." if cut else ""
    picture = chart(found, partial(brief, c.amounts), standalone=False, verb=verb)
    about_it = "The first decisions"
    return h(
        "figure", h("figcaption", h("b", f"{about_it}. "), dashed),
        h("div", picture, class_="tree", tabindex=0, role="region", aria_label=about_it),
    )  # fmt: skip


def _under_way(c: Content) -> Iterator[Child]:
    f, last = c.forest, c.told[-1]
    yield h("p", str(c.advice), class_="lead")
    paid = "loss and costs" if f.minimize else "payoff"
    later = ", discounted to the start," if f.factors is not None else ""
    mean = " as certainty equivalent" if f.risk_tolerance is not None else " on average"
    on = "" if str(c.advice).startswith("Stop") else f", continuing {c.say(c.expected)}{mean}"
    boxes = "1 box was" if len(c.told) == 1 else f"{len(c.told)} boxes were"
    yield h(
        "p", f"So far {boxes} opened and {c.say(last.spent)} spent. Stopping now gives a ",
        f"{paid}{later} of {c.say(c.now)}{on}. At the start {c.say(c.solution.value)} was "
        "expected.",
    )  # fmt: skip
    if c.taken:
        won = [[name(str(box)), f" ({c.say(reward)})"] for box, reward in c.taken]
        yield h("p", f"Taken for good, {len(c.taken)} of {f.prizes} prizes: ", _listed(won), ".")
    if c.pending:
        out = _listed([name(str(box)) for box in c.pending[:_NAMED]])
        more = f" and {len(c.pending) - _NAMED} more" if len(c.pending) > _NAMED else ""
        yield h("p", "Handed out and not answered yet: ", out, f"{more}.")


# -- the rule --------------------------------------------------------------------------------------


def rule(c: Content) -> Iterator[Child]:
    """The index, when to stop, and what is taken in the end."""
    f, then, careful = c.forest, ", and then stops.", ""
    words = ("reward", "highest", "above", "best reward")
    kind, best, above, held = ("loss", "lowest", "below", "least loss") if f.minimize else words
    if f.prizes > 1:
        then = f" in every tree, takes a {kind} that no index is {above}, and stops once all prizes"
        then += " are taken."
    if f.risk_tolerance is not None:
        careful = " It is a certainty equivalent: the more uncertain a box, the less it is worth to"
        careful += " a careful searcher."
    yield h(
        "p", f"The index of a box is the {kind} in hand at which opening it makes no difference. "
        f"It takes into account everything behind the box.{careful} The best policy opens the box "
        f"with the {best} index while that index is {above} the {held} so far{then} Opening boxes "
        f"does not change the indices.",
    )  # fmt: skip
    if c.solution.first_box is not None:
        yield h("p", _stop(c))
        yield h("p", *_ends(c))


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
    most = c.say(f.sign * float(c.policy.index[np.isfinite(c.policy.index)].max()))
    held, least = "the best reward is no less than", f"a reward of {most} or more"
    if f.minimize:
        held, least = "the least loss is no more than", f"a loss of {most} or less"
    return (
        f"Stop as soon as {held} the index of every box that can still be opened; then take it. "
        f"Once you hold {least}, no further box is worth opening."
    )


def _ends(c: Content) -> tuple[Child, ...]:
    """What is taken in the end, and how often."""
    f, wins, none = c.forest, c.evaluation.wins, c.evaluation.outside
    by = [int(v) for v in np.argsort(-wins, kind="stable")[:_NAMED] if wins[v] > _NEVER]
    parts: list[Child] = [[name(f.name(v)), f" ({often(c, v, float(wins[v]))})"] for v in by]
    rest = f.prizes - none - sum(float(wins[v]) for v in by)
    if f.prizes > 1:
        if rest > _NEVER:
            parts.append(f"{about(rest)} others on average")
        empty = f" {about(none)} of {f.prizes} places stay empty on average."
        return "Taken as prizes: ", _listed(parts), ".", empty
    if rest > _NEVER:
        others = "other boxes" if by else "one of many boxes, each of them seldom"
        parts.append(f"{others} ({percent(min(rest, 1.0))})")
    if none > _NEVER:
        parts.append(f"the outside option ({percent(none)})")
    return "What is taken in the end: ", _listed(parts), "."


def _listed(parts: Sequence[Child], between: str = ", ") -> Child:
    return [[between if i else "", part] for i, part in enumerate(parts)]


def often(c: Content, v: int, times: float) -> str:
    """A chance; or a mean, where copies of a box may all be prizes."""
    many = c.forest.prizes > 1 and not alone(c.forest, v)
    return f"{about(times)} of them" if many else percent(times)


def plan(c: Content) -> Markup:
    """The policy step by step, as a nested text."""
    items = [
        h("li", line.strip(), data_level=min((len(line) - len(line.lstrip())) // 2, 12))
        for line in explain(c.solution, lines=_LINES).splitlines()
    ]
    return h("ol", items, class_="plan")


def certainty(c: Content) -> Iterator[Markup]:
    """How far the numbers can be trusted."""
    s, f, most = c.solution, c.forest, f"at most {c.amounts.margin(c.solution.gap)}"
    if is_currency_sign(f.unit) and s.gap < 0.01 and c.amounts.spread >= 10:
        most = f"less than {c.say(0.01)}"  # nobody needs the digits of a fraction of a cent
    text = {
        Status.EXACT: "The value and the indices are exact up to rounding",
        Status.CERTIFIED: f"The value is certified: its error is {most}",
        Status.DISCRETIZED: f"Distributions were made discrete: the value is off by {most}",
        Status.COARSE: f"The value may be off by {most}, which is more than was requested",
    }[s.status]
    yield h("p", f"{text}, given the costs, rewards and probabilities of the model.")
    if c.runner_up is not None and not c.told:
        second, loss = c.runner_up[0], abs(s.value - c.runner_up[1])
        mean = " on average" if f.risk_tolerance is None else ", by the certainty equivalent"
        verb, less = ("cost", "more") if f.minimize else ("earn", "less")
        what = f"instead would {verb} {c.say(loss)} {less}{mean}"
        if loss <= _ROUNDING * abs(s.value):
            what = "would make no difference"
        begin = ["Starting with the second best box, ", name(second), ", "]
        yield h("p", begin, f"{what}, if the search is optimal after that.")
    text = (
        "The model itself is taken as given: this report cannot know how true its numbers are. The "
        "table of costs above shows how far some of them may be off before the decision changes."
    )
    if c.between is not None:
        text = "The model was learned from a log. Nine in ten of the models that the log could also"
        text += " have led to give a value between {} and {}.".format(*map(c.say, c.between))
    yield h("p", text)


def footer() -> Markup:
    """What made the file."""
    from ... import __version__  # set once this module is loaded

    return h("footer", h("p", f"Made with weitzman {__version__}. This file is self-contained."))


# -- ranges ----------------------------------------------------------------------------------------

_FILLS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#7F7F7F")


def uncertain(c: Content) -> Iterator[Markup]:
    """How often each first choice is best, what knowing is worth, scenarios, two numbers."""
    cases, pair, drawn = c.uncertain or (None, None, None)
    if drawn is not None:
        best = [[name(x), f" {percent(share)}"] for x, share in drawn.shares().items()]
        yield h(
            "p", f"In {len(drawn.first):,} random draws of all ranges, the best box to open first "
            "is: ", _listed(best), ". Perfect information about all these numbers is worth ",
            near(c, drawn.knowing), " on average.",
        )  # fmt: skip
        rows = [
            cells(name(r.title), _end(c, r, r.low), _end(c, r, r.high), brief(c.amounts, worth))
            for r, worth in zip(drawn.ranges, drawn.partial.tolist(), strict=True)
        ]
        head = heads("Number", "Low|", "High|", "Worth of knowing it|")
        yield h("h3", "What it is worth to know each number")
        yield table("What it is worth to know each number", head, rows)
    if cases is not None:
        rows = [
            cells(f"All numbers: {key}", c.say(x), h("td", name(first)))
            for key, x, first in zip(cases.names, cases.value.tolist(), cases.first, strict=True)
        ]
        yield h("h3", "Scenarios")
        yield table("Scenarios", heads("Scenario", "Value|", "First decision"), rows)
    if pair is not None:
        firsts = list(dict.fromkeys(pair.choice.ravel().tolist()))
        fill = {first: _FILLS[i % len(_FILLS)] for i, first in enumerate(firsts)}
        n = len(pair.x)
        fields = [
            h("rect", x=i, y=n - 1 - j, width="1.02", height="1.02",
              fill=fill[str(pair.choice[i, j])])
            for i in range(n) for j in range(n)
        ]  # fmt: skip
        key = [
            [h("svg", h("rect", width=10, height=10, fill=fill[x]), viewBox="0 0 10 10",
               width=10, height=10, aria_hidden="true"), " ", name(x)]
            for x in firsts
        ]  # fmt: skip
        ends = [
            [name(r.title), f" from {_end(c, r, r.low)} to {_end(c, r, r.high)}"]
            for r in (pair.first, pair.second)
        ]  # fmt: skip
        what = "The first decision by two numbers"
        yield h(
            "figure", h("figcaption", h("b", f"{what}. "), "Rightward: ", ends[0], ". Upward: ",
                        ends[1], "."),
            h("svg", fields, viewBox=f"0 0 {n} {n}", role="img", aria_label=what, class_="two-way"),
            h("p", _listed(key, "   "), class_="hint"),
        )  # fmt: skip


def _end(c: Content, r: Range, x: float) -> str:
    return percent(x) if r.field == "probability" else c.say(x)


# -- tables ----------------------------------------------------------------------------------------


def boxes(c: Content) -> Markup:
    """A row for each box that is shown. The boxes opened most often come first."""
    f, e, spend = c.forest, c.evaluation, c.evaluation.columns()["spend"]
    deep = bool((f.parent[c.keep] >= 0).any())

    rows: list[Markup] = []
    for v in sorted(c.keep.tolist(), key=lambda v: (-e.opened[v], v)):
        more = " and on without end" if f.endless[v] else f" ×{f.count[v]:,}"
        copies = h("small", more) if f.endless[v] or f.count[v] > 1 else None
        up = "" if f.parent[v] < 0 else f.name(int(f.parent[v]))
        # after the states of the parent that let it be opened; all, if it never pays
        cost, can = mean_cost(f, v), np.isfinite(c.solution.indices(v))
        rows.append(h(
            "tr", _text([name(f.name(v)), copies], f.name(v), head=True),
            _text(name(up) if up else "", up) if deep else None,
            _range(c, cost[can] if can.any() else cost), _indices(c, v),
            _number(float(e.opened[v]), percent if alone(f, v) else about),
            _number(float(e.wins[v]), partial(often, c, v)), _number(float(spend[v]), c.say),
        ))  # fmt: skip
    head = [
        _column("Box", "text"), *([_column("Behind", "text")] if deep else []), _column("Cost"),
        _column("Index"), _column("Opened", sort="descending"), _column("Taken in the end"),
        _column("Spent on it"),
    ]  # fmt: skip
    return table("Boxes, with their indices and how often they are opened", head, rows, id="table")


def break_even_costs(c: Content) -> Markup:
    """How expensive boxes may become before decisions change, for the largest costs."""
    f = c.forest
    slopes = f.risk_tolerance is None  # derivatives of a certainty equivalent are not chances
    opened = c.evaluation.worth.opened_after.totals()

    rows = []
    for w in c.what_if:
        up, first, after = int(f.parent[w.box]), w.break_even.first_below, None
        if up >= 0:
            state = name(shown(f, up, w.state))
            after = h("small", " after ", name(f.name(up)), " shows ", state)
        turns = "never" if first is None else c.say(first) if math.isfinite(first) else "any cost"
        rows.append(h(
            "tr", _text([name(f.name(w.box)), after], f.name(w.box), head=True),
            _number(w.now, c.say), _number(w.break_even.opened_below, c.say),
            h("td", turns, class_="number"),
            _number(-f.sign * float(opened[w.box]), about) if slopes else None,
        ))  # fmt: skip
    head = heads(
        "Box", "Costs now|", "Worth opening up to|", "Its tree begins the search up to|",
        *(["Value, per unit of cost|"] if slopes else []),
    )  # fmt: skip
    return table("Costs at which decisions change", head, rows)


def strategies(c: Content, found: Comparison) -> Markup:
    """The optimal policy and what simpler strategies earn, as bars from the outside option on."""
    f, z = c.forest, two_sided(0.95)
    values = [s.value for s in found.strategies if math.isfinite(s.value)]
    start = f.prizes * f.outside
    start = start if math.isfinite(start) else (max if f.minimize else min)(values)
    # hopeless strategies must not shrink the others: they are drawn up to the gain of the best one
    reach, low, high = abs(c.solution.value - start), min(*values, start), max(*values, start)
    ends = (low, min(high, start + reach)) if f.minimize else (max(low, start - reach), high)
    rows = [
        cells(
            s.name, estimate(c, s.value, z * s.error),
            h("td", _bar(s.value, z * s.error, start, ends), class_="bar"),
            estimate(c, found.lost(s.key), z * s.error),
            "" if math.isnan(s.openings) else about(s.openings), h("td", s.how),
        )
        for s in found.strategies
    ]  # fmt: skip
    earns = "Loss and costs" if f.minimize else "Expected payoff"
    earns = earns if f.risk_tolerance is None else worth_title(f)
    head = heads("Strategy", f"{earns}|", "", "Worse by|", "Boxes opened|", "Computed")
    said = f"Bars start at {c.say(start)}, the outside option."
    if any(s.error for s in found.strategies):
        said += " Thin lines are 95% intervals of simulated strategies."
    return h("div", table("Strategies compared", head, rows), h("p", said, class_="hint"))


def _bar(x: float, error: float, start: float, ends: tuple[float, float]) -> Markup | None:
    """A bar from the outside option to a value, with its interval; broken if it lies beyond."""
    low, high = ends
    if not math.isfinite(x) or low == high:
        return None

    def bar(a: float, b: float, y: float, high_: float, kind: str | None = None) -> Markup:
        return h("rect", x=f"{a:.2f}", width=f"{b - a:.4g}", height=high_, y=y, class_=kind)

    clipped = (min(max(v, low), high) for v in (start, x, x - error, x + error))
    zero, end, left, right = (100 * (v - low) / (high - low) for v in clipped)
    a, b = sorted((zero, end))
    bars = [bar(a, b, 1, 8)]
    if not low <= x <= high:  # a gap near the end
        at_end = a + 3 if x < low else b - 4
        bars.append(bar(at_end, at_end + 1, 1, 8, "gap"))
    elif error:
        bars.append(bar(left, right, 4.3, 1.4, "interval"))
    bars.append(bar(zero - 0.2, zero + 0.2, 0, 10, "start"))
    return h("svg", bars, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")


def history(c: Content) -> Markup:
    """What a search has opened so far."""
    rows = [
        cells([f"{i}. ", name(str(step.box))], h("td", name(step.state)),
             *(c.say(x) for x in (step.cost, step.best, step.spent)))
        for i, step in enumerate(c.told, 1)
    ]  # fmt: skip
    best = "Least loss so far|" if c.forest.minimize else "Best so far|"
    best = "All prizes, if stopped then|" if c.forest.prizes > 1 else best
    return table("Opened so far", heads("Box", "Showed", "Cost|", best, "Spent|"), rows)


def cells(head: Child, *cells: Child) -> Markup:
    """A row of a table; a cell that is a text is a number."""
    inner = (x if isinstance(x, Markup) else h("td", x, class_="number") for x in cells)
    return h("tr", h("th", head, scope="row"), *inner)


def table(caption: str, head: Sequence[Markup], rows: Iterable[Markup], **more: str) -> Markup:
    """A table with a caption for screen readers, which scrolls where it is too wide."""
    return h(
        "div",
        h("table", h("caption", caption), h("thead", h("tr", head)), h("tbody", rows), **more),
        class_="wide", tabindex=0, role="region", aria_label=caption,
    )  # fmt: skip


def heads(*titles: str) -> list[Markup]:
    """Heads of columns; a bar at the end marks a column of numbers."""
    return [
        h("th", x.rstrip("|"), scope="col", class_="number" if x.endswith("|") else None)
        if x.strip("|")
        else h("td")
        for x in titles
    ]


def _column(title: str, kind: str = "number", sort: str = "none") -> Markup:
    """The head of a column that can be sorted."""
    button = h("button", title, type="button", data_kind=kind)
    numeric = "number" if kind == "number" else None
    return h("th", button, scope="col", aria_sort=sort, class_=numeric)


def _text(shown: Child, key: str, head: bool = False) -> Markup:
    return h("th" if head else "td", shown, data_key=key, scope="row" if head else None)


def _number(x: float, text: Callable[[float], str]) -> Markup:
    key = x if math.isfinite(x) else math.copysign(1e308, x)
    return h("td", text(x).replace("-", "−"), data_key=repr(float(key)), class_="number")


def _range(c: Content, values: FloatArray) -> Markup:
    low, high = float(values.min()), float(values.max())
    text = c.say(low) if low == high else f"{c.say(low)} to {c.say(high)}"
    return h("td", text, data_key=repr(high), class_="number")


def _indices(c: Content, v: int) -> Markup:
    """The index, or one for each state of the parent."""
    f, index = c.forest, c.solution.indices(v)
    up, finite = int(f.parent[v]), index[np.isfinite(index)]
    if up < 0 or len(index) > _STATES or np.ptp(index) == 0:
        none = h("td", "none", data_key="-1e308", class_="number")
        return _range(c, finite) if len(finite) else none
    parts = [
        h("div", c.say(float(x)) if np.isfinite(x) else "none",
          h("small", " after ", name(shown(f, up, y))))
        for y, x in enumerate(index)
    ]  # fmt: skip
    return h("td", h("div", parts), data_key=repr(float(index.max())), class_="number")


def estimate(c: Content, x: float, error: float) -> str:
    """A number and its error, without digits that the error makes meaningless."""
    return f"{c.say(x, error)} ± {c.amounts.margin(error)}" if error else c.say(x)


def profiles(found: Iterable[Profile], say: Amounts) -> list[dict[str, Any]]:
    """The risk profiles for the script: values, and the chance of each value or less."""
    return [
        {"name": title, "x": x.tolist(), "p": p.tolist(), "mean": brief(say, mean)}
        for title, x, p, mean in found
    ]
