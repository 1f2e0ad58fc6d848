"""The command ``weitzman completions``."""

from __future__ import annotations

import click

from .options import Options, command

_ABOUT = """\
Print a script that lets the shell complete commands, options and files.

\b
  bash   echo 'eval "$(weitzman completions bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(weitzman completions zsh)"' >> ~/.zshrc
  fish   weitzman completions fish > ~/.config/fish/completions/weitzman.fish

A new shell knows them."""


@command(_ABOUT, short="Complete commands with the Tab key.")
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
