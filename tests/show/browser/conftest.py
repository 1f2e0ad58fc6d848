"""A real browser for the tests in this folder, or a notice that nobody can overlook.

Chromium is taken from ``WEITZMAN_BROWSER`` or found on the path; playwright drives it. The
checker of pages, axe-core, is taken from ``WEITZMAN_AXE`` or from ``node_modules``: those here, or
those of npm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from weitzman.show.explore import Server
from weitzman.show.explore.workbench import Workbench

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
PATIENCE = 15.0  # seconds

_missing: list[str] = []
_unchecked: list[str] = []


def _find() -> str | None:
    chosen = os.environ.get("WEITZMAN_BROWSER")
    return chosen or next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One headless browser for all tests."""
    path, why = _find(), ""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        why = "playwright is not installed (pip install 'weitzman[dev]')"
    if not why and path is None:
        why = f"none of {', '.join(NAMES)} is on the path (set WEITZMAN_BROWSER)"
    if why:
        _missing.append(why)
        pytest.skip(why)
    with sync_playwright() as driver:
        try:
            running = driver.chromium.launch(executable_path=path, args=FLAGS)
        except Error as error:
            _missing.append(f"{path} does not start: {str(error).splitlines()[0]}")
            pytest.skip(_missing[-1])
        yield running
        running.close()


def _axe() -> Path | None:
    """The script of axe-core, if it is anywhere."""
    inside = Path("node_modules/axe-core/axe.min.js")
    root = Path(__file__).parents[3]
    places = [Path(os.environ.get("WEITZMAN_AXE", "")), root / inside, Path.cwd() / inside]
    if npm := shutil.which("npm"):
        found = subprocess.run([npm, "root", "-g"], capture_output=True, text=True, check=False)
        places.append(Path(found.stdout.strip()) / "axe-core" / "axe.min.js")
    return next((path for path in places if path.is_file()), None)


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core."""
    path = _axe()
    if path is None:
        _unchecked.append("axe-core is not there (npm install axe-core, or set WEITZMAN_AXE)")
        pytest.skip(_unchecked[0])
    return path.read_text("utf-8")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly that the pages were not tried in a browser."""
    if _missing:
        terminalreporter.section(
            "REPORT AND EXPLORER WERE NOT TRIED IN A BROWSER", sep="!", red=True
        )
        terminalreporter.line(f"All tests in tests/show/browser were skipped: {_missing[0]}.")
    elif _unchecked:
        terminalreporter.section("NO CHECKER LOOKED AT THE PAGES", sep="!", red=True)
        terminalreporter.line(f"Tests of access were skipped: {_unchecked[0]}.")


class Visitor:
    """A page in the browser, and all that it complained about."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.asked: list[str] = []
        page.set_default_timeout(1000 * PATIENCE)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", self._dialog)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _dialog(self, dialog: Any) -> None:
        if dialog.type != "beforeunload":
            self.complaints.append(f"dialog: {dialog.message}")
        dialog.accept()

    def until(self, condition: str, argument: Any = None) -> Any:
        """Wait until an expression is true; the policy of the page forbids playwright's own way."""
        end = time.monotonic() + PATIENCE
        while not (found := self.page.evaluate(condition, argument)):
            assert time.monotonic() < end, f"never came true: {condition}"
            time.sleep(0.01)
        return found

    def solved(self) -> None:
        """Wait until what is shown is what Python says of the boxes as they are now."""
        self.until("window.__state && window.__state.current")

    def text(self, selector: str) -> str:
        """The text of an element, with plain minus signs."""
        return self.page.inner_text(selector).replace("\u2212", "-")


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visitor]]:
    """Open pages; at the end none must have complained."""
    contexts, visitors = [], []

    def open_page(url: str, **options: Any) -> Visitor:
        context = browser.new_context(**{"viewport": {"width": 1366, "height": 820}, **options})
        contexts.append(context)
        visitor = Visitor(context.new_page())
        visitors.append(visitor)
        visitor.page.goto(url)
        return visitor

    yield open_page
    complaints = [line for visitor in visitors for line in visitor.complaints]
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def explore() -> Iterator[Callable[..., str]]:
    """Start explorers; gives the address of each."""
    servers = []

    def start(path: Path | None = None) -> str:
        server = Server(Workbench(None if path is None else str(path)))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        servers.append((server, thread))
        return server.address

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()
