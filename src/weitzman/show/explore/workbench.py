"""The questions of the page and their answers, and the one file that the explorer may write."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from ..._common.disk import one_at_a_time
from ...engine.evaluation import evaluate
from ...engine.solution import Solution
from ...engine.solver import solve
from ...errors import InvalidArgument, InvalidFile, WeitzmanError
from ...files import json_format as _json
from ...files.documents import parse
from ...files.instances import load, save
from ...forest.model import Forest
from ...forest.pools import Pool
from ...policy.frontier import Id
from ...policy.walk import Walk
from ..page import finite
from ..page.data import answers
from ..report import render
from ..report.findings import content
from .what_if_curve import curve

TABLES = (".csv", ".tsv", ".xlsx")
SAVED = (".json", ".json.gz", ".wz", *TABLES)
"""What the explorer can save as."""

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
        self,
        forest: Forest,
        name: object = None,
        *,
        own: bool = True,
        anyway: bool = False,
        version: object = None,
    ) -> dict[str, Any]:
        """Write a forest; ``taken`` says that it was not written because another file is there.

        Parameters
        ----------
        forest : Forest
        name : str, optional
            By default, the current file.
        own : bool
            Whether the boxes come from that file, so that the user means to replace it.
        anyway : bool
            Whether the user wants to replace what is there.
        version : str, optional
            The version that the page has read: another tab may have saved since.
        """
        path = self._target(name)
        if path is None:
            raise InvalidFile("no file was named. Save under a name, or download instead.")
        with one_at_a_time(path):  # another explorer may be saving the same file
            now, file = _stamp(path), os.path.basename(path)
            mine = own and now == self._stamps.get(path) and version in (None, now)
            if now is not None and not (mine and not self._holds_more(path)) and not anyway:
                return {"taken": True, "file": file, "message": self._taken(path, version)}
            save(forest, path)
            self._stamps[path] = _stamp(path)
            self._written.add(path)
            self.path = path
            return {"file": file, "version": self.version}

    def _holds_more(self, path: str) -> bool:
        """Whether a file may hold more than boxes."""
        return path.lower().endswith(TABLES) and path not in self._written

    def _taken(self, path: str, version: object) -> str:
        strange = path in self._stamps and self._stamps[path] != _stamp(path)
        if strange or version not in (None, _stamp(path)):
            who = "by another program" if strange else "in another tab"
            return (
                f"{os.path.basename(path)} was changed {who} since it was read. Nothing was saved. "
                f"Replace the file, or save under another name."
            )
        if path in self._stamps and self._holds_more(path):
            return (
                f"{os.path.basename(path)} may hold more than its boxes: titles, formulas, other "
                f"sheets. Only the boxes would be saved. Replace the file, or save under another "
                f"name."
            )
        return (
            f"{os.path.basename(path)} already exists, with other boxes. Nothing was saved. "
            f"Replace the file, or save under another name."
        )

    def _target(self, name: object) -> str | None:
        """Where to write: a plain name in the folder, never a way out of it."""
        if name is None or name == self.name:
            return self.path
        if not isinstance(name, str) or not name.lower().endswith(SAVED):
            raise InvalidFile(
                f"a file name must end in {', '.join(SAVED[:-1])} or {SAVED[-1]}, but it is "
                f"{name!r}."
            )
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


MOST = 5000
"""How many boxes a page can hold and stay easy to use."""


def document(forest: Forest) -> dict[str, Any]:
    """A document of the format ``weitzman/1``, without kinds and with names for all boxes."""
    if len(forest) > MOST:
        raise InvalidArgument(
            f"the explorer shows at most {MOST} boxes, but there are {len(forest)}. weitzman "
            f"report and weitzman solve have no such limit. Boxes that are alike can be one box "
            f"with a count."
        )
    text: dict[str, Any] = json.loads("".join(_json.pieces(forest)))
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


def forest(document: Any) -> Forest:
    """The forest that the page describes; the same messages as for a file."""
    return _json.forest(document)


_KEPT = 16  # solutions that may be asked about
_READ = (".json", ".json.gz", ".wz", ".csv", ".tsv", ".xlsx")

Answer = dict[str, Any]


class Workbench:
    """The file being edited, and the solutions of what the page sent last.

    Parameters
    ----------
    path : str, optional
        The file that is read now and written by ``save``. It may not exist yet.
    read : function, optional
        How the problem is read, if not by :func:`load` from ``path``.
    """

    def __init__(
        self, path: str | None = None, *, read: Callable[[], Forest] | None = None
    ) -> None:
        self.own, self._read_own = OwnFile(path), read
        self._solved: OrderedDict[int, Solution] = OrderedDict()
        self._lock = threading.Lock()
        self._number = 0
        self._questions: dict[str, Callable[[Any], Answer]] = {
            "solve": self._solve, "expect": self._expect, "save": self._save,
            "example": self._example, "curve": self._curve, "report": self._report,
            "answers": self._answers,
        }  # fmt: skip
        self._load()  # faults of the file are reported now

    def start(self) -> Answer:
        """What the page begins with: the file as it is now."""
        try:
            found, message = self._load(), None
        except WeitzmanError as error:
            found, message = None, str(error)
        return {
            "file": self.own.name, "folder": self.own.folder, "document": found,
            "isNew": found is None, "message": message, "version": self.own.version,
        }  # fmt: skip

    def _load(self) -> Answer | None:
        path = self.own.path
        if path is not None and os.path.lexists(path):
            self.own.seen()
            return document(load(path) if self._read_own is None else self._read_own())
        if path is None and self._read_own is not None:
            return document(self._read_own())
        return None

    def answer(self, what: str, request: bytes, name: str = "") -> Answer:
        """The answer to a question; ``ok`` is False if there is none, and ``message`` says why."""
        try:
            if what == "read":
                return {"ok": True, **finite(self._read(request, name))}
            return {"ok": True, **finite(self._questions[what](parse(request)))}
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
        with self._lock:
            self._number += 1
            number = self._number
            self._solved[number] = solution
            while len(self._solved) > _KEPT:
                self._solved.popitem(last=False)
        return {
            "id": number,
            "value": solution.value,
            "gap": solution.gap,
            "status": solution.status.value,
            "first_box": solution.first_box,
            "index": [solution.indices(v).tolist() for v in range(len(f))],
            "opened": e.opened.tolist(),
            "chosen": e.wins.tolist(),
            "openings": e.openings,
            "spend": e.spend,
            "reward": e.reward,
            "outside": e.outside,
            "time": e.time,
            "amounts": f.amounts._asdict(),
            "risk": f.risk_tolerance,
            "prizes": int(f.prizes),
            "factors": _by_box(f, f.factors),
            "durations": _by_box(f, f.durations),
            "milliseconds": 1000 * (time.perf_counter() - start),
        }

    def _expect(self, request: Any) -> Answer:
        """The value of going on after steps: [box, copy, state], or [box, copy] if taken."""
        number = _field(request, "id")
        with self._lock:
            solution = self._solved.get(number) if isinstance(number, int) else None
        if solution is None:
            raise InvalidFile("that solution is no longer kept. Solve again.")
        walk = Walk(solution.policy())
        try:
            for v, copy, *shown in _field(request, "steps"):
                _step(walk, (solution.forest.box(v), tuple(copy)), shown)
        except (TypeError, ValueError, LookupError):
            raise InvalidFile("each of the steps must be [box, copy, state].") from None
        return {"value": walk.worth()}

    def _save(self, request: Any) -> Answer:
        name = request.get("name") if isinstance(request, dict) else None
        problem = forest(_field(request, "document"))
        own = name is None or request.get("own") is True
        return self.own.save(
            problem, name, own=own, anyway=request.get("anyway") is True,
            version=request.get("version"),
        )  # fmt: skip

    def _example(self, request: Any) -> Answer:
        text = files("weitzman.files").joinpath("demo.json").read_bytes()
        return {"document": document(forest(parse(text)))}

    def _curve(self, request: Any) -> Answer:
        wanted = [_field(request, key) for key in ("box", "what", "row", "state")]
        return curve(_field(request, "document"), *wanted)

    def _answers(self, request: Any) -> Answer:
        """Which numbers matter, what knowing is worth, budgets and risk."""
        solution = solve(forest(_field(request, "document")))
        return answers(solution, evaluate(solution))

    def _report(self, request: Any) -> Answer:
        """A report on the document, as one HTML page."""
        title = request.get("title") if isinstance(request, dict) else None
        found = content(forest(_field(request, "document")))
        return {"html": render(found, title if isinstance(title, str) else None)}

    def _read(self, content: bytes, name: str) -> Answer:
        suffix = next((s for s in _READ if name.lower().endswith(s)), None)
        if suffix is None:
            known = f"{', '.join(_READ[:-1])} or {_READ[-1]}"
            raise InvalidFile(f"{name}: a file of boxes must end in {known}.")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"instance{suffix}")
            with open(path, "wb") as file:
                file.write(content)
            try:
                return {"document": document(load(path))}
            except WeitzmanError as error:  # the file of that name is the user's
                text = str(error).replace(path, name)
                start = f"Say which: weitzman explore {name} --sheet"  # the page has no options
                raise InvalidFile(text.replace("Say which: --sheet", start)) from None


def _by_box(f: Forest, pool: Pool | None) -> list[Any] | None:
    """The matrix of each box beside its costs, where there are any."""
    return None if pool is None else [pool[i].tolist() for i in f.cost.tolist()]


def _step(walk: Walk, box: Id, shown: list[Any]) -> None:
    """Open a box that shows a state; or, if none is given, take its reward for good."""
    if shown:
        (state,) = shown
        walk.show(box, state)
        return
    reward = walk.answers[box].reward
    if walk.hands is None or reward is None:
        raise ValueError
    walk.hands.take(box, reward)


def _field(request: Any, key: str) -> Any:
    if not isinstance(request, dict) or key not in request:
        raise InvalidFile(f"the request must have a {key!r}.")
    return request[key]
