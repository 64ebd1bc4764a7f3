"""What the README prints, done by someone who has nothing but a checkout."""

import csv
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
SECONDS = 60  # of the processor, from an empty environment to the results


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands():
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [line[2:].split("  #")[0].strip() for line in lines if line[:2] == "$ "]


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def plain(text):
    """Return the words; numbers depend on scikit-learn's release."""
    return re.sub(r"\d[\d.,]*", "#", " ".join(text.split()))


def test_the_readme_is_short_and_begins_with_code_and_a_figure():
    assert len(README.split()) <= 600
    first, *_ = README.split("\n## ")
    assert len(re.findall(r"!\[.*?\]\(.*?\)", first)) == 1
    assert first.index("pip install") < first.index("import sigmascale")
    assert "make demo" in first
    assert "make test" in first
    assert len(blocks("python")[0].strip().splitlines()) <= 10


def test_the_result_that_the_readme_shows_is_that_of_its_lines(capsys):
    exec(blocks("python")[0], {})
    printed = [plain(line) for line in capsys.readouterr().out.splitlines()]
    (shown,) = re.findall(r"\n\n```\n(.*?)```", README, re.S)
    for line in shown.splitlines():
        assert line == "..." or plain(line) in printed, line


def test_the_table_of_the_readme_has_the_numbers_that_its_command_wrote():
    with (ROOT / "docs" / "images" / "hero.csv").open(newline="") as file:
        computed = {row["method"]: row for row in csv.DictReader(file)}
    for name, coverage, fifths, score in re.findall(
        r"^\| \**([^|*]+?)\** \| (\d+) % \| \**(\S+) %\** \| \**(\d+) K\** \|$",
        README,
        re.M,
    ):
        row = computed.pop(name)
        shares = [float(row[f"fifth_{k}"]) for k in range(1, 6)]
        ends = [f"{100 * share:.0f}" for share in (min(shares), max(shares))]
        assert f"{100 * float(row['coverage']):.0f}" == coverage
        assert "–".join(ends) == fifths
        assert f"{float(row['interval_score']):.0f}" == score
    assert not computed


def test_the_commands_run_and_print_what_the_readme_shows(
    sigmascale, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    shown = {
        lines[0][2:]: "\n".join(lines[1:])
        for block in blocks("console")
        if (lines := block.rstrip().splitlines())[0].startswith("$ sigmascale check")
    }
    for line in commands():
        name, *arguments = shlex.split(line)
        if name != "sigmascale":
            continue
        done = sigmascale(*arguments)
        assert done.code in (0, 1, 4), done.err
        if shown.get(line):
            assert plain(done.out) == plain(shown[line])
            assert len(done.out.splitlines()) <= 40
            assert max(map(len, done.out.splitlines())) <= 80
    assert Path("report.html").exists()
    assert "u_recalibrated" in Path("recalibrated.csv").read_text("utf-8")


@pytest.mark.slow
def test_a_stranger_s_path_from_an_empty_environment_takes_less_than_a_minute(tmp_path):
    name, *arguments = shlex.split(commands()[0])
    assert name == "pip"
    code = "\n".join(blocks("python"))
    before = processor_time()
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    quiet = ["--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [python, "-m", "pip", *arguments, *quiet],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if "Temporary failure in name resolution" in done.stderr:
        pytest.skip("the Python Package Index cannot be reached")
    assert done.returncode == 0, done.stderr
    ran = subprocess.run(
        [python, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert processor_time() - before < SECONDS
    assert "NOT CALIBRATED" in ran.stdout
    assert "RECALIBRATION HELPED" in ran.stdout
