"""What can go wrong, as a small family of exceptions.

    WeitzmanError
    ├── InvalidForest (ValueError)    the problem breaks a rule
    ├── InvalidFile (ValueError)      a file cannot be read as what it claims to be
    ├── UnknownName (KeyError)        no box or state of that name or number
    ├── InvalidArgument (ValueError)  an argument that makes no sense
    ├── TooLarge (ValueError)         the problem is too large for an exhaustive method
    ├── InvalidAnswer (ValueError)    a running search was given an impossible answer
    ├── JournalError (RuntimeError)   a journal cannot be written, or not by this process
    └── MissingPackage (ImportError)  a package that only some functions need is not installed

Every message states the rule, names the first offender, says how many there are and what to do.
"""

from __future__ import annotations


class WeitzmanError(Exception):
    """Base class of all errors raised on purpose by this package."""


class InvalidForest(WeitzmanError, ValueError):
    """The description of the boxes breaks a rule."""


class InvalidFile(WeitzmanError, ValueError):
    """The file is not an instance file, or is damaged."""


class UnknownName(WeitzmanError, KeyError):
    """There is no box or state of that name or number."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class InvalidAnswer(WeitzmanError, ValueError):
    """An answer to a running search is impossible, or contradicts an earlier answer."""


class JournalError(WeitzmanError, RuntimeError):
    """The journal of a search cannot be written, or this process may not use it."""


class MissingPackage(WeitzmanError, ImportError):
    """A function needs a package that is not installed; the message says how to install it."""


class InvalidArgument(WeitzmanError, ValueError):
    """An argument that makes no sense."""


class TooLarge(WeitzmanError, ValueError):
    """The exact answer would take too long; ``situations`` is how many there may be."""

    def __init__(self, message: str, situations: float) -> None:
        super().__init__(message)
        self.situations = situations
