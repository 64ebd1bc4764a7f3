"""Bytes that are damaged are refused in one sentence, or read; nothing else happens."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from sigmascale.cli.files import write_table

ROWS = 40
RNG = np.random.default_rng(0)
COLUMNS = {"E": RNG.normal(size=ROWS), "u": RNG.random(ROWS), "g": ["a", "b"] * 20}


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_a_column_of_durations_is_no_label_and_does_no_harm(
    ending, tmp_path, sigmascale, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"E": [1.0, -1.0] * 20, "u": [2.0] * 40})
    frame = frame.with_columns(t=pl.duration(seconds=1), g=pl.lit("a"))
    write_table(frame, f"a.{ending}")
    lazily = [()] if ending != "parquet" else [(), ("--engine", "polars")]
    for engine in lazily:
        for options in (
            *(("--label", "t"), ("--feature", "t"), ("--groups", "t")),
            ("--uncertainty", "t"),
        ):
            done = sigmascale("check", f"a.{ending}", *engine, *options)
            assert (done.code, done.out) == (2, "")
            assert "duration" in done.err.lower()
            assert done.err.count("\n") == 1
    assert sigmascale("check", f"a.{ending}", "--all-features").code in (0, 1, 4)
    fit = ("fit", f"a.{ending}", "--method", "temperature", "-o", "s.json")
    assert sigmascale(*fit).code == 0
    for output, code in (("parquet", 0), ("feather", 0), ("csv", 2)):
        apply = ("apply", "s.json", f"a.{ending}", "-o", f"o.{output}")
        done = sigmascale(*apply)
        assert done.code == code
        if code:
            assert "Duration" in done.err


CHANGE = """
import io, random, sys
from contextlib import suppress
from pathlib import Path
from sigmascale.cli.files import read_file
from sigmascale.exceptions import InvalidInputError

content, first, last = Path("good.parquet").read_bytes(), *map(int, sys.argv[1:])
read = 0
for seed in range(first, last):
    rng, changed = random.Random(seed), bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        place = rng.randrange(len(changed) if seed % 2 else 300)
        place = len(changed) - 1 - place if seed % 2 == 0 else place  # in the footer
        end = place + rng.choice([0, 1, 1, 1, 8])
        changed[place:end] = rng.randbytes(rng.choice([0, 1, 1, 1, 8]))
    Path("a.parquet").write_bytes(changed)
    with suppress(InvalidInputError, MemoryError):  # nothing else may be raised
        read_file("a.parquet")
        read += 1
print(read)
"""


def test_changed_bytes_of_parquet_are_read_or_refused(tmp_path):
    """In a process of its own: a reader that is denied memory would end all tests."""
    pl.DataFrame(COLUMNS).write_parquet(tmp_path / "good.parquet")
    done = subprocess.run(
        [sys.executable, "-c", CHANGE, "0", "300"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 0 < int(done.stdout) < 300


@pytest.mark.parametrize("cut", [5, 100, 900, -1, -100])
@pytest.mark.parametrize("engine", ["memory", "polars"])
def test_a_cut_parquet_file_is_refused_in_one_sentence(
    cut, engine, tmp_path, sigmascale
):
    path = tmp_path / "a.parquet"
    pl.DataFrame(COLUMNS).write_parquet(path)
    path.write_bytes(path.read_bytes()[:cut])
    done = sigmascale("check", path, "--engine", engine)
    assert (done.code, done.out) == (2, "")
    assert "a.parquet: cannot be read as" in done.err
    assert done.err.count("\n") == 1
