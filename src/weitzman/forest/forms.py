"""What people write for a box, in Python or in a file, made into arrays: one reader for all.

A box has ``outcomes``, ``{state: probability}``, for a child also ``{state of the parent: {state:
probability}}``, or a distribution in place of the inner mapping. A state is named by its reward, or
by a word whose reward is in ``rewards``. A cost, and what else comes with an opening, is a number
or a mapping in the same way. After a state of the parent that ``outcomes`` leaves out, the box
cannot be opened.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .._common.arrays import FloatArray, frozen
from .._common.numbers import such
from .._kernels.structure import postorder
from ..errors import InvalidForest
from .columns import label, no_reward, opening_matrix, short
from .distributions import Discretized, discretize, discretize_rows, is_distribution
from .fields import Field
from .model import BY_BOX, Forest
from .rules import check_parent, like

ANY = None  # key of the only row where the law does not depend on the parent's state
CLOSED = "closed"
"""The state of a box that cannot be opened after some state of its parent.

It has no reward, is certain then, and costs nothing, so the index is minus infinity: no search
opens the box, and in a fixed set it is passed over.
"""

MAX_DENSE = 10_000_000  # entries of a law that a file tells by its states

T = TypeVar("T")


def is_number(x: object) -> bool:
    """Whether x is a number, and not a truth value."""
    if type(x) in (float, int):  # most of them; asking an abstract class takes long
        return True
    return isinstance(x, numbers.Real) and not isinstance(x, bool)


class Source(NamedTuple):
    """How names and numbers are written where boxes come from."""

    called: Callable[[str], str]  # "cost" becomes "the cost of box 'A'", for messages
    state: Callable[[Any], str] = label  # the name that a key stands for
    # the reward that a key names; None for a word
    amount: Callable[[Any], float | None] = lambda key: float(key) if is_number(key) else None
    is_number: Callable[[Any], bool] = is_number
    above: str = "state of the parent"
    most: float = math.inf  # entries of a law

    def number(self, x: Any, what: str) -> float:
        """x as a float, or an error that shows x."""
        if not self.is_number(x):
            raise InvalidForest(f"{what} must be a number, but it is {short(x)}.")
        return float(x)

    def by_state(
        self, x: Mapping[Any, Any], what: str, known: Mapping[Any, str] = {}
    ) -> dict[str, Any]:
        """The entries by name of a state, which may be known for a key."""
        states = [known[key] if key in known else self.state(key) for key in x]
        found = dict(zip(states, x.values(), strict=True))
        if len(found) < len(x):
            twice = next(key for i, key in enumerate(x) if states[i] in states[:i])
            raise InvalidForest(
                f"states must differ, but {what} name {short(twice)} twice: 900, 900.0 and '900' "
                f"are one state."
            )
        return found


def same(names: Iterable[str]) -> dict[Any, str]:
    """Names that stand for themselves."""
    return {name: name for name in names}


def check_dense(entries: int, where: str, most: float = MAX_DENSE) -> None:
    """Refuse a short text that stands for a huge matrix, before memory is spent on it."""
    if entries > most:
        raise InvalidForest(
            f"{where}: the law must have at most {most:,} entries, but it has {entries:,}. "
            f"Build the forest in Python and save it as .wz."
        )


class BoxOutcomes(NamedTuple):
    """States of a box, their rewards (None: no reward), and its law."""

    states: tuple[str, ...] | None
    rewards: Sequence[float | None] | FloatArray
    law: FloatArray | None = None  # as a matrix; None: by the rows
    rows: Mapping[Any, ArrayLike] = {}
    error: float = 0.0  # of a law that was made discrete
    closed: frozenset[str] = frozenset()  # states of the parent after which it cannot be opened
    shut: str = CLOSED  # its state then

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of the states, or their numbers."""
        return tuple(map(str, range(len(self.rewards)))) if self.states is None else self.states


