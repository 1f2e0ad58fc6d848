"""Another model for the boxes of a running search."""

from __future__ import annotations

from .._common.numbers import counted
from ..engine.indices import Policy
from ..errors import InvalidForest, UnknownName
from .frontier import Id
from .ledger import Ledger


def replaced(old: Ledger, policy: Policy) -> Ledger:
    """The same search with another policy; an error if that does not have the same boxes."""
    if old.hands is not None or policy.forest.prizes > 1:
        raise InvalidForest("with several prizes a search keeps its model: start another one.")
    if policy.forest.minimize != old.forest.minimize:
        raise InvalidForest("a new model must minimize if the old one does, and only then.")
    new = Ledger(policy, old.rule, old.me)
    moved: dict[Id, Id] = {}
    for box, seen in old.told.items():  # parents come before their children
        moved[box] = _moved(old, box, new, moved)
        new.open(moved[box], _state(old, box, new, moved[box][0]), seen.reward, seen.cost)
        new.numbers[moved[box]] = old.numbers[box]
    for box in old.out:
        moved[box] = _moved(old, box, new, moved)
        new.out[moved[box]] = old.out[box]
    new.gone, new.owner, new.owned_by = old.gone, old.owner, old.owned_by
    return new


def _moved(old: Ledger, box: Id, new: Ledger, moved: dict[Id, Id]) -> Id:
    """Where an opened box, or one that is out, is in the new model."""
    must = "a box that was opened or handed out must stay as it is in a new model, but"
    try:
        v = new.forest.box(old.forest.name(box[0]))
    except UnknownName:
        raise InvalidForest(f"{must} {old.box(box)!r} is missing.") from None
    if new.forest.endless[v] != old.forest.endless[box[0]]:
        raise InvalidForest(f"{must} {old.box(box)!r} is endless in one of the models only.")
    above, up = old.above(box), int(new.forest.parent[v])
    if above is not None and above[0] == box[0]:  # further along an endless line
        return v, (*moved[above][1][:-1], box[1][-1])
    if (-1 if above is None else moved[above][0]) != up:
        raise InvalidForest(f"{must} {old.box(box)!r} has another parent.")
    copy = () if above is None else moved[above][1]
    if new.forest.endless[v]:
        return v, (*copy, 1)
    own = box[1][-1] if old.forest.count[box[0]] > 1 else 1
    count = int(new.forest.count[v])
    if own > count:
        raise InvalidForest(
            f"{must} of {old.box(box)!r} the new problem has only {counted(count, 'copy')}."
        )
    return v, (*copy, own) if count > 1 else copy


def _state(old: Ledger, box: Id, new: Ledger, v: int) -> int:
    """The state that an opened box showed, in the new model."""
    seen = old.told[box]
    named = old.forest.state_names[int(old.forest.reward[box[0]])] is not None
    try:
        return new.forest.state(v, seen.state if named else seen.state_number)
    except UnknownName as error:
        raise InvalidForest(
            f"a state that was seen must stay in a new model, but {error}"
        ) from None
