"""The tree of decisions as a drawing: an SVG file, or LaTeX with TikZ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..._common.numbers import percent
from ..._common.text import printable
from ..page.html import Markup, h
from .decision_tree import MORE, STOP, Situated
from .phrases import number

_WIDE, _HIGH = 190, 40  # of a box
_ACROSS, _DOWN = 118, 14  # room for what was seen; between boxes
_MARGIN = 8
_LETTERS = 23  # of the first line in a box, at most
_SMALL = 31  # of the second line
_SEEN = 16  # of a label on an edge
_UNIT = 0.02  # centimeters of paper for a unit of the drawing


Say = Callable[[float], str]
"""How an amount is written."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the boxes of a flow chart stand, by their upper left corners."""

    x: list[float]
    y: list[float]
    wide: float
    high: float


def places(found: list[Situated]) -> Places:
    """Columns by level. Ends are stacked; other boxes are centered on what follows them."""
    below: list[list[int]] = [[] for _ in found]
    for i, d in enumerate(found):
        if d.up >= 0:
            below[d.up].append(i)
    y, rows = [0.0] * len(found), 0
    waiting = [(0, False)]
    while waiting:
        i, done = waiting.pop()
        if not below[i]:
            y[i], rows = float(rows), rows + 1
        elif done:
            y[i] = (y[below[i][0]] + y[below[i][-1]]) / 2
        else:
            waiting += [(i, True), *((j, False) for j in reversed(below[i]))]
    level = [d.level for d in found]
    return Places(
        [_MARGIN + d * (_WIDE + _ACROSS) for d in level],
        [_MARGIN + row * (_HIGH + _DOWN) for row in y],
        2 * _MARGIN + max(level) * (_WIDE + _ACROSS) + _WIDE,
        2 * _MARGIN + rows * (_HIGH + _DOWN) - _DOWN,
    )


def lines_of(d: Situated, say: Say = number) -> tuple[str, str]:
    """The text in a box: what to do, and the numbers."""
    if d.taken:
        then = f"stop, {say(d.best)} in all" if d.action == STOP else f"open {d.box}"
        return f"Take {', '.join(d.taken)}", f"then {then}"
    if d.action == STOP:
        return f"Stop: take {say(d.best)}", f"from {d.box}" if d.box else "the outside option"
    so_on = " …" if d.action == MORE else ""
    return f"Open {d.box}", f"cost {say(d.cost)}, index {say(d.index)}{so_on}"


def svg(found: list[Situated], say: Say = number, *, standalone: bool = True) -> Markup:
    """The flow chart as SVG. Its text takes the color of the text around it."""
    p = places(found)
    edges = [_edge(p, d, i) for i, d in enumerate(found) if d.up >= 0]
    boxes = [_box(p, i, d, lines_of(d, say)) for i, d in enumerate(found)]
    size = {"width": f"{p.wide:g}", "height": f"{p.high:g}"}
    alone = {"xmlns": "http://www.w3.org/2000/svg"} if standalone else {}
    return h(
        "svg", h("title", "What to do, step by step"), edges, boxes,
        viewBox=f"0 0 {p.wide:g} {p.high:g}", role="img", class_="flow", fill="currentColor",
        font_family="system-ui, sans-serif", font_size="12", aria_label=f"Flow chart of "
        f"{len(found)} situations", **size, **alone,
    )  # fmt: skip


def _edge(p: Places, d: Situated, i: int) -> Markup:
    x, y = p.x[d.up] + _WIDE, p.y[d.up] + _HIGH / 2
    x1, y1 = p.x[i], p.y[i] + _HIGH / 2
    bend = x + 22
    return h(
        "g",
        h(
            "path",
            d=f"M{x:g} {y:g} C{bend:g} {y:g} {x + 6:g} {y1:g} {x + 30:g} {y1:g} L{x1:g} {y1:g}",
            fill="none",
            stroke="currentColor",
            stroke_opacity="0.45",
        ),
        h(
            "text",
            f"{_cut(d.seen, _SEEN)} ({percent(d.chance)})",
            x=f"{x1 - 5:g}",
            y=f"{y1 - 5:g}",
            text_anchor="end",
            font_size="11",
        ),
    )


