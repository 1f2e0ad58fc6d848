"""The command ``weitzman chain``: what one transition matrix does along a line."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .._common.numbers import about, number

if TYPE_CHECKING:
    from ..chains.chain import Chain
    from ..chains.endless import EndlessLine
    from ..chains.hitting import MissBounds
    from ..files.chain_files import ChainFile

T = TypeVar("T")

_ABOUT = """\
Report on a line of boxes in which each follows the one before by the same law:
which states lead to which, how fast the first one is forgotten, how many boxes
it takes to see the top reward, and, if boxes have a cost, what to do on a line
that never ends.

  index   open the next box while the best reward so far is below it. Where it
          is not above the state's own reward, that state ends the search.

The number of boxes that suffice for the top reward is printed four times: as
the paper prints it, with its sign corrected, by a bound that holds (blocks as
long as the mixing time), and exactly; each with the true probability that so
many boxes miss it."""

_FILE = """\
FILE is JSON:
  {"format": "weitzman-chain/1",
   "law": [[0.99, 0.01], [0.01, 0.99]],   row s: what follows state s
   "rewards": [0, 1],                     null: a state without a reward
   "states": ["poor", "rich"],            names; numbers if left out
   "cost": 0.001,                         or one for each state before the box
   "start": "poor",                       the state before the first box, or
                                          the probabilities of the first box
   "outside": 0}                          what can be had without opening
law and rewards are required; cost asks for the endless line, start for its
value.

--json prints one object with the same; what does not exist is null, and notes
says why."""


def add_chain_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add ``chain`` to the commands of the parser."""
    parser = commands.add_parser("chain", help="report on a chain: one law for a whole line")
    parser.description, parser.epilog = _ABOUT, _FILE
    parser.add_argument("file", metavar="FILE", help="a chain, .json")
    parser.add_argument(
        "--delta", type=float, default=1e-3, metavar="P",
        help="allowed probability of missing the top reward (default 0.001)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument(
        "--limit", type=int, default=40, metavar="ROWS", help="rows of the table (default 40)"
    )


def chain(arguments: argparse.Namespace) -> None:
    """Carry the command out."""
    from ..errors import InvalidArgument
    from ..files.chain_files import read_chain

    given = read_chain(arguments.file)
    try:
        report = _Report(given, arguments.delta)
    except ImportError as error:  # SciPy
        raise InvalidArgument(str(error)) from None
    print(_as_json(report) if arguments.json else "\n".join(_text(report, arguments.limit)))


class _Report:
    """All numbers; None where there is none, for a reason that is noted."""

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
    yield from columns([head, *rows[: max(limit, 0)]], right=1)
    if len(rows) > limit:
        yield f"... and {len(rows) - max(limit, 0)} more states (--limit {len(rows)} shows all)"


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
        yield "mixing time", f"{report.mixing_time} boxes to come within 1/4 of stationary"
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
        sure = f"{report.exact} boxes show it with probability {number(1 - report.delta)} or more"
        yield "", sure
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
