"""What the page asks and what it is answered, apart from how it is sent."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from ...engine.evaluation import evaluate
from ...engine.solution import Solution
from ...engine.solver import solve
from ...errors import InvalidFile, WeitzmanError
from ...files import reading as _text
from ...files.instances import load, save
from ...policy.walk import Walk
from ..page import finite
from .saved_document import document, forest

_KEPT = 16  # solutions that may be asked about
_SUFFIXES = (".json", ".json.gz", ".wz")

Answer = dict[str, Any]


class Workbench:
    """The file that is worked on, and the solutions of what the page has sent last.

    Parameters
    ----------
    path : str, optional
        The file that is read now and written by ``save``. It may not exist yet.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        self._solved: OrderedDict[int, Solution] = OrderedDict()
        self._lock = threading.Lock()
        self._number = 0
        self._load()  # what is wrong with the file is said now

    def start(self) -> Answer:
        """What the page begins with: the file as it is now."""
        name = None if self.path is None else os.path.basename(self.path)
        try:
            found, message = self._load(), None
        except WeitzmanError as error:
            found, message = None, str(error)
        return {
            "file": name, "document": found, "isNew": self._stamp is None, "message": message,
        }  # fmt: skip

    def _load(self) -> Answer | None:
        if self.path is None or not os.path.lexists(self.path):
            return None
        self._stamp = _stamp(self.path)
        return document(load(self.path))

    def answer(self, what: str, request: bytes, name: str = "") -> Answer:
        """The answer to a question; ``ok`` is False if there is none, and ``message`` says why."""
        try:
            if what == "read":
                return {"ok": True, **finite(self._read(request, name))}
            questions: dict[str, Callable[[Any], Answer]] = {
                "solve": self._solve, "expect": self._expect, "save": self._save,
                "example": self._example,
            }  # fmt: skip
            return {"ok": True, **finite(questions[what](_text.parse(request)))}
        except WeitzmanError as error:
            return {"ok": False, "message": str(error)}

    def knows(self, what: str) -> bool:
        """Whether that is a question."""
        return what in ("solve", "expect", "save", "example", "read")

    # -- questions -----------------------------------------------------------------------------

    def _solve(self, request: Any) -> Answer:
        start = time.perf_counter()
        problem = forest(_field(request, "document"))
        problem.must_be_plain("the explorer")
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
            "milliseconds": 1000 * (time.perf_counter() - start),
        }

    def _expect(self, request: Any) -> Answer:
        """What going on is worth after some steps: [box, copy, state] each."""
        number = _field(request, "id")
        with self._lock:
            solution = self._solved.get(number) if isinstance(number, int) else None
        if solution is None:
            raise InvalidFile("that solution is no longer kept. Solve again.")
        walk = Walk(solution.policy())
        try:
            for v, copy, y in _field(request, "steps"):
                walk.show((solution.forest.box(v), tuple(copy)), y)
        except (TypeError, ValueError, LookupError):
            raise InvalidFile("each of the steps must be [box, copy, state].") from None
        return {"value": walk.worth()}

    def _save(self, request: Any) -> Answer:
        if self.path is None:
            raise InvalidFile("no file was named when the explorer was started. Download instead.")
        changed = _stamp(self.path) != self._stamp
        if changed and not request.get("anyway"):
            return {
                "changed": True,
                "message": f"{self.path} was changed by another program since it was read. Save "
                f"again to replace it, or download your version.",
            }
        save(forest(_field(request, "document")), self.path)
        self._stamp = _stamp(self.path)
        return {"file": os.path.basename(self.path)}

    def _example(self, request: Any) -> Answer:
        text = files("weitzman.files").joinpath("demo.json").read_bytes()
        return {"document": document(forest(_text.parse(text)))}

    def _read(self, content: bytes, name: str) -> Answer:
        suffix = next((s for s in _SUFFIXES if name.lower().endswith(s)), None)
        if suffix is None:
            raise InvalidFile(f"{name}: an instance file ends in .json, .json.gz or .wz.")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"instance{suffix}")
            with open(path, "wb") as file:
                file.write(content)
            try:
                return {"document": document(load(path))}
            except WeitzmanError as error:  # the file of that name is the user's
                raise InvalidFile(str(error).replace(path, name)) from None


def _field(request: Any, key: str) -> Any:
    if not isinstance(request, dict) or key not in request:
        raise InvalidFile(f"the request must have a {key!r}.")
    return request[key]


def _stamp(path: str) -> tuple[int, int] | None:
    """When a file was changed last, and its size; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
