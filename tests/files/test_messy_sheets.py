"""Workbooks as they come from real desks: nothing in them is misread without a word."""

from __future__ import annotations

import csv
import json
import math
import re
import time
import zipfile

import numpy as np
import pytest

import weitzman
from weitzman import files
from weitzman._common.numbers import Comma
from weitzman.cli import main
from weitzman.errors import InvalidFile, InvalidForest
from weitzman.files import load, read_table, save
from weitzman.files.ranges import typed_spread
from weitzman.files.tables import TableOptions

openpyxl = pytest.importorskip("openpyxl")

HEAD = ("box", "parent", "parent_state", "state", "reward", "probability", "cost")


def book_of(path, rows, head=HEAD, title="Plan"):
    """A workbook with one sheet: its path and the sheet, to be changed before it is saved."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = title
    for row in (head, *rows):
        sheet.append(row)
    book.save(path)
    return book, sheet


def two_states(path, **cells):
    book, sheet = book_of(
        path, [("A", None, None, "good", 10, 0.5, 1), (None, None, None, "bad", 0, 0.5, None)]
    )
    for at, x in cells.items():
        sheet[at] = x
    book.save(path)
    return path


def refused(path, options=None):
    with pytest.raises((InvalidFile, InvalidForest)) as caught:
        load(path, *([] if options is None else [options]))
    return str(caught.value)


def with_result(path, cell, kind, result):
    """Give the formula of a cell a stored result, as a spreadsheet program does."""
    parts = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            parts[name] = archive.read(name)
    xml = parts["xl/worksheets/sheet1.xml"].decode()
    kind = f' t="{kind}"' if kind else ""
    xml, n = re.subn(
        rf'<c r="{cell}"[^>]*><f>(.*?)</f><v ?/?>(</v>)?</c>',
        rf'<c r="{cell}"{kind}><f>\1</f><v>{result}</v></c>',
        xml,
    )
    assert n == 1
    parts["xl/worksheets/sheet1.xml"] = xml.encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


# -- formulas ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["E2", "F2", "G2", "A2", "D3"])
def test_a_formula_without_a_result_is_named(tmp_path, cell):
    """Such a reward was read as none, and the value was wrong without a word."""
    text = refused(two_states(tmp_path / "a.xlsx", **{cell: "=5+5"}))
    assert f"cell {cell} of sheet 'Plan' holds one that was never calculated (1 such cell)" in text
    assert "Save the workbook once in Excel or LibreOffice" in text


def test_a_formula_without_a_result_in_a_setting_is_named(tmp_path):
    path = tmp_path / "a.xlsx"
    book, sheet = book_of(path, [("A", None, None, "x", 10, 1, 1)])
    sheet.insert_rows(1)
    sheet["A1"], sheet["B1"] = "outside option", "=2+3"
    book.save(path)
    assert "cell B1 of sheet 'Plan'" in refused(path)


def test_formulas_with_results_and_those_in_other_columns_are_fine(tmp_path):
    path = two_states(tmp_path / "a.xlsx", E2="=5+5", E3='=""', H2="=1+1", H1="Notes")
    with_result(path, "E2", "", "10")
    with_result(path, "E3", "str", "")  # an empty text is a result: nothing can be taken
    assert weitzman.solve(load(path)).value == pytest.approx(4)


def test_the_error_of_a_formula_is_named(tmp_path):
    path = two_states(tmp_path / "a.xlsx", D2="=NA()")
    with_result(path, "D2", "e", "#N/A")
    assert "cell D2 of sheet 'Plan' holds the error #N/A" in refused(path)


# -- merged cells ------------------------------------------------------------------------------


def test_a_merged_reward_is_the_reward_of_all_its_rows(tmp_path):
    path = tmp_path / "a.xlsx"
    rows = [
        ("A", None, None, "good", 12, 0.25, 1),
        (None, None, None, "fair", None, 0.25, None),
        (None, None, None, "bad", 0, 0.5, None),
    ]
    book, sheet = book_of(path, rows)
    sheet.merge_cells("E2:E3")
    sheet.merge_cells("A2:A4")
    book.save(path)
    assert weitzman.solve(load(path)).value == pytest.approx(5)


def test_a_merged_parent_is_the_parent_of_several_boxes(tmp_path):
    path = tmp_path / "a.xlsx"
    rows = [
        ("S", None, None, "go", None, 1, 1),
        ("A", "S", "go", "x", 10, 1, 1),
        ("B", None, None, "y", 20, 1, 1),
    ]
    book, sheet = book_of(path, rows)
    sheet.merge_cells("B3:B4")
    sheet.merge_cells("C3:C4")
    book.save(path)
    assert load(path).parent.tolist() == [-1, 0, 0]


def test_merged_cells_beside_the_settings_change_nothing(tmp_path):
    path = tmp_path / "a.xlsx"
    book, sheet = book_of(path, [("A", None, None, "x", 10, 1, 1)])
    sheet.insert_rows(1, 2)
    for cell, x in {"A1": "Q3", "B1": "unit", "C1": "EUR", "B2": "outside", "C2": 3}.items():
        sheet[cell] = x
    sheet.merge_cells("A1:A2")
    book.save(path)
    assert (load(path).unit, load(path).outside) == ("EUR", 3)


@pytest.mark.parametrize("row", ["unit: EUR,", ",Unit:,EUR", "Costs of 2026,currency,EUR"])
def test_a_setting_may_stand_anywhere_in_its_row(tmp_path, row):
    path = tmp_path / "a.csv"
    path.write_text(f"{row}\nbox,reward,probability,cost\nA,3,1,1\n")
    assert load(path).unit == "EUR"


# -- several sheets ----------------------------------------------------------------------------


def scenarios(path, states=("visible", "visible")):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, reward, state in zip(("Base case", "Optimistic"), (10, 20), states, strict=True):
        sheet = book.create_sheet(name)
        sheet.sheet_state = state
        sheet.append(HEAD)
        sheet.append(("A", None, None, "x", reward, 1, 1))
    book.save(path)
    return path


def test_two_sheets_with_tables_are_asked_about(tmp_path):
    path = scenarios(tmp_path / "a.xlsx")
    text = refused(path)
    assert "'Base case' and 'Optimistic' both hold one (2 such sheets)" in text
    assert "--sheet 'Base case'" in text
    assert weitzman.solve(load(path, TableOptions(sheet="Optimistic"))).value == 19
    assert "did you mean 'Optimistic'?" in refused(path, TableOptions(sheet="Optimist"))


def test_the_command_line_chooses_a_sheet(tmp_path, capsys):
    path = scenarios(tmp_path / "a.xlsx")
    assert main(["solve", str(path)]) == 1
    assert "--sheet 'Base case'" in capsys.readouterr().err
    assert main(["solve", str(path), "--sheet", "Optimistic"]) == 0
    assert capsys.readouterr().out.startswith("value        19 ")


def test_a_hidden_sheet_is_read_only_by_its_name(tmp_path):
    path = scenarios(tmp_path / "a.xlsx", ("hidden", "visible"))
    assert weitzman.solve(load(path)).value == 19
    assert weitzman.solve(load(path, TableOptions(sheet="Base case"))).value == 9


def test_a_text_has_no_sheets(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("box,reward,probability,cost\nA,1,1,0\n")
    assert "only a workbook (.xlsx) has sheets" in refused(path, TableOptions(sheet="x"))


def test_an_exported_report_is_no_problem_and_its_sheet_is_named(tmp_path):
    from weitzman.show.report.decision_tree import write_workbook

    problem = load(scenarios(tmp_path / "a.xlsx"), TableOptions(sheet="Optimistic"))
    write_workbook(problem, str(tmp_path / "r.xlsx"))
    text = refused(tmp_path / "r.xlsx")
    assert re.search(r"the column '\w+', but row 1 of sheet '[\w ]+' does not name it", text)
    assert "(1 such column)" in text or re.search(r"\([2-9] such columns\)", text)


# -- rows and numbers that mean something else --------------------------------------------------


@pytest.mark.parametrize("name", ["Total", "SUM", "Summe:", "Grand total"])
def test_a_row_of_totals_is_no_box(tmp_path, name):
    path = tmp_path / "a.csv"
    path.write_text(f"box,reward,probability,cost\nA,3,1,1\nB,4,1,1\n{name},7,1,2\n")
    assert f"row 4 ({name!r}) seems to add up those above" in refused(path)
    path.write_text(f"box,reward,probability,cost\n{name},7,1,2\nB,4,1,1\n")  # a box after all
    assert load(path).names == (name, "B")


@pytest.mark.parametrize("cells", [("40", "60"), ("40%", "60%"), ("0.4", "0.6"), ("0.5", "99.5")])
def test_percent_in_the_heading_and_in_the_cells(tmp_path, cells):
    path = tmp_path / "a.csv"
    path.write_text(f"box,reward,chance (%),cost\nA,3,{cells[0]},1\nA,4,{cells[1]},1\n")
    number = float(cells[0].rstrip("%"))
    chance = number if cells[0] == "0.4" else number / 100
    assert load(path).laws.data.tolist() == pytest.approx([chance, 1 - chance])


def test_points_between_thousands_are_asked_about(tmp_path):
    """20.000 and 1.500 may be twenty thousand and one and a half thousand, or 20 and 1.5."""
    path = tmp_path / "a.csv"
    path.write_text("box;reward;chance;cost\nA;20.000;50%;1.500\nA;0;50%;1.500\n")
    assert "'20.000', which may be" in refused(path)
    assert "without the point" in refused(path)
    assert load(path, TableOptions(comma=Comma.DECIMAL)).costs.data.max() == 1500
    assert load(path, TableOptions(comma=Comma.THOUSANDS)).costs.data.max() == 1.5
    path.write_text("box;reward;chance;cost\nA;20.000;0,5;1.500\nA;0;0,5;1.500\n")
    assert load(path).costs.data.max() == 1500
    path.write_text("box;reward;chance;cost\nA;20.000;0.5;1.500\nA;0;0.5;1.500\n")
    assert load(path).costs.data.max() == 1.5


def test_what_is_written_can_be_read_back_whatever_its_digits(tmp_path):
    forest = weitzman.Builder()
    forest.add("A", cost=1.125, outcomes={20.375: 1})
    for name in ("a.csv", "a.tsv", "a.xlsx"):
        save(forest.build(), tmp_path / name)
        assert load(tmp_path / name).rewards.data.tolist() == [20.375]


@pytest.mark.parametrize(
    ("form", "unit"),
    [
        ("#,##0.00\\ [$€-407]", "€"),
        ('"$"#,##0', "$"),
        ("[$CHF-807] #,##0", "CHF"),
        ("#,##0 [$-409]", ""),
        ('#,##0.0" hours"', ""),
    ],
)
def test_the_currency_of_a_number_format_is_the_unit(tmp_path, form, unit):
    path = tmp_path / "a.xlsx"
    book, sheet = book_of(path, [("A", None, None, "x", 10, 1, 1)])
    sheet["E2"].number_format = sheet["G2"].number_format = form
    book.save(path)
    assert load(path).unit == unit


def test_two_currencies_in_number_formats_are_rejected(tmp_path):
    path = tmp_path / "a.xlsx"
    book, sheet = book_of(path, [("A", None, None, "x", 10, 1, 1)])
    sheet["E2"].number_format, sheet["G2"].number_format = "#,##0 [$€-407]", '"$"#,##0'
    book.save(path)
    assert "must be in one unit, but there are '$' and '€'" in refused(path)


def test_thousands_of_euros_are_not_read_as_euros(tmp_path):
    """T€ 50 stands for 50,000 euros; it was read as 50 in a currency of that name."""
    path = tmp_path / "a.csv"
    for cell in ("T€ 50", "M$ 50", "K€50"):
        path.write_text(f"box;reward;chance;cost\nA;200000;1;{cell}\n")
        assert f"row 2 (box 'A') has {cell!r}" in refused(path)
    path.write_text("box;reward;chance;cost\nA;200000;1;US$ 50\n")
    assert load(path).unit == "US$"


def test_hidden_rows_are_asked_about(tmp_path):
    """A filter hides a row: whether its box counts, nobody can tell."""
    path = tmp_path / "a.xlsx"
    rows = [("A", None, None, "x", 10, 1, 1), ("B", None, None, "y", 20, 1, 1)]
    book, sheet = book_of(path, rows)
    sheet.row_dimensions[3].hidden = True
    sheet.row_dimensions[4].hidden = True  # blank
    book.save(path)
    assert "row 3 is hidden (1 such row). Show the hidden rows" in refused(path)


def test_percentages_without_a_sign_are_told_by_their_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("box,reward,chance,cost\nA,3,40,1\nA,4,60,1\n")
    assert "between 0 and 1, but row 2 (box 'A') has 40 (2 such rows)" in refused(path)


@pytest.mark.parametrize("name", ["a.xls", "a.numbers", "a.xlsb"])
def test_other_spreadsheets_are_to_be_saved_as_xlsx(tmp_path, name):
    (tmp_path / name).write_bytes(b"PK")
    assert "Save a spreadsheet of another kind as .xlsx" in refused(tmp_path / name)


# -- what the columns, units, rates and settings of analysts mean -------------------------------


def csv_of(folder, text, name="sheet.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("title", ["NPV ($)", "Benefit", "Net profit", "Payout, $", "Revenue in $"])
def test_rewards_by_any_usual_name(tmp_path, title):
    """An unknown heading was dropped: "open first nothing", indices of minus infinity."""
    path = csv_of(
        tmp_path,
        f"""Stage;After;If;Outcome;{title};Chance;Cost
