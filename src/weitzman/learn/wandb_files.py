"""Runs of Weights & Biases that were logged offline: files ``run-ID.wandb``.

Such a file is a log in the format of LevelDB: blocks of 32 KiB with records, each with a checksum,
a length and a kind (whole, or the first, a middle or the last part), after seven bytes that name
the format. A record is a message of wandb's protocol.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._common.optional import need
from ..errors import InvalidFile

_BLOCK, _HEAD, _MARK = 2**15, 7, b":W&B"
_FIRST, _MIDDLE = 2, 3


def offline_run(path: Path) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """The name of a run, its configuration, and the rows of its history."""
    record = need("wandb.proto.wandb_internal_pb2", "wandb").Record
    name, config, rows = path.stem.removeprefix("run-"), {}, []
    for data in _records(path):
        try:
            said = record.FromString(data)
        except Exception as error:  # protobuf's own kinds differ between its versions
            raise InvalidFile(f"{path}: a record is damaged: {error}") from None
        if said.HasField("run"):
            name = said.run.display_name or said.run.run_id or name
            config.update(_values(said.run.config.update))
        elif said.HasField("config"):
            config.update(_values(said.config.update))
        elif said.HasField("history"):
            rows.append({"_step": said.history.step.num, **_values(said.history.item)})
    return name, {k: v for k, v in config.items() if not k.startswith("_")}, rows


def _values(items: Any) -> dict[str, Any]:
    return {"/".join(x.nested_key) or x.key: json.loads(x.value_json) for x in items}


def _records(path: Path) -> Iterator[bytes]:
    """The records of a file; a last one that was cut off is left out."""
    data = path.read_bytes()
    if not data.startswith(_MARK):
        raise InvalidFile(f"{path}: it is no log of Weights & Biases.")
    at, whole = _HEAD, b""
    while at + _HEAD <= len(data):
        if (room := _BLOCK - at % _BLOCK) < _HEAD:  # padding at the end of a block
            at += room
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        part = data[at + _HEAD : at + _HEAD + size]
        at += _HEAD + size
        if kind == 0 or len(part) < size:
            return
        whole += part
        if kind not in (_FIRST, _MIDDLE):
            yield whole
            whole = b""
