"""Spreadsheets as people fill them in: what is understood, what is asked about, what is refused."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_problems import forests
from reference import to_arrays
from same_forests import assert_same

import weitzman
from weitzman._common.numbers import Comma, taken_apart, typed_number
from weitzman.errors import InvalidFile, InvalidForest
from weitzman.files import load, save
from weitzman.files.sheets import separator
from weitzman.files.tables import TableOptions
from weitzman.files.written_tables import write_template

openpyxl = pytest.importorskip("openpyxl")

PLAIN = """\
box,parent,parent_state,state,reward,probability,cost
A,,,low,1,0.5,20
A,,,high,900,0.5,20
B,A,low,0,0,0.4,3
B,A,low,20,20,0.6,3
B,A,high,0,0,0.1,3
B,A,high,920,920,0.9,3
"""


def written(folder, text, name="boxes.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def refused(path, options=None):
    with pytest.raises((InvalidFile, InvalidForest)) as caught:
        load(path) if options is None else load(path, options)
    return str(caught.value)


def attempt(path):
    """What loading a file says: None if it can be read."""
    try:
        load(path)
    except (InvalidFile, InvalidForest) as error:
        return str(error)
    return None


# -- what is understood ----------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_encodings_and_separators(tmp_path, encoding, mark):
    text = PLAIN.replace("A", "Höhle").replace(",", mark)
    found = load(written(tmp_path, text, encoding=encoding))
    assert found.names == ("Höhle", "B")
    assert_same(found, load(written(tmp_path, PLAIN.replace("A", "Höhle"), "plain.csv")))


def test_a_sheet_with_a_title_settings_blanks_and_merged_cells(tmp_path):
    text = """\
Our search;;;;;;;
;;;;;;;
Outside option;$5;;;;;;
objective;Maximize;;;;;;

