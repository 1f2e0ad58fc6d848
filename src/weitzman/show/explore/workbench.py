"""The questions of the page and their answers, and the one file that the explorer may write."""

from __future__ import annotations

import json
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ..._common.arrays import FloatArray
from ..._common.disk import one_at_a_time
from ...engine.evaluation import evaluate
from ...engine.solution import Solution
from ...engine.solver import solve
from ...engine.what_if import break_even
from ...errors import InvalidArgument, InvalidFile, WeitzmanError
from ...files import json_format
from ...files.documents import parse
from ...files.instances import read_table, save
from ...files.ranges import Range, Ranges, number_of, with_numbers
from ...files.tables import TableReading
from ...forest.model import Forest
from ...policy.frontier import Id
from ...policy.payoff_laws import state_called
from ...policy.simulation import payoff_law
from ...policy.walk import Walk
from ...questions.sweeps import tolerances
from ..page import finite, forms
from ..report import render
from ..report.findings import answers, content, profiles_of, stated, too_large
from ..report.sections import profiles

TABLES = (".csv", ".tsv", ".xlsx")
SAVED = (".json", ".json.gz", ".wz", *TABLES)
READ = (*SAVED, ".xlsm", ".ods")

_LONGEST = 200  # letters of a name: file systems take 255 bytes


class OwnFile:
    """One file in one folder: the folder of the file that was named at the start.

    A file that somebody else wrote is replaced only if the user says so. So is a table that the
    explorer has read but not written: a table may hold titles, formulas and other sheets.

    Parameters
    ----------
    path : str, optional
        The file. Without a path, the folder is the current one.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.folder = os.path.dirname(os.path.abspath(path or "here"))
        self._stamps: dict[str, str | None] = {}
        self._written: set[str] = set()

    @property
    def name(self) -> str | None:
        """The name of the file, without its folder."""
        return None if self.path is None else os.path.basename(self.path)

    def seen(self) -> None:
        """Remember the file as it is now, just before it is read."""
        if self.path is not None:
            self._stamps[self.path] = _stamp(self.path)

    @property
    def version(self) -> str | None:
        """The file as it was seen or written last; a page returns this when it saves."""
        return None if self.path is None else self._stamps.get(self.path)

    def save(
        self, forest: Forest, ranges: Sequence[Range] = (), name: object = None, *,
        own: bool = True, anyway: bool = False, version: object = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Write a forest; ``taken`` says that it was not written because another file is there.

        ``own`` says that the boxes come from that file, so that the user means to replace it;
        ``anyway``, that the user wants to replace what is there. ``version`` is what the page has
        read: another tab may have saved since.
        """
        path = self._target(name)
        if path is None:
            raise InvalidFile("no file was named. Save under a name, or download instead.")
        with one_at_a_time(path):  # another explorer may be saving the same file
            now, file = _stamp(path), os.path.basename(path)
            mine = own and now == self._stamps.get(path) and version in (None, now)
            more = path.lower().endswith(TABLES) and path not in self._written  # than boxes
            if now is not None and not (mine and not more) and not anyway:
                strange = path in self._stamps and self._stamps[path] != now
                if strange or version not in (None, now):
                    who = "by another program" if strange else "in another tab"
                    why = f"{file} was changed {who} since it was read. Nothing was saved."
                elif path in self._stamps and more:
                    why = f"{file} may hold more than its boxes: titles, formulas, other sheets. "
                    why += "Only the boxes would be saved."
                else:
                    why = f"{file} already exists, with other boxes. Nothing was saved."
                message = f"{why} Replace the file, or save under another name."
                return {"taken": True, "file": file, "message": message}
            save(forest, path, ranges)
            self._stamps[path] = _stamp(path)
            self._written.add(path)
            self.path = path
            return {"file": file, "version": self.version}

    def _target(self, name: object) -> str | None:
        """Where to write: a plain name in the folder, never a way out of it."""
        if name is None or name == self.name:
            return self.path
        if not isinstance(name, str) or not name.lower().endswith(SAVED):
            known = f"{', '.join(SAVED[:-1])} or {SAVED[-1]}"
            raise InvalidFile(f"a file name must end in {known}, but it is {name!r}.")
        strange = any(ord(c) < 32 or c in '/\\:<>"|?*' for c in name)
        if strange or name.startswith((".", " ")) or len(name) > _LONGEST:
            raise InvalidFile(
                f"a file name must be plain, without a folder, but it is {name!r}. The folder "
                f"is {self.folder}."
            )
        path = os.path.join(self.folder, name)
        if os.path.islink(path) or os.path.isdir(path):
            raise InvalidFile(f"{name} is a link or a folder. Choose another name.")
        return path


