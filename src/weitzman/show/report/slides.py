"""Four slides with python-pptx: the decision, the tree, the tornado, the risk profile.

Charts and shapes are those of the program that opens the file, so that everything can be edited.
"""

from __future__ import annotations

import html
import re
from functools import partial
from typing import Any

import numpy as np

from ..._common.disk import replacing
from ..._common.numbers import percent
from ..._common.optional import need
from ..._common.text import printable, shortened
from ...files.documents import explained
from ..page import forms, join, worded
from . import sections
from .decision_tree import PAGE, STOP, fitting, lines_of, places
from .findings import Content

_BARS = 10  # of the tornado
_TITLE = 80  # letters of a title in two large lines
_GROUPED = 20.0  # a range from which on amounts along an axis are whole numbers
_INK, _MUTED, _GRID, _LOW, _HIGH = "1B2A33", "5B6870", "DDE2E5", "9BCDEB", "0072B2"
_TOP, _LEFT, _WIDE, _HIGH_ROOM = 1.5, 0.6, 12.1, 5.5  # inches below the title


def write_slides(c: Content, path: str, title: str | None, words: tuple[str, ...]) -> None:
    """Write the slides; ``words`` as in a report."""
    pptx = need("pptx", "slides")
    deck, called = pptx.Presentation(), forms(*words)
    deck.slide_width, deck.slide_height = (pptx.util.Inches(x) for x in (13.333, 7.5))
    names = [c.forest.name(v) for v in c.keep.tolist()]
    verb = called.get("Open", "Open")

    def plain(markup: Any) -> str:
        text = worded(join([markup]), called, names)
        return printable(html.unescape(re.sub("<[^>]*>", "", text)))

    rows, paid = (c.answers["swings"] or {"rows": []})["rows"][:_BARS], _payoff(c)
    for draw, heading in (
        (partial(_decision, plain), plain(sections.headline(c))),
        (partial(_tree, verb), "The first decisions"),
        (partial(_tornado, rows), "Which numbers matter"),
        (_profile, f"Risk profile: the chance of each {paid} or less"),
    ):
        slide = deck.slides.add_slide(deck.slide_layouts[5])  # a title and nothing else
        place = slide.shapes.title
        place.left, place.top, place.width, place.height = _inches(_LEFT, 0.4, _WIDE, 1.0)
        place.text_frame.text, place.text_frame.word_wrap = heading, True
        _look(place.text_frame, 28 if len(heading) <= _TITLE else 22, bold=True)
        draw(slide, c)
        _say(slide, printable(title or ""), (_LEFT, 7.05, _WIDE, 0.3), 10, _MUTED)
    with explained(path, "written"), replacing(path) as file:
        deck.save(file)


def _part(name: str) -> Any:
    return need(f"pptx.{name}", "slides")


def _inches(*x: float) -> Any:
    return [_part("util").Inches(each) for each in x]


def _color(text: str) -> Any:
    return _part("dml.color").RGBColor.from_string(text)


def _look(
    frame: Any, size: float, color: str = _INK, bold: bool = False, middle: bool = False
) -> None:
    for line in frame.paragraphs:
        line.alignment = getattr(_part("enum.text").PP_ALIGN, "CENTER" if middle else "LEFT")
        line.font.size, line.font.bold = _part("util").Pt(size), bold
        line.font.color.rgb = _color(color)


def _say(
    slide: Any,
    text: str,
    place: tuple[float, ...],
    size: float,
    color: str = _INK,
    bold: bool = False,
    tight: bool = False,
) -> None:
    frame = slide.shapes.add_textbox(*_inches(*place)).text_frame
    frame.text, frame.word_wrap = text, not tight
    if tight:
        frame.margin_left = frame.margin_right = _inches(0.05)[0]
    _look(frame, size, color, bold)


def _decision(plain: Any, slide: Any, c: Content) -> None:
    """Three figures, and what would change the decision."""
    for i, (what, figure, more) in enumerate(sections.figures(c)):
        left = _LEFT + 4.1 * i
        _say(slide, plain(what), (left, 2.0, 3.9, 0.4), 16, _MUTED)
        _say(slide, plain(figure), (left, 2.4, 3.9, 0.8), 36, bold=True)
        _say(slide, plain(more), (left, 3.2, 3.9, 0.9), 14, _MUTED)
    changing = sections.changing(c)
    if changing is not None:
        _say(slide, f"What would change this: {plain(changing)}", (_LEFT, 4.6, _WIDE, 1.2), 18)


