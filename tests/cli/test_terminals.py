"""What terminals, streams and names of files do to the command line: no harm."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sigmascale._support.terminal import visible

RNG = np.random.default_rng(0)
ESCAPES = "x\x1b[31m\x9b1mü\u202e"  # colours, by one byte and by two, and text turned
TABLE = pl.DataFrame(
    {
        "E": RNG.normal(size=100),
        "u": np.ones(100),
        ESCAPES: RNG.normal(size=100),
        "label": ["a\x1b]0;title\x07", "b"] * 50,
    }
)
ODD = os.fsdecode(b"odd\xff\xfe")  # no UTF-8
INVISIBLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, sigmascale):
    monkeypatch.chdir(tmp_path)
    TABLE.write_csv("a.csv")
    TABLE.write_parquet("a.parquet")
    assert sigmascale("fit", "a.csv", "--method", "linear", "-o", "s.json").code == 0


COMMAND = [sys.executable, "-m", "sigmascale"]


# --- names that a terminal would act upon


def test_whatever_a_terminal_would_act_upon_is_shown_as_an_escape():
    assert visible("a\x1b[0m\tb\nc\x9b\udcff") == "a\\x1b[0m\\tb\nc\\x9b\\udcff"
    assert visible("⟨Z²⟩ 💡 ü") == "⟨Z²⟩ 💡 ü"


FILE = "f\x1b[2J.csv"
COMMANDS = {
    "check": ("check", FILE, "--all-features", "--label", "label"),
    "check, for machines": ("check", FILE, "--all-features", "--json"),
    "check, to be pasted": ("check", FILE, "--all-features", "--format", "markdown"),
    "fit": ("fit", FILE, "--method", "raked", "--feature", ESCAPES, "-o", "r\x9b.json"),
    "fit by labels": (
        "fit",
        FILE,
        "--method",
        "category",
        "--label",
        "label",
        "-o",
        "g.json",
    ),
    "show": ("show", "r\x9b.json"),
    "apply": ("apply", "r\x9b.json", FILE, "-o", "o\x1b.csv"),
    "update": ("update", "g.json", FILE),
    "bins": ("bins", FILE, FILE, "--by", ESCAPES),
    "no file": ("check", "no\x1b[2J.csv"),
    "no column": ("check", FILE, "--feature", "no\x1b[2J"),
    "no method": ("fit", FILE, "--method", "no\x1b[2J", "-o", "x.json"),
    "no option": ("check", FILE, "--no\x1b[2J"),
    "no command": ("no\x1b[2J",),
    "no argument": ("show", "s.json", "no\x1b[2J"),
    "no number": ("check", FILE, "--bins", "no\x1b[2J"),
    "no name": ("apply", "s.json", FILE, "-o", "o.csv", "--name", ESCAPES),
    "no condition": ("check", FILE, "--where", "no\x1b[2J"),
}


def test_no_name_reaches_the_terminal_as_a_command_to_it(sigmascale):
    os.link("a.csv", FILE)
    for name, arguments in COMMANDS.items():
        done = sigmascale(*arguments)
        assert done.code == 2 if name.startswith("no ") else done.code in (0, 1, 4)
        assert not INVISIBLE.search(done.out + done.err), name
        if name == "check, for machines":
            assert ESCAPES in json.loads(done.out)["data"]["numbers"]


# --- names of files that are no text


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_may_have_any_bytes_for_a_name(ending, tmp_path, sigmascale):
    os.link(f"a.{ending}", f"{ODD}.{ending}")
    done = sigmascale("check", f"{ODD}.{ending}", "--report", f"{ODD}.html")
    assert done.code in (0, 1, 4)
    assert f"odd\\udcff\\udcfe.{ending}: 100 rows" in done.out
    assert "odd" in Path(f"{ODD}.html").read_text(encoding="utf-8")
    told = json.loads(sigmascale("check", f"{ODD}.{ending}", "--json").out)
    assert told["data"]["file"] == f"{ODD}.{ending}"
    fit = ("fit", f"{ODD}.{ending}", "--method", "linear", "-o", f"{ODD}.json")
    assert sigmascale(*fit).code == 0
    Path(ODD).mkdir()
    for output in ("csv", "parquet", "feather", "jsonl"):
        apply = ("apply", f"{ODD}.json", f"{ODD}.{ending}")
        assert sigmascale(*apply, "-o", f"{ODD}/{ODD}.{output}").code == 0
    assert len(list(Path(ODD).iterdir())) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", f"{ODD}.parquet", "--engine", "polars"),
        ("check", f"{ODD}.parquet", "--engine", "duckdb"),
        ("apply", "s.json", "a.parquet", "--engine", "polars", "-o", f"{ODD}2.parquet"),
        ("apply", "s.json", "a.parquet", "--engine", "duckdb", "-o", f"{ODD}2.parquet"),
        ("apply", "s.json", "a.csv", "-o", "o.csv", "--name", ODD),
        ("check", "a.csv", "--uncertainty", ODD),
        ("check", "a.csv", "--separator", ODD[-1]),
        ("check", "a.csv", "--where", f"{ODD} == 1"),
        ("check", f"no{ODD}.csv"),
    ],
)
def test_what_must_be_text_and_is_not_is_refused_in_one_sentence(arguments, sigmascale):
    os.link("a.parquet", f"{ODD}.parquet")
    before = sorted(Path().iterdir())
    done = sigmascale(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert sorted(Path().iterdir()) == before


# --- names that are empty, or stand for a stream


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", ""),
        ("check", "a.csv", ""),
        ("check", "", "--engine", "polars"),
        ("fit", "", "-o", "x.json"),
        ("fit", "a.csv", "-o", ""),
        ("apply", "s.json", "", "-o", "o.csv"),
        ("apply", "", "a.csv", "-o", "o.csv"),
        ("apply", "s.json", "a.csv", "-o", ""),
        ("compare", "", "a.csv"),
        ("bins", "a.csv", ""),
        ("show", ""),
        ("check", "a.csv", "--report", ""),
        ("check", "a.csv", "--report", "-"),
        ("compare", "a.csv", "a.csv", "--report", "-"),
    ],
)
def test_an_empty_name_and_a_report_to_a_stream_are_refused(arguments, sigmascale):
    before = sorted(Path().iterdir())
    done = sigmascale(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert sorted(Path().iterdir()) == before


# --- closed streams


IN, OUT, ERR = ALL = ("stdin", "stdout", "stderr")


@pytest.mark.parametrize(
    ("streams", "arguments", "code"),
    [
        (ALL, ("check", "a.csv", "--tolerate", "no"), 0),
        (ALL, ("fit", "a.csv", "--method", "linear", "-o", "t.json"), 0),
        (ALL, ("apply", "s.json", "a.csv", "-o", "o.csv"), 0),
        ((IN,), ("apply", "s.json", "a.csv", "-o", "o.csv"), 0),
        ((OUT,), ("check", "a.csv", "--tolerate", "no"), 0),
        ((ERR,), ("fit", "a.csv", "--method", "linear", "-o", "t.json"), 0),
        (ALL, ("check", "no.csv"), 2),
        ((OUT,), ("--help",), 0),
        ((ERR,), ("nonsense",), 2),
    ],
)
def test_closed_streams_change_no_exit_code_and_no_file(
    streams, arguments, code, sigmascale
):
    done = sigmascale(*arguments, closed=streams)
    assert done.code == code
    assert "Traceback" not in done.out + done.err
    if "t.json" in arguments:
        assert Path("t.json").read_bytes() == Path("s.json").read_bytes()
    if "o.csv" in arguments:
        assert pl.read_csv("o.csv").shape == (100, 5)


@pytest.mark.parametrize(
    ("arguments", "stream", "words"),
    [
        (("check", "-"), IN, "standard input is empty"),
        (("apply", "s.json", "a.csv", "-o", "-"), OUT, "output is closed"),
        (("fit", "a.csv", "--method", "linear", "-o", "-"), OUT, "output is closed"),
    ],
)
def test_data_from_or_to_a_closed_stream_are_refused(
    arguments, stream, words, sigmascale
):
    done = sigmascale(*arguments, closed=[stream])
    assert done.code == 2
    assert words in done.err
    assert done.err.count("error: ") == 1
    assert "Traceback" not in done.err


@pytest.mark.parametrize("output", ["o.csv", "-"])
def test_a_process_without_streams_keeps_words_out_of_its_files(output):
    # the numbers of closed streams are free, and the next file that opens takes one
    shell = ("sh", "-c", 'exec "$@" 0>&- 1>&- 2>&-', "sh")
    apply = ("apply", "s.json", "a.csv", "-o", output)
    done = subprocess.run([*shell, *COMMAND, *apply], check=False)
    assert done.returncode == (2 if output == "-" else 0)
    if output == "o.csv":
        assert pl.read_csv("o.csv").shape == (100, 5)


# --- narrow terminals


def on_a_terminal(columns, *arguments):
    """Run a command on a terminal of so many columns; return code and output."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    with subprocess.Popen(
        [*COMMAND, *arguments],
        **dict.fromkeys(("stdin", "stdout", "stderr"), its),
        env=environment,
    ) as process:
        os.close(its)
        text = b""
        while True:
            try:
                text += os.read(ours, 65536)
            except OSError:  # all has been read
                break
    os.close(ours)
    return process.returncode, text


CHECK = ("check", "a.csv", "--feature", ESCAPES, "--tolerate", "no")


@pytest.mark.parametrize(
    ("columns", "arguments", "code", "words"),
    [
        (1, CHECK, 0, b"Cannot"),
        (0, ("nonsense",), 2, b""),
        (2, ("--help",), 0, b""),
    ],
)
def test_a_terminal_without_room_is_no_defect(columns, arguments, code, words):
    done, text = on_a_terminal(columns, *arguments)
    assert done == code
    assert words in text
    assert b"Traceback" not in text


@pytest.mark.parametrize("columns", ["0", "1", "2", "-5", "many"])
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (CHECK, 0, "Cannot"),
        (("check", "no.csv"), 2, "no.csv"),
        (("--help",), 0, ""),
        (("nonsense",), 2, ""),
    ],
)
def test_the_width_that_the_environment_claims_is_no_defect(
    columns, arguments, code, words, sigmascale
):
    done = sigmascale(*arguments, columns=columns)
    assert done.code == code
    assert words in done.out + done.err
    assert "Traceback" not in done.out + done.err
