"""The command ``weitzman schema``."""

from __future__ import annotations

import argparse
from importlib.resources import files
from typing import Any


def add_schema_command(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of the parser; :func:`schema` carries it out."""
    parser = commands.add_parser("schema", help="print the JSON Schema of instance files")
    parser.description = "Print the JSON Schema (draft 2020-12) of the format weitzman/1."


def schema(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    print(files("weitzman.files").joinpath("instance.schema.json").read_text("utf-8").rstrip())
