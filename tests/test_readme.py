import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_the_examples_of_the_readme_run_and_end_as_they_say(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 2
    names = {}
    for example in examples:
        exec(compile(example, str(README), "exec"), names)
    assert "Not adaptive for mass" in capsys.readouterr().out
    assert (names["u_again"] == names["u_new"]).all()
    ss, test = names["ss"], names["test"]
    found = ss.validate(
        names["error"][test], names["u_new"], {"mass": names["mass"][test]}
    )
    assert found.passed
    y, low, high = names["y"][300:], names["low"], names["high"]
    assert 0.85 < ((low <= y) & (y <= high)).mean() < 0.98
