"""The command ``weitzman chain``: what one transition matrix does along a line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .._common.numbers import about, counted, number
from .given_file import PATH, given_file
from .options import NUMBER, Options, command, json_option, limit_option

if TYPE_CHECKING:
    from ..chains.chain import Chain
    from ..chains.endless import EndlessLine
    from ..chains.hitting import MissBounds
    from ..files.chain_files import ChainFile

T = TypeVar("T")

_ABOUT = """\
Report on a line of boxes in which each box follows the box before it by the
same law: which states lead to which, how fast the first state is forgotten, how
many boxes it takes to see the top reward, and, if boxes have a cost, what to do
on a line that never ends.

\b
  index   Open the next box while the best reward so far is below the index.
          A state ends the search if its index is not above its own reward.

The number of boxes that suffice for the top reward is printed four times: as
the paper prints it, with its sign corrected, by a bound that holds (blocks as
long as the mixing time), and exactly. Beside each number stands the true
probability that this number of boxes misses the top reward."""

_FILE = """\
\b
FILE is JSON:
  {"format": "weitzman-chain/1",
   "law": [[0.99, 0.01], [0.01, 0.99]],  row s: what follows state s
   "rewards": [0, 1],                    null: a state without a reward
   "states": ["poor", "rich"],           names; numbers if left out
   "cost": 0.001,                        or one for each state before the box
   "start": "poor",                      the state before the first box, or
                                         the probabilities of the first box
   "outside": 0}                         what can be taken without opening

law and rewards are required. The endless line needs cost, and its value needs
start too.

