"""Draw the pictures of docs/gallery.md: run its blocks, save ``ax`` where an image follows."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "gallery.md"
PARTS = re.compile(r"^```python\n(.*?)^```$|^!\[.*?\]\(images/gallery/(\w+)\.png\)", re.M | re.S)


def main() -> None:
    """Blocks and images in the order of the page."""
    names: dict[str, object] = {}
    for code, image in PARTS.findall(PAGE.read_text("utf-8")):
        if code and ">>>" not in code:
            exec(compile(code, str(PAGE), "exec"), names)
        if image:
            figure = names["ax"].figure  # type: ignore[attr-defined]
            figure.savefig(HERE / f"{image}.png", dpi=110, metadata={"Software": None})
            plt.close(figure)


if __name__ == "__main__":
    main()
