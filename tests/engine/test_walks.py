"""How many functions a reader meets on the way through a fit."""

import sys
from pathlib import Path

import numpy as np

import sigmascale as ss

PACKAGE = Path(ss.__file__).parent  # and not any folder that is called so


def walked(action):
    """Return the named functions of the package that a call runs, and their modules."""
    found = set()

    def note(frame, event, _):
        code = frame.f_code
        ours = event == "call" and Path(code.co_filename).is_relative_to(PACKAGE)
        if ours and not code.co_name.startswith("<"):
            found.add((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return found, {file for file, _ in found}


def rows(n):
    rng = np.random.default_rng(0)
    u, x = rng.lognormal(size=(2, n))
    return ss.Predictions(y_std=u, error=rng.normal(scale=u * x), features={"x": x})


def test_the_way_through_a_temperature_is_short():
    p = rows(100)

    def way():
        r = ss.Recalibrator(ss.TemperatureScaling(), distribution="normal").fit(p)
        r.predict(p)

    way()
    functions, modules = walked(way)
    assert len(functions) <= 40
    assert len(modules) <= 8


def test_the_way_through_the_default_fit_is_not_long():
    p = rows(600)
    ss.Recalibrator().fit(p)
    functions, _ = walked(lambda: ss.Recalibrator().fit(p))
    assert len(functions) <= 110