A;;;good;100;50%;1
;;;bad;0;50%;
""",
    )
    assert weitzman.solve(load(path)).value == 49


def test_a_heading_of_two_rows_is_read_by_its_lower_row(tmp_path):
    book, sheet = book_of(
        tmp_path / "x.xlsx",
        [
            ("Stage", "After", "If", "Outcome", "NPV", "Chance", "Cost"),
            ("A", None, None, "good", 10, 0.5, 1),
            (None, None, None, "bad", 0, 0.5, None),
        ],
        head=("Stage", "Behind", None, "Result", None, None, "Money"),
    )
    sheet.merge_cells("B1:C1")
    book.save(tmp_path / "x.xlsx")
    assert weitzman.solve(load(tmp_path / "x.xlsx")).value == 4.0


def test_a_sheet_without_rewards_is_rejected(tmp_path):
    path = csv_of(tmp_path, "box,state,points,chance,cost\nA,x,3,1,1\n")
    text = refused(path)
    assert "must have the column 'reward'" in text
    assert "Not known: points" in text
    path = csv_of(tmp_path, "box,state,reward,chance,cost\nA,x,,1,1\n")
    assert "the column 'reward' is blank" in refused(path)


@pytest.mark.parametrize("name", ["Candidate", "Target", "Vendor"])
def test_the_heading_before_all_others_names_the_box(tmp_path, name):
    path = csv_of(tmp_path, f"a box is called: {name}\n{name},Outcome,NPV,P(success),Cost,Owner\n"
                            "Ann B.,good,9,1,1,Tom\n")  # fmt: skip
    reading = read_table(path)
    assert reading.forest.names == ("Ann B.",)
    assert f"columns: {name} (box), Outcome (state), " in reading.lines[0]
    path = csv_of(tmp_path, f"Region,{name},NPV,chance,cost\nEast,A,1,1,0\n")
    assert load(path).names == ("A",)
    for heading in ("Owner,Machine,NPV,chance,cost", "NPV,chance,cost,Target"):
        text = refused(csv_of(tmp_path, f"{heading}\nx,1,1,1,1\n"))
        assert "must have the column 'box', but row 1 does not name it" in text
    text = refused(csv_of(tmp_path, f"{name},NPV,chance\nA,1,1\n"))
    assert "must have the column 'cost'" in text


def test_a_rate_of_eight_is_taken_for_a_percentage(tmp_path):
    path = csv_of(tmp_path, "rate,8\nStage,NPV,chance,cost,Years\nLab,9,1,1,2\n")
    assert "Write 8% per year." in refused(path)


def test_a_title_is_a_text_of_one_cell(tmp_path):
    rows = "Sites: 2027 shortlist\nnote,two cells\noutside opt: €250\nbox,NPV,p,cost\nA,9,1,1\n"
    reading = read_table(csv_of(tmp_path, rows))
    assert reading.title == "Sites: 2027 shortlist"
    assert "rows above the heading not read: note two cells, outside opt: €250" in reading.lines
    assert read_table(csv_of(tmp_path, rows.partition("\n")[2])).title is None
    long = "The sites that may be surveyed in the coming year, and what is known of them"
    assert read_table(csv_of(tmp_path, f'"{long}"\n{rows}')).title == long


def test_months_are_called_months_in_a_report(tmp_path):
    path = csv_of(tmp_path, "rate,8% per year\nStage,NPV,chance,cost,Duration (months)\n"
                            "A,90,1,1,24\n")  # fmt: skip
    assert read_table(path).time == "months"
    assert main(["report", str(path), "-o", str(tmp_path / "x.html")]) == 0
    page = (tmp_path / "x.html").read_text("utf-8")
    assert "24 months" in page
    assert "units of time" not in page.partition("<script")[0]


def test_what_was_read_as_what_is_said(tmp_path):
    path = csv_of(tmp_path, "Plan for Q3\noutside option,5\nbox,NPV,note,chance,cost (€)\n"
                            "A,9,x,1,1\n")  # fmt: skip
    lines = read_table(path).lines
    assert lines == (
        "title: Plan for Q3",
        "columns: box, NPV (reward), chance (probability), cost (€) (cost)",
        "columns not read: note",
        "unit: €",
        "outside option: €5",
    )


def test_a_column_called_reward_comes_before_one_called_value(tmp_path):
    path = csv_of(tmp_path, "box,value,reward,chance,cost\nA,7,9,1,1\n")
    assert load(path).rewards.data.tolist() == [9]
    assert "columns not read: value" in read_table(path).lines
    path = csv_of(tmp_path, "box,value,profit,chance,cost\nA,7,9,1,1\n")
    assert "a column must be there once" in refused(path)


def test_a_remark_about_losses_in_brackets_turns_nothing_around(tmp_path):
    path = csv_of(tmp_path, "box,state,NPV (less losses),chance,cost\nA,a,10,0.5,1\nA,b,0,0.5,1\n")
    assert not load(path).minimize


def test_a_number_beside_its_range_lies_in_it(tmp_path):
    path = csv_of(tmp_path, "box,state,reward,reward range,chance,cost\n"
                            "A,a,200,80/100/130,0.5,1\nA,b,0,,0.5,1\n")  # fmt: skip
    assert "from low to high with the reward between them, but row 2 has 80, 200, 130" in (
        refused(path)
    )


def test_losses_are_minimized_and_said(tmp_path):
    path = csv_of(tmp_path, "outside option,none\nbox,loss,chance,cost\nA,7,1,1\n")
    assert load(path).minimize
    assert "objective: minimize, rewards are losses" in read_table(path).lines


def test_settings_are_written_as_the_cells_are(tmp_path):
    """30.000 was read as 30, beside rewards that were right."""
    text = "outside option;30.000 €\nbox;reward;chance;cost\nA;95.000 €;0,5;1.000\nA;0;0,5;1.000\n"
    path = csv_of(tmp_path, text)
    assert (load(path).outside, load(path).unit) == (30_000, "€")
    path = csv_of(tmp_path, "outside option;30.000\nbox;reward;chance;cost\nA;95;1;10\n")
    assert "'30.000', which may be" in refused(path)
    assert load(path, TableOptions(comma=Comma.DECIMAL)).outside == 30_000


RATES = [
    ("discount rate,10%", "duration (months)", 12, 1 / 1.1),
    ("rate,10%", "duration", 2, 1 / 1.21),
    ("Annual rate:,10%", "Dur. (years)", 2, 1 / 1.21),
    ("discount rate,0.1", "months", 6, 1.1**-0.5),
    ("continuous rate,10%", "Dur.", 1, math.exp(-0.1)),
    ("rate,0.1", "duration", 1, math.exp(-0.1)),
    ("rate per month,1%", "Duration in years", 1, 1.01**-12),
    ("rate,10% p.a.", "duration [quarters]", 4, 1 / 1.1),
    ("discount rate (%),10", "duration", 1, 1 / 1.1),
    ("rate (%),10%", "duration", 1, 1 / 1.1),
    ("rate p.a.,0.1", "duration (months)", 12, math.exp(-0.1)),
    ("Discount rate p.a.,0.1", "duration (months)", 12, 1 / 1.1),
    ("Discount rate pa,10%", "duration (months)", 12, 1 / 1.1),
]


@pytest.mark.parametrize(("setting", "title", "time", "factor"), RATES)
def test_rates_and_durations(tmp_path, setting, title, time, factor):
    path = csv_of(tmp_path, f"{setting}\nbox,reward,chance,cost,{title}\nA,100,1,1,{time}\n")
    assert weitzman.solve(load(path)).value == pytest.approx(100 * factor - 1, rel=1e-12)
    assert any(line.startswith("rate: ") for line in read_table(path).lines)


@pytest.mark.parametrize(
    ("name", "rate", "form"),
    [("Discount rate (%)", 7.12345678901, "General"), ("Discount rate", 0.0712345678901, "0%")],
)
def test_all_digits_of_a_rate_count(tmp_path, name, rate, form):
    book, sheet = book_of(tmp_path / "x.xlsx", [("A", 100, 1, 1, 1)],
                          ("box", "reward", "chance", "cost", "years"))  # fmt: skip
    sheet.insert_rows(1)
    sheet["A1"], sheet["B1"] = name, rate
    sheet["B1"].number_format = form
    book.save(tmp_path / "x.xlsx")
    value = weitzman.solve(load(tmp_path / "x.xlsx")).value
    assert value == pytest.approx(100 / 1.0712345678901 - 1, rel=1e-14)


def test_a_percentage_is_a_number_format_too(tmp_path):
    path = tmp_path / "a.xlsx"
    book, sheet = book_of(path, [("A", None, None, "x", 100, 1, 1, 1)], (*HEAD, "duration"))
    sheet.insert_rows(1)
    sheet["A1"], sheet["B1"] = "rate", 0.1
    book.save(path)
    assert weitzman.solve(load(path)).value == pytest.approx(100 * math.exp(-0.1) - 1)
    sheet["B1"].number_format = "0%"
    book.save(path)
    assert weitzman.solve(load(path)).value == pytest.approx(100 / 1.1 - 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate,0.1\nbox,reward,chance,cost,duration (months)\nA,1,1,1,1\n",
         "durations are in months, but it is 0.1. Write 0.1 per year"),
        ("rate,10%\nbox,reward,chance,cost,duration (moons)\nA,1,1,1,1\n", "are in 'moons'"),
        ("rate,10%\nbox,reward,chance,cost\nA,1,1,1\n", "a rate discounts durations"),
        ("box,reward,chance,cost,Dur.\nA,1,1,1,1\n", "durations need a rate"),
        ("rate,fast\nbox,reward,chance,cost,Dur.\nA,1,1,1,1\n", "row 1: 'rate' must be a number"),
        ("discount rate,10\nbox,reward,chance,cost,Dur.\nA,1,1,1,1\n", "such as 10% or 0.1"),
    ],
)  # fmt: skip
def test_rates_that_leave_something_open(tmp_path, text, message):
    assert message in refused(csv_of(tmp_path, text))


@pytest.mark.parametrize(
    ("head", "row", "unit", "value"),
    [
        ("reward (k€),chance,cost (€)", "100,1,5000", "€", 95_000),
        ("reward (k€),chance,cost (k€)", "100,1,5", "k€", 95),
        ("reward (Mio. EUR),chance,cost (TEUR)", "1,1,5", "", None),
        ("reward ($ million),chance,cost ($000)", "1,1,5", "$000", 995),
        ("reward ($),chance,cost (USD)", "100,1,5", "$", 95),
        ("reward (kg),chance,cost (kg)", "100,1,5", "kg", 95),
        ("reward (in $m),chance,cost (in $k)", "1,1,5", "$k", 995),
        ("reward,chance %,cost", "100,100,5", "", 95),
    ],
)
def test_multiples_of_a_currency_are_converted(tmp_path, head, row, unit, value):
    """100 k€ and 5,000 € were 100 € and 5,000 €, once the advice was followed."""
    path = csv_of(tmp_path, f"box,{head}\nA,{row}\n")
    if value is None:
        assert "must be in one unit" in refused(path)
        return
    assert load(path).unit == unit
    assert weitzman.solve(load(path)).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("box,reward (EUR),chance,cost\nA,$100,1,5\n", "there are '$' and 'EUR'"),
        ("box,reward (EUR),chance,cost\nA,100,1,£5\n", "there are 'EUR' and '£'"),
        ("box,reward (EUR),chance,cost\nA,100,1,95'000 CHF\n", "there are 'CHF' and 'EUR'"),
        ("unit,EUR\nbox,reward,chance,cost ($)\nA,100,1,5\n", "there are '$' and 'EUR'"),
        ("outside,$5\nbox,reward (EUR),chance,cost\nA,100,1,5\n", "there are '$' and 'EUR'"),
        ("outside,5\nbox,reward (k€),chance,cost (€)\nA,100,1,5\n", "must say its unit"),
        ("box,reward (k€),chance,cost\nA,100 €,1,5\n", "some of its cells are in €"),
    ],
)  # fmt: skip
def test_units_that_do_not_fit_are_rejected(tmp_path, text, message):
    assert message in refused(csv_of(tmp_path, text))


def test_the_unit_above_the_table_is_that_of_what_says_none(tmp_path):
    path = csv_of(tmp_path, "unit,€\noutside,7\nbox,reward (k€),chance,cost\nA,100,1,5000\n")
    assert "must say its unit" in refused(path)
    path = csv_of(tmp_path, "unit,€\noutside (k€),7\nbox,reward (k€),chance,cost\nA,100,1,5000\n")
    forest = load(path)
    assert (forest.unit, forest.outside, weitzman.solve(forest).value) == ("€", 7000, 95_000)


def test_a_stage_without_rows_after_an_outcome_cannot_be_opened_then(tmp_path):
    """A drug that fails phase I ends there; a made-up law was asked for."""
    path = csv_of(
        tmp_path,
        """Stage,After,If,Outcome,NPV,Chance,Cost
