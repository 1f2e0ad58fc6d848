"""Commands about files, and about the installation: ``completions`` and ``warmup``."""

from __future__ import annotations

import json
import math
import os
import time
from typing import TYPE_CHECKING, Any

import click

from .._common.numbers import whole
from ..errors import WeitzmanError
from . import common
from .common import Options, command

if TYPE_CHECKING:
    from ..forest.model import Forest


@command(short="Whether a file is valid, and its size.")
@common.instance_argument
@common.json_option
def check(options: Options) -> None:
    """Print ok and the size of the problem, or what is wrong with its file.

    \b
    --json prints one object:
      {"ok": true, "boxes": 3, "with copies": 3, "roots": 2, ...}
    or, with the exit code of the error:
      {"ok": false, "error": ...}
    """
    from .._common.text import columns

    try:
        reading = common.read_all(options, notes=False)
    except WeitzmanError as error:
        if options.json:
            print(common.as_json({"ok": False, "error": str(error)}))
        raise
    lines, found = reading.lines, sizes(reading.forest)
    if options.json:
        print(common.as_json({"ok": True, **found, **({"read": lines} if lines else {})}))
    else:
        common.print_lines(["ok", *lines, *columns(_summary(reading.forest, found))])


@command(short="From one file format to another.")
@click.argument("file", metavar="FILE", type=common.PATH, help="File to read, or -.")
@common.output_option("File to write or replace, or -.")
@common.table_options
def convert(options: Options) -> None:
    """Read a problem from one file and write it to another. The endings of the names
    decide the formats.

    \b
      .json     for people and programs; see weitzman schema
      .json.gz  the same, compressed
      .wz       compact columns with checksums, for millions of boxes
      .csv, .tsv, .xlsx
                a table: one row for each box, state of its parent, and own state
                (.xlsx needs pip install "weitzman[excel]")
      -         standard input; JSON to standard output
    """
    from ..files.instances import save

    with common.written_file(options.output, options.file, suffix=".json") as target:
        reading = common.read_all(options)
        ranges = reading.ranges
        if ranges and target.lower().endswith(".wz"):
            click.echo("note: a .wz file has no ranges: they are left out", err=True)
            ranges = type(ranges)()
        save(reading.forest, target, ranges)


@command(short="A spreadsheet to fill in.")
@common.output_option("New file: .xlsx, .csv or .tsv; or -.")
def template(options: Options) -> None:
    """Write a sheet to fill in: an example that can be solved as it stands, and notes.

    \b
      weitzman template -o stages.xlsx     (needs pip install "weitzman[excel]")
      weitzman template -o stages.csv
      weitzman template -o -               the text of the .csv to standard output
    """
    from ..files.written_tables import is_template, write_template

    name = options.output
    if name != "-" and not is_template(name):
        raise click.UsageError(f"a template ends in .xlsx, .csv or .tsv, but it is {name!r}.")
    if os.path.lexists(name):
        raise click.UsageError(f"{name} already exists. Choose another name.")
    with common.written_file(name, suffix=".csv") as path:
        write_template(path)
    if name != "-":
        print(f"{name}: fill it in, then weitzman solve {name}")


@command(short="The JSON Schema of problem files.")
def schema(options: Options) -> None:
    """Print the JSON Schema (draft 2020-12) of the format weitzman/1."""
    from ..files.json_format import schema as made

    print(json.dumps(made(), indent=2))


def sizes(forest: Forest) -> dict[str, Any]:
    """The size of a problem, for programs."""
    import numpy as np

    f, states, n = forest, forest.rewards.shape[forest.reward, 1], len(forest)
    up, depth = np.append(np.where(f.parent < 0, n, f.parent), n), np.append(np.ones(n, int), 0)
    while (up < n).any():  # the number of steps taken at once doubles
        depth, up = depth + depth[up], up[up]
    return {
        "boxes": n, "with copies": f.boxes, "roots": int(f.roots.size),
        "states": [int(states.min()), int(states.max())], "distinct laws": len(np.unique(f.law)),
        "depth": int(depth.max()), "objective": "minimize" if f.minimize else "maximize",
        "outside": f.outside if math.isfinite(f.outside) else None, "unit": f.unit,
    }  # fmt: skip


