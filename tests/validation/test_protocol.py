"""A question is a class in a file of its own: nothing else knows its name."""

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.validation import checks
from sigmascale.validation.questions.coverage import Coverage
from sigmascale.validation.values import Values


class Shape(Coverage):
    """Is the distribution right: do the middle halves of PIT have half of the rows?"""

    kind = "shape"
    statistic = "share in the middle half of PIT"

    def __init__(self, values):
        super().__init__(Values(values.rows, 0.5))


@pytest.fixture
def shape_is_asked(monkeypatch):
    monkeypatch.setattr(checks, "QUESTIONS", (*checks.QUESTIONS, Shape))


def test_another_question_takes_a_class_and_its_place_in_a_tuple(shape_is_asked):
    rng = np.random.default_rng(0)
    n = 4000
    u, kind = rng.gamma(3, 1, n), rng.choice(["a", "b"], n, p=[0.8, 0.2])
    # of the right size everywhere, but with many small and a few large errors for b
    scale = np.where(rng.random(n) < 0.15, 2.3, 0.45)
    z = rng.normal(size=n) * np.where(kind == "a", 1, scale)
    p = ss.Predictions(error=u * z, y_std=u, features={"kind": kind})
    v = ss.validate(p)
    assert list(v.checks)[-1] == "shape"
    check = v.checks["shape"]
    assert check.ideal == pytest.approx(0.5)
    assert check.subgroup.conditions[0].labels == ("b",)
    inside = np.abs(z[kind == "b"]) < 0.67449
    assert check.subgroup.estimate == pytest.approx(inside.mean())
    assert check.result == "FAIL"
    assert v.result == "FAIL"
    assert "FAIL" not in {c.result for c in v.checks.values() if c is not check}
    assert v.to_frame()["check"].iloc[-1] == "shape"
