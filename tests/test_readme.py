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
    # what is left, the lightest molecules, is a small part of what was wrong
    verdicts = found.verdicts
    wrong = [name for name, each in verdicts.items() if each.answer != "yes"]
    assert set(wrong) <= {"mass"}
    assert all(0.7 < verdicts[name].region.zms < 1.4 for name in wrong)
    y, low, high = names["y"][300:], names["low"], names["high"]
    assert 0.85 < ((low <= y) & (y <= high)).mean() < 0.98