Phase I,,,ok,,50%,10
,,,fail,,50%,
Phase II,Phase I,ok,ok,,50%,20
,,,fail,,50%,
Launch,Phase II,ok,big,500,50%,30
,,,small,100,50%,
""",
    )
    forest = load(path)
    value = 0.5 * (0.5 * (0.5 * 470 + 0.5 * 70) - 20) - 10
    assert weitzman.solve(forest).value == pytest.approx(value)
    assert weitzman.solve(forest).index("Launch", "fail") == -math.inf
    assert "Phase II cannot be opened after fail: the table has no rows for it" in (
        read_table(path).lines
    )
    save(forest, tmp_path / "again.csv")
    assert load(tmp_path / "again.csv") == forest


def test_a_state_that_is_mistyped_is_no_missing_one(tmp_path):
    path = csv_of(
        tmp_path, "box,after,if,state,reward,chance,cost\nA,,,ok,1,1,1\nB,A,okk,x,1,1,1\n"
    )
    assert "did you mean 'ok'?" in refused(path)


# -- ranges, distributions and tests ------------------------------------------------------------


RANGED = """box;reward;low;high;chance;cost low;cost;cost high
A;100;80;130;30%/50%/60%;1;2;4
A;0;;;0.5;;;
"""


def test_ranges_in_columns_and_in_cells(tmp_path):
    path = csv_of(tmp_path, RANGED)
    found = {r.title: r[2:5] for r in files.read_ranges(path)}
    assert found == {
        "cost of A": (2, 1, 4), "reward of 100 (A)": (100, 80, 130),
        "chance of 100 (A)": (0.5, 0.3, 0.6),
    }  # fmt: skip
    assert weitzman.solve(load(path)).value == 48
    assert files.read_ranges(analysts_json(tmp_path)) == files.Ranges()


def analysts_json(folder):
    save(weitzman.line([[0.5, 0.5]], rewards=[0, 10], cost=1), folder / "a.json")
    return folder / "a.json"


def test_numbers_of_ranges_are_changed_one_by_one_and_drawn(tmp_path):
    reading = read_table(csv_of(tmp_path, RANGED))
    forest, ranges = reading.forest, reading.ranges
    place = {r.field: i for i, r in enumerate(ranges)}
    changed = ranges.changed(forest, {place["cost"]: 4, place["reward"]: 130})
    assert weitzman.solve(changed).value == pytest.approx(61)
    assert weitzman.solve(ranges.changed(forest, {place["probability"]: 0.6})).value == (
        pytest.approx(58)
    )
    assert ranges.changed(forest, {}) == forest
    draws = ranges.draw(np.random.default_rng(1), 4000)
    for i, r in enumerate(ranges):
        assert r.low <= draws[:, i].min() <= draws[:, i].max() <= r.high
        assert draws[:, i].mean() == pytest.approx((r.low + r.base + r.high) / 3, rel=0.02)


def test_a_range_after_a_state_of_the_parent(tmp_path):
    path = csv_of(
        tmp_path,
        """box,after,if,state,reward,chance,cost
