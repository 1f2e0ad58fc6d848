"""Numbers as people read and write them, the same in every place.

Written for people in the terminal, report, explorer and plots. The rules, which
``show/page/text.js`` follows digit by digit:

* six significant digits at most, without the zeros at the end; no digit before the decimal point
  is ever rounded away, so ``1234567.8`` reads ``1,234,568``;
* with a ``spread``, the range of all amounts of a problem, the digits count from there: amounts
  from 1,000,000 to 1,000,001 differ in the decimals, and the decimals are shown. Three
  significant digits of every number are shown in any case, and rounding errors are not;
* with an ``error``, nothing beyond the second digit of the error is shown: ``60,190 ± 580``;
* commas between thousands; powers of ten only from 1e15 on and below one millionth;
* a currency sign stands before the number, any other unit after it;
* money is written with cents or without: ``$0.40`` and ``$12``. Fractions of a cent are shown only
  where rewards and costs lie within ten units, in amounts that are small themselves, and where an
  error decides.

Read from people in cells, settings, options and the explorer: ``40%``, ``1/2``, ``$500``,
``150,000``, ``1.5k``. A comma may separate thousands (``1,234.5``) or stand for the decimal point
(``1,5``). A single number may be ambiguous (``1,234``), but all numbers of a sheet are written in
the same way: the other numbers decide.
"""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import Enum
from typing import NamedTuple

_DIGITS = 6  # significant digits of a number
_FEWEST = 3  # significant digits of a number that is small beside the spread
_LARGE, _SMALL = 1e15, 1e-6  # beyond: powers of ten
_CENTS, _RICH = 2, 10.0  # decimals of money, and the spread from which on cents suffice
_NOISE = 1e-12  # of the spread: what is smaller is a rounding error
_RARE = 1e-5  # chances below are not told apart
_SURE = 1e-12  # chances this close to 1 are 1
_PLURALS = {"box": "boxes", "class": "classes", "copy": "copies", "entry": "entries"}
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)

_SPACES = str.maketrans("", "", " \u00a0\u2007\u2009\u202f'\u2019")
_MINUS = str.maketrans("\u2212\u2013", "--")
SCALES = {"k": 3, "m": 6, "mn": 6, "mio": 6, "bn": 9, "b": 9}  # powers of ten
PERIODS = {
    word: period
    for period, words in {
        "year": "y yr yrs year years yearly annum annual annually jahr jahre",
        "quarter": "quarter quarters quarterly quartal quartale",
        "month": "mo mon month months monthly monat monate",
        "week": "w wk week weeks weekly woche wochen",
        "day": "d day days daily tag tage",
        "hour": "h hr hrs hour hours hourly stunde stunden",
    }.items()
    for word in words.split()
}
PER_YEAR = {"year": 1, "quarter": 4, "month": 12, "week": 365.25 / 7, "day": 365.25, "hour": 8766}
_ASKED = {*SCALES, "t", "mm", "tsd"}  # T€ is a thousand euros in Berlin: asked about
_PLAIN = re.compile(r"-?[0-9]+\.[0-9]+")
_BODY = re.compile(r"(?P<sign>[+-]?)(?P<digits>[\d.,]+)(?:[eE](?P<power>[+-]?\d{1,4}))?")
_CODE = re.compile(r"^[A-Z]{3}(?=[\d.+-])|(?<=[\d.])[A-Z]{3}$")
_GROUPS = re.compile(r"[1-9]\d{0,2}(,\d{3})+$")
_POINTS = re.compile(r"[1-9]\d{0,2}\.\d{3}$")
_ZEROS = re.compile(r"[1-9]\d{0,2}(,\d{3})*,000$")
_POINTED = ("$", "£", "¥")  # with these currencies, commas separate thousands
_LONGEST = 400  # characters of a number


