"""The results of a solve as a workbook (``.xlsx``): decisions, boxes, indices."""

from __future__ import annotations

from typing import Any

from .._common.disk import replacing
from ..engine.evaluation import Evaluation, evaluate
from ..engine.plan import Progress
from ..engine.solution import Solution
from ..engine.solver import solve
from ..files.safely import explained
from ..files.written_tables import Block, money_formats, write_blocks
from ..forest.model import Forest
from .page.page_data import alone
from .report.decision_tree import columns, decisions

_AMOUNTS = {"cost", "index", "best so far", "spent"}  # columns


def write_workbook(source: Forest | Solution, path: str, progress: Progress | None = None) -> None:
    """Write what to do and what to expect: a row for each situation, box and index."""
    solution = source if isinstance(source, Solution) else solve(source, progress=progress)
    with explained(path, "written"), replacing(path) as file:
        write_blocks(_blocks(solution), file)


def _blocks(solution: Solution) -> list[Block]:
    f, found = solution.forest, evaluate(solution)
    c, indices = found.columns(), solution.columns()
    boxes = {
        "box": c["box"],
        "parent": [None if p < 0 else f.name(int(p)) for p in f.parent],
        "opened": c["opened"],
        "taken in the end": found.wins.tolist(),
        "spent": c["spend"],
    }
    often = ["0.0%" if alone(f, v) else "0.00" for v in range(len(f))]
    chances = {"opened": often, "taken in the end": often}
    situations = columns(decisions(solution.policy()))
    reached = {"probability": ["0.0%"] * len(situations["probability"])}
    rows = {key: list(indices[key]) for key in ("box", "parent", "state", "cost", "index")}
    return [
        _facts(solution, found),
        Block("decision table", (), situations, reached | _money(f, situations)),
        Block("boxes", (), boxes, chances | _money(f, boxes)),
        Block("indices", (), rows, _money(f, rows)),
    ]


def _money(f: Forest, table: dict[str, list[Any]]) -> dict[str, list[str]]:
    """The number formats of all columns that hold amounts."""
    return {key: money_formats(table[key], f.unit, f.amounts.bare) for key in _AMOUNTS & set(table)}


def _facts(solution: Solution, found: Evaluation) -> Block:
    """What to do first and what to expect, one fact in each row."""
    f = solution.forest
    amounts: dict[str, float] = {
        "value": solution.value,
        "reward on average": found.reward,
        "spent on average": found.spend,
        **({"risk tolerance": f.risk_tolerance} if f.risk_tolerance is not None else {}),
        "outside option": f.outside,
    }
    counts: dict[str, float] = {
        "boxes opened on average": found.openings,
        **({"time to the end on average": found.time} if f.durations is not None else {}),
    }
    others: dict[str, Any] = {
        "error of the value at most": solution.gap,
        **({"prizes": int(f.prizes)} if f.prizes > 1 else {}),
        "objective": "minimize" if f.minimize else "maximize",
        "unit": f.unit,
    }
    facts = {"open first": solution.first_box or "nothing", **amounts, **counts, **others}
    money = money_formats(amounts.values(), f.unit, f.amounts.bare)
    formats = ["General", *money, *["0.00"] * len(counts), *["General"] * len(others)]
    return Block(
        "decision", (), {"what": list(facts), "result": list(facts.values())}, {"result": formats}
    )