def _tree(verb: str, slide: Any, c: Content) -> None:
    """The first decisions as shapes that are joined by lines."""
    shape = _part("enum.shapes")
    found, _ = fitting(c.policy)
    p = places(found, PAGE)
    scale = min(_WIDE / p.wide, _HIGH_ROOM / p.high, 0.018)  # inches for each unit of the chart
    made: list[Any] = []
    for i, d in enumerate(found):
        kinds, left, top = shape.MSO_SHAPE, _LEFT + scale * p.x[i], _TOP + scale * p.y[i]
        kind = kinds.ROUNDED_RECTANGLE if d.action == STOP else kinds.RECTANGLE
        place = _inches(left, top, scale * PAGE.wide, scale * PAGE.high)
        box = slide.shapes.add_shape(kind, *place)
        box.fill.solid()
        box.fill.fore_color.rgb = _color("F1F4F5" if d.action == STOP else "DCEAF3")
        box.line.color.rgb = _color(_MUTED)
        lines = lines_of(d, partial(sections.brief, c.amounts), verb)
        box.text_frame.text = "\n".join(shortened(x, PAGE.small) for x in lines)
        box.text_frame.margin_left = box.text_frame.margin_right = 0
        _look(box.text_frame, 600 * scale, middle=True)
        if d.up >= 0:
            line = slide.shapes.add_connector(shape.MSO_CONNECTOR.ELBOW, 0, 0, 0, 0)
            line.begin_connect(made[d.up], 3)  # from the right side
            line.end_connect(box, 1)  # to the left side
            line.line.color.rgb = _color(_MUTED)
            text = f"{shortened(d.seen, PAGE.seen)} ({percent(d.chance)})"
            half = scale * PAGE.across / 2  # after the bend of the line
            _say(
                slide, text, (left - half, top - 0.03, half, 0.25), 550 * scale, _MUTED, tight=True
            )
        made.append(box)


def _chart(slide: Any, kind: str, data: Any, unit: str, what: str, wide: float) -> Any:
    """A chart with a legend, names at its edge, and a title of the axis of amounts.

    ``wide`` is the range of the amounts.
    """
    types = _part("enum.chart")
    place = _inches(_LEFT, _TOP, _WIDE, _HIGH_ROOM)
    chart = slide.shapes.add_chart(getattr(types.XL_CHART_TYPE, kind), *place, data).chart
    chart.has_legend, chart.has_title = True, False
    chart.legend.position = types.XL_LEGEND_POSITION.BOTTOM
    chart.legend.include_in_layout = False
    chart.font.size = _part("util").Pt(12)
    bars = kind.startswith("BAR")
    low, amounts = chart.category_axis, chart.value_axis
    if not bars:
        low, amounts = amounts, low
    low.tick_label_position = types.XL_TICK_LABEL_POSITION.LOW
    for axis in (low, amounts):
        if axis.has_major_gridlines:
            axis.major_gridlines.format.line.color.rgb = _color(_GRID)
    if wide >= _GROUPED:
        amounts.tick_labels.number_format = "#,##0"
        amounts.tick_labels.number_format_is_linked = False
    amounts.has_title = True
    amounts.axis_title.text_frame.text = printable(f"{what} ({unit})" if unit else what)
    return chart


def _tornado(rows: list[dict[str, Any]], slide: Any, c: Content) -> None:
    """The value with each number at its low and at its high end, the widest swing on top."""
    if not rows:
        why = c.answers["leftOut"].get("swings", "no number matters.")
        _say(slide, f"Left out: {why}", (_LEFT, _TOP, _WIDE, 1.0), 18)
        return
    data = _part("chart.data").CategoryChartData()
    of = ((r, f"{r['number']} of {r['box']}" if r["box"] else "outside option") for r in rows[::-1])
    data.categories = [printable(r.get("title") or name) for r, name in of]
    for key, label in (("low", "number lowered"), ("high", "number raised")):
        data.add_series(label, [r[key] for r in rows[::-1]])
    ends = np.array([[r["low"], r["high"]] for r in rows])
    wide = float(np.ptp(ends)) or 1.0
    chart = _chart(slide, "BAR_CLUSTERED", data, c.forest.unit, "value", wide)
    step = 10.0 ** np.floor(np.log10(wide))  # the axis begins and ends at round numbers
    chart.value_axis.minimum_scale = float(step * np.floor(ends.min() / step))
    chart.value_axis.maximum_scale = float(step * np.ceil(ends.max() / step))
    chart.plots[0].overlap, chart.plots[0].gap_width = 100, 40
    chart.value_axis.crosses_at = c.solution.value  # bars start at the value as things stand
    for series, color in zip(chart.plots[0].series, (_LOW, _HIGH), strict=True):
        series.format.fill.solid()
        series.format.fill.fore_color.rgb = _color(color)


def _payoff(c: Content) -> str:
    return "cost" if c.forest.minimize else "payoff"


def _profile(slide: Any, c: Content) -> None:
    """Distribution functions as steps, one line for each policy."""
    data = _part("chart.data").XyChartData()
    ends = np.array([[x[0], x[-1]] for _, x, _, _ in c.profiles])
    left, right = float(ends.min()), float(ends.max())
    most = max(len(x) for _, x, _, _ in c.profiles)
    for title, x, p, mean in c.profiles:
        series = data.add_series(f"{title} (mean {sections.brief(c.amounts, mean)})")
        more = most - len(x)  # LibreOffice draws no line that has fewer points than a later one
        at = np.concatenate([[left], np.repeat(x, 2), np.full(1 + 2 * more, right)])
        chance = np.concatenate([[0.0, 0.0], np.repeat(p, 2)[:-1], np.ones(1 + 2 * more)])
        for point in zip(at.tolist(), chance.tolist(), strict=True):
            series.add_data_point(*point)
    kind = "XY_SCATTER_LINES_NO_MARKERS"
    chart = _chart(slide, kind, data, c.forest.unit, _payoff(c), right - left)
    chart.value_axis.maximum_scale, chart.value_axis.minimum_scale = 1, 0
    chart.value_axis.tick_labels.number_format = "0%"
    chart.value_axis.tick_labels.number_format_is_linked = False
    for series in chart.plots[0].series:
        series.smooth = False