class Amounts(NamedTuple):
    """How the amounts of one problem are written: with its unit, and digits from its spread on."""

    unit: str = ""
    spread: float = 0.0
    digits: int = _DIGITS

    def __call__(self, x: float, error: float = 0.0) -> str:
        """An amount, and its unit.

        >>> Amounts("$", 150_000.0)(60300.4271)
        '$60,300'
        >>> Amounts("hours", 10.0)(-2.5)
        '-2.5 hours'
        >>> Amounts("$", 60.0)(4.48437), Amounts("$", 60.0)(0.4), Amounts("$", 60.0)(0.01234)
        ('$4.48', '$0.40', '$0.012')
        """
        return with_unit(self.bare(x, error), self.unit)

    def bare(self, x: float, error: float = 0.0) -> str:
        """An amount without its unit."""
        cents = self.spread >= _RICH and is_currency_sign(self.unit)
        return number(x, spread=self.spread, error=error, digits=self.digits, cents=cents)

    def margin(self, error: float) -> str:
        """An error or a distance between amounts: two digits, and the unit.

        >>> Amounts("$", 60.0).margin(0.5832)
        '$0.58'
        """
        return with_unit(rough(error), self.unit)

    def typeset(self, x: float, error: float = 0.0) -> str:
        """An amount with a true minus sign, for pages and pictures.

        >>> Amounts("man-days").typeset(-2.5), Amounts("$").typeset(-500.0)
        ('−2.5 man-days', '−$500')
        """
        return with_unit(self.bare(x, error).replace("-", "−"), self.unit)


def number(
    x: float,
    *,
    spread: float = 0.0,
    error: float = 0.0,
    digits: int = _DIGITS,
    cents: bool = False,
) -> str:
    """A number as people read it; see the rules at the top of the module.

    >>> number(58.25184227), number(0.1 + 0.2), number(-80000.0), number(1.12e5)
    ('58.2518', '0.3', '-80,000', '112,000')
    >>> number(1000000.37), number(1000000.37, spread=1.0), number(60193.2, error=582.0)
    ('1,000,000', '1,000,000.37', '60,190')
    >>> number(2.13e-10), number(math.inf)
    ('2.13e-10', '∞')
    """
    x = float(x)
    if math.isnan(x):
        return "none"
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    if x == 0 or abs(x) < _NOISE * spread:
        return "0"
    own = -_power(x, digits)
    decimals = max(0, digits - 1 + own)
    if spread > 0 and math.isfinite(spread):
        # from the spread on, no fewer than three digits of the number, and none that it has not
        most, fewest = max(0, 15 + own), max(0, _FEWEST - 1 + own)
        decimals = min(most, max(fewest, digits - 1 - _power(spread, digits)))
    if error > 0 and math.isfinite(error) and 1 - _power(error, 2) <= decimals:
        decimals = 1 - _power(error, 2)
    elif cents:
        decimals = min(decimals, max(_CENTS, 1 - _power(x, _CENTS)))
    if abs(x) >= _LARGE or abs(x) < _SMALL:
        digits = _DIGITS if abs(x) > 1 else _FEWEST
        power = _power(x, digits)
        mantissa = Decimal(x).scaleb(-power, _EXACT).quantize(Decimal(1).scaleb(1 - digits))
        return f"{_bare(f'{mantissa:f}')}e{power}"
    text = f"{_rounded(x, decimals):,f}"
    return _bare(text) if text != "-0" else "0"


def about(x: float) -> str:
    """A number with three significant digits, for means of counts and factors.

    >>> about(2.34567), about(12345.6)
    ('2.35', '12,346')
    """
    return number(x, digits=_FEWEST)


def rough(x: float) -> str:
    """An error or a distance: two digits.

    >>> rough(582.0), rough(0.0123), rough(3.21e-12)
    ('580', '0.012', '3.21e-12')
    """
    return number(x, error=abs(x))


def ends(low: float, high: float) -> tuple[str, str]:
    """The ends of an interval, with the digits that tell one from the other.

    >>> ends(94.32512, 94.32569), ends(2.0, 2.0)
    (('94.32512', '94.32569'), ('2', '2'))
    >>> ends(1000000.12345, 1000000.12351)
    ('1,000,000.12345', '1,000,000.12351')
    """
    spread = (high - low) * 10.0 ** (_DIGITS - 2)
    if not 0 < spread < max(abs(low), abs(high)):
        return number(low), number(high)
    return number(low, spread=spread), number(high, spread=spread)


def percent(p: float) -> str:
    """A chance; 0% and 100% are only for what is impossible and what is certain.

    >>> percent(0.4), percent(1 / 3), percent(0.9999), percent(1e-9), percent(1.0)
    ('40%', '33.3%', '>99.9%', '<0.001%', '100%')
    """
    if 0 < p < _RARE:
        return "<0.001%"
    if 0.9995 <= p < 1 - _SURE:
        return ">99.9%"
    x = float(f"{100 * p:.12g}")
    return f"{_bare(f'{_rounded(x, 2 - _power(x, _FEWEST)):f}') if x else '0'}%"


def whole(n: int) -> str:
    """A count.

    >>> whole(1234567)
    '1,234,567'
    """
    return f"{int(n):,}"


