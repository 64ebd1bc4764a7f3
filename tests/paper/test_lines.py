"""The lines of the page: they print rows of Table II and draw Figure 2."""

import os
import re
from pathlib import Path

from sigmascale.recalibration.scalings import factors

PAGE = Path(__file__).parents[2] / "docs" / "paper.md"


def test_the_lines_of_the_page_give_rows_of_table_ii_and_figure_2(
    qm9, golden, tmp_path, monkeypatch, capsys
):
    (lines,) = re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S
    )
    folder = os.environ["SIGMASCALE_QM9"]
    quick = {'folder="qm9"': f"folder={folder!r}", "range(2, 100, 4)": "(2, 40)"}
    for said, done in quick.items():
        assert said in lines
        lines = lines.replace(said, done)
    monkeypatch.setattr(factors, "MOVES", 100)
    monkeypatch.chdir(tmp_path)
    exec(lines, {})
    printed = capsys.readouterr().out
    totals = [float(x) for x in re.findall(r"^S_tot +([\d.]+)", printed, re.M)]
    fractions = [float(x) for x in re.findall(r"([\d.]+)$", printed.strip(), re.M)]
    row = golden["rows"]["u_NLL_40_test"]
    assert totals[0] == round(row["Stot"], 4)
    assert any(abs(found - row["fvu"]) <= 0.05 for found in fractions)
    assert 0.7 < totals[1] < 0.9  # of optimised factors
    assert (tmp_path / "figure2.png").stat().st_size > 10_000
