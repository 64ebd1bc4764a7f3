import re
from pathlib import Path

import numpy as np
import pytest

from sigmascale import demo
from sigmascale.datasets import make_molecules


def test_the_demo_tells_the_scores_and_the_truth_and_draws_three_pictures(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    demo.main(["--rows", "2000", "--out", "pictures"])
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    methods = ["none", *demo.METHODS]

    start = next(i for i, line in enumerate(lines) if line.startswith("method"))
    for line, name in zip(lines[start + 2 :], methods, strict=False):
        cells = line.removeprefix(name).split()
        assert len(cells) == 9
        assert all(np.isfinite(float(cell)) for cell in cells)

    told = dict(re.findall(r"^  (\S.*?) +(\d+)%$", text, flags=re.MULTILINE))
    assert list(told) == methods
    data = make_molecules(2000)
    ratio = data.uncertainty[1000:] / data.true_sigma[1000:]
    typical = np.expm1(np.sqrt(np.mean(np.log(ratio) ** 2)))
    assert told["none"] == f"{100 * typical:.0f}"
    assert int(told["linear"]) < int(told["one factor"]) < int(told["none"])

    pictures = {path.name: path for path in (tmp_path / "pictures").iterdir()}
    assert set(pictures) == {"local_zms.png", "confidence_curve.png", "z_scores.png"}
    for name, path in pictures.items():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert f"  {Path('pictures') / name}" in lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "999"], "error: --rows must be at least 1000: 100 bins of 5 rows"),
        (["--seed", "-1"], "error: --seed must be at least 0"),
    ],
)
def test_the_demo_refuses_clearly_and_writes_nothing(
    tmp_path, capsys, options, message
):
    with pytest.raises(SystemExit, match="2"):
        demo.main([*options, "--out", str(tmp_path / "pictures")])
    assert message in capsys.readouterr().err
    assert not (tmp_path / "pictures").exists()