def counted(n: int, one: str) -> str:
    """A count of things, which are named by their singular.

    >>> counted(1, "box"), counted(2000, "more row"), counted(0, "entry"), counted(3, "set of rows")
    ('1 box', '2,000 more rows', '0 entries', '3 sets of rows')
    """
    if n != 1:
        head, of, rest = one.partition(" of ")
        before, space, noun = head.rpartition(" ")
        one = before + space + _PLURALS.get(noun, noun + "s") + of + rest
    return f"{whole(n)} {one}"


def such(n: int, one: str) -> str:
    """How many things break a rule, for the end of a message.

    >>> such(1, "box"), such(2, "box")
    ('1 such box', '2 such boxes')
    """
    return counted(n, f"such {one}")


def with_unit(text: str, unit: str) -> str:
    """A written number with its unit.

    >>> with_unit("-500", "$"), with_unit("0.4", "$"), with_unit("12.5", "h"), with_unit("-∞", "$")
    ('-$500', '$0.40', '12.5 h', '-∞')
    >>> with_unit("-30.8", "$M"), with_unit("30.8", "k€"), with_unit("0.4", "Mio. €")
    ('-$30.8M', '30.8 k€', '0.4 Mio. €')
    """
    if not unit or text == "none" or "∞" in text:
        return text
    scale = next((x for x in _SCALES if unit.endswith(x)), "")
    before = unit.removesuffix(scale)
    if not is_currency_sign(before):
        return f"{text} {unit}"
    text += "0" if text[-2:-1] == "." and not scale else ""
    sign, text = (text[0], text[1:]) if text[0] in "-−" else ("", text)
    return f"{sign}{before}{text}{scale if text != '0' else ''}"


_SCALES = ("mn", "bn", "k", "K", "m", "M", "B")  # after a currency sign: $M, £k


def is_currency_sign(unit: str) -> bool:
    """Whether a unit stands before its number: $, €, US$ and the like."""
    multiple = unit[:-1].rstrip(" .").lower() in _ASKED  # k€ and Tsd. € stand after it
    return unit != "" and not multiple and unicodedata.category(unit[-1]) == "Sc"


def _power(x: float, digits: int) -> int:
    """The power of ten of a number that is rounded to this many digits."""
    return int(f"{x:.{digits - 1}e}".partition("e")[2]) if x else 0


def _rounded(x: float, decimals: int) -> Decimal:
    """Rounded at a decimal, halves away from zero; without an exponent."""
    found = Decimal(x).quantize(Decimal(1).scaleb(-decimals), context=_EXACT)
    return found.quantize(Decimal(1), context=_EXACT) if decimals < 0 else found


def _bare(text: str) -> str:
    """Without zeros at the end of the decimals."""
    return text.rstrip("0").rstrip(".") if "." in text else text


# -- numbers that people write ---------------------------------------------------------------------


class Comma(Enum):
    """What a comma means in a sheet."""

    THOUSANDS = "a comma between thousands"
    DECIMAL = "a decimal comma"


class Typed(NamedTuple):
    """A number that was typed, its currency, and the power of ten of its k, M or %."""

    value: float
    currency: str = ""
    scale: int = 0

    @property
    def percent(self) -> bool:
        """Whether it was a percentage."""
        return self.scale < 0


class Parts(NamedTuple):
    """A number as it was typed, taken apart; ``scale`` is the power of ten of k, M or %."""

    digits: str
    sign: float = 1.0
    power: int = 0
    scale: int = 0
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
        if part in rest or mark in rest or any(len(g) != 3 for g in groups[1:]):
            return math.nan
        try:
            x = float(f"{''.join(groups)}.{rest or 0}e{self.power + self.scale}")
        except (ValueError, OverflowError):
            return math.nan
        return self.sign * x


