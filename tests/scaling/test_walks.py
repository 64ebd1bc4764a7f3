"""How many functions of ours a simple fit walks through: few, in few modules."""

import sys
from pathlib import Path

import numpy as np
import pytest

import sigmascale as ss

PACKAGE = str(Path(ss.__file__).parent)


def walked(call):
    """Return the functions, by file and name, that a second call goes through."""
    call()
    found = set()

    def note(frame, event, _):
        code = frame.f_code
        named = not code.co_name.startswith("<")
        if event == "call" and named and code.co_filename.startswith(PACKAGE):
            found.add((code.co_filename, code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize(
    ("scaler", "functions", "modules"),
    [(ss.TemperatureScaling(), 71, 12), (ss.BinwiseScaling(10), 113, 15)],
    ids=["temperature", "binwise"],
)
def test_a_fit_and_a_prediction_go_through_few_functions(scaler, functions, modules):
    rng = np.random.default_rng(0)
    u = rng.lognormal(0, 0.5, 2000)
    error = rng.normal(scale=u)
    found = walked(lambda: scaler.fit(u, error).predict(u))
    assert len(found) <= functions, sorted(found)
    assert len({file for file, _ in found}) <= modules