S,,,good,,0.5,1
S,,,bad,,0.5,
D,S,good,oil,100,0.6/0.7/0.9,2/3/5
D,S,good,dry,0,0.3,
D,S,bad,oil,100,0.2,4
D,S,bad,dry,0,0.8,
""",
    )
    reading = read_table(path)
    titles = [r.title for r in reading.ranges]
    assert titles == ["cost of D after good", "chance of oil (D after good)"]
    new = reading.ranges.changed(reading.forest, {1: 0.9, 0: 5})
    assert new.laws[int(new.law[1])].tolist() == [[0.9, pytest.approx(0.1)], [0.2, 0.8]]
    assert new.costs[int(new.cost[1])][:, 0].tolist() == [5, 4]


@pytest.mark.parametrize(
    "cell", ["normal(100; 20)", "triangular(40; 100; 160)", "P10/P50/P90(80; 100; 130)",
             "lognormal(100; 30)", "uniform(50; 150)", "PERT(50; 100; 150)"]
)  # fmt: skip
def test_a_distribution_of_a_reward_is_made_discrete_with_a_stated_error(tmp_path, cell):
    pytest.importorskip("scipy")
    path = csv_of(tmp_path, f'box,state,reward,chance,cost\nA,good,"{cell}",50%,1\nA,bad,0,50%,\n')
    forest = load(path)
    assert len(forest.states("A")) > 20
    law = typed_spread(cell, float, False).distribution
    u = (np.arange(200_000) + 0.5) / 200_000
    rewards = np.asarray(law.ppf(u))
    solved = weitzman.solve(forest.changed(outside=90))
    true = 0.5 * np.maximum(rewards, 90).mean() + 45 - 1
    assert 0 < solved.gap < 0.1
    assert abs(solved.value - max(true, 90)) <= solved.gap + 1e-4
    assert any("is a distribution, made into" in line for line in read_table(path).lines)


def test_boxes_behind_a_distribution_follow_all_of_its_states(tmp_path):
    pytest.importorskip("scipy")
    path = csv_of(
        tmp_path,
        """box,after,if,state,reward,chance,cost
