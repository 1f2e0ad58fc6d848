"""Every kind of file that the package reads: valid ones, their readers, and damage of their own."""

from __future__ import annotations

import gzip
import io
import json
import random
import sqlite3
import warnings
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mutations import mutate_binary, mutate_bytes, mutate_document

import weitzman
from weitzman import learn
from weitzman.files import event_log
from weitzman.tune.run_store import Journal

Read = Callable[[Path], object]
Command = Callable[[Path], list[Any]]
Own = Callable[[random.Random], bytes]

ODD = ["", "NaN", "<NA>", "inf", "-inf", "1e999", "8e300", "-1", "0", "1e-320", "x", "9" * 400,
       "1,5", "1/2", "TRUE", "#N/A", "\ud7ff", "12%", "$3", "1e15", "9007199254740993", '"', "\0",
       "=1+1", "2020-01-01", "0x10", "1_000", "١٢", "-0"]  # fmt: skip


@dataclass(frozen=True)
class Specimen:
    """A kind of file.

    Attributes
    ----------
    valid : list of bytes
    read : callable
        The reader of the API.
    commands : list of callables
        Arguments of commands that read such a file.
    documents : list of dict
        The same as JSON documents, to be damaged as such.
    own : callable, optional
        Damage that needs to know the format.
    share, told
        How often this kind has a turn, and the share of the command.
    """

    name: str
    suffix: str
    valid: list[bytes]
    read: Read
    commands: list[Command]
    documents: list[dict[str, Any]] = field(default_factory=list)
    own: Own | None = None
    share: int = 1
    told: float = 0.2


def specimens(folder: Path) -> list[Specimen]:
    """All kinds; files that are needed once are made in the folder."""
    found = [*_instances(folder), *_tables(folder), *_curves()]
    return [*found, _journals(folder), _tuners(folder)]


# -- forests ---------------------------------------------------------------------------------------

_STEP = {
    "rewards": [0, None, 10], "states": ["a", "b", "c"], "law": [[0.2, 0.3, 0.5]] * 3, "cost": 1,
}  # fmt: skip
DOCUMENTS: list[dict[str, Any]] = [
    {
        "format": "weitzman/1", "note": "the example", "boxes": [
            {"name": "A", "cost": 20, "outcomes": {"900": 0.1, "1": 0.9}},
            {"name": "B", "parent": "A", "cost": 3,
             "outcomes": {"900": {"920": 0.5, "890": 0.5}, "1": {"21": 0.5, "-9": 0.5}}},
            {"name": "C", "cost": 5, "rewards": [50, 10], "law": [0.5, 0.5]},
        ],
    },
    {
        "format": "weitzman/1", "objective": "minimize", "outside": 50, "boxes": [
            {"name": "S", "cost": {"good": 1, "bad": 2}, "outcomes": {"good": 0.3, "bad": 0.7},
             "rewards": {"good": None, "bad": 2}},
            {"name": "T", "parent": "S", "count": 3, "cost": {"good": 5, "bad": {"40": 1, "0": 2}},
             "outcomes": {"good": {"40": 0.5, "0": 0.5}, "bad": {"0": 0.9, "40": 0.1}}},
        ],
    },
    {
        "format": "weitzman/1", "outside": -3, "kinds": {"step": _STEP}, "boxes": [
            {"name": "R", "kind": "step", "law": [0.5, 0, 0.5], "cost": [1, 2, 3]},
            {"name": "L", "parent": "R", "kind": "step", "length": 5, "count": 2},
            {"name": "é", "parent": "L.3", "kind": "step", "cost": [[1, 2, 3]] * 3},
        ],
    },
    {
        "format": "weitzman/1", "outside": None, "boxes": [
            {"rewards": [1.5, 2.5], "law": [0.25, 0.75], "cost": 0, "count": 10**15},
            {"parent": 0, "rewards": [7], "law": [[1], [1]], "cost": [1, 2], "count": 10**15},
        ],
    },
]  # fmt: skip


def _instances(folder: Path) -> list[Specimen]:
    texts = [json.dumps(x).encode() for x in DOCUMENTS]
    raw = []
    for i, text in enumerate(texts):
        (folder / f"{i}.json").write_bytes(text)
        weitzman.save(weitzman.load(folder / f"{i}.json"), folder / f"{i}.wz")
        raw.append((folder / f"{i}.wz").read_bytes())
    commands = _commands(folder)
    packed = [gzip.compress(x, 1) for x in texts]
    return [
        Specimen("JSON", ".json", texts, weitzman.load, commands, DOCUMENTS, share=30),
        Specimen("packed JSON", ".json.gz", packed, weitzman.load, commands, DOCUMENTS, share=12),
        Specimen(
            ".wz", ".wz", raw, weitzman.load, commands, share=30,
            own=lambda pick: mutate_binary(pick.choice(raw), pick),
        ),
    ]  # fmt: skip


