"""Numbers as people read them: by hand, by rule, and the same in Python and on the pages."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weitzman
from weitzman._common.numbers import (
    Amounts,
    about,
    counted,
    ends,
    number,
    percent,
    rough,
    such,
    whole,
    with_unit,
)

finite = st.floats(allow_nan=False, allow_infinity=False)
SCRIPT = Path(weitzman.__file__).parent / "show" / "page" / "text.js"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (58.25184227, "58.2518"),
        (8e4, "80,000"),
        (1.12e5, "112,000"),
        (60300.4, "60,300.4"),
        (1234567.8, "1,234,568"),
        (0.1 + 0.2, "0.3"),
        (-0.0, "0"),
        (-2500.0, "-2,500"),
        (0.000012345, "0.000012345"),
        (2.13e-10, "2.13e-10"),
        (1e15, "1e15"),
        (999_999_999_999_999.0, "999,999,999,999,999"),
        (999_999.5, "1,000,000"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
        (math.nan, "none"),
    ],
)
def test_numbers_read_as_people_write_them(x, text):
    assert number(x) == text


@pytest.mark.parametrize(
    ("x", "spread", "text"),
    [
        (60300.4271, 150_000.0, "60,300"),
        (94.325, 1000.0, "94.33"),
        (1_000_000.37, 1.0, "1,000,000.37"),
        (0.00125, 1e6, "0.00125"),
        (1e-9, 1e6, "0"),
        (-1e-17, 1.0, "0"),
    ],
)
def test_the_spread_decides_what_matters(x, spread, text):
    assert Amounts("", spread)(x) == text


def test_an_error_rounds_away_what_it_makes_void():
    assert Amounts()(60193.2, 582.3) == "60,190"
    assert Amounts("€")(-3.14159, 0.0213) == "-€3.142"
    assert number(3.0, error=5000.0) == "0"
    assert rough(580.0) == "580"


@pytest.mark.parametrize(
    ("x", "spread", "text"),
    [
        (0.4, 100.0, "$0.40"),  # read "$0.4"
        (-5.5, 60.0, "-$5.50"),
        (4.48437, 60.0, "$4.48"),
        (12.0, 60.0, "$12"),
        (0.1576, 60.0, "$0.16"),
        (0.001234, 60.0, "$0.0012"),  # not $0
        (0.12345, 1.0, "$0.12345"),  # fractions of a cent are all there is
    ],
)
def test_money_is_written_with_cents_or_without(x, spread, text):
    assert Amounts("$", spread)(x) == text


def test_the_error_of_money_decides_before_the_cents():
    say = Amounts("$", 60.0)
    assert f"{say(4.48774, 0.0069)} ± {say.margin(0.0069)}" == "$4.4877 ± $0.0069"
    assert f"{say(4.48774, 0.5)} ± {say.margin(0.5)}" == "$4.49 ± $0.50"
    assert say(94.3251, 1e-9) == "$94.33"  # an error that nobody sees decides nothing


def test_units():
    assert with_unit("500", "US$") == "US$500"
    assert with_unit("-500", "£") == "-£500"
    assert with_unit("500", "EUR") == "500 EUR"
    assert with_unit("none", "$") == "none"


def test_counts_and_means():
    assert (whole(10**9), counted(1, "box"), about(2.3456)) == (
        "1,000,000,000", "1 box", "2.35",
    )  # fmt: skip
    assert ends(94.3251234, 94.3251289) == ("94.3251234", "94.3251289")


def test_a_count_of_one_has_no_plural():
    """Also in messages: "1 such boxes" is written nowhere, for `such` writes all of them."""
    assert [such(n, "box") for n in (1, 2, 1000)] == [
        "1 such box",
        "2 such boxes",
        "1,000 such boxes",
    ]
    assert counted(1, "group of rows") == "1 group of rows"
    assert counted(0, "group of rows") == "0 groups of rows"
    by_hand = re.compile(r"\} such\b")
    source = Path(weitzman.__file__).parent
    found = [p.name for p in source.rglob("*.py") if by_hand.search(p.read_text())]
    assert not found


def test_chances_are_certain_only_if_they_are():
    assert [percent(p) for p in (0, 1e-6, 0.0005, 0.123456, 0.99951, 1 - 1e-15, 1)] == [
        "0%", "<0.001%", "0.05%", "12.3%", ">99.9%", "100%", "100%",
    ]  # fmt: skip


@given(finite)
def test_six_digits_are_right_and_no_whole_digit_is_lost(x):
    text = number(x)
    said = Fraction(text.replace(",", ""))
    assert abs(said - Fraction(x)) <= max(abs(Fraction(x)), 1) * Fraction(1, 200_000)
    if abs(x) < 1e15:
        assert abs(said - Fraction(x)) <= Fraction(1, 2)
        assert "e" not in text or abs(x) < 1e-6


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2, unique=True))
def test_ends_of_an_interval_differ(pair):
    low, high = sorted(pair)
    if high - low > 1e-9 * max(abs(low), abs(high)) and high - low > 1e-6:
        assert len(set(ends(low, high))) == 2


# -- the same on the pages -------------------------------------------------------------------------


def _on_the_page(calls):
    """What text.js makes of calls, by Node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    program = f"""
    const t = await import({json.dumps(SCRIPT.as_uri())});
    let text = ""; for await (const part of process.stdin) text += part;
    const out = JSON.parse(text).map(([name, ...args]) => t[name](...args));
    console.log(JSON.stringify(out));
    """
    done = subprocess.run(
        [node, "--input-type=module", "-e", program],
        input=json.dumps(calls), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return [text.replace("−", "-") for text in json.loads(done.stdout)]


def test_pages_write_every_number_as_python_does():
    rng = np.random.default_rng(5)
    x = rng.normal(size=4000) * 10.0 ** rng.uniform(-9, 17, 4000)
    x[:600] = np.round(x[:600] * 8) / 8  # halves: ties in rounding
    x[600:900] = rng.integers(-(10**7), 10**7, 300) / 10.0 ** rng.integers(0, 6, 300)
    spread = np.where(rng.random(4000) < 0.4, 0.0, 10.0 ** rng.uniform(-6, 12, 4000))
    error = np.where(rng.random(4000) < 0.5, 0.0, np.abs(x) * 10.0 ** rng.uniform(-8, 1, 4000))
    calls, said = [], []
    for a, s, e in zip(x.tolist(), spread.tolist(), error.tolist(), strict=True):
        calls.append(["number", a, {"spread": s, "error": e}])
        said.append(number(a, spread=s, error=e))
        calls.append(["number", a, {"spread": s, "error": e, "cents": True}])
        said.append(number(a, spread=s, error=e, cents=True))
        calls += [["about", a], ["rough", abs(a)]]
        said += [about(a), rough(abs(a))]
    for p in [0.0, 1.0, *np.abs(rng.random(500)).tolist(), *(10.0 ** -rng.uniform(0, 12, 300))]:
        calls += [["percent", p], ["percent", 1 - p]]
        said += [percent(p), percent(1 - p)]
    for unit in ("$", "EUR", "US$", "", "$k", "$M", "£bn", "k€", "km"):
        calls += [
            ["withUnit", "0", unit],
            ["withUnit", "−5", unit],
            ["withUnit", "−5.5", unit],
            ["withUnit", "1.55", unit],
        ]
        said += [
            with_unit("0", unit),
            with_unit("-5", unit),
            with_unit("-5.5", unit),
            with_unit("1.55", unit),
        ]
    found = _on_the_page(calls)
    wrong = [(c, a, b) for c, a, b in zip(calls, found, said, strict=True) if a != b]
    assert not wrong, f"{len(wrong)} of {len(calls)}: {wrong[:5]}"
