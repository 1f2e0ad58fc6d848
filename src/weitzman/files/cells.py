"""Numbers as people type them into a sheet: ``40%``, ``1/2``, ``$500``, ``150,000``, ``1.5k``.

A comma may separate thousands (``1,234.5``) or stand for the decimal point (``1,5``). A single
number may be ambiguous (``1,234``), but all numbers of a sheet are written in the same way: the
other numbers decide. Where no number decides, an error asks the user.
"""

from __future__ import annotations

import math
import re
import unicodedata
from enum import Enum
from typing import NamedTuple

_SPACES = str.maketrans("", "", " \u00a0\u2007\u2009\u202f'")
_MINUS = str.maketrans("\u2212\u2013", "--")
_FACTORS = {"k": 1e3, "m": 1e6, "mn": 1e6, "mio": 1e6, "bn": 1e9, "b": 1e9}
_SCALES = {*_FACTORS, "t", "mm", "tsd"}  # T€ is a thousand euros in Berlin: asked about
_PLAIN = re.compile(r"-?[0-9]+\.[0-9]+")
_BODY = re.compile(r"(?P<sign>[+-]?)(?P<digits>[\d.,]+)(?:[eE](?P<power>[+-]?\d{1,4}))?")
_CODE = re.compile(r"^[A-Z]{3}(?=[\d.+-])|(?<=[\d.])[A-Z]{3}$")
_GROUPS = re.compile(r"[1-9]\d{0,2}(,\d{3})+$")
_POINTS = re.compile(r"[1-9]\d{0,2}\.\d{3}$")
_ZEROS = re.compile(r"[1-9]\d{0,2}(,\d{3})*,000$")
_POINTED = ("$", "£", "¥")  # with these currencies, commas separate thousands
_LONGEST = 400  # characters of a number


class Comma(Enum):
    """What a comma means in a sheet."""

    THOUSANDS = "a comma between thousands"
    DECIMAL = "a decimal comma"


class Cell(NamedTuple):
    """A number as it was typed, taken apart."""

    digits: str
    sign: float = 1.0
    power: int = 0
    factor: float = 1.0
    currency: str = ""

    @property
    def comma(self) -> Comma | None:
        """What a comma means according to this number alone; None if the number is ambiguous."""
        comma, point = self.digits.rfind(","), self.digits.rfind(".")
        if comma < 0:
            if self.digits.count(".") > 1:
                return Comma.DECIMAL
            return None if point < 0 or _POINTS.match(self.digits) else Comma.THOUSANDS
        if point >= 0:
            return Comma.THOUSANDS if point > comma else Comma.DECIMAL
        if _ZEROS.match(self.digits) or self.digits.count(",") > 1:
            return Comma.THOUSANDS
        if _GROUPS.match(self.digits):
            return Comma.THOUSANDS if self.currency[-1:] in _POINTED else None
        return Comma.DECIMAL

    def value(self, comma: Comma) -> float:
        """The number, with commas read in this way; NaN if the result is not a number."""
        part, mark = (",", ".") if comma is Comma.THOUSANDS else (".", ",")
        whole, _, rest = self.digits.partition(mark)
        groups = whole.split(part)
        if part in rest or mark in rest:
            return math.nan
        if len(groups) > 1 and any(len(g) != 3 for g in groups[1:]):
            return math.nan
        try:
            x = float(f"{''.join(groups)}.{rest or 0}e{self.power}")
        except (ValueError, OverflowError):
            return math.nan
        return self.sign * x * self.factor


def plain_number(text: str) -> float | None:
    """A number in the form that every program writes; None otherwise, and for ``1.234e999``."""
    try:
        x = float(text)
    except ValueError:
        return None
    return x if math.isfinite(x) and "_" not in text else None


def fraction(text: str) -> float | None:
    """``1/2``, or None."""
    top, slash, bottom = text.translate(_SPACES).partition("/")
    if not slash or not (top.isdecimal() and bottom.isdecimal()) or len(text) > _LONGEST:
        return None
    return int(top) / int(bottom) if int(bottom) else None


def taken_apart(text: str) -> Cell | None:
    """A number with its sign, currency, percent sign and ``k``; None if it is not a number."""
    if _PLAIN.fullmatch(text) and len(text) <= _LONGEST:  # most cells of long tables
        return Cell(text.lstrip("-"), -1.0 if text[0] == "-" else 1.0)
    text = text.translate(_SPACES).translate(_MINUS)
    if not text or len(text) > _LONGEST:
        return None
    sign = 1.0
    if text[0] == "(" and text[-1] == ")":  # accountants write negative numbers like this
        sign, text = -1.0, text[1:-1]
    text, currency = _without_currency(text)
    factor = 1.0
    if text.endswith("%"):
        text, factor = text[:-1], 0.01
    else:
        letters = text[len(text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) :]
        if letters.lower() in _FACTORS:
            text, factor = text[: -len(letters)], _FACTORS[letters.lower()]
    found = _BODY.fullmatch(text)
    if found is None or not any(c.isdecimal() for c in found["digits"]):
        return None
    sign *= -1.0 if found["sign"] == "-" else 1.0
    return Cell(found["digits"], sign, int(found["power"] or 0), factor, currency)


def _without_currency(text: str) -> tuple[str, str]:
    """A number without the sign or code of its currency, and that sign or code."""
    signs = "".join(c for c in text if unicodedata.category(c) == "Sc")
    if len(signs) == 1:
        before = text.partition(signs)[0]
        prefix = before.strip("+-")
        named = prefix.isalpha() and prefix.isupper() and len(prefix) <= 3 and signs != "€"
        if named and prefix.lower() not in _SCALES:  # US$
            return text.replace(prefix + signs, "", 1), prefix + signs
        return text.replace(signs, "", 1), signs
    code = _CODE.search(text)
    if code is None:
        return text, ""
    return text.replace(code[0], "", 1), code[0]