def _commands(folder: Path) -> list[Command]:
    check: list[Command] = [lambda path: ["check", path]] * 12
    solving: list[Command] = [
        lambda path: ["solve", path],
        lambda path: ["solve", path, "--json"],
        lambda path: ["convert", path, "-o", folder / "out.json"],
        lambda path: ["convert", path, "-o", folder / "out.wz"],
        lambda path: ["convert", path, "-o", folder / "out.csv"],
    ]
    return check + solving


# -- tables ----------------------------------------------------------------------------------------

TABLE = """outside,2
unit,$
box,parent,parent state,state,reward,probability,cost,count
A,,,high,900,10%,20,1
,,,low,1,0.9,,
B,A,high,good,920,1/2,3,2
,,high,bad,890,0.5,,
,,low,poor,21,1,,
C,,,50,50,0.5,5,1
C,,,10,10,0.5,5,1
"""


def _tables(folder: Path) -> list[Specimen]:
    texts = [TABLE, TABLE.replace(",", ";").replace("0.5", "0,5").replace("0.9", "0,9")]
    plain = [x.encode() for x in texts] + [texts[0].replace(",", "\t").encode("utf-16")]
    commands = _commands(folder)
    found = [
        Specimen("CSV", ".csv", plain, weitzman.load, commands, own=_odd_cells(TABLE), share=16),
        Specimen(
            "packed CSV", ".csv.gz", [gzip.compress(x, 1) for x in plain], weitzman.load, commands,
            share=4,
        ),
    ]  # fmt: skip
    weitzman.save(weitzman.load(folder / "0.json"), folder / "0.xlsx")
    book = (folder / "0.xlsx").read_bytes()
    xlsx = Specimen("workbook", ".xlsx", [book], weitzman.load, commands, own=_inside(book))
    return [*found, xlsx]


def _odd_cells(text: str) -> Own:
    """Some cells replaced by what people and programs write; sometimes a column or a row."""

    def own(pick: random.Random) -> bytes:
        rows = [line.split(",") for line in text.splitlines()]
        for _ in range(pick.choice([1, 1, 2, 4])):
            row = pick.choice(rows)
            at = pick.randrange(len(row))
            match pick.randrange(5):
                case 0:
                    del row[at:]
                    row.append("")
                case 1:
                    rows.insert(pick.randrange(len(rows)), list(row))
                case 2:
                    row.insert(at, pick.choice(ODD))
                case _:
                    row[at] = pick.choice(ODD)
        return "\n".join(map(",".join, rows)).encode()

    return own


def _inside(book: bytes) -> Own:
    """A workbook in which one of the parts is damaged, packed anew."""
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}

    def own(pick: random.Random) -> bytes:
        chosen = pick.choice([x for x in parts for _ in range(5 if "sheet" in x else 1)])
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name, data in parts.items():
                if name != chosen:
                    archive.writestr(name, data)
                elif pick.random() < 0.95:
                    archive.writestr(name, mutate_bytes(data, pick, data))
        return out.getvalue()

    return own


# -- curves, models ------------------------------------------------------------------------


CURVES = "run,step,score,cost\n" + "".join(
    f"r{run},{step},{(run * 7 % 5 + 1) * step / 10:.3f},{1 + run % 2}\n"
    for run in range(6)
    for step in range(1, 4)
)
_BACKTEST = ["--price", "20", "--methods", "weitzman", "--workers", "1", "--repeats", "1",
           "--orders", "1"]  # fmt: skip


def read_curves(path: Path) -> object:
    """Curves with the usual columns."""
    return learn.Curves.read(path, run="run", step="step", score="score", cost="cost")


def _curves() -> list[Specimen]:
    text = CURVES.encode()
    command: list[Command] = [lambda path: ["backtest", path, *_BACKTEST]]
    packed = [gzip.compress(text, 1)]
    found = [
        Specimen("curves", ".csv", [text], read_curves, command, own=_odd_cells(CURVES), share=4,
                 told=0.03),
        Specimen("packed curves", ".csv.gz", packed, read_curves, command, share=2, told=0.03),
    ]  # fmt: skip
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        return found
    import pyarrow as arrow

    columns = _columns()
    out = io.BytesIO()
    parquet.write_table(arrow.table(columns), out)

    def own(pick: random.Random) -> bytes:
        odd: list[Any] = [
            None, np.nan, np.inf, -1.0, 1e300, 2**62, "x", b"\xff", True, [1], {"a": 1}, "",
        ]  # fmt: skip
        chosen = dict(columns)
        name = pick.choice(list(chosen))
        values: list[Any] = list(chosen[name])
        if pick.random() < 0.5:
            values = [pick.choice(odd)] * len(values)
        else:
            values[pick.randrange(len(values))] = pick.choice(odd)
        chosen[name] = values
        made = io.BytesIO()
        try:
            parquet.write_table(arrow.table(chosen), made)
        except (arrow.ArrowException, TypeError, ValueError, OverflowError):
            return mutate_bytes(out.getvalue(), pick, out.getvalue())
        return made.getvalue()

    return [*found, Specimen("Parquet", ".parquet", [out.getvalue()], read_curves, command,
                             own=own, share=3, told=0.02)]  # fmt: skip


