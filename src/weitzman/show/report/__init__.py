"""A report to share: one HTML file that says what to do and why, with steps to try out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from ..._common.arrays import check_counts
from ..._common.disk import replacing
from ..._common.numbers import percent
from ...engine.plan import Progress
from ...engine.solution import Solution
from ...engine.solver import solve
from ...errors import InvalidArgument
from ...files.documents import explained
from ...forest.model import Forest
from ...policy.search import Search
from ..page import Child, Markup, forms, h, script, style, whole, worded
from . import sections
from .decision_tree import chart, decisions, table, write_workbook
from .findings import RUNS, TOP, Content, content, problem, steps

if TYPE_CHECKING:
    from ...files.ranges import Ranges
    from ...learn.run_model import RunModel

Source: TypeAlias = "Forest | Solution | Search | RunModel"
Path = str | os.PathLike[str]

_ENDINGS = (".html", ".htm", ".pptx", ".xlsx", ".svg", ".csv")

_STEPS = (
    "Enter what you saw to get the next box. Nothing leaves this file, and you can always go back."
)
_DRAWN = (
    "Roots are on the left. A box can be opened once the box to its left is open. The bar "
    "shows how likely a box is to be opened. The drawing follows the steps taken above."
)
_SCRIPT = "This part needs JavaScript. The text and the tables do not."


def write_report(
    source: Source, path: Path, *, title: str | None = None, limit: int = TOP, runs: int = RUNS,
    ranges: Ranges | None = None, words: tuple[str, ...] = ("box", "open"),
    progress: Progress | None = None,
) -> None:  # fmt: skip
    """Write a report as one HTML file that needs nothing else, not even a network.

    The ending of the path selects other formats: ``.svg`` gives the decisions as a flow chart,
    ``.csv`` a table, ``.xlsx`` a workbook, and ``.pptx`` four slides with the decision, the tree,
    the tornado and the risk profile (``pip install "weitzman[slides]"``).

    Parameters
    ----------
    source : Forest, Solution, Search or ResemblanceModel
        A problem; a search under way (the report says how the search stands); or a model fitted to
        past runs.
    path : str or path
        The file appears complete or not at all; it is replaced if it exists.
    title : str, optional
        What the report is about.
    limit : int
        About how many boxes to show: the boxes opened most often. The other boxes are counted.
    runs : int
        How many runs may be started, if a fitted model is given.
    ranges : Ranges, optional
        Numbers that are not known for sure, as :func:`weitzman.files.read_ranges` finds them.
    words : tuple of str
        What a box is called, what is done with it, and units of time: ``("stage", "run")``,
        ``("stage", "run", "months")``.
    progress : callable, optional
        Called with (done, total).

    Examples
    --------
    >>> import pathlib, tempfile, weitzman
    >>> chest = weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1, names=["chest"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     weitzman.write_report(chest, f"{folder}/report.html")
    ...     text = pathlib.Path(f"{folder}/report.html").read_text("utf-8")
    >>> "Start with <bdi>chest</bdi>: " in text
    True
    """
    check_counts(limit=limit, runs=runs)
    name = os.fspath(path)
    kind = ending(name)
    if kind == ".xlsx":
        if not isinstance(source, Forest | Solution):
            raise InvalidArgument("a workbook is made of a problem. For other sources write .html.")
        write_workbook(source, name, progress)
        return
    if kind in (".svg", ".csv"):
        policy = (
            source.policy if isinstance(source, Search)
            else source.policy() if isinstance(source, Solution)
            else solve(source).policy() if isinstance(source, Forest)
            else content(source, limit=1, runs=runs).policy
        )  # fmt: skip
        found, verb = decisions(policy), forms(*words).get("Open", "Open")
        say = policy.forest.amounts.typeset
        text = table(found) if kind == ".csv" else chart(found, say, verb=verb)
    else:
        c = content(source, limit=limit, runs=runs, ranges=ranges, progress=progress)
        if kind == ".pptx":
            from .slides import write_slides  # so that other reports do not load its charts

            write_slides(c, name, title, words)
            return
        text = render(c, title, words)
    with explained(name, "written"), replacing(name) as file:
        file.write(text.encode("utf-8", "xmlcharrefreplace"))


def ending(name: str) -> str:
    """How the name of a report ends, which decides its format."""
    kind = os.path.splitext(name)[1].lower()
    if kind not in _ENDINGS:
        known = f"{', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}"
        raise InvalidArgument(f"a report must end in {known}, but its name is {name!r}.")
    return kind


def render(c: Content, title: str | None = None, words: tuple[str, ...] = ("box", "open")) -> str:
    """The whole page."""
    called, f = forms(*words), c.forest
    states = {x for v in c.keep.tolist() if called for x in f.states(v)}
    names = [title or "", *(f.name(v) for v in c.keep.tolist() if called), *states]
    place = {v: i for i, v in enumerate(c.keep.tolist())}
    data = {
        "words": called,
        "problem": problem(c.policy, c.keep),
        "told": steps(c.told, c.keep, [box for box, _ in c.taken]),
        "answers": c.answers,
        "value": c.solution.value,
        "opened": c.evaluation.opened[c.keep].tolist(),
        "profiles": sections.profiles(c.profiles, c.amounts),
        "nothing": c.law.outside,
        "whatIf": [
            {
                "box": place.get(w.box), "name": c.forest.name(w.box), "factor": w.factor,
                "value": w.value, "first": w.first, "row": w.state, "cost": w.now,
            }
            for w in c.what_if
        ],
    }  # fmt: skip
    return whole(
        title or str(worded(Markup("Which boxes to open"), called, ())),
        worded(_body(c, title, called.get("Open", "Open")), called, names),
        style=style(__name__, "report.css"), script=script(__name__, "report.js"), data=data,
    )  # fmt: skip


# -- the page ----------------------------------------------------------------------------------


def _body(c: Content, title: str | None, verb: str) -> Markup:
    parts = [(key, text, inner) for key, text, inner in _sections(c) if inner is not None]
    links = [h("a", text, href=f"#{key}") for key, text, _ in parts]
    return h(
        "main",
        h("p", title or "A search", class_="kicker"),
        h("header", *sections.first_screen(c, verb), id="decision"),
        h("nav", links, aria_label="Parts of this report"),
        [h("section", h("h2", text), inner, id=key, aria_label=text) for key, text, inner in parts],
        sections.footer(),
    )


_ANSWERS = {  # by what findings.answers calls them: the name of the section, and its title
    "swings": ("matters", "Which numbers matter"),
    "knowing": ("knowing", "Value of perfect information"),
    "budget": ("budget", "If the budget is limited"),
    "careful": ("careful", "Risk attitude"),
}
_COMPARED = "Compared with other strategies"


def _sections(c: Content) -> Iterator[tuple[str, str, Child]]:
    """The name, the title and the content of each section; None if there is no such section."""
    began = "As of the start of the search, before anything was seen."
    start = h("p", began, class_="hint") if c.told else None
    missing: list[Child] = []
    yield "history", "What was seen", sections.history(c) if c.told else None
    yield "try", "Try it", [h("p", _STEPS, class_="hint"), _filled("stepper")]
    yield "plan", "Step by step", None if c.told else sections.plan(c)
    yield "whatif", "What if costs were different", [start, _what_if(c)]
    for answer, (key, text) in _ANSWERS.items():
        if c.answers[answer] is None:
            missing.append(h("li", f"{text}: {c.answers['leftOut'][answer]}"))
        else:
            yield key, text, [start, _filled(f"answer-{answer}", "answer-place")]
    yield "uncertain", "Uncertain numbers", [*sections.uncertain(c)] if c.uncertain else None
    if isinstance(c.comparison, str):
        missing.append(h("li", f"{_COMPARED}: {c.comparison}"))
    else:
        yield "compare", _COMPARED, [start, sections.strategies(c, c.comparison)]
    drawing = [h("p", _DRAWN, class_="hint"), _filled("drawing", tabindex=0)]
    yield "forest", "The boxes drawn", drawing
    yield "boxes", "All boxes", [start, _boxes(c)]
    yield "rule", "The rule behind it", [*sections.rule(c)]
    yield "sure", "How sure this is", [*sections.certainty(c)]
    yield "left-out", "Left out", h("ul", missing) if missing else None


def _filled(key: str, kind: str | None = None, **more: int) -> Markup:
    """A place that the script fills."""
    return h("div", h("noscript", _SCRIPT), id=key, class_=kind or key, **more)


def _boxes(c: Content) -> Child:
    shown, n, folded = len(c.keep), len(c.forest), None
    if shown < n:
        rest = 1 - float(c.evaluation.opened[c.keep].sum()) / max(c.evaluation.openings, 1e-300)
        folded = h(
            "p", f"{n - shown:,} of {n:,} boxes are folded away, the ones opened least often. "
            f"Together they make up {percent(max(0.0, rest))} of all openings.", class_="hint",
        )  # fmt: skip
    field = h("input", type="search", id="find", autocomplete="off")
    state = h("p", id="found", role="status", class_="hint")
    more = h("button", "Show all", type="button", id="more", hidden=True)
    return [folded, h("label", "Find ", field, class_="find"), state, sections.boxes(c), more]


def _what_if(c: Content) -> Child:
    if not c.what_if:
        return h("p", "Nothing is spent, so no cost matters.")
    text = (
        "The boxes on which the most is spent. “Worth opening up to” assumes that only the outside "
        "option and what the parent showed are in hand."
    )
    curve = h("div", id="curve", class_="curve")
    return [h("p", text, class_="hint"), sections.break_even_costs(c), curve]
