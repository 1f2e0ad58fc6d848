"""The command ``weitzman search``: a search at the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from .console import for_the_shell
from .given_file import FILE, PATH, read_instance, table_options
from .options import Options, command

if TYPE_CHECKING:
    from ..policy.frontier import Box
    from ..policy.ledger import Rule
    from ..policy.search import Search

_ABOUT = """\
Show which box to open and why, ask what the box showed, and continue until it
is best to stop.

Answer with the number on screen of the state that was seen, with its name, or
with =12.5 for a reward. Add @3.5 if opening cost 3.5 and not what the file says.
At a terminal, the program shows what it understood and asks for a confirmation.
The word undo removes the last answer, also after the search has ended. The word
quit (or Ctrl-D) stops for now.

With --journal nothing is lost, whatever happens, and the same command resumes
where it stopped. FILE is then no longer needed."""

_STATES = 12  # states named in a question
_OTHERS = 3  # further boxes named
_TERMINAL = "CONIN$" if os.name == "nt" else "/dev/tty"


@command(_ABOUT, short="Open boxes one by one as the policy says.")
@click.argument(
    "file", metavar="[FILE]", type=PATH, required=False,
    help=f"{FILE} Not needed if the journal exists.",
)  # fmt: skip
@click.option("--journal", metavar="DB", type=click.Path(), help="File that keeps the search.")
@click.option(
    "--rewards", metavar="RULE",
    help="What to make of a reward that the box does not have: refuse (default), nearest, or "
    "edges of bins such as 0,10,20.",
)  # fmt: skip
@click.option(
    "--replace", is_flag=True, help="Continue with a FILE that was changed since the search began."
)
@table_options
def search(options: Options) -> None:
    """Carry out the command."""
    with _search(options) as under_way, _answers(options) as source:
        talk(under_way, source, sys.stdout, kept=options.journal is not None)


@contextmanager
def _answers(options: Options) -> Iterator[TextIO]:
    """Where the answers come from: the terminal, if standard input held the problem."""
    if options.file != "-":
        yield sys.stdin
        return
    try:
        terminal = open(_TERMINAL, encoding=sys.stdin.encoding)  # noqa: SIM115
    except OSError:
        raise click.UsageError(
            "standard input holds the problem, and there is no terminal for the answers. Save the "
            "problem to a file first."
        ) from None
    with terminal:
        yield terminal


def talk(search: Search, source: TextIO, target: TextIO, *, kept: bool) -> None:
    """Ask and tell until it is best to stop or the answers end."""
    say = _Speaker(target)
    while _to_the_end(search, source, say):
        say(search.explain())
        say(f"  {_standing(search)}")
        if not source.isatty() or not search.history or not _taken_back(search, source, say):
            return
    say("Stopped for now. " + ("Run it again to continue." if kept else "Nothing is kept."))


def _to_the_end(search: Search, source: TextIO, say: _Speaker) -> bool:
    """Ask and tell until it is best to stop; False if the answers end before."""
    while (box := search.ask()) is not None:
        if box.move == "take":
            say(search.explain())
            search.take(box)
            continue
        say(search.explain(box))
        say(f"  {_standing(search)}{_others(search)}")
        if not _told(search, box, source, say):
            return False
    return True


def _taken_back(search: Search, source: TextIO, say: _Speaker) -> bool:
    """Whether the last answer is taken back, now that it ended the search."""
    say("Enter ends the search here; undo removes the last answer: ", end="")
    text, _ = _line(source, say)
    if text == "undo":
        say(search.undo())
    return text == "undo"


# -- where the search comes from ---------------------------------------------------------------


def _search(options: Options) -> Search:
    from ..engine.solver import solve
    from ..policy.search import Search

    journal = options.journal
    if journal is None or not os.path.lexists(journal):
        if options.file is None:
            raise click.UsageError("give a FILE, or the --journal of a search that was begun.")
        policy = solve(read_instance(options)).policy()
        return Search(policy, journal=journal, rewards=_rule(options))
    search, say = Search.resume(journal), _Speaker(sys.stdout)
    say(f"Resuming {journal}. Boxes opened so far: {len(search.history)}.")
    if options.rewards is not None:
        say("  --rewards stays what it was when the search began.")
    if options.file is not None:
        forest = read_instance(options)
        if forest != search.policy.forest:
            if options.replace:
                search.replace(solve(forest))
            else:
                say(f"  {options.file} was changed since. --replace would use the new one.")
    return search


def _rule(options: Options) -> Rule:
    text: str = options.rewards or "refuse"
    known: tuple[Literal["refuse", "nearest"], ...] = ("refuse", "nearest")
    for rule in known:
        if text == rule:
            return rule
    try:
        return [float(x) for x in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--rewards must be refuse, nearest or numbers, but it is {text!r}."
        ) from None


# -- what is said ------------------------------------------------------------------------------


class _Speaker:
    """Writes lines that cannot disturb a terminal."""

    def __init__(self, target: TextIO) -> None:
        self._target = target

    def __call__(self, text: str, end: str = "\n") -> None:
        from .._common.text import printable

        self._target.write("\n".join(map(printable, text.split("\n"))) + end)
        self._target.flush()


def _standing(search: Search) -> str:
    say = search.policy.forest.amounts
    if search.policy.forest.prizes > 1:
        taken = ", ".join(f"{say(reward)} from {box}" for box, reward in search.taken) or "none"
        return f"prizes taken: {taken}; spent {say(search.spent)}, payoff {say(search.payoff)}"
    where = "outside option" if search.best_box is None else f"from {search.best_box}"
    loss = search.policy.forest.minimize
    return (
        f"{'least loss' if loss else 'best'} {say(search.best)} ({where}), spent "
        f"{say(search.spent)}, {'in all' if loss else 'payoff'} {say(search.payoff)}"
    )


def _others(search: Search) -> str:
    found = search.available(_OTHERS + 1)
    if not found:
        return "; no other box can be opened now"
    more = ", ..." if len(found) > _OTHERS else ""
    say = search.policy.forest.amounts
    names = ", ".join(f"{b} (index {say(i)})" for b, i in found[:_OTHERS])
    return f"; also available: {names}{more}"


# -- what is heard -----------------------------------------------------------------------------


def _told(search: Search, box: Box, source: TextIO, say: _Speaker) -> bool:
    """Ask what the box showed until there is an answer or one is taken back; False to stop."""
    from ..errors import WeitzmanError

    choices = _Choices(search, box)
    while True:
        say(f"What did {box} show? ({choices.shown}; =REWARD; undo; quit) ", end="")
        text, more = _line(source, say)
        if not more or (text == "quit" and text not in choices.states):
            return False
        try:
            if text == "undo" and text not in choices.states:
                say(search.undo())
                if box in search.pending:  # nobody is opening it
                    search.release(box)
                return True
            if text:
                answer = choices.answer(text)
                if source.isatty() and not _confirmed(choices.words(answer), source, say):
                    continue
                search.tell(box, **answer)
                return True
        except WeitzmanError as error:
            if not source.isatty():  # what follows is meant for other boxes
                raise
            say(for_the_shell(str(error)))


def _line(source: TextIO, say: _Speaker) -> tuple[str, bool]:
    """What was typed, and whether there was anything at all."""
    line = source.readline()
    text = line.strip()
    if not line or not source.isatty():  # where no one typed the end of the line
        say(text)
    return text, bool(line)


def _confirmed(what: str, source: TextIO, say: _Speaker) -> bool:
    while True:
        say(f"  {what}. Right? [Y/n] ", end="")
        text, more = _line(source, say)
        if text.lower() in ("", "y", "yes", "n", "no"):
            return more and text.lower() not in ("n", "no")
        say("  Type y (yes) or n (no).")


class _Choices:
    """The states that a box can show, numbered from 1 on screen unless names are numbers."""

    def __init__(self, search: Search, box: Box) -> None:
        forest = search.policy.forest
        pool = int(forest.reward[box.number])
        self._forest, self._box = forest, box
        self._named = forest.state_names[pool] is not None
        self.states = forest.states(box.number)
        self._numbered = not (self._named and any(name.isdecimal() for name in self.states))
        self._rewards = forest.rewards[pool][0]
        self._possible = _possible(search, box, self.states)
        cells = [self._cell(i, y) for i, y in enumerate(self._possible[:_STATES], 1)]
        self.shown = ", ".join(cells) + (", ..." if len(self._possible) > _STATES else "")

    def _cell(self, place: int, y: int) -> str:
        reward = self._forest.amounts(self._rewards[y])
        name = self.states[y] if self._named else f"reward {reward}"
        return f"{place}: {name}" if self._numbered else name

    def answer(self, text: str) -> dict[str, Any]:
        """A state or a reward, followed by @ and the cost if the cost is given."""
        from ..errors import InvalidAnswer

        if self._named and text in self.states:
            return {"state": text}
        head, at, tail = text.rpartition("@")
        if at and (cost := _float(tail)) is not None:
            return {**self.answer(head.strip()), "cost": cost}
        if head.strip() in self.states or self._is_place(head.strip()):
            raise InvalidAnswer(f"a cost after @ must be a number such as 3.5, but got {tail!r}.")
        if text.startswith("=") and (reward := _float(text[1:])) is not None:
            return {"reward": reward}
        if self._is_place(text):
            return {"state": self._possible[int(text) - 1]}
        if self._numbered and text.isdecimal():
            raise InvalidAnswer(
                f"choose a number from 1 to {len(self._possible)}, but got {text}. For a reward, "
                f"type ={text}."
            )
        return {"state": self._forest.state(self._box.number, text)}

    def _is_place(self, text: str) -> bool:
        """Whether a text is the number of a state on screen."""
        return self._numbered and text.isdecimal() and 1 <= int(text) <= len(self._possible)

    def words(self, answer: dict[str, Any]) -> str:
        """What was understood."""
        state, cost, say = answer.get("state"), answer.get("cost"), self._forest.amounts
        if state is None:
            what = f"reward {say(answer['reward'])}"
        elif isinstance(state, str):
            what = state
        else:
            what = self.states[state] if self._named else f"reward {say(self._rewards[state])}"
        return f"{self._box} showed {what}" + ("" if cost is None else f" and cost {say(cost)}")


def _possible(search: Search, box: Box, states: tuple[str, ...]) -> list[int]:
    """The states that the box can show after what its parent showed."""
    forest = search.policy.forest
    up, row = int(forest.parent[box.number]), 0
    for opened in search.history:
        above = opened.box
        if above.number == up and above.copy == box.copy[: len(above.copy)]:
            row = opened.state_number
    law = forest.laws[int(forest.law[box.number])][row]
    return [y for y, p in enumerate(law) if p > 0]


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