def _stamp(path: str) -> str | None:
    """A stamp that changes when a file is written; None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}"


MOST = 5000  # boxes that a page can hold and stay easy to use


def document(forest: Forest, ranges: Sequence[Range] = ()) -> dict[str, Any]:
    """A document of the format ``weitzman/1``, without kinds and with names for all boxes.

    Its ranges stand for the numbers themselves: a distribution about another number is not kept.
    """
    if len(forest) > MOST:
        raise InvalidArgument(
            f"the explorer shows at most {MOST} boxes, but there are {len(forest)}. weitzman "
            f"report and weitzman solve have no such limit. Boxes that are alike can be one box "
            f"with a count."
        )
    kept = [
        r if r.distribution is None or math.isclose(float(r.distribution.mean()), r.base)
        else r._replace(distribution=None, written="") for r in ranges
    ]  # fmt: skip
    text: dict[str, Any] = json.loads("".join(json_format.pieces(forest, kept)))
    kinds = text.pop("kinds", {})
    for v, box in enumerate(text["boxes"]):
        kind = kinds.get(box.pop("kind", None), {})
        for key, value in kind.items():
            box.setdefault(key, value)
        box["name"] = forest.name(v)
        if "parent" in box:
            box["parent"] = forest.name(int(forest.parent[v]))
        if box.get("states", ...) is None:
            del box["states"]
    return text


forest = json_format.forest  # that the page describes; the same messages as for a file


def described(request: Any) -> tuple[Forest, Ranges]:
    """The problem of a request, and its numbers that are not known for sure."""
    text = _field(request, "document")
    found = forest(text)
    return found, json_format.ranges(text, found)


_KEPT = 16  # solutions that may be asked about
_EPISODES = 2000  # of a risk profile that is not exact
Answer = dict[str, Any]


class Workbench:
    """The file being edited, and the solutions of what the page sent last.

    Parameters
    ----------
    path : str, optional
        The file that is read now and written by ``save``. It may not exist yet.
    read : function, optional
        How the problem is read, if not by :func:`read_table` from ``path``.
    words : tuple of str
        What a box is called, and what is done with it.
    """

    def __init__(
        self, path: str | None = None, *, read: Callable[[], TableReading] | None = None,
        words: tuple[str, ...] = ("box", "open"),
    ) -> None:  # fmt: skip
        self.own, self._read_own, self.words = OwnFile(path), read, words
        self._solved: dict[int, Solution] = {}
        self._lock, self._numbers = threading.Lock(), count(1)
        self._questions: dict[str, Callable[[Any], Answer]] = {
            "solve": self._solve, "expect": self._expect, "save": self._save,
            "example": self._example, "curve": self._curve, "report": self._report,
            "answers": self._answers, "profile": self._profile,
        }  # fmt: skip
        self._load()  # faults of the file are reported now

    def start(self) -> Answer:
        """What the page begins with: the file as it is now."""
        found = message = None
        try:
            found = self._load()
        except WeitzmanError as error:
            message = str(error)
        return {
            "file": self.own.name, "folder": self.own.folder, "document": found,
            "isNew": found is None, "message": message, "version": self.own.version,
            "words": forms(*self.words),
        }  # fmt: skip

    def _load(self) -> Answer | None:
        path = self.own.path
        read = self._read_own or (None if path is None else partial(read_table, path))
        if read is None or (path is not None and not os.path.lexists(path)):
            return None
        self.own.seen()
        return document(*read()[:2])

    def answer(self, what: str, request: bytes, name: str = "") -> Answer:
        """The answer to a question; ``ok`` is False if there is none, and ``message`` says why."""
        try:
            own = what == "read"
            found = self._read(request, name) if own else self._questions[what](parse(request))
            return {"ok": True, **finite(found)}
        except WeitzmanError as error:
            return {"ok": False, "message": str(error)}

    def knows(self, what: str) -> bool:
        """Whether the page can ask this."""
        return what == "read" or what in self._questions

    # -- questions -----------------------------------------------------------------------------

    def _solve(self, request: Any) -> Answer:
        start = time.perf_counter()
        problem = forest(_field(request, "document"))
        solution = solve(problem)
        e, f = evaluate(solution), solution.forest
        pools = {"factors": f.factors, "durations": f.durations}
        with self._lock:
            number = next(self._numbers)
            self._solved[number] = solution
            self._solved.pop(number - _KEPT, None)
        return {
            "id": number, "value": solution.value, "gap": solution.gap,
            "status": solution.status.value, "first_box": solution.first_box,
            "index": [solution.indices(v).tolist() for v in range(len(f))],
            "opened": e.opened.tolist(), "chosen": e.wins.tolist(), "openings": e.openings,
            "spend": e.spend, "reward": e.reward, "outside": e.outside, "time": e.time,
            "amounts": f.amounts._asdict(), "risk": f.risk_tolerance, "prizes": int(f.prizes),
            **{
                name: None if pool is None else [pool[i].tolist() for i in f.cost.tolist()]
                for name, pool in pools.items()
            },
            "milliseconds": 1000 * (time.perf_counter() - start),
        }  # fmt: skip

    def _kept(self, request: Any) -> Solution:
        number = _field(request, "id")
        with self._lock:
            solution = self._solved.get(number) if isinstance(number, int) else None
        if solution is None:
            raise InvalidFile("that solution is no longer kept. Solve again.")
        return solution

    def _profile(self, request: Any) -> Answer:
        solution = self._kept(request)
        if (size := too_large(solution.forest)) is not None:
            raise InvalidFile(f"The risk profile would take too long with {size}.")
        law, f = payoff_law(solution, episodes=_EPISODES), solution.forest
        found = profiles(profiles_of(solution, law), f.amounts)
        nothing = law.outside if np.isfinite(law.outside) else None
        return {"laws": found, "nothing": nothing, "worse": law.worse, "how": law.how}

    def _expect(self, request: Any) -> Answer:
        """The value of continuing after steps: [box, copy, state], or [box, copy] if taken."""
        solution = self._kept(request)
        walk = Walk(solution.policy())
        try:
            for v, copy, *shown in _field(request, "steps"):
                box: Id = (solution.forest.box(v), tuple(copy))
                if shown:
                    walk.show(box, *shown)
                elif walk.hands is not None and (won := walk.answers[box].reward) is not None:
                    walk.hands.take(box, won)
                else:
                    raise LookupError
        except (TypeError, ValueError, LookupError):
            raise InvalidFile("each of the steps must be [box, copy, state].") from None
        return {"value": walk.worth()}

    def _save(self, request: Any) -> Answer:
        problem, name = described(request), request.get("name")
        own, anyway = name is None or request.get("own") is True, request.get("anyway") is True
        return self.own.save(*problem, name, own=own, anyway=anyway, version=request.get("version"))

    def _example(self, request: Any) -> Answer:
        text = files("weitzman.files").joinpath("demo.json").read_bytes()
        return {"document": document(forest(parse(text)))}

    def _curve(self, request: Any) -> Answer:
        wanted = [_field(request, key) for key in ("box", "what", "row", "state")]
        return curve(_field(request, "document"), *wanted)

    def _answers(self, request: Any) -> Answer:
        problem, ranges = described(request)
        solution = solve(problem)
        found = answers(solution, evaluate(solution))
        if ranges and found["swings"] is not None:
            stated(solution, ranges, found["swings"])
        return found

    def _report(self, request: Any) -> Answer:
        problem, ranges = described(request)
        found, title = content(problem, ranges=ranges), request.get("title")
        return {"html": render(found, title if isinstance(title, str) else None, self.words)}

    def _read(self, content: bytes, name: str) -> Answer:
        suffix = next((s for s in READ if name.lower().endswith(s)), None)
        if suffix is None:
            known = f"{', '.join(READ[:-1])} or {READ[-1]}"
            raise InvalidFile(f"{name}: a file of boxes must end in {known}.")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"instance{suffix}")
            Path(path).write_bytes(content)
            try:
                return {"document": document(*read_table(path)[:2])}
            except WeitzmanError as error:  # the file of that name is the user's
                text = str(error).replace(path, name)
                start = f"Say which: weitzman explore {name} --sheet"  # the page has no options
                raise InvalidFile(text.replace("Say which: --sheet", start)) from None


def _field(request: Any, key: str) -> Any:
    if not isinstance(request, dict) or key not in request:
        raise InvalidFile(f"the request must have a {key!r}.")
    return request[key]


# -- what if one number were different ---------------------------------------------------------

_STEPS = 32  # points of the curve in a small problem
_LARGE, _LARGE_STEPS = 600, 8  # larger problems get fewer points
_WIDER = 20.0  # the curve goes up and down by this factor of the risk tolerance
_ROOM = 1.25  # the curve ends at this many times the highest cost that pays

TERMS = ("rate", "risk_tolerance")
_PRICED = ("cost", "duration", "factor")
WHAT = (*_PRICED, "chance", "reward", *TERMS)


def curve(document: Any, box: Any, what: Any, row: Any, state: Any) -> dict[str, Any]:
    """The value against one number of the document (one of ``WHAT``), by exact solves.

    ``row`` and ``state`` are the state of the parent (0 for a root) and that of the box itself.
    ``now`` is the place of the current number in ``x``.
    """
    f = forest(document)
    whole = all(type(i) is int and i >= 0 for i in (box, row, state))
    if not whole or what not in WHAT or box >= len(f):
        raise InvalidFile(
            "what to change must be a cost, a chance, a reward, a duration or a factor of a box, "
            "the rate, or the risk tolerance."
        )
    rows, states = f.laws[int(f.law[box])].shape
    if row >= rows or state >= states:
        raise InvalidFile(f"box {f.name(box)!r} has no such state.")
    change, now = _number(f, document["boxes"][box], (box, what, row, state))
    grid, at = _grid(f, (box, what, row, state), now)
    x = [float(f"{number:.12g}") for number in grid.tolist()]  # 0.35, not 0.35000000000000003
    x[at] = now
    solved = [solve(f if i == at else change(tried)) for i, tried in enumerate(x)]
    value, first = [s.value for s in solved], [s.first_box for s in solved]
    return {"x": x, "value": value, "first": first, "now": at}


def _number(
    f: Forest, entry: dict[str, Any], place: tuple[Any, ...]
) -> tuple[Callable[[float], Forest], float]:
    """What changes a number of the forest, and the number as it is."""
    box, what, row, state = place
    if what in TERMS:
        now = getattr(f, what)
        if now is None:
            raise InvalidFile(f"there is no {what.replace('_', ' ')} to change.")
        return lambda x: f.changed(**{what: x}), float(now)
    up, own = int(f.parent[box]), f.states(box)[state]
    given: str | None = None if up < 0 else f.states(up)[row]
    if what in _PRICED:  # one price, or one for each state of the parent, each perhaps a list
        prices = entry.get(what)
        rows = prices if up >= 0 and isinstance(prices, list) else [prices]
        own = own if isinstance(rows[0], list) else None
        given = given if isinstance(prices, list) else None
    field = {"chance": "probability"}.get(what, what)
    asked = Range(f.name(box), field, 0, 0, 0, None if what == "reward" else given, own)
    try:
        now = number_of(f, *asked[:2], *asked[5:7])
    except InvalidArgument:
        raise InvalidFile(f"there is no {what} to change in this state.") from None
    return lambda x: with_numbers(f, [(asked, x)]), now


def _grid(f: Forest, place: tuple[Any, ...], now: float) -> tuple[FloatArray, int]:
    """Numbers evenly spaced, the current number among them."""
    box, what, row, _ = place
    steps = _STEPS if len(f) <= _LARGE else _LARGE_STEPS
    if what == "risk_tolerance":
        least = min(max(now / _WIDER, float(tolerances(f, 2)[-1])), now)
        down, up = (np.geomspace(now, end, steps // 2 + 1) for end in (least, now * _WIDER))
        return np.append(down[::-1], up[1:]), steps // 2
    if what == "chance" and f.laws[int(f.law[box])].shape[1] == 1:
        raise InvalidFile("a box with one state has no chance to change.")
    if what in ("factor", "chance"):  # the ends stay: the current number replaces the nearest one
        x = np.linspace(now / (steps + 1) if what == "factor" else 0.0, 1.0, steps + 1)
        at = int(np.argmin(np.abs(x - now)))
        at = min(max(at, int(x[0] < now)), steps - int(now < 1))
        x[at] = now
        return x, at
    low, high = 0.0, 2 * now or (0.2 if what == "rate" else 1.0)
    if what == "cost":
        parent, worth = int(f.parent[box]), 0.0
        with suppress(WeitzmanError):  # above this cost opening never pays
            pays = break_even(solve(f), box, None if parent < 0 else state_called(f, parent, row))
            worth = pays.opened_below if np.isfinite(pays.opened_below) else 0.0
        high = max(_ROOM * worth, 2 * now) or 1.0
    elif what == "reward":
        rewards = f.rewards.data[np.isfinite(f.rewards.data)]
        span = float(np.ptp(rewards)) or abs(now) or 1.0
        low, high = now - span / 2, now + span / 2
    step = (high - low) / steps
    before = max(round((now - low) / step), int(now > low))
    step = (now - low) / before if before else step
    return np.asarray(low + step * np.arange(steps + 1), np.float64), before
