"""The command ``weitzman search``: a search at the terminal."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TextIO

import click

from .._common.text import printable
from .common import FILE, PATH, Options, command, for_the_shell, read_instance, table_options

if TYPE_CHECKING:
    from ..policy.frontier import Box
    from ..policy.ledger import Rule
    from ..policy.search import Search


_STATES = 12  # states named in a question
_OTHERS = 3  # further boxes named
_TERMINAL = "CONIN$" if os.name == "nt" else "/dev/tty"


@command(short="Open boxes one by one as the policy says.")
@click.argument(
    "file", metavar="[FILE]", type=PATH, required=False,
    help=f"{FILE} Not needed if the journal exists.",
)  # fmt: skip
@click.option("--journal", metavar="DB", type=click.Path(), help="File that keeps the search.")
@click.option(
    "--rewards", metavar="RULE",
    help="What to do with a reward that the box does not have: refuse (default), nearest, or "
    "edges of bins such as 0,10,20.",
)  # fmt: skip
@click.option(
    "--replace", is_flag=True, help="Continue with a FILE that was changed since the search began."
)
@table_options
def search(options: Options) -> None:
    """Show which box to open and why, ask what the box showed, and continue until it
    is best to stop.

    Answer with the number on screen of the state that was seen, with its name, or
    with =12.5 for a reward. Add @3.5 if opening cost 3.5 and not what the file says.
    At a terminal, the program shows what it understood and asks for a confirmation.
    The word undo removes the last answer, also after the search has ended. The word
    quit (or Ctrl-D) stops for now.

    With --journal nothing is lost, whatever happens, and the same command resumes
    where it stopped. FILE is then no longer needed.
    """
    with _search(options) as under_way, ExitStack() as stack:
        source: TextIO = sys.stdin
        if options.file == "-":  # it held the problem
            try:
                source = stack.enter_context(open(_TERMINAL, encoding=sys.stdin.encoding))
            except OSError:
                raise click.UsageError(
                    "standard input holds the problem, and there is no terminal for the answers. "
                    "Save the problem to a file first."
                ) from None
        talk(under_way, source, sys.stdout, kept=options.journal is not None)


def _search(options: Options) -> Search:
    """A new search, or the one in the journal."""
    from ..engine.solver import solve
    from ..policy.search import Search

    journal = options.journal
    if journal is None or not os.path.lexists(journal):
        if options.file is None:
            raise click.UsageError("give a FILE, or the --journal of a search that was begun.")
        policy = solve(read_instance(options)).policy()
        return Search(policy, journal=journal, rewards=_rule(options.rewards or "refuse"))
    search = Search.resume(journal)
    print(f"Resuming {printable(journal)}. Boxes opened so far: {len(search.history)}.")
    if options.rewards is not None:
        print("  --rewards stays what it was when the search began.")
    forest = None if options.file is None else read_instance(options)
    if forest is not None and forest != search.policy.forest:
        if options.replace:
            search.replace(solve(forest))
        else:
            file = printable(options.file)
            print(f"  {file} was changed since. --replace would use the new one.")
    return search


def _rule(text: str) -> Rule:
    if text == "refuse" or text == "nearest":
        return text  # type: ignore[return-value]
    try:
        return [float(x) for x in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--rewards must be refuse, nearest or numbers, but it is {text!r}."
        ) from None


def talk(search: Search, source: TextIO, target: TextIO, *, kept: bool) -> None:
    """Ask and tell until it is best to stop or the answers end."""
    talk = _Talk(search, source, target)
    while talk.goes_to_the_end():
        talk.say(f"{search.explain()}\n  {talk.standing()}")
        if not source.isatty() or not search.history:
            return
        text, _ = talk.heard("Enter ends the search here; undo removes the last answer: ")
        if text != "undo":
            return
        talk.say(search.undo())
    talk.say("Stopped for now. " + ("Run it again to continue." if kept else "Nothing is kept."))


class _Talk:
    """What is said and heard at the terminal."""

    def __init__(self, search: Search, source: TextIO, target: TextIO) -> None:
        self._search, self._source, self._target = search, source, target
        self._amounts, self._typed = search.policy.forest.amounts, source.isatty()

    def say(self, text: str, end: str = "\n") -> None:
        """Write lines that cannot disturb a terminal."""
        self._target.write("\n".join(map(printable, text.split("\n"))) + end)
        self._target.flush()

    def heard(self, question: str) -> tuple[str, bool]:
        """What was typed, and whether there was anything at all."""
        self.say(question, end="")
        line = self._source.readline()
        text = line.strip()
        if not line or not self._typed:  # nobody typed the end of the line
            self.say(text)
        return text, bool(line)

    def goes_to_the_end(self) -> bool:
        """Ask and tell until it is best to stop; False if the answers end before."""
        while (box := self._search.ask()) is not None:
            self.say(self._search.explain(box if box.move == "open" else None))
            if box.move == "take":
                self._search.take(box)
                continue
            found = self._search.available(_OTHERS + 1)
            names = [f"{b} (index {self._amounts(i)})" for b, i in found[:_OTHERS]]
            names += ["..."] * (len(found) > _OTHERS)
            others = "no other box can be opened now"
            others = f"also available: {', '.join(names)}" if found else others
            self.say(f"  {self.standing()}; {others}")
            if not self._told(box):
                return False
        return True

    def standing(self) -> str:
        """The best so far, what was spent, and what stopping now earns."""
        search, say = self._search, self._amounts
        if search.policy.forest.prizes > 1:
            taken = ", ".join(f"{say(reward)} from {box}" for box, reward in search.taken)
            head, payoff = f"prizes taken: {taken or 'none'}; spent", "payoff"
        else:
            where = "outside option" if search.best_box is None else f"from {search.best_box}"
            loss = search.policy.forest.minimize
            head = f"{'least loss' if loss else 'best'} {say(search.best)} ({where}), spent"
            payoff = "in all" if loss else "payoff"
        return f"{head} {say(search.spent)}, {payoff} {say(search.payoff)}"

    def _told(self, box: Box) -> bool:
        """Ask what the box showed until there is an answer or one is undone; False to stop."""
        from ..errors import WeitzmanError

        search, choices = self._search, _Choices(self._search, box)
        while True:
            text, more = self.heard(f"What did {box} show? ({choices.shown}; =REWARD; undo; quit) ")
            word = "" if text in choices.states else text
            if not more or word == "quit":
                return False
            try:
                if word == "undo":
                    self.say(search.undo())
                    if box in search.pending:  # nobody is opening it
                        search.release(box)
                    return True
                answer = choices.answer(text) if text else {}
                if answer and (not self._typed or self._confirmed(choices.words(answer))):
                    search.tell(box, **answer)
                    return True
            except WeitzmanError as error:
                if not self._typed:  # what follows is meant for other boxes
                    raise
                self.say(for_the_shell(str(error)))

    def _confirmed(self, what: str) -> bool:
        while True:
            text, more = self.heard(f"  {what}. Right? [Y/n] ")
            if text.lower() in ("", "y", "yes", "n", "no"):
                return more and text.lower() not in ("n", "no")
            self.say("  Type y (yes) or n (no).")


class _Choices:
    """The states that a box can show, numbered from 1 on screen unless names are numbers."""

    def __init__(self, search: Search, box: Box) -> None:
        f = search.policy.forest
        pool, up, row = int(f.reward[box.number]), int(f.parent[box.number]), 0
        for opened in search.history:
            above = opened.box
            if above.number == up and above.copy == box.copy[: len(above.copy)]:
                row = opened.state_number
        self._forest, self._box, self._named = f, box, f.state_names[pool] is not None
        self._say, self.states = f.amounts, f.states(box.number)
        self._numbered = not (self._named and any(name.isdecimal() for name in self.states))
        rewards = [f"reward {self._say(x)}" for x in f.rewards[pool][0]]
        self._words = self.states if self._named else rewards
        self._possible = f.laws[int(f.law[box.number])][row].nonzero()[0].tolist()
        cells = [
            f"{place}: {self._words[y]}" if self._numbered else self._words[y]
            for place, y in enumerate(self._possible[:_STATES], 1)
        ]
        self.shown = ", ".join(cells) + (", ..." if len(self._possible) > _STATES else "")

    def answer(self, text: str) -> dict[str, Any]:
        """A state or a reward, followed by @ and the cost if the cost is given."""
        from ..errors import InvalidAnswer

        if self._named and text in self.states:
            return {"state": text}
        head, at, tail = text.rpartition("@")
        head = head.strip()
        if at and (cost := _float(tail)) is not None:
            return {**self.answer(head), "cost": cost}
        if head in self.states or self._is_place(head):
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
        state, cost = answer.get("state"), answer.get("cost")
        if state is None:
            state = f"reward {self._say(answer['reward'])}"
        what = state if isinstance(state, str) else self._words[state]
        paid = "" if cost is None else f" and cost {self._say(cost)}"
        return f"{self._box} showed {what}{paid}"


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
