"""Workbooks as they come from real desks: nothing in them is misread without a word."""

from __future__ import annotations

import re
import zipfile

import pytest

import weitzman
from weitzman._common.numbers import Comma
from weitzman.cli import main
from weitzman.errors import InvalidFile, InvalidForest
from weitzman.files import load, save
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


def test_two_currencies_in_number_formats_are_refused(tmp_path):
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