A,,,good,"uniform(1; 3)",50%,1
A,,,bad,0,50%,
B,A,good,x,9,1,2
B,A,bad,x,9,0.5,2
B,A,bad,y,0,0.5,
""",
    )
    assert weitzman.solve(load(path)).value == pytest.approx(-1 + 0.5 * 7 + 0.5 * 2.5)


def test_distributions_of_costs_are_ranges(tmp_path):
    pytest.importorskip("scipy")
    path = csv_of(tmp_path, 'box,reward,chance,cost\nA,9,1,"normal(3, 1)"\n')
    (found,) = files.read_ranges(path)
    assert (found.base, found.field) == (3, "cost")
    assert (found.low, found.high) == pytest.approx((3 - 1.2815515655, 3 + 1.2815515655))
    assert weitzman.solve(load(path)).value == 6


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("3/2/1", "row 2: a range must rise from low to base to high"),
        ("normal(3)", "must be normal(mean; standard deviation)"),
        ("gamma(3; 2)", "a distribution must be one of normal, lognormal"),
        ("normal(3; -2)", "must be normal(mean"),
        ("normal(3; 1e308)", "must be normal(mean"),
    ],
)
def test_ranges_that_are_none(tmp_path, cell, message):
    pytest.importorskip("scipy")
    assert message in refused(csv_of(tmp_path, f'box,reward,chance,cost\nA,9,1,"{cell}"\n'))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("7,1/2/3,9,", "row 2 has no number, 7, 9"),
        ("7,9,8,", "with the cost between them, but row 2 has 9, 7, 8"),
        (",,8,", "row 2 has no number, no number, 8"),
        ("7,,,8", "must be a range such as 80/100/130, but row 2 has 8"),
    ],
)
def test_ends_of_ranges_that_do_not_fit(tmp_path, cells, message):
    head = "box,reward,chance,cost,cost low,cost high,cost range"
    assert message in refused(csv_of(tmp_path, f"{head}\nA,9,1,{cells}\n"))


TEST = """box;after;state;reward;chance;cost;sensitivity;specificity
Seismic;;;;;500;90%;80%
Drill;Seismic;oil;150000;40%;20000;;
;;dry;0;60%;;;
"""


def test_the_bayes_step_of_a_test_is_done(tmp_path):
    forest = load(csv_of(tmp_path, TEST))
    positive = 0.9 * 0.4 + 0.2 * 0.6
    assert forest.states("Seismic") == ("positive", "negative")
    assert forest.laws[int(forest.law[0])][0, 0] == pytest.approx(positive)
    assert forest.laws[int(forest.law[1])][:, 0] == pytest.approx(
        [0.36 / positive, 0.04 / (1 - positive)]
    )
    value = positive * (0.36 / positive * 150_000 - 20_000) - 500
    assert weitzman.solve(forest).value == pytest.approx(value)
    lines = read_table(tmp_path / "sheet.csv").lines
    assert any("Seismic is positive with chance 48%" in line for line in lines)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("80%\n", "\n", "must have one sensitivity and one specificity"),
        ("90%", "-1", "between 0 and 1"),
        (";;dry;0;60%;;;\n", "", "must have one box behind it"),
        ("Seismic;;;;;500", "Seismic;;x;;1;500", "neither states nor chances"),
        ("40%", "30%/40%/50%", "numbers, not ranges"),
    ],
)
def test_tests_that_leave_something_open(tmp_path, old, new, message):
    assert message in refused(csv_of(tmp_path, TEST.replace(old, new, 1)))


def test_the_words_of_the_user(tmp_path):
    path = csv_of(tmp_path, "a box is called: stage\nto open is called: run\n" + TEST)
    assert read_table(path).words == ("stage", "run")
    assert read_table(csv_of(tmp_path, TEST)).words == ("box", "open")


def test_the_outside_option_by_its_other_names_and_units(tmp_path):
    rest = "\nbox,reward,chance,cost\nA,100,1,5\n"
    for said in ("Status quo,30", "do nothing: 30", "Outside option value,30"):
        assert load(csv_of(tmp_path, said + rest)).outside == 30
    forest = load(csv_of(tmp_path, "Outside option (k$),30" + rest))
    assert (forest.outside, forest.unit, str(forest.amounts(30))) == (30, "k$", "30 k$")
    assert "must be said once" in refused(csv_of(tmp_path, "outside,3\noutside option,4" + rest))
    assert load(csv_of(tmp_path, "outside,3\noutside option,3" + rest)).outside == 3


def test_all_settings_are_said_when_they_are_read(tmp_path):
    path = csv_of(tmp_path, "number of prizes,2\noutside,7\nquotas,engineer 1\n"
                            "box,group,reward,chance,cost\nA,engineer,9,1,1\n"
                            "B,Engineer,9,1,1\n")  # fmt: skip
    assert set(read_table(path).lines) >= {
        "outside option: 7 for each of the 2 prizes", "prizes: 2", "quotas: engineer: 1",
        "groups without a quota: Engineer",
    }  # fmt: skip
    path = csv_of(tmp_path, "risk tolerance,2M\nbox,reward,chance,cost\nA,9,1,1\n")
    assert "risk tolerance: 2e+06" in read_table(path).lines


def test_a_fraction_of_money_is_asked_about(tmp_path):
    """80/130 was a reward of 0.615, though an analyst means from 80 to 130."""
    for row in ("80/130,1,1", "80,1,1/2"):
        path = csv_of(tmp_path, f"box,reward,chance,cost\nA,{row}\n")
        assert "may be a fraction or a range" in refused(path)


def test_groups_and_quotas(tmp_path):
    path = csv_of(tmp_path, 'quotas,"engineer 2, designer 1"\nbox,group,reward,chance,cost\n'
                            "A,engineer,9,1,1\nB,engineer,8,1,1\nC,designer,7,1,1\n")  # fmt: skip
    forest = load(path)
    assert forest.groups == ("engineer", "engineer", "designer")
    assert dict(forest.quotas) == {"engineer": 2, "designer": 1}
    assert forest.prizes == 3
    for name in ("b.csv", "b.xlsx"):
        save(forest, tmp_path / name)
        assert load(tmp_path / name) == forest
    assert "must be names with numbers" in refused(
        csv_of(tmp_path, "quotas,many\nbox,group,reward,chance,cost\nA,x,9,1,1\n")
    )


# -- what is written can be read, or is rejected beforehand --------------------------------------


def named(name, state="x"):
    return weitzman.Forest.from_arrays(
        parent=[-1, -1], cost=[1, 1], rewards=[[1.0], [2.0]], law=[[1.0], [1.0]],
        names=[name, "last"], states=[[state], ["y"]],
    )  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "xlsx"])
@pytest.mark.parametrize(
    "name",
    [
        "a;b\nc;d", "a\rb", "a\0b", "a\uffffb", "a\udc00b", "a ", " a", "", "x" * 40_000, "=1+1",
        "'=1", "-x", "@a", "+b", "'", "''=a", "a,b", 'q"q', "a\tb", "_x0041_", "\x07", "é\u2028z",
        "-5", "1e5",
    ],
)  # fmt: skip
def test_odd_names_come_back_or_are_rejected_before_writing(tmp_path, name, suffix):
    path = tmp_path / f"a.{suffix}"
    for forest in (named(name or " "), named("A", name or " ")):
        path.unlink(missing_ok=True)
        try:
            save(forest, path)
        except InvalidForest as error:
            said = str(error)
            assert (path.exists(), "Rename it" in said) == (False, True)
        else:
            assert load(path) == forest


def test_most_odd_names_do_come_back(tmp_path):
    for name in ("a;b\nc;d", "=1+1", "'=1", "-x", "x" * 40_000):
        save(named(name), tmp_path / "a.csv")
        assert load(tmp_path / "a.csv").names == (name, "last")
    assert "\n'=1" not in (tmp_path / "a.csv").read_text()


def test_a_last_box_called_total_is_rejected_beforehand(tmp_path):
    forest = named("A").changed()
    save(forest, tmp_path / "a.csv")
    total = weitzman.Forest.from_arrays(
        parent=[-1], cost=[1], rewards=[[1.0]], law=[[1.0]], names=["Total"]
    )
    with pytest.raises(InvalidForest, match="row of totals"):
        save(total, tmp_path / "b.csv")


def test_workbooks_keep_all_digits(tmp_path):
    forest = weitzman.Forest.from_arrays(
        parent=[-1], cost=[0.1 + 0.2], rewards=[[1e16 + 2, 1 / 3]], law=[[0.1, 0.9]]
    )
    save(forest, tmp_path / "a.xlsx")
    assert load(tmp_path / "a.xlsx") == forest
    assert load(tmp_path / "a.xlsx").costs.data[0] == 0.30000000000000004


# -- workbooks that hang or that are of another kind ----------------------------------------------


def sheet_xml(path, change):
    """Change the XML of the first sheet of a workbook."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    parts[name] = change(parts[name].decode()).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("row", [1_048_576, 2_147_483_648])
