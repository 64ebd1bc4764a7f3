"""Bytes that are damaged are refused in one sentence, or read; nothing else happens."""

import io
import struct
import subprocess
import sys
import zipfile
from contextlib import suppress
from itertools import product

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigmascale.cli.tables.files import write_table
from sigmascale.cli.tables.npz import read_npz
from sigmascale.cli.tables.parquet_claims import Thrift, check_claims
from sigmascale.exceptions import InvalidInputError

ROWS = 40
RNG = np.random.default_rng(0)
COLUMNS = {"E": RNG.normal(size=ROWS), "u": RNG.random(ROWS), "g": ["a", "b"] * 20}


def npz(**columns):
    content = io.BytesIO()
    np.savez(content, **columns)
    return content.getvalue()


def packed(**columns):
    content = io.BytesIO()
    np.savez_compressed(content, **columns)
    return content.getvalue()


def npy(header, data=b""):
    """Return an archive whose one array has a header of our own."""
    head = f"{header}\n".encode("latin1")
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("u.npy", array)
    return content.getvalue()


def with_flag(content, bit):
    """Return an archive whose entries have a bit set, such as that of encryption."""
    changed = bytearray(content)
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = changed.find(magic)
        while place >= 0:
            changed[place + offset] |= bit
            place = changed.find(magic, place + 4)
    return bytes(changed)


def with_method(content, method):
    """Return an archive that claims another way of packing."""
    changed = bytearray(content)
    for magic, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = changed.find(magic)
        while place >= 0:
            changed[place + offset] = method
            place = changed.find(magic, place + 4)
    return bytes(changed)


DAMAGED = {
    "encrypted": with_flag(npz(**COLUMNS), 1),
    "damaged data": packed(**COLUMNS)[:200] + b"\x55" * 40 + packed(**COLUMNS)[240:],
    "another way of packing": with_method(packed(**COLUMNS), 97),
    "data that are not packed as they say": with_method(npz(**COLUMNS), 14),
    "a cut header": npy("{'descr': '<f8', 'fortran_order': Fal"),
    "no header": npy(""),
    "an odd header": npy("{'descr': '<f8', 'fortran_order': False, 'shape': 1}"),
    "a deep header": npy("(" * 5000),
    "2**70 values": npy(
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**70},)}}"
    ),
    "too many values": npy(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,)}"
    ),
    "a billion values": npy(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,)}"
    ),
    "fewer than no values": npy(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"
    ),
    "more data than values": npy(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", bytes(16)
    ),
    "no known type": npy("{'descr': '<q9', 'fortran_order': False, 'shape': (1,)}"),
    "durations without a unit": npz(u=np.zeros(3, "m8")),
    "years as durations": npz(u=np.zeros(3, "m8[Y]")),
    "times out of range": npz(u=np.array([2**62], "m8[s]")),
    "text that is none": npz(u=np.array(["\ud800"])),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("command", ["check", "fit", "apply"])
def test_a_damaged_archive_is_refused_in_one_sentence(
    content, command, tmp_path, sigmascale
):
    (tmp_path / "a.npz").write_bytes(content)
    (tmp_path / "c.csv").write_text("E,u\n" + "1,2\n-1,2\n" * 20)
    scaler, out = tmp_path / "s.json", tmp_path / "o.csv"
    fit = ("fit", tmp_path / "c.csv", "--method", "temperature", "-o", scaler)
    assert sigmascale(*fit).code == 0
    done = sigmascale(
        *{
            "check": ("check", tmp_path / "a.npz"),
            "fit": ("fit", tmp_path / "a.npz", "-o", tmp_path / "t.json"),
            "apply": ("apply", scaler, tmp_path / "a.npz", "-o", out),
        }[command]
    )
    assert (done.code, done.out) == (2, "")
    assert done.says("a.npz: .*NPZ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("unit", ["s", "m", "h", "D", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", ["m8", "M8"])
def test_times_and_durations_of_any_unit_are_read(kind, unit, tmp_path):
    values = np.array([1, 2, "NaT"], dtype=f"{kind}[{unit}]")
    found = read_npz("a.npz", io.BytesIO(npz(t=values)))["t"].to_numpy()
    assert np.array_equal(found.astype(values.dtype)[:2], values[:2])
    assert np.isnat(found[2])


