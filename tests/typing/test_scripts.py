"""What `mypy --strict` says of scripts of users: nothing, unless a line is wrong."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SCRIPTS = ["calibration.py", "regressor.py", "wrong.py"]


def test_mypy_finds_the_wrong_lines_of_users_and_no_others():
    pytest.importorskip("mypy")
    # with the cache of the project's own check; its configuration is strict
    asked = [sys.executable, "-m", "mypy", "--strict", "--no-pretty"]
    asked += [str(FOLDER / name) for name in SCRIPTS]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(r"(\w+\.py):(\d+): error", told.stdout)
    wrong = []
    for number, line in enumerate((FOLDER / "wrong.py").read_text().splitlines(), 1):
        if line.endswith("# wrong"):
            wrong.append(("wrong.py", str(number)))
    assert len(wrong) > 10
    assert found == wrong, told.stdout + told.stderr


@pytest.mark.parametrize("name", SCRIPTS[:2])
def test_the_scripts_that_are_right_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(FOLDER / name))