def test_a_stray_cell_far_below_takes_no_time(tmp_path, row):
    path = two_states(tmp_path / "a.xlsx")
    stray = f'<row r="{row}"><c r="H{row}"><v>1</v></c></row></sheetData>'
    sheet_xml(path, lambda xml: xml.replace("</sheetData>", stray))
    start = time.process_time()
    assert len(load(path)) == 1
    assert time.process_time() - start < 1


def test_cells_merged_to_the_end_of_the_sheet_take_no_time(tmp_path):
    path = tmp_path / "a.xlsx"
    book, sheet = book_of(path, [("A", None, None, "good", 10, 0.5, 1),
                                 (None, None, None, "bad", 0, 0.5, None)])  # fmt: skip
    sheet.merge_cells("G2:G3")
    book.save(path)
    sheet_xml(path, lambda xml: xml.replace("G2:G3", "G2:G1048576"))
    start = time.process_time()
    assert weitzman.solve(load(path)).value == 4
    assert time.process_time() - start < 1


@pytest.mark.parametrize("cell", ["[" * 20_000, "(" * 20_000, "a, " * 7000, "_" * 20_000])
def test_long_headings_take_no_time(tmp_path, cell):
    path = csv_of(tmp_path, f'"{cell}",1\nbox,reward,chance,cost,"{cell}"\nA,1,1,1,1\n')
    start = time.process_time()
    assert len(load(path)) == 1
    assert time.process_time() - start < 1