;BOX;Parent;Parent state;State;Reward;Probability ;COST
;A;;;low;$1;50%;$20
;;;;high;$0.9k;1/2;
;;;;;;;
;B;A;low;0;0;40%;3
;;;;20;$20.00;60 %;
;;;high;0;($0);0.1;
;;;;920;920;0.9;
"""
    expected = load(written(tmp_path, PLAIN)).changed(outside=5.0, unit="$")
    assert_same(load(written(tmp_path, text, "people.csv")), expected)


def test_columns_that_may_be_left_out(tmp_path):
    found = load(written(tmp_path, "box,reward,chance,cost\nA,0,0.5,1\nA,10,0.5,1\n"))
    assert found.states("A") == ("0", "10")
    assert weitzman.solve(found).index("A") == 8.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$500", 500), ("500 EUR", 500), ("US$1,500.50", Fraction("1500.5")), ("-€3", -3),
        ("(2,000)", -2000), ("1.5k", 1500), ("$2M", 2_000_000), ("40%", Fraction(2, 5)),
        ("150,000", 150_000), ("1 234.5", Fraction("1234.5")), ("−7", -7), ("2e3", 2000),
        ("57%", Fraction("0.57")), ("0.1M", 100_000), ("95'000 CHF", 95_000), ("95’000", 95_000),
    ],
)  # fmt: skip
def test_numbers_as_people_type_them(text, value):
    """Correctly rounded: 57% was 0.5700000000000001."""
    assert typed_number(text, Comma.THOUSANDS).value == float(value)
    assert typed_number(text).value == float(value)  # alone, as in an option


@pytest.mark.parametrize(
    ("text", "value"),
    [("1/3", 1 / 3), ("1,500", 1500), ("1,5", 1.5), ("30.000", 30), ("0,25", 0.25)],
)
def test_numbers_that_stand_alone(text, value):
    assert typed_number(text).value == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1/0", "is not a number such as"), ("a/b", "is not a number"), ("nan", "is not a number"),
        ("30.000 €", "may have a decimal point or a point between thousands"),
        ("1,23,4", "with its commas in place"), ("1e999", "is not a finite number"),
    ],
)  # fmt: skip
def test_texts_that_are_no_numbers(text, told):
    with pytest.raises(ValueError, match=told):
        typed_number(text)


def test_a_sheet_with_decimal_commas(tmp_path):
    text = PLAIN.replace(",", ";").replace("0.5", "0,5").replace("0.4", "0,4")
    text = text.replace("0.6", "0,6").replace("0.1", "0,1").replace("0.9", "0,9")
    assert_same(load(written(tmp_path, text)), load(written(tmp_path, PLAIN, "plain.csv")))


@given(st.integers(1, 999), st.integers(0, 999_999), st.sampled_from(list(Comma)))
def test_a_number_is_read_as_its_commas_say(whole, rest, comma):
    grouped, decimals = f"{whole * 1000 + 7:,}", f"{rest:06}"
    text = f"{grouped}.{decimals}"
    if comma is Comma.DECIMAL:
        text = text.translate(str.maketrans(",.", ".,"))
    cell = taken_apart(text)
    assert cell.comma is comma
    assert cell.value(comma) == float(Fraction(f"{whole * 1000 + 7}.{decimals}"))


def test_units_from_the_heading_the_cells_or_an_option(tmp_path):
    head = PLAIN.replace("reward", "Reward (EUR)").replace("cost", "Cost [EUR]")
    assert load(written(tmp_path, head)).unit == "EUR"
    assert load(written(tmp_path, PLAIN.replace(",20\n", ",£20\n"))).unit == "£"
    assert load(written(tmp_path, PLAIN), TableOptions(unit="hours")).unit == "hours"
    percent = PLAIN.replace("probability", "probability (%)").replace(",0.5,", ",50,")
    percent = percent.replace(",0.4,", ",40,").replace(",0.6,", ",60,")
    percent = percent.replace(",0.1,", ",10,").replace(",0.9,", ",90,")
    assert_same(load(written(tmp_path, percent)), load(written(tmp_path, PLAIN, "plain.csv")))


def test_options_come_before_what_the_sheet_says(tmp_path):
    path = written(tmp_path, "outside option,7\n" + PLAIN)
    assert load(path).outside == 7
    assert load(path, TableOptions(outside=3.0)).outside == 3
    least = load(path, TableOptions(outside=np.inf, minimize=True))
    assert (least.outside, least.minimize) == (np.inf, True)


@pytest.mark.parametrize("name", ["t.xlsx", "t.csv", "t.tsv"])
def test_the_template_can_be_solved_as_it_stands(tmp_path, name):
    write_template(str(tmp_path / name))
    found = load(tmp_path / name)
    assert (len(found), found.unit, found.outside) == (4, "$", 0.0)
    assert weitzman.solve(found).value == pytest.approx(48_960)


@given(forests())
def test_every_kind_of_table_keeps_a_forest(tmp_path_factory, problem):
    folder = tmp_path_factory.mktemp("tables")
    forest = weitzman.Forest.from_arrays(**to_arrays(problem), unit="EUR")
    for name in ("a.csv", "a.tsv", "a.csv.gz", "a.xlsx"):
        if not np.isfinite(forest.rewards.data).any():
            with pytest.raises(InvalidForest, match="no box has one"):
                save(forest, folder / name)
            continue
        save(forest, folder / name)
        assert_same(load(folder / name), forest)


def test_text_in_a_workbook_stays_text(tmp_path):
    forest = weitzman.Forest.from_arrays(
        parent=[-1], cost=[1], rewards=[0, 4], law=[[0.5, 0.5]], names=["=1+1"]
    )
    save(forest, tmp_path / "a.xlsx")
    assert load(tmp_path / "a.xlsx").names == ("=1+1",)


# -- what is asked about or refused ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((",0.5,20\nA", ',"0,5",20\nA'), "row 2 has '0,5', with a decimal comma, and row 3"),
        (("900", "many"), "'reward' must hold numbers, but row 3 (box 'A') has 'many'"),
        (("B,A,low,20", "B,A,lo,20"), "row 5 (box 'B') has 'lo'"),
        (("probability", "probabilities"), "is it 'probabilities'?"),
        ((PLAIN, "a,b\n1,2\n"), "one row must name the columns"),
        ((PLAIN, "\n\n"), "the table has no rows"),
        ((",20\n", ",$20\n", ",3\n", ",£3\n"), "must be in one unit"),
        ((PLAIN, "outside option,soon\n" + PLAIN), "row 1: 'outside option' must be a number"),
        ((PLAIN, "goal,win\n" + PLAIN), "must be maximize or minimize"),
        (("reward", "cost "), "a column must be there once, but row 1 has"),
    ],
)  # fmt: skip
def test_messages_name_the_rows_of_the_sheet(tmp_path, change, message):
    text = PLAIN
    for old, new in zip(change[::2], change[1::2], strict=True):
        text = text.replace(old, new)
    assert message in refused(written(tmp_path, text))


def test_an_open_comma_is_settled_by_an_option(tmp_path):
    text = 'box,reward,probability,cost\nA,0,1/2,1\nA,"1,234",1/2,1\n'
    path = written(tmp_path, text)
    assert "row 3 has '1,234', which may be" in refused(path)
    assert load(path, TableOptions(comma=Comma.THOUSANDS)).rewards.data.max() == 1234
    assert load(path, TableOptions(comma=Comma.DECIMAL)).rewards.data.max() == 1.234


def test_a_date_in_a_workbook_is_explained(tmp_path):
    import datetime

    book = openpyxl.Workbook()
    for row in (["box", "reward", "probability", "cost"], ["A", 3, datetime.date(2026, 1, 2), 1]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert "Spreadsheets turn 1/2 into a date" in refused(tmp_path / "a.xlsx")


def test_small_files_that_unpack_to_huge_ones_are_rejected_before(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wb") as file:
        file.write(b"a,b\n" * 10_000_000)
    assert "once unpacked" in refused(tmp_path / "a.csv.gz")
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 40_000_000)
    assert "once unpacked" in refused(tmp_path / "a.xlsx")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.xlsx", "a.tsv"])
def test_damaged_files_give_one_message(tmp_path, name):
    if name.endswith("xlsx"):
        write_template(str(tmp_path / name))
    else:
        data = PLAIN.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    whole = (tmp_path / name).read_bytes()
    rng = np.random.default_rng(3)
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(int(rng.integers(1, 6))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        (tmp_path / name).write_bytes(bytes(data[: int(rng.integers(1, len(data) + 1))]))
        said = attempt(tmp_path / name)
        assert said is None or name in said


def test_the_separator_is_not_taken_from_quoted_cells():
    assert separator('"a,b,c";d\n"e,f";g\n') == ";"
    assert separator("a\tb\n1,5\t2\n") == "\t"


def test_a_whole_number_of_400_digits_is_no_number(tmp_path):
    text = PLAIN.replace("900", "9" * 400)
    assert "must hold numbers" in refused(written(tmp_path, text))


def test_a_workbook_is_bounded_in_width(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["box", "reward", "probability", "cost"])
    book.active.append(["A", 3, 1, 1])
    book.active.cell(3, 16384).value = 1
    data = io.BytesIO()
    book.save(data)
    (tmp_path / "a.xlsx").write_bytes(data.getvalue())
    assert len(load(tmp_path / "a.xlsx")) == 1


# -- a sheet as an analyst fills it in -------------------------------------------------------------


def analysts_sheet(path):
    """A title in merged cells, blank columns and rows, merged names, numbers in many forms."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet["A1"] = "Which site? Q3 plan"
    sheet.merge_cells("A1:E1")
    rows = {
        3: ("Stage", "After", "If", "Outcome", "Payoff ($)", "Chance", "Cost"),
        4: ("Survey", None, None, "good", None, "40%", "$500"),
        5: (None, None, None, "bad", None, 0.6, None),
        7: ("Drill", "Survey", "good", "oil", "150,000", "1/2", "$20,000"),
        8: (None, None, None, "dry", 0, "1/2", None),
        9: (None, None, "bad", "oil", "150k", 0.1, None),
        10: (None, None, None, "dry", 0, "90%", None),
    }
    for row, cells in rows.items():
        for column, cell in zip("BCDEFHI", cells, strict=True):
            sheet[f"{column}{row}"] = cell
    sheet.merge_cells("B4:B5")
    sheet.merge_cells("I4:I5")
    book.save(path)


