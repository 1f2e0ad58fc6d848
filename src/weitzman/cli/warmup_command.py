"""The command ``weitzman warmup``: compile everything now, so that nobody waits for it later."""

from __future__ import annotations

import time
from typing import Any

from .options import Options, command

_ABOUT = """\
Compile everything (but for a few small functions) and keep the
result on disk, where later processes find it. Use this in images of containers,
and before many workers start at once.

The result goes to the first of these folders that can be written to: the folder
that WEITZMAN_CACHE_DIR names (or NUMBA_CACHE_DIR), a folder in the installed
package, a folder of the user. Workers that name the same folder share it."""


@command(_ABOUT, short="Compile everything now, for later processes.")
def warmup(options: Options) -> None:
    """Carry out the command."""
    from ..engine.compiled_code import compile_at_once, compiled_code

    start = time.perf_counter()
    compile_at_once()
    for use in (_forests, _lines, _strategies):
        use()
    found = compiled_code()
    where = "nowhere: no folder can be written to" if found.folder is None else str(found.folder)
    print(f"{len(found.ready)} functions ready after {time.perf_counter() - start:.1f} s")
    print(f"kept in {where}")


def _forests() -> None:
    """Solve, evaluate and play a forest with copies, with one prize and with two."""
    from ..engine.evaluation import evaluate
    from ..engine.solver import solve
    from ..forest.model import Forest
    from ..policy.simulation import simulate

    law: list[Any] = [[0.5, 0.5], [[0.5, 0.5], [0.2, 0.8]], [[0.9, 0.1], [0.5, 0.5]], [0.7, 0.3]]
    for prizes in (1, 2):
        forest = Forest.from_arrays(
            parent=[-1, 0, 0, -1], cost=[0.1, 0.2, 0.3, 0.1], rewards=[0, 3], law=law,
            prizes=prizes, count=[1, 2, 1, 3] if prizes == 1 else None,
        )  # fmt: skip
        solution = solve(forest)
        evaluate(solution)
        simulate(solution, 10, rng=1)
    copies = Forest.from_arrays(parent=[-1], cost=[0.1], rewards=[0, 3], law=law[:1], count=[3])
    evaluate(solve(copies))


def _lines() -> None:
    """An endless line, cut and followed, and what is asked of a chain."""
    from ..bounds.truncation import truncate
    from ..chains.chain import Chain
    from ..chains.endless import solve_line
    from ..engine.evaluation import evaluate
    from ..engine.solver import solve
    from ..forest.model import Forest

    law: list[Any] = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]]
    line = Forest.from_arrays(
        parent=[-1, 0], cost=[0.1, 0.5], rewards=[0, 3, 9], law=[law[0], law],
        endless=[False, True],
    )  # fmt: skip
    evaluate(solve(line))
    truncate(line, gap=0.1)
    chain = Chain(law, [0, 3, 9])
    chain.stationary()
    chain.first_passage([2])
    solve_line(chain, 0.5).start(law[0])


def _strategies() -> None:
    """Boxes in a random order."""
    from ..engine.solver import solve
    from ..forest.model import Forest
    from ..strategies.thumb_rules import random_order

    law: list[Any] = [[0.5, 0.5], [[0.5, 0.5], [0.1, 0.9]]]
    pair = Forest.from_arrays(parent=[-1, 0], cost=[0.1, 0.1], rewards=[0, 1], law=law)
    solution = solve(pair)
    random_order(solution, 10, rng=1)