def test_the_limit_of_cells_is_not_changed_for_all(tmp_path):
    before = csv.field_size_limit()
    load(csv_of(tmp_path, "box,reward,chance,cost\nA,1,1,1\n"))
    assert csv.field_size_limit() == before


def test_workbooks_with_macros_are_read(tmp_path):
    path = two_states(tmp_path / "a.xlsx")
    path.rename(tmp_path / "a.xlsm")
    assert weitzman.solve(load(tmp_path / "a.xlsm")).value == 4
    with pytest.raises(InvalidFile, match="only read"):
        save(load(tmp_path / "a.xlsm"), tmp_path / "b.xlsm")


ODS = """<?xml version="1.0"?><office:document-content
 xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">
 <office:body><office:spreadsheet><table:table table:name="Plan">%s</table:table>
 </office:spreadsheet></office:body></office:document-content>"""


def ods_of(path, rows):
    def cell(x):
        if x is None:
            return "<table:table-cell/>"
        if isinstance(x, str):
            kind, value = "string", ""
        elif isinstance(x, tuple):
            kind, value = x[0], f'office:value="{x[1]}" office:currency="{x[-1]}"'
        else:
            kind, value = "float", f'office:value="{x!r}"'
        shown = x if isinstance(x, str) else ""
        return (f'<table:table-cell office:value-type="{kind}" {value}><text:p>{shown}</text:p>'
                "</table:table-cell>")  # fmt: skip

    xml = "".join(
        row if isinstance(row, str)
        else f"<table:table-row>{''.join(map(cell, row))}</table:table-row>"
        for row in rows
    )  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("content.xml", ODS % xml)
    return path