def _box(p: Places, i: int, d: Situated, lines: tuple[str, str]) -> Markup:
    first, second = lines
    stop = d.action == STOP
    return h(
        "g",
        h("title", f"{first}; {second}; reached with chance {percent(d.reached)}"),
        h(
            "rect", x=f"{p.x[i]:g}", y=f"{p.y[i]:g}", width=_WIDE, height=_HIGH,
            rx=_HIGH // 2 if stop else 4, fill="currentColor", fill_opacity="0.04" if stop else
            "0.1", stroke="currentColor", stroke_opacity="0.7",
            stroke_dasharray="4 3" if d.action == MORE else None,
        ),
        h(
            "text", _cut(first, _LETTERS), x=f"{p.x[i] + _WIDE / 2:g}", y=f"{p.y[i] + 17:g}",
            text_anchor="middle", font_weight="600",
        ),
        h(
            "text", _fit(second, _SMALL), x=f"{p.x[i] + _WIDE / 2:g}",
            y=f"{p.y[i] + 32:g}", text_anchor="middle", font_size="11",
        ),
    )  # fmt: skip


def _cut(text: str, most: int) -> str:
    text = printable(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def _fit(text: str, most: int) -> str:
    """As many parts of a line as there is room for; numbers stay whole."""
    parts = text.split(", ")
    while len(parts) > 1 and len(", ".join(parts)) > most:
        parts.pop()
    return _cut(", ".join(parts), most)


# -- LaTeX -------------------------------------------------------------------------------------

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "_": r"\_", "%": r"\%", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "−": "$-$", "∞": r"$\infty$",
    "…": r"\ldots{}", "±": r"$\pm$",
}  # fmt: skip


_NO_WIDER = r"\noindent\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def tex(text: str) -> str:
    """Text for LaTeX in which every character stands for itself.

    Examples
    --------
    >>> print(tex("50% of $x_1$"))
    50\\% of \\$x\\_1\\$
    """
    return "".join(_SPECIAL.get(c, c) for c in printable(text))


def latex(found: list[Situated], say: Say = number) -> str:
    """A decision table and the flow chart, as input for a LaTeX document."""
    return "\n".join(
        [
            r"% Put \usepackage{tikz} into the preamble and \input this file.",
            *_latex_table(found, say),
            "",
            r"\medskip",
            _NO_WIDER,
            *_latex_tree(found, say),
            "}",
            "",
        ]
    )


def _latex_table(found: list[Situated], say: Say) -> list[str]:
    rows = []
    for d in found:
        first, second = lines_of(d, say)
        before = "start" if d.up < 0 else f"{found[d.up].box} = {d.seen}"
        indent = rf"\hspace*{{{d.level:d}em}}" if d.level else ""
        cells = [f"{indent}{tex(before)}", tex(percent(d.reached)), tex(first), tex(second)]
        rows.append(" & ".join(cells) + r" \\")
    head = r"After & Probability & Do & \\"
    return [
        r"\begin{tabular}{lrll}",
        r"\hline",
        head,
        r"\hline",
        *rows,
        r"\hline",
        r"\end{tabular}",
    ]


def _latex_tree(found: list[Situated], say: Say) -> list[str]:
    p = places(found)
    size = f"minimum width={_WIDE * _UNIT:.3g}cm, minimum height={_HIGH * _UNIT:.3g}cm"
    out = [
        rf"\begin{{tikzpicture}}[x={_UNIT}cm, y=-{_UNIT}cm, font=\scriptsize,",
        rf"  do/.style={{draw, align=center, inner sep=1pt, {size}}},",
        r"  end/.style={do, rounded corners=6pt}, so on/.style={do, dashed}]",
    ]
    for i, d in enumerate(found):
        first, second = lines_of(d, say)
        kind = "end" if d.action == STOP else "so on" if d.action == MORE else "do"
        at = f"({p.x[i] + _WIDE / 2:g}, {p.y[i] + _HIGH / 2:g})"
        text = rf"{tex(_cut(first, _LETTERS))}\\{tex(_fit(second, _SMALL))}"
        out.append(rf"  \node[{kind}] (n{i}) at {at} {{{text}}};")
    for i, d in enumerate(found):
        if d.up >= 0:
            label = tex(f"{_cut(d.seen, _SEEN)} ({percent(d.chance)})")
            bend = f"({p.x[d.up] + _WIDE + 14:g}, {p.y[i] + _HIGH / 2:g})"
            end = rf"-- node[above, inner sep=1pt] {{{label}}} (n{i}.west);"
            out.append(rf"  \draw (n{d.up}.east) -- {bend} {end}")
    return [*out, r"\end{tikzpicture}"]