--json prints one object with the same contents. A null stands for a number that
does not exist, and notes says why."""


@command(_ABOUT, short="One transition matrix for a whole line of boxes.", epilog=_FILE)
@click.argument("file", metavar="FILE", type=PATH, help="A chain: .json; - is standard input.")
@click.option(
    "--delta", type=NUMBER, default=1e-3, metavar="P",
    help="Allowed probability of missing the top reward (default 0.001).",
)  # fmt: skip
@json_option
@limit_option("Rows of the table")
def chain(options: Options) -> None:
    """Carry out the command."""
    from ..files.chain_files import read_chain

    with given_file(options.file, ".json") as path:
        given = read_chain(path)
    report = _Report(given, options.delta)
    print(_as_json(report) if options.json else "\n".join(_text(report, options.limit)))


class _Report:
    """All numbers; None where a number does not exist, with the reason in the notes."""

    def __init__(self, given: ChainFile, delta: float) -> None:
        import numpy as np

        from ..chains.checks import as_share
        from ..chains.endless import solve_line
        from ..chains.hitting import exact_depth, miss_bounds

        as_share(delta, "delta", 1e-300)
        self.given, self.notes = given, list[str]()
        c = given.chain
        self.stationary = self._try("no stationary distribution", c.stationary)
        self.mixing_time = self._try("no mixing time", c.mixing_time)
        self.rate = self._try("no rate", c.rate)
        self.miss: MissBounds | None = self._try("no bounds", lambda: miss_bounds(c, delta))
        self.delta = delta
        self.exact = (
            self._try("no number of boxes", lambda: exact_depth(c, delta))
            if self.miss is None
            else self.miss.boxes["exact"]
        )
        self.line: EndlessLine | None = None
        self.value: float | None = None
        if given.cost is not None:
            self.line = solve_line(c, given.cost)
        if self.line is not None and given.start is not None:
            if isinstance(given.start, int) or np.ptp(self.line.cost) == 0:
                self.value = self.line.value_at(given.start, given.outside)
            else:
                self.notes.append(
                    "no value: where the cost depends on the state before the box, `start` must be "
                    "the name of that state."
                )

    def _try(self, what: str, compute: Callable[[], T]) -> T | None:
        from ..errors import InvalidArgument, TooLarge

        try:
            return compute()
        except (InvalidArgument, TooLarge) as error:
            note = f"{what}: {error}"
            if not any(note.partition(": ")[2] in known for known in self.notes):
                self.notes.append(note)
            return None


def _text(report: _Report, limit: int) -> Iterator[str]:
    from .._common.text import columns

    yield from columns(list(_facts(report)))
    yield from report.notes
    if report.miss is not None:
        yield f"\nboxes to miss the top reward with probability {report.delta:g} at most:"
        yield from columns(list(_bounds(report.miss)), right=1)
    yield ""
    head, *rows = _states(report)
    shown = limit or len(rows)
    yield from columns([head, *rows[:shown]], right=1)
    if len(rows) > shown:
        yield f"... and {counted(len(rows) - shown, 'more state')} (--limit 0 shows all)"


def _facts(report: _Report) -> Iterator[tuple[str, str]]:
    c: Chain = report.given.chain
    yield "states", f"{len(c)}"
    if c.irreducible:
        yield "classes", "1: every state leads to every other"
    else:
        closed = sum(k.recurrent for k in c.classes)
        yield "classes", f"{len(c.classes)}, of which {closed} cannot be left"
    yield "period", f"{c.period}" + ("" if c.aperiodic else ": the start is never forgotten")
    if report.mixing_time is not None:
        boxes = counted(report.mixing_time, "box")
        yield "mixing time", f"{boxes} to come within 1/4 of stationary"
    if report.rate is not None:
        factor, base = number(report.rate.C), number(report.rate.alpha)
        yield "distance", f"at most {factor} * {base}^t after t boxes"
    top = c.rewards.max()
    if top > -math.inf:
        names = [report.given.states[s] for s in c.top]
        share = ""
        if report.stationary is not None:
            often = 100 * report.stationary[c.top].sum()
            share = f", {about(often)}% of all boxes in the long run"
        yield "top reward", f"{number(top)} (state {_few(names)}){share}"
    if report.exact is not None:
        boxes, sure = counted(report.exact, "box"), number(1 - report.delta)
        yield "", f"{boxes} will show it with probability {sure} or more"
    if report.line is not None and report.given.start is None:
        yield "value", 'unknown without a "start"'
    elif report.value is not None:
        yield "value", f"{number(report.value)}, of the endless line"


def _few(names: list[str]) -> str:
    from .._common.text import cell

    return ", ".join(map(cell, names[:3])) + (f" and {len(names) - 3} more" if names[3:] else "")


def _bounds(miss: MissBounds) -> Iterator[tuple[str, ...]]:
    yield "bound", "boxes", "true probability", "holds"
    for name, boxes in miss.boxes.items():
        word = "yes" if miss.holds(name) else "no"
        yield name, f"{boxes}", about(miss.misses[name]), word


def _states(report: _Report) -> Iterator[tuple[str, ...]]:
    from .._common.text import cell

    c, line = report.given.chain, report.line
    head = ["state", "reward", "stationary"]
    yield tuple(head if line is None else [*head, "index", "then"])
    for s, name in enumerate(report.given.states):
        reward = "none" if c.rewards[s] == -math.inf else number(c.rewards[s])
        share = "" if report.stationary is None else number(report.stationary[s])
        row = [cell(name), reward, share]
        if line is not None:
            goes_on = line.index[s] > max(c.rewards[s], report.given.outside)
            row += [number(line.index[s]), "go on" if goes_on else "stop"]
        yield tuple(row)


def _as_json(report: _Report) -> str:
    c, line, miss = report.given.chain, report.line, report.miss
    names = report.given.states
    found = {
        "states": list(names),
        "irreducible": c.irreducible,
        "period": c.period,
        "classes": [
            {"states": [names[s] for s in k.states], "recurrent": k.recurrent, "period": k.period}
            for k in c.classes
        ],
        "stationary": None if report.stationary is None else report.stationary.tolist(),
        "mixing_time": report.mixing_time,
        "C": None if report.rate is None else report.rate.C,
        "alpha": None if report.rate is None else report.rate.alpha,
        "top": [names[s] for s in c.top],
        "boxes": report.exact,
        "miss": None if miss is None else _miss_json(miss),
        "index": None if line is None else [_number(x) for x in line.index.tolist()],
        "value": report.value,
        "notes": report.notes,
    }
    return json.dumps(found)


def _miss_json(miss: MissBounds) -> dict[str, Any]:
    bounds = {
        name: {"boxes": boxes, "miss": miss.misses[name], "holds": miss.holds(name)}
        for name, boxes in miss.boxes.items()
    }
    return {"delta": miss.delta, "mass": miss.mass, "block": miss.block, "bounds": bounds}


def _number(x: float) -> float | None:
    return x if math.isfinite(x) else None
