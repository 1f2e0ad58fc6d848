"""Commands for the first steps: ``weitzman demo`` and ``weitzman completions``."""

from __future__ import annotations

from importlib.resources import files

import click

from .console import print_lines, progress_bar
from .options import Options, command

_WHY = """\
Why: every closed box has an index, the reward in hand at which opening it
makes no difference. Open the box of highest index as long as that is above the
best reward so far; otherwise stop."""

_TRY = """\
Try your own numbers:
  weitzman demo --json > boxes.json
  weitzman solve boxes.json --explain"""

_COMPLETIONS = """\
Print a script that lets the shell complete commands, options and files.

\b
  bash   echo 'eval "$(weitzman completions bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(weitzman completions zsh)"' >> ~/.zshrc
  fish   weitzman completions fish > ~/.config/fish/completions/weitzman.fish

Completion works in every new shell."""


@command(
    "Solve a small built-in example and explain the best policy in words.",
    short="A small example, solved and explained.",
)
@click.option("--json", is_flag=True, help="Print the file of the example instead.")
def demo(options: Options) -> None:
    """Carry out the command."""
    from ..engine.solver import solve
    from ..files.json_reader import forest
    from ..files.safely import parse
    from ..policy.words import describe, explain

    text = files("weitzman.files").joinpath("demo.json").read_bytes()
    if options.json:
        print(text.decode().rstrip())
        return
    with progress_bar() as progress:
        problem = forest(parse(text))
        solution = solve(problem, progress=progress)
    print(f"{len(problem)} closed boxes:\n")
    print_lines(f"  {line}" for line in describe(problem).splitlines())
    print("\nStop at any time and take the best reward found, or the outside option, ", end="")
    print(f"{problem.amounts(problem.outside)}.\n")
    print(f"The best policy earns {problem.amounts(solution.value)} on average:\n")
    print_lines(f"  {line}" for line in explain(solution).splitlines())
    print(f"\n{_WHY}\n")
    print_lines(f"  {line}" for line in solution.index_lines())
    print(f"\n{_TRY}")


@command(_COMPLETIONS, short="Complete commands with the Tab key.")
@click.argument(
    "shell", type=click.Choice(("bash", "zsh", "fish")), metavar="SHELL", help="bash, zsh or fish"
)
def completions(options: Options) -> None:
    """Carry out the command."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(options.shell)
    root = click.get_current_context().find_root()
    assert kind is not None
    script = kind(root.command, {}, "weitzman", "_WEITZMAN_COMPLETE").source()
    if options.shell == "zsh":  # a bare zsh has no completions until it is told to load them
        first, _, rest = script.partition("\n")
        load = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }"
        script = f"{first}\n{load}\n{rest}"
    print(script)
