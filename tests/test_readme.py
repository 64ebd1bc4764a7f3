import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_the_example_of_the_readme_runs_and_ends_adaptive(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(
        r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL
    )
    names = {}
    exec(compile(example, str(README), "exec"), names)
    assert "Not adaptive for mass" in capsys.readouterr().out
    assert (names["u_again"] == names["u_new"]).all()
    ss, test = names["ss"], names["test"]
    found = ss.validate(
        names["error"][test], names["u_new"], {"mass": names["mass"][test]}
    )
    assert found.passed
