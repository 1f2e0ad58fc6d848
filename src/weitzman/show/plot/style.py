"""What all pictures have in common: axes, colors, and text that is shown as it is.

The colors are Okabe and Ito's, which color-blind readers can tell apart. Lightness and shape carry
the same information, for print in gray. Text and lines take the color that the user has chosen.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._common.arrays import FloatArray, IntArray
from ..._common.numbers import Amounts
from ..._common.optional import need
from ..._common.text import cell
from ...engine.solution import Solution
from ...errors import InvalidArgument

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, SKY, ORANGE, VERMILION = "#0072B2", "#9BCDEB", "#E69F00", "#D55E00"
CYCLE = (BLUE, ORANGE, "#009E73", VERMILION, "#CC79A7", "#56B4E9", "#7F7F7F")
_KEY_LETTER, _KEY_MARK, _KEY_LINE = 0.062, 0.42, 16.0  # inches, inches, and points of a key
BARE = Amounts()  # amounts of a problem without a unit
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}  # for text with names in it


def axes(ax: Axes | None, width: float, height: float, grid: str | None = None) -> Axes:
    """The given axes, or new ones of that size in inches, without lines that say nothing.

    ``grid``, "x" or "y", is the axis along which values are read.
    """
    if ax is None:
        subplots = need("matplotlib.pyplot", "plot").subplots
        ax = subplots(figsize=(width, height), layout="constrained")[1]
    assert ax is not None
    ax.spines[["top", "right"]].set_visible(False)
    if grid == "x":
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    if grid is not None:
        ax.grid(axis="x" if grid == "x" else "y", color=mixed(ax, 0.12), linewidth=0.8)
        ax.set_axisbelow(True)
    return ax


def ink() -> str:
    """The color of text."""
    return str(need("matplotlib", "plot").rcParams["text.color"])


def mixed(ax: Axes, share: float, color: str | None = None) -> tuple[float, float, float]:
    """A color (by default the color of text) mixed with the color of the background."""
    to_rgba = need("matplotlib.colors", "plot").to_rgba
    back = to_rgba(ax.get_facecolor())
    back = to_rgba("white") if back[3] == 0 else back
    r, g, b, _ = share * np.array(to_rgba(color or ink())) + (1 - share) * np.array(back)
    return float(r), float(g), float(b)


def muted(ax: Axes) -> tuple[float, float, float]:
    """The color of secondary text: gray, but easy to read."""
    return mixed(ax, 0.65)


def finish(
    ax: Axes, title: str | None = None, *, x: str = "", y: str = "", amounts: str = "",
    say: Amounts = BARE,
) -> Axes:  # fmt: skip
    """Names of the axes, amounts along some of them, the key above the axes, a title above both.

    Amounts have commas and no powers of ten, and their unit is at the label. No text is read as a
    formula.
    """
    bare = Amounts("", say.spread)
    for letter, axis, label in (("x", ax.xaxis, x), ("y", ax.yaxis, y)):
        if label:
            axis.set_label_text(label, **PLAIN)
        if letter in amounts:
            axis.set_major_formatter(lambda value, _: bare.typeset(value))
            if say.unit:
                axis.set_label_text(f"{axis.get_label_text()} ({plain(say.unit)})", **PLAIN)
    labels, pad = ax.get_legend_handles_labels()[1], None
    if labels:
        room, columns = 0.85 * ax.figure.bbox.width / ax.figure.dpi, len(labels)  # inches
        while columns > 1:  # as many as fit above the axes; entries fill them downward
            rows = math.ceil(len(labels) / columns)
            parts = (labels[i : i + rows] for i in range(0, len(labels), rows))
            if sum(_KEY_MARK + _KEY_LETTER * max(map(len, part)) for part in parts) <= room:
                break
            columns -= 1
        pad = 6.0 + _KEY_LINE * math.ceil(len(labels) / columns)
        legend = ax.legend(
            frameon=False, ncols=columns, loc="lower left", bbox_to_anchor=(0, 1), borderpad=0.1,
            borderaxespad=0.2, fontsize="small", handlelength=1.6, columnspacing=1.4,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)
    if title is not None:
        ax.set_title(title, loc="left", fontsize="medium", pad=pad, **PLAIN)
    return ax


def plain(name: str) -> str:
    """A name that can be drawn: long names are cut, characters that the font lacks are escaped.

    >>> print(plain("50 $ or 60 $"), plain("漢"))
    50 $ or 60 $ \\u6f22
    """
    fonts = need("matplotlib.font_manager", "plot")
    known = _characters(tuple(fonts.FontProperties().get_family()))
    return cell("".join(c if ord(c) in known else ascii(c)[1:-1] for c in cell(name)))


@lru_cache(maxsize=8)
def _characters(families: tuple[str, ...]) -> frozenset[int]:
    """The characters that the user's fonts have."""
    fonts = need("matplotlib.font_manager", "plot")
    paths = [fonts.findfont(fonts.FontProperties(family=[family])) for family in families]
    return frozenset().union(*(fonts.get_font(path).get_charmap() for path in paths))


def span(some: FloatArray, say: Amounts = BARE) -> str:
    """The least and the largest of some amounts, or one amount if both are the same."""
    low, high = say.typeset(some.min()), say.typeset(some.max())
    return low if low == high else f"{low} to {high}"


def colors(n: int) -> list[str]:
    """Colors for n things, no two alike: first the colors that everyone can tell apart.

    >>> colors(2), len(set(colors(40)))
    (['#0072B2', '#E69F00'], 40)
    """
    mpl, more = need("matplotlib.colors", "plot"), max(0, n - len(CYCLE))
    shades = [(i / max(more, 1), (0.45, 0.9)[i % 2], (0.55, 0.8)[i // 2 % 2]) for i in range(more)]
    return [*CYCLE[:n], *(mpl.to_hex(mpl.hsv_to_rgb(shade)) for shade in shades)]


def marks(ax: Axes, x: Any, y: Any, some: Any, **look: Any) -> None:
    """Marks above everything else at some of the points; no entry in the key if there are none."""
    if some.any():
        ax.scatter(x[some], y[some], **{"zorder": 3, "clip_on": False, **look})


def named_rows(ax: Axes, names: list[str]) -> IntArray:
    """Rows from the top down, one for each name."""
    size, rows = "small" if len(names) <= 40 else "x-small", np.arange(len(names))
    ax.set_yticks(rows, [plain(x) for x in names], fontsize=size, **PLAIN)
    ax.set_ylim(len(names) - 0.4, -0.6)
    return rows


def check(source: object, kind: type, what: str = "this picture", needs: str = "") -> None:
    """Raise an error unless a picture got what it is made of."""
    if not isinstance(source, kind):
        got = f"but got a {type(source).__name__}"
        raise InvalidArgument(f"{what} needs {needs or f'a {kind.__name__}'}, {got}.")


def check_solution(solution: object, what: str) -> None:
    """Most pictures need a solution."""
    check(solution, Solution, what, "a solution, from solve(forest)")
