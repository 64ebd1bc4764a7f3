"""What the README prints, done by someone who has nothing but a checkout."""

import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
SECONDS = 60  # of the processor, from an empty environment to verdict and figure


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands():
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [line[2:].split("  #")[0].strip() for line in lines if line[:2] == "$ "]


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_readme_is_short_and_begins_with_code_and_a_figure():
    words = re.sub(r"```.*?```", "", README, flags=re.DOTALL).split()
    assert len(words) <= 600
    first, *_ = README.split("\n## ")
    assert len(re.findall(r"!\[.*?\]\(.*?\)", first)) == 1
    assert first.index("pip install") < first.index("import sigmascale")
    assert len(blocks("python")[0].strip().splitlines()) <= 8


def plain(text):
    """Return the words; numbers and pictures depend on scikit-learn's release."""
    lines = [line for line in text.splitlines() if "┊" not in line]
    return re.sub(r"\d[\d.,]*", "#", " ".join(" ".join(lines).split()))


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
    assert "1.36 times too small on" in ran.stdout
    assert (tmp_path / "certificate.png").read_bytes().startswith(b"\x89PNG")
