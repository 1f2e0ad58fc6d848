"""Pages that are made from the code: the reference of the API and that of the command.

``api.md`` is the map of what is public: each of its sections becomes a page of the reference, with
the docstrings of the names in it. The page of the command is what ``--help`` prints. Pages that
are in no list are put into the tree of ``index.md``, so that a new page needs none.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = "reference"
OTHERS = "{other pages}"  # the line of index.md that stands for them


def sections(text: str) -> dict[str, list[str]]:
    """The headings of the map, and the names in the first column of their tables."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("## "):
            found[line[3:]] = []
        elif line.startswith("| `") and found:
            found[next(reversed(found))] += re.findall(r"`(\w+)`", line.split(" | ")[0])
    return found


def directive(name: str, value: Any) -> str:
    """How autodoc is asked for a public name; of a module, for all that is found only there."""
    if isinstance(value, ModuleType):
        module = value.__name__
        inside = getattr(value, "__all__", [x for x in vars(value) if not x.startswith("_")])
        own = [x for x in inside if _told_here(module, x, getattr(value, x))]
        parts = [_one(f"{module}.{x}", getattr(value, x)) for x in own]
        return "\n".join([f".. automodule:: {module}\n", *parts])
    return _one(f"weitzman.{name}", value)


def _told_here(module: str, name: str, value: Any) -> bool:
    """Whether a name of a module is neither told at the top nor in the package that defines it."""
    home = getattr(value, "__module__", module) or module
    return getattr(_top(), name, None) is not value and home.startswith(module)


def _one(path: str, value: Any) -> str:
    if inspect.isclass(value):
        if issubclass(value, BaseException):
            return f".. autoexception:: {path}\n   :members:\n"
        ours = any(base.__module__.startswith("weitzman") for base in value.__mro__[1:])
        more = "   :inherited-members:\n" if ours else ""
        return f".. autoclass:: {path}\n   :members:\n{more}"
    return f".. autofunction:: {path}\n" if callable(value) else ""


def _top() -> ModuleType:
    import weitzman

    return weitzman


def reference_pages(text: str) -> dict[str, str]:
    """A page for each section of the map that has public names, by file name."""
    pages = {}
    for title, names in sections(text).items():
        public = [n for n in names if n in _top().__all__]
        parts = "\n".join(directive(n, getattr(_top(), n)) for n in public)
        if public:  # numbered, so that they stay in this order
            file = f"{len(pages) + 1:02}-{re.sub(r'[^a-z]+', '-', title.lower())}"
            pages[file] = f"{title}\n{'=' * len(title)}\n\n{parts}"
    return pages


def command_page() -> str:
    """What the command and all its subcommands say with ``--help``."""
    import click

    from weitzman.cli import NAME, program

    top = click.Context(program, info_name=NAME)
    parts = [(NAME, top.get_help())]
    for name, command in program.commands.items():
        inner = click.Context(command, info_name=name, parent=top)
        parts.append((f"{NAME} {name}", inner.get_help()))
    body = "\n".join(f"## {name}\n\n```text\n{text}\n```\n" for name, text in parts)
    return (
        "# The command\n\nWhat `weitzman --help` and `weitzman COMMAND --help` print. "
        f"[Use it from a shell](../how-to/shell.md) shows how.\n\n{body}"
    )


def write_pages(app: Sphinx) -> None:
    """Write what has changed, so that the rest need not be built again."""
    source = Path(app.srcdir)
    folder = source / FOLDER
    folder.mkdir(exist_ok=True)
    pages = {f"{k}.rst": v for k, v in reference_pages((source / "api.md").read_text()).items()}
    pages["command.md"] = command_page()
    for old in folder.iterdir():
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def unlink_files(app: Sphinx, page: str, source: list[str]) -> None:
    """Links to files of the repository that are no pages become their paths."""
    docs = Path(app.srcdir).resolve()

    def replace(link: re.Match[str]) -> str:
        target = (docs / page).parent.joinpath(link[2].partition("#")[0]).resolve()
        if target.is_relative_to(docs):
            return link[0]
        path = str(target.relative_to(docs.parent))
        return f"`{path}`" if link[1] == path else f"{link[1]} (`{path}`)"

    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\((\.\./[^)\s]+)\)", replace, source[0])


def fill_index(app: Sphinx, page: str, source: list[str]) -> None:
    """Name the pages that the tree does not have yet."""
    if page == "index" and OTHERS in source[0]:
        listed = set(re.findall(r"^([\w/-]+)$", source[0], flags=re.MULTILINE))
        docs = Path(app.srcdir)
        found = [*docs.glob("*.md"), *docs.glob("how-to/*.md"), *docs.glob("tutorials/*.md")]
        pages = sorted(p.relative_to(docs).with_suffix("").as_posix() for p in found)
        others = [p for p in pages if p not in listed | {"index"}]
        source[0] = source[0].replace(OTHERS, "\n".join(others))


def join_names(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Several attributes told at once: Sphinx would take the first name for a type."""
    for i, line in enumerate(lines):
        if line.startswith((":ivar ", ":vartype ")):
            field, colon, text = line[1:].partition(":")
            lines[i] = f":{field.replace(', ', ',')}{colon}{text}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", fill_index)
    app.connect("source-read", unlink_files)
    app.connect("autodoc-process-docstring", join_names, priority=600)  # after napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
