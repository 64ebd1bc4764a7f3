"""The core alone: what comes with extras is named, with the line that installs it."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sigmascale._support.extras import EXTRAS
from sigmascale.cli.options import COMMANDS

ROOT = Path(__file__).parents[2]
WITHOUT = f"""
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in {[*EXTRAS, "pandas", "pooch", "pyarrow", "duckdb"]}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
MAIN = """
import io, json, shlex
from contextlib import redirect_stderr, redirect_stdout
from sigmascale.__main__ import main
told = {}
for line in sys.argv[1:]:
    sys.argv = ["sigmascale", *shlex.split(line)]
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as end:
            told[line] = end.code, out.getvalue(), err.getvalue()
print(json.dumps(told))
"""
API = """
import sigmascale as ss
from importlib import import_module
p = ss.datasets.make_molecules(300).predictions
r = ss.Recalibrator(ss.LinearScaling()).fit(p)
v = ss.validate(p)
for call in (
    lambda: ss.plots.calibration(p),
    lambda: ss.plots.factors(v),
    lambda: ss.report.write_report("r.html", v),
    lambda: v.card("c.html"),
    lambda: ss.export.to_onnx(r, "r.onnx"),
    lambda: ss.datasets.fetch_qm9(),
    lambda: import_module("sigmascale.integrations.forces"),
):
    try:
        call()
    except ImportError as problem:
        print(problem)
print(v)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run code in a process without the extras; return what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGMASCALE_QM9", raising=False)

    def run(code, *arguments):
        command = [sys.executable, "-c", WITHOUT + code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    return run


def test_every_command_says_in_one_sentence_what_to_install(run, sigmascale):
    Path("t.csv").write_text("E,u\n" + "0.1,0.1\n0.2,0.1\n" * 20)
    assert sigmascale("fit", "t.csv", "--scaling", "linear", "-o", "r.json").code == 0
    lines = {
        "check t.csv --card c.html": "polars",
        "fit t.csv -o s.json": "polars",
        "apply r.json t.csv -o o.csv": "polars",
        "combine r.json t.csv --by u -o o.csv": "polars",
        "compare t.csv --recalibrator r.json": "polars",
        "watch r.json t.csv": "polars",
        "verify t.csv t.csv": "polars",
        "export r.json": "ndonnx",
        "app": "uvicorn",
        "demo": "polars",
    }
    need_nothing = ["show r.json", "completion bash", "--help", "check --help all"]
    assert {line.split()[0] for line in [*lines, *need_nothing[:2]]} == set(COMMANDS)
    told = json.loads(run(MAIN, *lines, *need_nothing).stdout)
    for line, package in lines.items():
        name = "to_onnx" if line == "export r.json" else f"sigmascale {line.split()[0]}"
        extra = EXTRAS[package]
        error = f'error: {name} needs {package}: pip install "sigmascale[{extra}]"\n'
        assert told[line] == [2, "", error]
    for line in need_nothing:
        code, printed, errors = told[line]
        assert (code, bool(printed), errors) == (0, True, ""), line


def test_python_names_what_to_install(run):
    printed = run(API).stdout
    lines = printed.splitlines()[:7]
    for line, end in zip(
        lines,
        [
            *['"sigmascale[cli]"'] * 4,
            '"sigmascale[onnx]"',
            "pooch",
            '"sigmascale[atoms]"',
        ],
        strict=True,
    ):
        assert f": pip install {end}" in line
    assert "RMS z" in printed


def test_a_sheet_says_which_package_reads_it(sigmascale, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"PK\x03\x04")
    done = sigmascale("check", path)
    assert done.code == 2
    assert done.err.endswith('check needs openpyxl: pip install "sigmascale[cli]"\n')


def test_the_extras_are_those_that_the_package_declares():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = declared["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(line.startswith(f"{package}>=") for line in extras[extra]), package
    of_commands = {line.partition(">")[0] for line in extras["cli"] + extras["app"]}
    assert of_commands - {"sigmascale[cli]"} <= set(EXTRAS)
