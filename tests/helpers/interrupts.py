"""Interrupts at a chosen place of a call, by a trace function."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Interrupt:
    """Raises KeyboardInterrupt at the n-th line or instruction of the package."""

    def __init__(self, at: int, *, opcodes: bool = True) -> None:
        self.left, self.opcodes = at, opcodes
        if opcodes:  # Python 3.12 traces instructions only if a frame asked for it beforehand
            sys._getframe().f_trace_opcodes = True

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        if os.sep + "weitzman" + os.sep not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = self.opcodes
        if event in ("line", "opcode") and self.may_come(frame, event):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self

    def may_come(self, frame: FrameType, event: str) -> bool:
        """Whether an interrupt can come here at all."""
        return True


def interrupted(call: Callable[[], object], by: Interrupt) -> bool:
    """Whether the call was interrupted; False if it came to its end before."""
    sys.settrace(by)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False
