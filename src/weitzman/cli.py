"""The command ``weitzman``: parse, call one public function, print."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import TextIO

from .errors import InvalidFile, WeitzmanError

OK, INVALID, USAGE, UNREADABLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

_ABOUT = """\
Search when looking costs something.

Boxes hold rewards that are not known before they are opened. Opening a box costs something, may
tell about boxes behind it, and you may stop at any time with the best reward found. weitzman
computes which box to open next, when to stop, and what the whole search is worth."""

_EXAMPLES = """\
start here:
  weitzman demo                         a small example, solved and explained
  weitzman demo --json > boxes.json     its file, to change as you like
  weitzman solve boxes.json --explain   the best policy in words
  weitzman schema                       all that a file may say

exit codes:
  0    done
  1    the instance is invalid, or its file is damaged
  2    the command was not understood
  3    a file cannot be read or written, or memory does not suffice
  70   a bug in this program
  130  interrupted"""