def read_outcomes(
    source: Source, outcomes: Any, rewards: Any, root: bool, n_states: int = 50
) -> BoxOutcomes:
    """States in the order of ``rewards``, then those that are named by numbers, in rising order."""
    what = source.called("outcomes")
    rows: dict[Any, ArrayLike] = {}
    if isinstance(outcomes, Discretized) or is_distribution(outcomes):
        law = outcomes if isinstance(outcomes, Discretized) else discretize(outcomes, n_states)
        nodes, rows, error = law.rewards, {ANY: law.probabilities}, law.error
    else:
        if not isinstance(outcomes, Mapping) or not outcomes:
            raise InvalidForest(
                f"{what} must be a mapping such as {{10: 0.5, 0: 0.5}}, for a child perhaps one "
                f"for each state of its parent, or a distribution, but there is {short(outcomes)}."
            )
        smooth = [is_distribution(x) for x in outcomes.values()]
        inner = {kind for kind in set(map(type, outcomes.values())) if issubclass(kind, Mapping)}
        deep = [type(x) in inner or y for x, y in zip(outcomes.values(), smooth, strict=True)]
        if any(deep) and (root or not all(deep)):
            raise InvalidForest(
                f"{what} must be {{state: probability}}, or for a child {{parent's state: {{state: "
                f"probability}}}}, but they "
                f"{'go two levels deep though it is a root' if root else 'mix both'}."
            )
        if not any(smooth):
            return _read_mappings(source, outcomes if all(deep) else {ANY: outcomes}, rewards)
        if not all(smooth):
            raise InvalidForest(f"{what} must be all distributions or all mappings, but are mixed.")
        nodes, laws, error = discretize_rows(list(outcomes.values()), n_states)
        rows = dict(zip(outcomes, laws, strict=True))
    if rewards is not None:
        raise InvalidForest(
            f"the states of a distribution are its rewards, but there is also "
            f"{source.called('rewards')}. Leave them out."
        )
    return BoxOutcomes(tuple(map(label, nodes)), nodes.tolist(), rows=rows, error=error)


def _read_mappings(
    source: Source, given: Mapping[Any, Mapping[Any, Any]], rewards: Any
) -> BoxOutcomes:
    keys: dict[str, Any] = {}
    named = {x: source.state(x) for x in dict.fromkeys(chain.from_iterable(given.values()))}
    for key, s in named.items():
        keys.setdefault(s, key)
    chances = chain.from_iterable(row.values() for row in given.values())
    if all(given.values()) and len(keys) == len(named) and all(map(source.is_number, chances)):
        rows = {after: {named[x]: p for x, p in row.items()} for after, row in given.items()}
    else:
        rows = {after: _row(source, after, row, named) for after, row in given.items()}
    what = source.called("rewards")
    if not isinstance(rewards, Mapping | None):
        raise InvalidForest(
            f"{what} must be a mapping {{state: reward}} beside outcomes, but there is "
            f"{short(rewards)}."
        )
    priced = source.by_state(rewards, what, same(keys)) if rewards else {}
    check_keys(priced, list(keys), (), what, "state that occurs in outcomes")
    for s, r in priced.items():
        priced[s] = None if r is None else source.number(r, f"{what}: that of {s!r}")
    rest = {s: source.amount(key) for s, key in keys.items() if s not in priced}
    words = [s for s, x in rest.items() if x is None]
    if words:
        raise InvalidForest(
            f"a state whose name is not a number needs a reward, but {what} give {words[0]!r} none "
            f"({such(len(words), 'state')}). Name it in `rewards`, with None (null in a file) for "
            f"a state without a reward."
        )
    amounts = sorted((x, s) for s, x in rest.items() if x is not None)
    states = (*priced, *(s for _, s in amounts))
    check_dense(len(rows) * len(states), source.called("outcomes"), source.most)
    return BoxOutcomes(
        states,
        (*priced.values(), *(x for x, _ in amounts)),
        rows={a: [float(row.get(s, 0.0)) for s in states] for a, row in rows.items()},
    )


def _row(
    source: Source, after: Any, given: Mapping[Any, Any], named: Mapping[Any, str]
) -> dict[str, float]:
    """The chances after a state of the parent, or what is wrong with them."""
    what = source.called("outcomes")
    what = what if after is ANY else f"{what} after {short(after)}"
    if not given:
        raise InvalidForest(f"{what} must name a state with its probability, but name none.")
    row = source.by_state(given, what, named)
    return {s: source.number(p, f"{what}: that of {s!r}") for s, p in row.items()}


