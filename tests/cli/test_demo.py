import re

import numpy as np
import polars as pl
import pytest

from sigmascale.cli import demo
from sigmascale.datasets import make_molecules
from sigmascale.judging.verdicts import validate
from sigmascale.scaling import TemperatureScaling


@pytest.mark.filterwarnings("error")
def test_the_demo_tells_the_scores_and_the_truth_and_writes_four_files(
    tmp_path, sigmascale, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = sigmascale("demo", "--rows", "3000", "--out", "story")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    methods = ["none", *demo.all_methods()]

    start = next(i for i, line in enumerate(lines) if line.startswith("method"))
    for line, name in zip(lines[start + 2 :], methods, strict=False):
        cells = line.removeprefix(name).split()
        assert len(cells) == 8
        assert all(np.isfinite(float(cell)) for cell in cells)

    told = dict(re.findall(r"^  (\S.*?) +(\d+)%$", done.out, flags=re.MULTILINE))
    assert list(told) == methods
    data = make_molecules(3000)
    ratio = data.uncertainty[1500:] / data.true_sigma[1500:]
    typical = np.expm1(np.sqrt(np.mean(np.log(ratio) ** 2)))
    assert told["none"] == f"{100 * typical:.0f}"
    assert int(told["linear"]) < int(told["one factor"]) < int(told["none"])

    written = {path.name for path in (tmp_path / "story").iterdir()}
    assert written == {"calibration.csv", "test.csv", "local_zms.png", "report.html"}
    assert {line.removeprefix("  story/") for line in lines[-4:]} == written
    assert (tmp_path / "story/local_zms.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (tmp_path / "story/report.html").read_text()
    assert pl.read_csv("story/test.csv")["E"].to_list() == data.error[1500:].tolist()


def test_the_demo_judges_the_test_set_once_before_and_once_after(tmp_path, monkeypatch):
    judged, reported = [], []

    def counted(*args, **kwargs):
        judged.append(validate(*args, **kwargs))
        return judged[-1]

    def reporting(path, validation, *, recalibrated, **options):
        reported.extend([validation, recalibrated])

    monkeypatch.setattr("sigmascale.judging.verdicts.validate", counted)
    monkeypatch.setattr("sigmascale.report.write_report", reporting)
    monkeypatch.setattr(
        demo, "write_picture", lambda stages, path: reported.extend(stages.values())
    )
    some = {demo.SHOWN: TemperatureScaling()}
    monkeypatch.setattr(demo, "all_methods", lambda: some)
    demo.run(tmp_path, rows=900)
    assert len(judged) == 2
    assert [id(each) for each in reported] == [id(each) for each in judged * 2]


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
