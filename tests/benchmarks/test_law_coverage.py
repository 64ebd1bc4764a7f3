"""A small version of the study of coverage without rows held out."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "law_coverage.py"
if not PATH.is_file():
    pytest.skip("benchmarks are not part of this copy", allow_module_level=True)


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("law_coverage", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(("n", "within"), [(300, 0.02)])
@pytest.mark.parametrize(
    "law", ["normal", "t(3)", "lognormal", "exponential", "half zero"]
)
def test_intervals_without_rows_held_out_hold_what_was_asked_for(study, law, n, within):
    found = study.coverages(law, n, 40)
    noise = 2 * found.std(axis=0, ddof=1) / np.sqrt(40)
    difference = found.mean(axis=0) - study.ASKED
    assert (difference >= -within - noise).all()
    if law != "half zero":  # a value with a probability of its own is held, or is not
        assert (difference <= within + noise).all()


def test_the_study_prints_a_line_for_each_kind_and_number_of_rows(study, monkeypatch):
    monkeypatch.setattr(study, "ROWS", (40,))
    lines = list(study.table(2))
    assert len(lines) == 4 + len(study.LAWS)
    assert all(line.count("±") == len(study.ASKED) for line in lines[4:])