def _summary(forest: Forest, found: dict[str, Any]) -> list[tuple[str, str]]:
    """The size of a problem, for people."""
    least, most = found["states"]
    states = f"{least}" if least == most else f"{least} to {most}"
    keys = ("boxes", "with copies", "roots", "states", "distinct laws", "depth")
    rows = [(key, states if key == "states" else whole(found[key])) for key in keys]
    taken, outside = "something must be taken", found["outside"]
    taken = taken if outside is None else f"outside option {forest.amounts(outside)}"
    return [*rows, ("objective", f"{found['objective']}, {taken}")]


@command(short="Complete commands with the Tab key.")
@click.argument(
    "shell", type=click.Choice(("bash", "zsh", "fish")), metavar="SHELL", help="bash, zsh or fish"
)
def completions(options: Options) -> None:
    """Print a script that lets the shell complete commands, options and files.

    \b
      bash   echo 'eval "$(weitzman completions bash)"' >> ~/.bashrc
      zsh    echo 'eval "$(weitzman completions zsh)"' >> ~/.zshrc
      fish   weitzman completions fish > ~/.config/fish/completions/weitzman.fish

    Completion works in every new shell.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(options.shell)
    root = click.get_current_context().find_root()
    assert kind is not None
    script = kind(root.command, {}, "weitzman", "_WEITZMAN_COMPLETE").source()
    if options.shell == "zsh":  # a bare zsh has no completions until it is told to load them
        first, _, rest = script.partition("\n")
        load = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }"
        script = f"{first}\n{load}\n{rest}"
    print(script)


@command(short="Compile everything now, for later processes.")
def warmup(options: Options) -> None:
    """Compile everything (but for a few small functions) and keep the
    result on disk, where later processes find it. Use this in images of containers,
    and before many workers start at once.

    The result goes to the first of these folders that can be written to: the folder
    that WEITZMAN_CACHE_DIR names (or NUMBA_CACHE_DIR), a folder in the installed
    package, a folder of the user. Workers that name the same folder share it.
    """
    from ..engine.solver import compile_always, compiled_code

    start = time.perf_counter()
    compile_always()
    _use_all_kernels()
    found = compiled_code()
    where = "nowhere: no folder can be written to" if found.folder is None else str(found.folder)
    print(f"{len(found.ready)} functions ready after {time.perf_counter() - start:.1f} s")
    print(f"kept in {where}")


def _use_all_kernels() -> None:
    import numpy as np

    from .. import Chain, Forest, evaluate, simulate, solve, solve_line, truncate

    law: list[Any] = [[0.5, 0.5], [[0.5, 0.5], [0.2, 0.8]], [[0.9, 0.1], [0.5, 0.5]], [0.7, 0.3]]
    shape: dict[str, Any] = {"cost": [0.1, 0.2, 0.3, 0.1], "rewards": [0, 3], "law": law}
    forests = [Forest.from_arrays(parent=[-1, 0, 0, -1], **shape, **terms)
               for terms in ({"count": [1, 2, 1, 3]}, {"prizes": 2})]  # fmt: skip
    copies: dict[str, Any] = {"cost": [0.1], "rewards": [0, 3], "law": law[:1], "count": [999]}
    forests.append(Forest.from_arrays(parent=[-1], **copies))
    for forest, most in zip(forests, (None, None, 500), strict=True):
        evaluate(solve(forest))
        simulate(solve(forest), 10, rng=1, budget=most)  # 500: too many situations to go together
    chances = np.linspace(0.1, 0.9, 5000)  # laws to be interned
    shape = {"cost": [0.1] * 5000, "rewards": [0, 3], "law": np.stack([chances, 1 - chances], 1)}
    Forest.from_arrays(parent=[-1] * 5000, **shape)
    law = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]]
    shape = {"cost": [0.1, 0.5], "rewards": [0, 3, 9], "law": [law[0], law]}
    line = Forest.from_arrays(parent=[-1, 0], endless=[False, True], **shape)
    evaluate(solve(line))
    truncate(line, gap=0.1)
    chain = Chain(law, [0, 3, 9])
    chain.stationary()
    chain.first_passage([2])
    solve_line(chain, 0.5).start(law[0])
