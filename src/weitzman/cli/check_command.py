"""The command ``weitzman check``."""

from __future__ import annotations

import json

from ..errors import WeitzmanError
from .console import print_lines
from .instance_file import instance_argument, read_instance
from .options import Options, command, json_option

_ABOUT = """\
Print ok and the size of the problem, or what is wrong with its file.

\b
--json prints one object:
  {"ok": true, "boxes": 3, "with copies": 3, "roots": 2, ...}
or, with the exit code of the error:
  {"ok": false, "error": ...}"""


@command(_ABOUT, short="Whether a file is valid, and its size.")
@instance_argument
@json_option
def check(options: Options) -> None:
    """Carry out the command."""
    from .._common.text import columns
    from ..show.layout import sizes, summary

    try:
        forest = read_instance(options)
    except WeitzmanError as error:
        if options.json:
            print(json.dumps({"ok": False, "error": str(error)}))
        raise
    if options.json:
        print(json.dumps({"ok": True, **sizes(forest)}))
        return
    print("ok")
    print_lines(columns(summary(forest)))
