"""Workbooks of Excel: their first sheet is a table."""

import json
import sys
import zipfile
from xml.sax.saxutils import escape

import numpy as np
import polars as pl
import pytest

pytest.importorskip("fastexcel")

PACKAGE = "http://schemas.openxmlformats.org/package/2006"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def cell(value):
    if value is None:
        return "<c/>"
    if isinstance(value, str):
        return (
            f'<c t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
        )
    return f"<c><v>{value!r}</v></c>"


def write_workbook(path, table):
    """Write the least that is a workbook."""
    rows = [table.columns, *table.rows()]
    cells = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    content = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/'
        'vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{TYPE}.sheet.main+xml"/>'
        '<Override PartName="/xl/worksheets/sheet1.xml" '
        f'ContentType="{TYPE}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship '
        f'Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{SHEETS}" xmlns:r="{OFFICE}"><sheets>'
        '<sheet name="first" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="r1" Type="{OFFICE}/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEETS}"><sheetData>{cells}'
        "</sheetData></worksheet>",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, f'<?xml version="1.0"?>{text}')


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    u = rng.gamma(4.0, 0.1, 200)
    table = pl.DataFrame(
        {
            "E": rng.normal(scale=2 * u),
            "u": u,
            "kind": ["a", "b"] * 100,
            "n": range(200),
        }
    )
    write_workbook("a.xlsx", table)
    table.write_csv("a.csv")
    return table


def test_a_workbook_is_judged_as_the_same_csv_file(tables, sigmascale):
    told = [
        json.loads(sigmascale("check", file, "--label", "kind", "--json").out)
        for file in ("a.xlsx", "a.csv")
    ]
    for each in told:
        each["data"].pop("file")
    assert told[0] == told[1]


def test_a_workbook_is_recalibrated_into_another_format(tables, sigmascale):
    fit = ("fit", "a.xlsx", "--method", "temperature", "-o", "s.json")
    assert sigmascale(*fit).code == 0
    assert sigmascale("apply", "s.json", "a.xlsx", "-o", "o.csv").code == 0
    assert pl.read_csv("o.csv").drop("u_recalibrated").equals(tables)
    done = sigmascale("apply", "s.json", "a.xlsx", "-o", "o.xlsx")
    assert done.code == 2
    assert "o.xlsx: the ending of the name says no format" in done.err


def test_rows_of_a_workbook_are_counted_without_its_header(tables, sigmascale):
    write_workbook(
        "bad.xlsx", tables.with_columns(u=tables["u"].set(tables["n"] == 2, -1))
    )
    done = sigmascale("check", "bad.xlsx")
    assert done.code == 2
    assert done.says("'u', row 3 .*negative")


def test_without_the_package_the_remedy_is_told(tables, sigmascale, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    done = sigmascale("check", "a.xlsx")
    assert done.code == 2
    assert done.says(r'fastexcel.*pip install "\.\[cli\]" in a checkout')
