"""What the tests share: the QM9 data, the golden values, how Hypothesis runs."""

import json
import os
from pathlib import Path

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
