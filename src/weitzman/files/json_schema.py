"""The JSON Schema of the format ``weitzman/1``, made from the declarations of the fields."""

from __future__ import annotations

from typing import Any

from ..forest.fields import Field
from ..forest.model import BY_BOX, SETTINGS
from .json_reader import ENDLESS, FORMAT, KIND_KEYS, LENGTH, MAX_LENGTH

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NUMBERS: Schema = {"type": "array", "items": {"type": "number", "minimum": 0}}
_CHANCES: Schema = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"type": "number", "minimum": 0},
}
_AMOUNT: Schema = {"type": ["number", "null"]}
_SHAPES = (
    " A number; or a list with one number for each state of the parent (for a root: for each own "
    "state); or a matrix with a row for each state of the parent and a column for each own state. "
    "Instead of lists, objects whose keys are names of states."
)


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _object(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties, **more}


def schema() -> Schema:
    """The JSON Schema (draft 2020-12) of the format ``weitzman/1``."""
    settings = {one.key: _value(one) for one in SETTINGS}
    openings = {one.key: _opening(one) for one in BY_BOX if one.form == "opening"}
    entries = {one.key: _value(one) for one in BY_BOX if one.form == "entry"}
    shared = {key: _ref(key) for key in KIND_KEYS}
    named = {"name": {"description": "Names of boxes differ.", **_TEXT}, "kind": _TEXT}
    required = [one.key for one in BY_BOX if one.form == "opening" and one.needed]
    return _object(
        {
            "$schema": _TEXT,
            "format": {"const": FORMAT},
            "note": _ref("note"),
            **settings,
            "kinds": {
                "description": "What many boxes share. A box that names a kind takes from it all "
                "that it does not say itself.",
                "type": "object",
                "additionalProperties": _object(shared),
            },
            "boxes": {
                "description": "The boxes, in any order. Either all have a name and give their "
                "parent by name, or none has and parents are places in this list, from 0.",
                "type": "array",
                "minItems": 1,
                "oneOf": [{"items": _ref("named")}, {"items": _ref("numbered")}],
            },
        },
        **{
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "urn:weitzman:instance:1",
            "title": FORMAT,
            "description": "Boxes on a forest. Opening a box costs something and shows one of its "
            "states; each state has a reward. A box can be opened once its parent is open, and its "
            "law depends on the state that the parent shows. Stop at any time with the best reward "
            "seen, or with the outside option.",
            "required": ["format", "boxes"],
            "if": {"properties": {"objective": {"const": "minimize"}}, "required": ["objective"]},
            "then": {"required": ["outside"]},
        },
    ) | {
        "$defs": {
            "note": {"description": "A remark for readers; ignored.", **_TEXT},
            "named": _object(
                {
                    **named,
                    **entries,
                    "parent": _parent("by name", "string"),
                    LENGTH: {
                        "description": "A line of this many boxes: the box B of length 3 stands "
                        "for B.1, B.2 and B.3, each the parent of the next. Boxes whose parent is "
                        "B hang on the last; count makes copies of the whole line. A box with a "
                        f'length has a parent and a square law. "{ENDLESS}": the box is followed '
                        "by boxes like itself without end; it has no children and no count.",
                        "oneOf": [
                            {"type": "integer", "minimum": 1, "maximum": MAX_LENGTH},
                            {"const": ENDLESS},
                        ],
                    },
                    **shared,
                },
                required=["name"],
                allOf=[_ref("complete")],
                dependentSchemas={
                    LENGTH: {"required": ["parent"], "properties": {"parent": _TEXT}}
                },
            ),
            "numbered": _object(
                {
                    "kind": _TEXT,
                    **entries,
                    "parent": {**_parent("by its place in the list", "integer"), "minimum": 0},
                    **shared,
                },
                allOf=[_ref("complete")],
            ),
            "complete": _complete(required),
            **openings,
            "rewards": {
                "description": "The reward of each state; null for a state that tells something "
                "but has no reward. A list, one entry for each state; with outcomes an object, by "
                "the names of the states that are not named by their rewards.",
                "oneOf": [
                    {"type": "array", "minItems": 1, "items": _AMOUNT},
                    {"type": ["object", "null"], "additionalProperties": _AMOUNT},
                ],
            },
            "states": {
                "description": "Names of the states, one for each reward; numbers from 0 if left "
                "out or null.",
                "type": ["array", "null"],
                "items": _TEXT,
            },
            "law": {
                "description": "Probabilities that sum to 1: a list for a root; a matrix for a "
                "child, with a row for each state of the parent.",
                "oneOf": [_NUMBERS, {"type": "array", "minItems": 1, "items": _NUMBERS}],
            },
            "outcomes": {
                "description": "Short for rewards, states and law: {state: probability}, or for a "
                "child {state of the parent: {state: probability}}. A state is named by its "
                "reward, a number in quotes, or by a word whose reward is in rewards. After a "
                "state of the parent that is left out, the box cannot be opened.",
                "oneOf": [_CHANCES, _CHANCES | {"additionalProperties": _CHANCES}],
            },
        }
    }


def _parent(how: str, kind: str) -> Schema:
    return {
        "description": f"The box that must be opened first, {how}; null or left out for a root.",
        "type": [kind, "null"],
    }


def _value(one: Field) -> Schema:
    """A setting, or an entry of a box."""
    words = {"enum": list(one.words.values())} if one.words else {}
    return {"description": one.meaning, **one.schema, **words}


def _opening(one: Field) -> Schema:
    """A cost and the like."""
    number = dict(one.schema)
    row: Schema = {"type": "array", "items": number}
    by_own: Schema = {"type": "object", "additionalProperties": number}
    return {
        "description": one.meaning + _SHAPES,
        "oneOf": [
            number,
            row,
            {"type": "array", "minItems": 1, "items": row},
            {"type": "object", "additionalProperties": {"oneOf": [number, by_own]}},
        ],
    }


def _complete(openings: list[str]) -> Schema:
    """A box has all that it needs, and each thing once."""
    listed = {"properties": {"rewards": {"type": "array"}}}
    return {
        "description": "A box has a cost, and either outcomes, or rewards and a law. Its kind may "
        "give them.",
        "anyOf": [
            {"required": ["kind"]},
            {"required": [*openings, "outcomes"]},
            {"required": [*openings, "rewards", "law"], **listed},
        ],
        "dependentSchemas": {
            "outcomes": {
                "not": {
                    "anyOf": [
                        {"required": ["rewards"], **listed},
                        {"required": ["states"]},
                        {"required": ["law"]},
                    ]
                }
            }
        },
    }