# -- boxes together -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class WrittenBox:
    """One box as it was given: its outcomes, and what else is said of it, by name of the field."""

    source: Source
    outcomes: BoxOutcomes
    fields: Mapping[str, Any]
    parent: str | None = None

    def below(self, above: BoxOutcomes, endless: bool) -> BoxOutcomes:
        """The outcomes, closed after states of the parent that they leave out."""
        o, what = self.outcomes, self.source.called("outcomes")
        if o.law is not None:
            return o
        if endless:
            o = self._in_states_of(above)
        rows, titles = o.rows, above.titles
        if ANY in rows:
            left_out = [s for s in titles if above.closed and s == above.shut]
        else:
            rows = self.source.by_state(rows, what, same(titles))
            wanted = [s for s in titles if s != above.shut] if endless else []
            check_keys(rows, titles, wanted, what, self.source.above)
            left_out = [s for s in titles if s not in rows]
        check_dense(len(titles) * len(o.rewards), what, self.source.most)
        shut = above.shut if endless else o.shut
        while shut in o.titles and not endless:  # a state of the user's may be called so
            shut = f"({shut})"
        if left_out and shut not in o.titles:
            o = o._replace(states=(*o.titles, shut), rewards=(*o.rewards, None))
            rows = {after: np.append(row, 0.0) for after, row in rows.items()}
        return o._replace(rows=rows, closed=frozenset(left_out), shut=shut)

    def _in_states_of(self, above: BoxOutcomes) -> BoxOutcomes:
        """An endless box with its states as those of its parent, which its law looks at next."""
        o, what = self.outcomes, self.source.called("outcomes")
        own = dict(zip(o.titles, o.rewards, strict=True))
        odd = [s for s in own if s not in above.titles]
        if odd:
            raise InvalidForest(
                f"an endless box must have the states of its parent, but {what} name {odd[0]!r}, a "
                f"state that the parent lacks ({such(len(odd), 'state')}). Give it to the parent "
                f"too, with probability 0."
            )
        place = [list(own).index(s) if s in own else len(own) for s in above.titles]
        return BoxOutcomes(
            above.states,
            [own.get(s, r) for s, r in zip(above.titles, above.rewards, strict=True)],
            rows={after: np.append(row, 0.0)[place] for after, row in o.rows.items()},
        )


def law_of(o: BoxOutcomes, above: Sequence[str] | None) -> FloatArray:
    """The matrix of the law, a row for each state of the parent (one for a root)."""
    if o.law is not None:
        return o.law
    shut = np.array([s == o.shut for s in o.titles], float)
    given: Sequence[Any] = (ANY,) if above is None else above
    rows = (shut if s in o.closed else o.rows[ANY if ANY in o.rows else s] for s in given)
    return np.array(list(rows))


def opening_of(
    entry: Any, field: Field, source: Source, o: BoxOutcomes, above: Sequence[str] | None,
    law: FloatArray,
) -> FloatArray | float:  # fmt: skip
    """A cost and the like: a number, or a matrix (1 or parent's states, 1 or own states)."""
    what = source.called(field.name)
    if isinstance(entry, Mapping):
        matrix = _by_states(entry, field, source, o, above, law)
    elif not o.closed and is_number(entry):
        return float(entry)
    else:
        matrix = opening_matrix(entry, above is None, what)
    if o.closed and above is not None:
        if matrix.shape[1] not in (1, len(o.rewards)):  # given for the states before
            matrix = np.hstack([matrix, np.full((len(matrix), 1), field.default)])
        matrix = np.where([[s in o.closed] for s in above], field.default, matrix)
    return matrix


