"""Take the screenshots of report and explorer (needs playwright, Pillow and Chromium).

python docs/images/screenshots.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import weitzman
from weitzman.show.explore import Server
from weitzman.show.explore.workbench import Workbench

HERE = Path(__file__).parent
LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
SITES = {"North ridge": (0.3, 1.0), "Harbor": (0.2, 0.6), "Old quarry": (0.45, 2.0)}


def sites() -> weitzman.Forest:
    """Three sites, each to be surveyed, tested and drilled, and a license that can be bought."""
    boxes = weitzman.Builder()
    for i, (site, (good, cost)) in enumerate(SITES.items()):
        boxes.add(
            f"{site}: survey", cost=cost, outcomes={"good": good, "bad": 1 - good},
            rewards={"good": None, "bad": None},
        )  # fmt: skip
        boxes.add(
            f"{site}: test well", parent=f"{site}: survey", cost=3,
            outcomes={"good": {0: 0.3, 15: 0.4, 30: 0.3}, "bad": {0: 0.85, 15: 0.12, 30: 0.03}},
        )  # fmt: skip
        boxes.add(
            f"{site}: full rig", parent=f"{site}: test well", cost=9 + i,
            outcomes={0: {0: 0.9, 60: 0.1}, 15: {20: 0.5, 60: 0.5}, 30: {40: 0.4, 90: 0.6}},
        )  # fmt: skip
    boxes.add("Buy a license", cost=0.5, outcomes={8: 0.5, 16: 0.5})
    return boxes.build()


def open_page(browser: Any, url: str, viewport: dict[str, int], scheme: str) -> Any:
    """A page that is ready."""
    page = browser.new_page(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    page.goto(url)
    while not page.evaluate("window.__state && window.__state.current !== false"):
        page.wait_for_timeout(50)
    return page


def explorer(browser: Any, url: str) -> None:
    """On a laptop in the middle of a walk, with a wrong number, and on a phone."""
    page = open_page(browser, url, LAPTOP, "light")
    page.click(".row >> nth=1")
    page.wait_for_selector("#what-if .graph")
    page.click(".answer >> nth=0")
    page.click(".answer >> nth=1")
    page.mouse.move(0, 790)
    page.wait_for_timeout(300)
    page.screenshot(path=HERE / "explore-laptop.png")
    label = "Chance of state 3 after North ridge: survey shows good"
    page.get_by_label(label, exact=True).fill("0.2")
    page.wait_for_timeout(300)
    page.screenshot(path=HERE / "explore-check.png", clip={"x": 0, "y": 0, **LAPTOP, "height": 460})
    page = open_page(browser, url, PHONE, "dark")
    page.screenshot(path=HERE / "explore-phone.png")


def report(browser: Any, url: str) -> None:
    """The top of the report, what if, and on a phone."""
    page = open_page(browser, url, LAPTOP, "light")
    page.screenshot(path=HERE / "report-laptop.png")
    page.locator("#whatif").screenshot(path=HERE / "report-what-if.png")
    page = open_page(browser, url, PHONE, "dark")
    page.screenshot(path=HERE / "report-phone.png")


def main() -> None:
    """Take them all."""
    program = os.environ.get("WEITZMAN_BROWSER") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        weitzman.save(sites(), f"{folder}/sites.json")
        weitzman.write_report(sites(), f"{folder}/report.html", title="Three sites")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        report(browser, f"file://{folder}/report.html")
        server = Server(Workbench(f"{folder}/sites.json"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        explorer(browser, server.address)
        browser.close()
        server.shutdown()
    for path in [*HERE.glob("explore-*.png"), *HERE.glob("report-*.png")]:
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    main()
