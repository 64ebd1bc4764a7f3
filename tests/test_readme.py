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


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_readme_is_short_and_begins_with_six_lines_of_code():
    words = re.sub(r"```.*?```", "", README, flags=re.DOTALL).split()
    assert len(words) <= 700
    (code,) = blocks("python")
    lines = [line for line in code.splitlines() if line]
    assert len(lines) == 6
    assert "y_true, y_pred, y_std" in code
    # before anything else: one sentence, how to install, the code and a figure
    first, *_ = README.split("\n## ")
    assert len(re.findall(r"!\[.*?\]\(.*?\)", first)) == 1
    assert first.index("pip install") < first.index("import sigmascale")


@pytest.mark.slow
def test_a_stranger_s_path_from_an_empty_environment_takes_less_than_a_minute(tmp_path):
    install = re.search(r"^\$ (pip install .*?)(?: +#.*)?$", blocks("console")[0], re.M)
    name, *arguments = shlex.split(install[1])
    assert name == "pip"
    (code,) = blocks("python")
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
    assert "Not calibrated: uncertainties are 27 % too small" in ran.stdout
    assert (tmp_path / "summary.png").read_bytes().startswith(b"\x89PNG")