def _by_states(
    entry: Mapping[Any, Any], field: Field, source: Source, o: BoxOutcomes,
    above: Sequence[str] | None, law: FloatArray,
) -> FloatArray:  # fmt: skip
    what, own = source.called(field.name), o.titles

    def row(x: Any, chances: FloatArray, what: str) -> FloatArray:
        if not isinstance(x, Mapping):
            return np.full(len(own), source.number(x, what))
        given = source.by_state(x, what, same(own))
        check_keys(given, own, (), what, "own state")
        possible = [s for s, p in zip(own, chances, strict=True) if p > 0]
        check_keys(given, own, possible, what, "own state that can occur")
        pairs = ((s, given.get(s, field.default)) for s in own)
        return np.array([source.number(x, f"{what} of {s!r}") for s, x in pairs])

    chances = np.zeros((1 if above is None else len(above), len(own)))
    if law.size == chances.size:  # a law of another shape is reported later
        chances = law.reshape(chances.shape)
    if above is None:
        return row(entry, chances[0], what)[None]
    given = source.by_state(entry, what, same(above))
    open_ = [s for s in above if s not in o.closed]
    check_keys(given, above, open_, what, source.above)
    if not any(isinstance(x, Mapping) for x in given.values()):
        each = [(s, given.get(s, field.default)) for s in above]
        return np.array([[source.number(x, f"{what} of {s!r}")] for s, x in each])
    pairs = zip(above, chances, strict=True)
    return np.array([row(given.get(s, field.default), p, f"{what} after {s!r}") for s, p in pairs])


def assembled(
    boxes: Sequence[WrittenBox],
    parent: Sequence[int],
    names: Sequence[str] | None,
    settings: Mapping[str, Any],
) -> Forest:
    """The forest of some boxes, each with the number of its parent (-1: a root)."""
    up = np.array(parent, np.int64)
    check_parent(up, range(len(up)).__getitem__ if names is None else names.__getitem__)
    done: dict[tuple[Any, ...], Any] = {}  # what boxes of one kind share is made once

    def once(make: Callable[[], T], *key: Any) -> T:
        if key not in done:
            done[key] = make()
        found: T = done[key]
        return found

    outcomes = [b.outcomes for b in boxes]
    titles: list[tuple[str, ...] | None] = [None] * len(boxes)  # of the states of the parent
    for v in postorder(frozen(up))[0][::-1].tolist():  # parents first
        if parent[v] >= 0:
            above, endless = outcomes[parent[v]], bool(boxes[v].fields.get("endless"))
            titles[v] = above.titles
            key = id(outcomes[v]), titles[v], bool(above.closed), endless
            outcomes[v] = once(partial(boxes[v].below, above, endless), "outcomes", *key)
    none = no_reward(bool(settings.get("minimize")))
    laws = [
        once(partial(law_of, o, t), "law", id(o), t) for o, t in zip(outcomes, titles, strict=True)
    ]
    columns: dict[str, Any] = {}
    for one in BY_BOX:
        if one.form == "opening" and (one.needed or any(one.name in b.fields for b in boxes)):
            columns[one.name] = [
                x if type(x := b.fields.get(one.name, one.default)) is float and not o.closed
                else once(partial(opening_of, x, one, b.source, o, t, m), one.name, id(x), id(o), t)
                for b, o, t, m in zip(boxes, outcomes, titles, laws, strict=True)
            ]  # fmt: skip
        elif one.form == "entry" and any(one.name in b.fields for b in boxes):
            columns[one.name] = [b.fields.get(one.name, one.default) for b in boxes]

    def rewards(o: BoxOutcomes) -> FloatArray:
        return np.array([none if r is None else r for r in o.rewards], np.float64)

    each = [once(partial(rewards, o), "rewards", id(o.rewards)) for o in outcomes]
    states = None if all(o.states is None for o in outcomes) else [o.states for o in outcomes]
    return Forest.from_arrays(
        parent=parent, rewards=each, law=laws, names=names, states=states, **columns, **settings
    )


def check_keys(
    given: Collection[str], known: Sequence[str], wanted: Iterable[str], what: str, kind: str
) -> None:
    """Every key is known, and every wanted one is there."""
    here, there = set(given), set(known)
    rule = f"{what} must have an entry for each {kind}"
    if unknown := [s for s in given if s not in there]:
        raise InvalidForest(
            f"{rule}, but {short(unknown[0])} is none{like(unknown[0], known)} "
            f"({such(len(unknown), 'entry')}). They are "
            f"{', '.join(map(short, known[:8]))}{', ...' if len(known) > 8 else ''}."
        )
    if missing := [s for s in wanted if s not in here]:
        raise InvalidForest(
            f"{rule}, but {short(missing[0])} has none ({such(len(missing), 'state')}). Add it."
        )
