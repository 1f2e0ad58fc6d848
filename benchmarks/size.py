"""How large the package is: ``python -m benchmarks.size``."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "weitzman"
FIELDS = ("duration", "quotas", "risk_tolerance", "stated_error")


def main() -> None:
    """Print lines and modules by package, helpers used once, and files that mention a field."""
    files = {path: path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for path, text in files.items():
        parts = path.relative_to(SOURCE).parts
        package = parts[0] if len(parts) > 1 else "(top)"
        lines[package] += len(text.splitlines())
        modules[package] += 1
    for package, count in lines.most_common():
        print(f"{package:12} {count:7,} lines {modules[package]:4} modules")
    print(f"{'total':12} {lines.total():7,} lines {modules.total():4} modules")

    functions = [
        node.name
        for text in files.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    ]
    words = Counter(word for text in files.values() for word in re.findall(r"\w+", text))
    once = [f for f in functions if f.startswith("_") and not f.startswith("__") and words[f] == 2]
    print(f"private helpers used once: {len(once)} of {len(functions)} functions")
    for field in FIELDS:
        found = sum(re.search(rf"\b{field}\b", text) is not None for text in files.values())
        print(f"files that mention {field}: {found}")


if __name__ == "__main__":
    main()