def typed_number(text: str, comma: Comma | None = None) -> Typed:
    """A finite number as people write it; `ValueError` says what is wrong with another text.

    Without ``comma`` the number stands alone, as in an option: commas separate thousands wherever
    they can, as in all numbers that this package prints.

    >>> typed_number("250,000").value, typed_number("1,5").value, typed_number("10%")
    (250000.0, 1.5, Typed(value=0.1, currency='', scale=-2))
    >>> typed_number("30.000 €", Comma.DECIMAL)
    Typed(value=30000.0, currency='€', scale=0)
    """
    plain = plain_number(text) if comma is not Comma.DECIMAL else None
    if plain is not None:
        return Typed(plain)
    top, _, bottom = text.translate(_SPACES).partition("/")
    if top.isdecimal() and bottom.isdecimal() and len(text) <= _LONGEST and int(bottom):
        return Typed(int(top) / int(bottom))
    parts = taken_apart(text)
    if parts is None:
        raise ValueError(f"{text[:40]!r} is not a number such as 1500, 1,500, 40%, 1/2, $2M.")
    if comma is None and parts.comma is None and "." in parts.digits:
        raise ValueError(
            f"{text[:40]!r} may have a decimal point or a point between thousands. Write it "
            f"without the point, or with decimals such as {parts.digits.replace('.', '')}.00."
        )
    x = parts.value(comma or parts.comma or Comma.THOUSANDS)
    if not math.isfinite(x):
        raise ValueError(f"{text[:40]!r} is not a finite number with its commas in place.")
    return Typed(x, parts.currency, parts.scale)


class TypedRate(NamedTuple):
    """A rate that was typed, as a continuous rate, and the unit of time that it is for.

    ``per`` is "" if the text does not say; ``compounded`` is the rate for that time if it was meant
    as one that compounds, and None if it was meant as it stands.
    """

    continuous: float
    per: str = ""
    compounded: float | None = None


def typed_rate(text: str, comma: Comma | None = None, compounds: bool = False) -> TypedRate:
    """A rate at which later payoffs are discounted, as people write it.

    A percentage compounds: 10% stand for a factor of 1/1.1 after each unit of time, a year unless
    the text says another. A plain number is the r of exp(-r t), as in Python, unless ``compounds``;
    so is a percentage with the word "continuous".

    >>> typed_rate("10%").compounded, round(typed_rate("10%").continuous, 6)
    (0.1, 0.09531)
    >>> typed_rate("0.1") == typed_rate("10% continuous") == TypedRate(0.1)
    True
    """
    words = re.split(r"[\s./]+", text.lower())
    bare = text
    per = next((PERIODS[w] for w in reversed(words) if w in PERIODS), "")
    if re.search(r"\bp\.? ?a\b", text.lower()):
        per = "year"
    continuous = "contin" in text.lower()
    end = re.search(r"(?<=[\d%])[\s/]*[(/a-zA-Z][^\d%]*$", text)
    if end is not None and (per or continuous):
        bare = text[: end.start()]
    found = typed_number(bare, comma)
    if continuous or not (found.percent or compounds):
        return TypedRate(found.value, per)
    if found.value <= -1:
        raise ValueError(f"{text[:40]!r} is a rate of -100% or less.")
    return TypedRate(math.log1p(found.value), per, found.value)


def plain_number(text: str) -> float | None:
    """A number in the form that every program writes; None otherwise, and for ``1.234e999``."""
    try:
        x = float(text)
    except ValueError:
        return None
    return x if math.isfinite(x) and "_" not in text else None


def taken_apart(text: str) -> Parts | None:
    """A number with its sign, currency, percent sign and ``k``; None if it is not a number."""
    if _PLAIN.fullmatch(text) and len(text) <= _LONGEST:  # most cells of long tables
        return Parts(text.lstrip("-"), -1.0 if text[0] == "-" else 1.0)
    text = text.translate(_SPACES).translate(_MINUS)
    if not text or len(text) > _LONGEST:
        return None
    sign = 1.0
    if text[0] == "(" and text[-1] == ")":  # accountants write negative numbers like this
        sign, text = -1.0, text[1:-1]
    currency, scale = "", 0
    signs = "".join(c for c in text if unicodedata.category(c) == "Sc")
    if len(signs) == 1:
        prefix = text.partition(signs)[0].strip("+-")
        named = prefix.isalpha() and prefix.isupper() and len(prefix) <= 3 and signs != "€"
        currency = prefix + signs if named and prefix.lower() not in _ASKED else signs  # US$
    elif (code := _CODE.search(text)) is not None:
        currency = code[0]
    text = text.replace(currency, "", 1)
    if text.endswith("%"):
        text, scale = text[:-1], -2
    else:
        letters = text[len(text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) :]
        if letters.lower() in SCALES:
            text, scale = text[: -len(letters)], SCALES[letters.lower()]
    found = _BODY.fullmatch(text)
    if found is None or not any(c.isdecimal() for c in found["digits"]):
        return None
    sign *= -1.0 if found["sign"] == "-" else 1.0
    return Parts(found["digits"], sign, int(found["power"] or 0), scale, currency)