def test_workbooks_of_libreoffice_are_read(tmp_path):
    rows = [
        ("rate", ("percentage", 0.1)),
        ("Stage", "Outcome", "Payoff", "Chance", "Cost", "Duration"),
        ("A", "good", ("currency", 100, "EUR"), 0.5, 1, 1),
        (None, "bad", 0, 0.5, None, None),
        '<table:table-row table:number-rows-repeated="1048000"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row>',
    ]
    forest = load(ods_of(tmp_path / "a.ods", rows))
    assert forest.unit == "EUR"
    assert weitzman.solve(forest).value == pytest.approx(50 / 1.1 - 1)


def test_hostile_workbooks_of_libreoffice(tmp_path):
    many = ('<table:table-row table:number-rows-repeated="1048000"><table:table-cell '
            'office:value-type="float" office:value="1"/></table:table-row>')  # fmt: skip
    assert "equal rows below each other" in refused(ods_of(tmp_path / "a.ods", [many]))
    with zipfile.ZipFile(tmp_path / "b.ods", "w") as archive:
        archive.writestr("content.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
    assert "declares a document type" in refused(tmp_path / "b.ods")
    (tmp_path / "c.ods").write_bytes(b"PK")
    assert "not a workbook" in refused(tmp_path / "c.ods")
    error = ods_of(tmp_path / "d.ods", [("box", "reward", "chance", "cost"), ("A", "#REF!", 1, 1)])
    assert "must hold numbers" in refused(error)


def test_an_analysts_sheet_gives_the_same_by_every_way(tmp_path, capsys):
    """Merged headings, totals in a column of their own, notes, German decimals, currencies."""
    text = """Standortsuche 2027;;;;;;;
Erstellt von: Controlling;;;;;;;
outside option;10.000 €;;;;;;
;;;;;;;
Stage;After;If;Outcome;Payoff (T€);Chance (%);Cost in k€;Bemerkung
Survey;;;gut;;40,0;0,5;grob
;;;schlecht;;60,0;;
Drill;Survey;gut;oil;1.500,5;50,0;20,25;
;;;dry;0;50,0;;
;;schlecht;oil;1.500,5;10,0;;
;;;dry;0;90,0;;
"""
    path = csv_of(tmp_path, text)
    assert "must be in one unit, but there are 'T€' and 'k€'" in refused(path)
    path = csv_of(tmp_path, text.replace("T€", "Tsd. €"))
    forest = load(path)
    assert forest.outside == pytest.approx(10)
    good, bad = 0.5 * 1500.5 + 0.5 * 10 - 20.25, 0.1 * 1500.5 + 0.9 * 10 - 20.25
    value = 0.4 * good + 0.6 * bad - 0.5
    assert weitzman.solve(forest).value == pytest.approx(value)
    assert main(["solve", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(value)
    for name in ("b.xlsx", "b.csv", "b.json"):
        save(forest, tmp_path / name)
        assert load(tmp_path / name) == forest
