"""Bytes that are damaged are refused in one sentence, or read; nothing else happens."""

import io
import struct
import zipfile
from contextlib import suppress

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigmascale.cli.tables.npz import read_npz
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
    assert "a.npz: cannot be read as NPZ" in done.err
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
    from sigmascale.cli.tables.files import write_table

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
            assert "has no place for Duration" in done.err


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
