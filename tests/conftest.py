"""What the tests share: data, golden values, the command line, Hypothesis."""

import io
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

from sigmascale.datasets import fetch_qm9

# The verdict on unchanged code must depend neither on the day nor on the machine.
settings.register_profile("sigmascale", deadline=None, derandomize=True)
settings.load_profile("sigmascale")


@pytest.fixture(scope="session")
def qm9():
    """The sets `calibration`, `test` and `isotonic_test` of the published study.

    Each has error, uncertainty, mass (X1), heteroatom_fraction (X2) and group (OxNy).
    """
    folder = os.environ.get("SIGMASCALE_QM9")
    if not folder:
        pytest.skip("SIGMASCALE_QM9 does not name a folder with the QM9 files")
    return fetch_qm9(folder=folder)


@pytest.fixture(scope="session")
def golden():
    """Statistics of these sets by the study's own R code; needs no data."""
    path = Path(__file__).parent / "golden" / "qm9_golden.json"
    return json.loads(path.read_text(encoding="utf-8"))


class Outcome(NamedTuple):
    """What a command leaves behind: its exit code and what it printed."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def sigmascale():
    """Run a command line in this process, and return its :class:`Outcome`."""
    from sigmascale.cli import main

    def run(*arguments, stdin=b""):
        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["sigmascale", *map(str, arguments)])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            patch.setattr(sys, "stdout", streams[0])
            patch.setattr(sys, "stderr", streams[1])
            patch.setenv("COLUMNS", "80")
            with pytest.raises(SystemExit) as end:
                main()
        for stream in streams:
            stream.flush()
        texts = [stream.buffer.getvalue().decode() for stream in streams]
        return Outcome(end.value.code, *texts)

    return run
