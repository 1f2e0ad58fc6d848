"""Numbers on the command line, with the rule in the error."""

from __future__ import annotations

import argparse
import math


def number(text: str) -> float:
    try:
        x = float(text)
    except ValueError:
        x = math.nan
    if not math.isfinite(x):
        raise argparse.ArgumentTypeError(f"must be a number, but it is {text!r}")
    return x


def outside_option(text: str) -> float:
    return math.inf if text == "none" else number(text)


def positive(text: str) -> float:
    x = number(text)
    if x <= 0:
        raise argparse.ArgumentTypeError(f"must be above 0, but it is {text}")
    return x


def whole(text: str, least: int) -> int:
    try:
        n = int(text)
    except ValueError:
        n = least - 1
    if n < least:
        raise argparse.ArgumentTypeError(f"must be a whole number from {least} on, not {text!r}")
    return n
