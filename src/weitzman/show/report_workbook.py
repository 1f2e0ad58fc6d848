"""The results of a solve as a workbook (``.xlsx``): decisions, boxes, indices."""

from __future__ import annotations

from typing import Any

from .._common.disk import replacing
from ..engine.evaluation import evaluate
from ..engine.plan import Progress
from ..engine.solution import Solution
from ..engine.solver import solve
from ..files.safely import explained
from ..files.written_tables import Block, money_format, write_blocks
from ..forest.model import Forest
from .report.decision_tree import columns, decisions


def write_workbook(source: Forest | Solution, path: str, progress: Progress | None = None) -> None:
    """Write what to do and what to expect: a row for each situation, box and index."""
    solution = source if isinstance(source, Solution) else solve(source, progress=progress)
    with explained(path, "written"), replacing(path) as file:
        write_blocks(_blocks(solution), file)


def _blocks(solution: Solution) -> list[Block]:
    f, found = solution.forest, evaluate(solution)
    money = money_format(f.unit)
    first = solution.first_box or "nothing"
    facts: dict[str, Any] = {
        "open first": first,
        "value": solution.value,
        "error of the value at most": solution.gap,
        "reward on average": found.reward,
        "spent on average": found.spend,
        "boxes opened on average": found.openings,
        **({"time to the end on average": found.time} if f.durations is not None else {}),
        **({"risk tolerance": f.risk_tolerance} if f.risk_tolerance is not None else {}),
        **({"prizes": int(f.prizes)} if f.prizes > 1 else {}),
        "outside option": f.outside,
        "objective": "minimize" if f.minimize else "maximize",
        "unit": f.unit,
    }
    c, indices = found.columns(), solution.columns()
    boxes = {
        "box": c["box"],
        "parent": [None if p < 0 else f.name(int(p)) for p in f.parent],
        "opened": c["opened"],
        "taken in the end": found.wins.tolist(),
        "spent": c["spend"],
    }
    found_decisions = columns(decisions(solution.policy()))
    rows = {key: list(indices[key]) for key in ("box", "parent", "state", "cost", "index")}
    return [
        Block("decision", (), {"what": list(facts), "result": list(facts.values())}),
        Block(
            "decision table",
            (),
            found_decisions,
            {"probability": "0.0%", "cost": money, "index": money, "best so far": money},
        ),
        Block("boxes", (), boxes, {"spent": money, "taken in the end": "0.0%"}),
        Block("indices", (), rows, {"cost": money, "index": money}),
    ]