@pytest.mark.parametrize("ending", ["parquet", "npz", "feather"])
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
            *(("--uncertainty", "t"), ("--where", "t == 'x'"), ("--where", "t > 1")),
        ):
            done = sigmascale("check", f"a.{ending}", *engine, *options)
            assert (done.code, done.out) == (2, "")
            assert "Duration" in done.err
            assert done.err.count("\n") == 1
    assert sigmascale("check", f"a.{ending}", "--all-features").code in (0, 1, 4)
    fit = ("fit", f"a.{ending}", "--method", "temperature", "-o", "s.json")
    assert sigmascale(*fit).code == 0
    for output, code in (("parquet", 0), ("feather", 0), ("npz", 0), ("csv", 2)):
        apply = ("apply", "s.json", f"a.{ending}", "-o", f"o.{output}")
        done = sigmascale(*apply)
        assert done.code == code
        if code:
            assert "Duration" in done.err


@given(st.data())
@settings(max_examples=300)
def test_changed_bytes_of_an_archive_are_read_or_refused(data):
    content = bytearray(data.draw(st.sampled_from([npz(**COLUMNS), packed(**COLUMNS)])))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        end = data.draw(st.sampled_from([place, place + 1, place + 8]))
        content[place:end] = data.draw(st.binary(max_size=8))
    with suppress(InvalidInputError):  # nothing else may be raised
        read_npz("a.npz", io.BytesIO(bytes(content)))


# --- Parquet


CHANGE = """
import io, random, sys
from contextlib import suppress
from pathlib import Path
from sigmascale.cli.tables.files import read_part
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
    with suppress(InvalidInputError):  # nothing else may be raised
        read_part("a.parquet")
        read += 1
print(read)
"""


@pytest.mark.parametrize(
    ("first", "last"),
    [(0, 600), pytest.param(600, 10_000, marks=pytest.mark.torture)],
)
def test_changed_bytes_of_parquet_are_read_or_refused(first, last, tmp_path):
    """In a process of its own: a reader that is denied memory would end all tests."""
    pl.DataFrame(COLUMNS).write_parquet(tmp_path / "good.parquet")
    done = subprocess.run(
        [sys.executable, "-c", CHANGE, str(first), str(last)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 0 < int(done.stdout) < last - first


def test_a_page_that_claims_what_cannot_be_is_refused_before_it_is_read(
    tmp_path, sigmascale
):
    path = tmp_path / "a.parquet"
    pl.DataFrame(COLUMNS).write_parquet(path, compression="uncompressed")
    content = bytearray(path.read_bytes())
    reader = Thrift(content, 4)
    reader.structure()  # the header of the first page
    place = content.index(b"\x15\x50", 4, reader.place)  # 40 values, as Thrift has it
    content[place + 1] = 0x4F  # -40 values
    path.write_bytes(content)
    for engine in ("memory", "polars", "duckdb"):
        done = sigmascale("check", path, "--engine", engine)
        assert (done.code, done.out) == (2, "")
        assert done.says("a.parquet: .*PARQUET.* pages")


def parquet_files(folder):
    """Write Parquet files of all kinds of pages; yield their paths."""
    path = folder / "a.parquet"
    frame = pl.DataFrame(
        {
            "x": RNG.random(2000),
            "text": ["a", "bb", None, ""] * 500,
            "list": [[1, 2], [], None, [3]] * 500,
            "flag": [True, None] * 1000,
        }
    )
    for compression in ("zstd", "lz4", "uncompressed"):
        frame.write_parquet(path, compression=compression, row_group_size=300)
        yield path
    for table in (frame[:0], frame.select(pl.lit(None).alias("none"))):
        table.write_parquet(path)
        yield path
    for version, dictionary in product(("1.0", "2.0"), (True, False)):
        pq.write_table(
            frame.to_arrow(),
            path,
            data_page_version=version,
            use_dictionary=dictionary,
            data_page_size=500,
            write_page_index=True,
        )
        yield path
    categories = pa.DictionaryArray.from_arrays([0, 1], [str(i) for i in range(999)])
    for table in (pa.table({"c": categories}), frame[:0].to_arrow()):
        pq.write_table(table, path)
        yield path
    duckdb.sql(f"copy (select i, 'a' as t from range(5000) t(i)) to '{path}'")
    yield path


def test_every_good_parquet_file_passes(tmp_path):
    for path in parquet_files(tmp_path):
        check_claims("a.parquet", path)
        check_claims("a.parquet", io.BytesIO(path.read_bytes()))


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
