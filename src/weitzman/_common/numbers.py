"""Numbers as people read them, the same in every place: terminal, report, explorer, plots.

The rules, which ``show/page/text.js`` follows digit by digit:

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
"""

from __future__ import annotations

import math
import unicodedata
from decimal import ROUND_HALF_UP, Context, Decimal
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


class Amounts(NamedTuple):
    """How the amounts of one problem are written: with its unit, and digits from its spread on."""

    unit: str = ""
    spread: float = 0.0

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
        return number(x, spread=self.spread, error=error, cents=cents)

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
    decimals = _decimals(x, spread, digits)
    if error > 0 and math.isfinite(error) and 1 - _power(error, 2) <= decimals:
        decimals = 1 - _power(error, 2)
    elif cents:
        decimals = min(decimals, max(_CENTS, 1 - _power(x, _CENTS)))
    if abs(x) >= _LARGE or abs(x) < _SMALL:
        return _with_power(x, _DIGITS if abs(x) > 1 else _FEWEST)
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

    >>> with_unit("-500", "$"), with_unit("0.4", "$"), with_unit("12.5", "EUR"), with_unit("∞", "")
    ('-$500', '$0.40', '12.5 EUR', '∞')
    """
    if not unit or text == "none":
        return text
    if not is_currency_sign(unit):
        return f"{text} {unit}"
    text += "0" if text[-2:-1] == "." else ""
    sign, text = (text[0], text[1:]) if text[0] in "-−" else ("", text)
    return f"{sign}{unit}{text}"


def is_currency_sign(unit: str) -> bool:
    """Whether a unit stands before its number: $, €, US$ and the like."""
    return unit != "" and unicodedata.category(unit[-1]) == "Sc"


def _decimals(x: float, spread: float, digits: int) -> int:
    """Digits after the point: counted from the spread on, and no fewer than three of the number."""
    own = -_power(x, digits)
    if spread <= 0 or not math.isfinite(spread):
        return max(0, digits - 1 + own)
    most = max(0, 15 + own)  # a number has no more digits than that
    return min(most, max(0, digits - 1 - _power(spread, digits), _FEWEST - 1 + own))


def _power(x: float, digits: int) -> int:
    """The power of ten of a number that is rounded to this many digits."""
    return int(f"{x:.{digits - 1}e}".partition("e")[2]) if x else 0


def _rounded(x: float, decimals: int) -> Decimal:
    """Rounded at a decimal, halves away from zero; without an exponent."""
    found = Decimal(x).quantize(Decimal(1).scaleb(-decimals), context=_EXACT)
    return found.quantize(Decimal(1), context=_EXACT) if decimals < 0 else found


def _with_power(x: float, digits: int) -> str:
    power = _power(x, digits)
    mantissa = Decimal(x).scaleb(-power, _EXACT).quantize(Decimal(1).scaleb(1 - digits))
    return f"{_bare(f'{mantissa:f}')}e{power}"


def _bare(text: str) -> str:
    """Without zeros at the end of the decimals."""
    return text.rstrip("0").rstrip(".") if "." in text else text
