"""The command line as a process: streams, signals, full disks, and what it loads."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sigmascale as package

COMMAND = [sys.executable, "-m", "sigmascale"]
ROOT = Path(package.__file__).parent
RNG = np.random.default_rng(0)
U = RNG.gamma(4.0, 0.1, 400)
FRAME = pl.DataFrame({"E": RNG.normal(scale=1.3 * U), "u": U, "mass": RNG.random(400)})
IN, OUT, ERR = ALL = ("stdin", "stdout", "stderr")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, sigmascale):
    monkeypatch.chdir(tmp_path)
    FRAME.write_csv("a.csv")
    fit = ("fit", "a.csv", "--scaling", "linear", "-o", "r.json")
    assert sigmascale(*fit).code == 0


# -- what a command loads --------------------------------------------------------------


def loaded_by(*lines):
    """Return what commands, one after the other, print, and the modules they load."""
    code = (
        "import sys\n"
        "from sigmascale.__main__ import main\n"
        f"for line in {lines!r}:\n"
        "    sys.argv = ['sigmascale', *line.split()]\n"
        "    try: main()\n"
        "    except SystemExit as end: print('ended with', end.code)\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    printed, _, modules = done.stdout.rstrip().rpartition("\n")
    return printed, set(modules.split())


def test_help_loads_nothing_slow():
    printed, modules = loaded_by("--help", "check --help", "fit")
    slow = {"numpy", "polars", "narwhals", "sklearn", "scipy", "matplotlib"}
    assert not slow & modules
    assert "--all-features" in printed


def test_what_learns_nothing_loads_no_scikit_learn():
    printed, modules = loaded_by(
        "apply r.json a.csv -o new.csv",
        "show r.json",
        "check nowhere.csv",
        "check a.csv --uncertainty nothing",
        "fit a.csv --scaling nothing -o new.json",
        "fit a.csv --parts nothing -o new.json",
        "apply r.json nowhere.csv -o new.csv",
        "compare a.csv",
        "watch r.json nowhere.csv",
    )
    ends = [line for line in printed.splitlines() if line.startswith("ended")]
    assert ends == ["ended with 0"] * 2 + ["ended with 2"] * 7
    assert "polars" in modules
    assert "sklearn" not in modules


# -- signals ---------------------------------------------------------------------------


def test_a_reader_that_has_seen_enough_is_no_error():
    pl.concat([FRAME] * 100).write_csv("many.csv")
    with subprocess.Popen(
        [*COMMAND, "apply", "r.json", "many.csv", "-o", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline().startswith(b"E,u,mass,u_recalibrated")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGPIPE


def works(process, seconds):
    """Let a process work for so many seconds of its own, whatever else goes on.

    They begin where it takes signals: imports may take long on a busy machine.
    """
    ticks = os.sysconf("SC_CLK_TCK")
    about = Path(f"/proc/{process.pid}")
    start = None
    while process.poll() is None:
        fields = (about / "stat").read_text().rpartition(")")[2].split()
        worked = (int(fields[11]) + int(fields[12])) / ticks
        caught = (about / "status").read_text().partition("SigCgt:")[2].split()[0]
        if start is None and int(caught, 16) >> (signal.SIGTERM - 1) & 1:
            start = worked
        if start is not None and worked - start > seconds:
            return
        time.sleep(0.02)
    pytest.fail(f"ended too soon: {process.communicate()}")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_no_partial_output(number, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.random((6, 200_000))
    u = rng.gamma(4.0, 0.1, 200_000)
    # features that matter keep the fit at work for many seconds: where there is nothing
    # to learn it may be done, and Python take no signals any more, within three
    factors = np.exp(np.sin(9 * x[0]) + x[1] * x[2])
    errors = rng.normal(size=200_000) * factors * u
    columns = {f"x{i}": column for i, column in enumerate(x)}
    frame = pl.DataFrame({"E": errors, "u": u, **columns})
    frame.write_parquet("more.parquet")
    Path("old.json").write_text("old")
    before = sorted(path.name for path in tmp_path.iterdir())
    arguments = ("fit", "more.parquet", "--all-features", "-o", "old.json")
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        works(process, seconds=2.5)  # all is loaded, and the fit goes on
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"Traceback" not in err
    assert out == b""
    assert Path("old.json").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "made_of_it", ["raise RuntimeError('a callback failed')", "time.sleep(60)"]
)
def test_what_a_library_makes_of_an_interruption_is_one(number, made_of_it):
    code = (
        "import signal, sys, time\n"
        "import sigmascale.cli.input_table\n"
        "from sigmascale.__main__ import main\n"
        "def read(*_, **__):\n"
        f"    try: signal.raise_signal({int(number)})\n"
        f"    except BaseException: {made_of_it}\n"
        "sigmascale.cli.input_table.read = read\n"
        "sys.argv = ['sigmascale', 'check', 'a.csv']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == 128 + number
    assert (done.stdout, done.stderr) == (b"", b"error: interrupted.\n")


# -- full disks ------------------------------------------------------------------------


@contextmanager
def little_disk():
    """Let files grow to 20 kB and no further, as on a disk that fills up."""
    found = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, found[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, found)


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path, sigmascale):
    noise = np.random.default_rng(0).random(40_000)
    pl.concat([FRAME] * 100).with_columns(noise=noise).write_csv("good.csv")
    before = sorted(path.name for path in tmp_path.iterdir())
    for ending in ("csv", "csv.gz", "parquet", "arrow", "ndjson", "xlsx"):
        output = tmp_path / f"out.{ending}"
        output.write_bytes(b"old")
        with little_disk():
            done = sigmascale("apply", "r.json", "good.csv", "-o", output)
        assert (done.code, done.out) == (2, ""), ending
        assert done.err.startswith("error: ")
        assert "File too large" in done.err
        assert done.err.count("\n") == 1
        assert output.read_bytes() == b"old"
        output.unlink()
        assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_full_disk_under_a_sheet_is_told_in_one_line():
    noise = np.random.default_rng(0).random(40_000)
    pl.concat([FRAME] * 100).with_columns(noise=noise).write_csv("good.csv")
    command = [*COMMAND, "apply", "r.json", "good.csv", "-o", "out.xlsx"]
    with little_disk():
        done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: out.xlsx: File too large\n"


def test_a_full_disk_where_a_sheet_goes_is_told_in_one_line(tmp_path):
    noise = np.random.default_rng(0).random(40_000)
    pl.concat([FRAME] * 100).with_columns(noise=noise).write_csv("good.csv")
    small = tmp_path / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=100k none {small}"
    private = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    try:
        subprocess.run([*private, mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no disk of its own can be had here")
    apply = " ".join([*COMMAND, "apply", "r.json", "good.csv", "-o", f"{small}/o.xlsx"])
    done = subprocess.run(
        [*private, f"{mount} && {apply}"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {small}/o.xlsx: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_standard_output_is_told():
    for words in (["--help"], ["apply", "r.json", "a.csv", "-o", "-"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 2
        assert "No space left on device" in done.stderr
        assert done.stderr.count("\n") == 1


# -- streams and names -----------------------------------------------------------------


def test_closed_streams_change_no_exit_code_and_no_file(sigmascale, tmp_path):
    cases = [
        (ALL, ("check", "a.csv", "--tolerate", "FAIL"), 0),
        (ALL, ("fit", "a.csv", "--scaling", "linear", "-o", "t.json"), 0),
        ((IN,), ("apply", "r.json", "a.csv", "-o", "o.csv"), 0),
        (ALL, ("check", "no.csv"), 2),
        ((OUT,), ("--help",), 0),
        ((ERR,), ("nonsense",), 2),
        ((IN,), ("check", "-"), 2),
        ((OUT,), ("apply", "r.json", "a.csv", "-o", "-"), 2),
        ((OUT,), ("fit", "a.csv", "--scaling", "linear", "-o", "-"), 2),
    ]
    for streams, arguments, code in cases:
        done = sigmascale(*arguments, closed=streams)
        assert done.code == code, arguments
        assert "Traceback" not in done.out + done.err
    assert (tmp_path / "t.json").read_bytes() == (tmp_path / "r.json").read_bytes()
    assert pl.read_csv("o.csv").height == 400


def test_a_file_may_have_any_bytes_for_a_name(sigmascale, tmp_path):
    name = os.fsdecode(b"\xff[1].csv")
    try:
        FRAME.write_csv(tmp_path / "plain.csv")
        os.rename("plain.csv", name)
    except OSError:
        pytest.skip("names of files are text here")
    done = sigmascale("check", name, "--tolerate", "FAIL")
    assert done.code == 0, done.err
    assert r"\udcff" in done.out


def test_warnings_are_told_once_and_before_the_result(sigmascale):
    bad = pl.concat([FRAME.with_columns(mass=pl.col("mass") + 1e9)] * 3)
    fit = ("fit", "a.csv", "--feature", "mass", "-o", "m.json", "--scaling", "raked")
    assert sigmascale(*fit).code == 0
    bad.write_csv("b.csv")
    done = sigmascale("apply", "m.json", "b.csv", "-o", "o.csv")
    lines = done.err.splitlines()
    (line,) = lines  # batches are counted together
    assert line.startswith("warning: 1200 of 1200 rows (100 %) lie outside the 'mass'")


@pytest.mark.parametrize(
    "problem",
    [
        KeyError("ours"),
        OSError("ours"),
        ImportError("ours", name="sigmascale.nothing"),
        pl.exceptions.ColumnNotFoundError("ours"),
    ],
)
def test_what_nobody_foresaw_is_a_defect_wherever_it_happens(
    problem, sigmascale, monkeypatch
):
    def fail(*_, **__):
        raise problem

    FRAME.write_csv("b.csv")
    places = ["validation.advice.validate", "cli.check.typed_steps"]
    if not isinstance(problem, (OSError, pl.exceptions.PolarsError)):
        # else a file may be at fault
        places += [
            "cli.input_table.read",
            "cli.file_formats._names",
            "cli.file_formats._without_blank_end",
        ]
    for place in places:
        with monkeypatch.context() as patch:
            patch.setattr(f"sigmascale.{place}", fail)
            done = sigmascale("check", "a.csv", "b.csv", "--json")
        assert done.code == 3, place
        assert "Traceback" in done.err
        assert done.err.splitlines()[-1].startswith("error: this is a defect")
        told = json.loads(done.out)["error"]
        assert (told["exit_code"], told["code"]) == (3, "defect")
        assert "report" in told["message"]


def test_pages_of_help_and_json_tell_the_exit_codes(sigmascale):
    for words in (["--help"], ["check", "--help", "all"]):
        assert sigmascale(*words).says("2 input that you can mend; 3 a defect.*report")
    for words in (["check", "no.csv"], ["check", "a.csv", "--nothing"], ["nothing"]):
        done = sigmascale(*words, "--json")
        told = json.loads(done.out)["error"]
        assert (done.code, told["exit_code"]) == (2, 2)
        assert f"error: {told['message']}\n" == done.err