def _columns() -> dict[str, list[Any]]:
    head, *rows = (line.split(",") for line in CURVES.splitlines())
    kinds = (str, int, float, float)
    return {
        name: [kind(row[i]) for row in rows]
        for i, (name, kind) in enumerate(zip(head, kinds, strict=True))
    }


# -- journals --------------------------------------------------------------------------------------


def without_companions(path: Path) -> None:
    """What SQLite left beside another file of that name does not belong to this one."""
    for end in ("-journal", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)


def _journals(folder: Path) -> Specimen:
    path = folder / "whole.db"
    for old in folder.glob("whole.db*"):
        old.unlink()
    with weitzman.Search(weitzman.solve(weitzman.load(folder / "0.json")), journal=path) as search:
        search.tell("A", "1")
        search.replace(weitzman.solve(weitzman.load(folder / "0.json")))
        search.ask()
    valid = path.read_bytes()

    def read(path: Path) -> None:
        without_companions(path)
        with weitzman.Search.resume(path) as search:
            search.ask()

    def go_on(path: Path) -> list[Any]:
        without_companions(path)
        return ["search", "--journal", path]

    return Specimen(
        "journal", ".db", [valid], read,
        [lambda path: ["report", path, "-o", folder / "out.csv"], go_on, go_on, go_on],
        own=_events(folder, valid), share=3, told=0.2,
    )  # fmt: skip


def _tuners(folder: Path) -> Specimen:
    path = folder / "tuner.db"
    for old in folder.glob("tuner.db*"):
        old.unlink()
    journal = Journal(path, minimize=False)
    journal.add({"event": "start", "run": 0, "config": {"x": 1}})
    journal.add(
        {"event": "seen", "run": 0, "step": 1, "score": 0.5, "cost": 1.0, "measured": False}
    )
    journal.add({"event": "over", "run": 0, "how": "ended", "why": ""})
    journal.close()
    valid = path.read_bytes()

    def read(path: Path) -> None:
        from weitzman import tune

        without_companions(path)
        with warnings.catch_warnings():  # steps or scores in another unit are worth a word
            warnings.filterwarnings("ignore", message="run .* begins with step")
            warnings.filterwarnings("ignore", message="the first scores? of this search")
            tune.optimize(_one_step, [{"x": 1}, {"x": 2}], _model(), journal=path)

    return Specimen("tuner's journal", ".tuner", [valid], read, [], own=_events(folder, valid),
                    share=2)  # fmt: skip


def _one_step(config: object) -> Any:
    yield 0.5, 1.0


_KEPT: list[Any] = []


def _model() -> Any:
    if not _KEPT:
        curves = learn.Curves.read(_columns(), run="run", step="step", score="score", cost="cost")
        _KEPT.append(learn.fit(curves, price=20.0, options=learn.FitOptions(trees=5)))
    return _KEPT[0]


def _events(folder: Path, valid: bytes) -> Own:
    """A journal in which events or settings were changed, with checksums that are right."""

    def own(pick: random.Random) -> bytes:
        path = folder / "changed.db"
        without_companions(path)
        path.write_bytes(valid)
        with closing(sqlite3.connect(path)) as db:
            if pick.random() < 0.3:
                _change_setting(db, pick)
            else:
                _change_event(db, pick)
            db.commit()
        return path.read_bytes()

    return own


def _change_setting(db: sqlite3.Connection, pick: random.Random) -> None:
    rows = db.execute("SELECT name, value FROM setting").fetchall()
    name, value = pick.choice(rows)
    new = json.dumps(mutate_document({"x": json.loads(value)}, pick).get("x"))
    db.execute("UPDATE setting SET value = ?, crc = ? WHERE name = ?",
               (new, event_log.checksum(new), name))  # fmt: skip


def _change_event(db: sqlite3.Connection, pick: random.Random) -> None:
    rows = db.execute("SELECT number, worker, content FROM event ORDER BY number").fetchall()
    changed, crc = pick.randrange(len(rows)), 0
    for i, (number, worker, content) in enumerate(rows):
        if i == changed:
            content = json.dumps(mutate_document(json.loads(content), pick))
        crc = event_log.checksum(f"{worker} {content}", crc)
        db.execute("UPDATE event SET content = ?, crc = ? WHERE number = ?",
                   (content, crc, number))  # fmt: skip