def test_a_sheet_as_an_analyst_fills_it_in(tmp_path):
    analysts_sheet(tmp_path / "plan.xlsx")
    forest = weitzman.load(tmp_path / "plan.xlsx")
    assert forest.unit == "$"
    assert weitzman.solve(forest).value == pytest.approx(0.4 * (0.5 * 150_000 - 20_000) - 500)


def test_sums_are_told_by_the_rows_of_the_sheet(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("A plan,,,\n\nbox,reward,probability,cost\nA,10,50%,1\nA,0,40%,1\n")
    with pytest.raises(weitzman.WeitzmanError, match=r"sum to 0\.9 \(rows 4 to 5; 1 such group"):
        weitzman.load(path)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        pytest.param(
            "Survey,,,good,,0.5,1\nSurvey,,,bad,,0.5,1\nD,SURVEY,good,oil,10,1,1\n",
            r"has 'SURVEY'.*did you mean 'Survey'\?", id="a parent in other capitals",
        ),
        pytest.param(
            "S,,,good,,0.5,1\nS,,,bad,,0.5,1\nD,S,god,oil,10,1,1\nD,S,bad,dry,0,1,1\n",
            r"row 4 .*did you mean 'good'\?", id="a mistyped state of the parent",
        ),
    ],
)  # fmt: skip
def test_what_was_meant_is_suggested(tmp_path, rows, told):
    path = tmp_path / "x.csv"
    path.write_text("box,parent,parent_state,state,reward,probability,cost\n" + rows)
    with pytest.raises(weitzman.WeitzmanError, match=told):
        weitzman.load(path)


def test_most_numbers_are_taken_apart_in_a_short_way(monkeypatch):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("0123456789.-"), n)) for n in rng.integers(1, 10, 3000)]
    texts += ["1.234", "-0.5", "0.1234567", "1234.567", "-1.000", "1.2.3", "1." + 400 * "0"]
    short = [taken_apart(text) for text in texts]
    monkeypatch.setattr("weitzman._common.numbers._PLAIN", re.compile("(?!)"))
    assert short == [taken_apart(text) for text in texts]
    assert sum(cell is not None for cell in short) > 100
