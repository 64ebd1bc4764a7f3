import re

import numpy as np
import pytest

from sigmascale import demo
from sigmascale.datasets import make_molecules


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Run the demo on few rows; return what it prints and its folder."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        lines = []
        patch.setattr("builtins.print", lambda text="", **_: lines.append(str(text)))
        demo.main(["--rows", "2000", "--out", "pictures"])
    return "\n".join(lines), folder / "pictures"


def test_the_demo_prints_a_table_of_all_methods_within_80_columns(shown):
    text, _ = shown
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    start = next(i for i, line in enumerate(lines) if line.startswith("method"))
    rows = lines[start + 2 : start + 3 + len(demo.METHODS)]
    for row, name in zip(rows, ["none", *demo.METHODS], strict=True):
        cells = row.removeprefix(name).split()
        assert len(cells) == 9
        assert all(np.isfinite(float(cell)) for cell in cells)


def test_the_demo_writes_three_pictures_and_says_where(shown):
    text, folder = shown
    names = {"local_zms.png", "confidence_curve.png", "z_scores.png"}
    assert {path.name for path in folder.iterdir()} == names
    for path in folder.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert f"  pictures/{path.name}" in text.replace("\\", "/").splitlines()


def test_the_demo_tells_how_far_each_method_is_from_the_truth(shown):
    text, _ = shown
    told = dict(re.findall(r"^  (\S.*?) +(\d+)%$", text, flags=re.MULTILINE))
    assert list(told) == ["none", *demo.METHODS]
    data = make_molecules(2000)
    ratio = data.uncertainty[1000:] / data.true_sigma[1000:]
    typical = np.expm1(np.sqrt(np.mean(np.log(ratio) ** 2)))
    assert told["none"] == f"{100 * typical:.0f}"
    assert int(told["linear"]) < int(told["one factor"]) < int(told["none"])


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
