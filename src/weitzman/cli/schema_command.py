"""The command ``weitzman schema``."""

from __future__ import annotations

from importlib.resources import files

from .options import Options, command


@command(
    "Print the JSON Schema (draft 2020-12) of the format weitzman/1.",
    short="The JSON Schema of problem files.",
)
def schema(options: Options) -> None:
    """Carry out the command."""
    print(files("weitzman.files").joinpath("instance.schema.json").read_text("utf-8").rstrip())
