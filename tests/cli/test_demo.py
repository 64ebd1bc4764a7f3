import re

import numpy as np
import polars as pl
import pytest

from sigmascale.cli import demo
from sigmascale.datasets import make_molecules


def test_the_demo_tells_the_scores_and_the_truth_and_writes_four_files(
    tmp_path, sigmascale, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = sigmascale("demo", "--rows", "1200", "--out", "story")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    methods = ["none", *demo.METHODS]

    start = next(i for i, line in enumerate(lines) if line.startswith("method"))
    for line, name in zip(lines[start + 2 :], methods, strict=False):
        cells = line.removeprefix(name).split()
        assert len(cells) == 9
        assert all(np.isfinite(float(cell)) for cell in cells)

    told = dict(re.findall(r"^  (\S.*?) +(\d+)%$", done.out, flags=re.MULTILINE))
    assert list(told) == methods
    data = make_molecules(1200)
    ratio = data.uncertainty[600:] / data.true_sigma[600:]
    typical = np.expm1(np.sqrt(np.mean(np.log(ratio) ** 2)))
    assert told["none"] == f"{100 * typical:.0f}"
    assert int(told["linear"]) < int(told["one factor"]) < int(told["none"])

    written = {path.name for path in (tmp_path / "story").iterdir()}
    assert written == {"calibration.csv", "test.csv", "local_zms.png", "report.html"}
    assert {line.removeprefix("  story/") for line in lines[-4:]} == written
    assert (tmp_path / "story/local_zms.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (tmp_path / "story/report.html").read_text()
    assert pl.read_csv("story/test.csv")["E"].to_list() == data.error[600:].tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rows", "999"), "'--rows'"),
        (("--seed", "-1"), "'--seed'"),
        (("--out", "file"), "error: file: File exists"),
    ],
)
def test_the_demo_refuses_clearly_and_writes_nothing(
    tmp_path, sigmascale, monkeypatch, options, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    done = sigmascale("demo", *options)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
