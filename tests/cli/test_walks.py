"""How much of the library a command goes through, and what it loads."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from sigmascale.cli import result_of
from sigmascale.exceptions import InvalidInputError

MOST_MODULES = {"apply": 20, "check": 31}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    u = rng.gamma(4.0, 0.1, 600)
    errors = {"E": rng.normal(scale=1.3 * u), "u": u, "mass": rng.random(600)}
    pl.DataFrame(errors).write_csv("t.csv")
    result_of(["fit", "t.csv", "--method", "linear", "-o", "s.json"])


def modules_of(arguments):
    """Return the modules whose functions a second call goes through."""
    result_of(arguments)
    seen = set()

    def note(frame, event, _):
        code = frame.f_code
        place = code.co_filename.rpartition("/sigmascale/")
        if event == "call" and place[1] and not code.co_name.startswith("<"):
            seen.add(place[2])

    sys.setprofile(note)
    try:
        result_of(arguments)
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize(
    "arguments", [["apply", "s.json", "t.csv", "-o", "o.csv"], ["check", "t.csv"]]
)
def test_a_command_goes_through_few_modules(arguments, files):
    seen = modules_of(arguments)
    assert len(seen) <= MOST_MODULES[arguments[0]], sorted(seen)
    assert sum(each.startswith("cli/") for each in seen) <= 7


def loaded_by(*arguments):
    """Return which libraries a process of its own has loaded at its end."""
    code = (
        "import sys; from sigmascale.cli import main\n"
        f"sys.argv = ['sigmascale', *{arguments!r}]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_apply_loads_no_scikit_learn(files):
    assert "sklearn" not in loaded_by("apply", "s.json", "t.csv", "-o", "o.csv")


def test_help_loads_nothing_slow():
    slow = {"numpy", "polars", "narwhals", "sklearn", "scipy", "matplotlib"}
    assert not slow & loaded_by("--help")


def test_commands_give_their_results_to_python(files):
    code, told = result_of(["check", "t.csv", "--feature", "mass"])
    assert code in (0, 1, 4)
    assert told["data"]["numbers"] == ["mass"]
    assert result_of(["show", "s.json"])[1]["method"] == "LinearScaling"
    applied = ["apply", "s.json", "t.csv", "-o", "o.csv"]
    assert result_of(applied)[1]["column"] == "u_recalibrated"
    with pytest.raises(InvalidInputError, match=r"'mas'.*Did you mean 'mass'"):
        result_of(["check", "t.csv", "--feature", "mas"])
    with pytest.raises(InvalidInputError, match="--nonsense"):
        result_of(["check", "t.csv", "--nonsense"])
