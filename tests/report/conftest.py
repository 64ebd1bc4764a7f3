"""Results and reports that several tests look at; each is made once."""

import warnings

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import SharedRowsWarning

NASTY = [
    "<script>alert(1)</script>",
    "\"quotes' & <img src=x onerror=alert(2)>",
    r"🧪 $x$ \frac{a}{b}",
    "a_name_without_any_space_" * 12,
    "כתובת בעברית",
    "{{ 7 * 7 }} {% raw %}",
    "\x1b[2Jcontrol\u202e",
]


class Case:
    """Predictions, a recalibrator, what was found, and the page on it."""

    def __init__(
        self, p, recalibrator=None, title="Are these uncertainties calibrated?"
    ):
        self.recalibrator, self.title = recalibrator, title
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SharedRowsWarning)  # the page says it, too
            if recalibrator is None:
                self.found = ss.validate(p)
            else:
                self.found = ss.validate(recalibrator.apply(p), before=p)
        self.page = ss.report.report_html(
            self.found, recalibrator=recalibrator, title=title
        )

    @property
    def stages(self):
        """What was found before and after, or once."""
        return [x for x in (self.found.before, self.found) if x is not None]


@pytest.fixture(scope="session")
def whole():
    """A report with everything on it."""
    rng = np.random.default_rng(2)
    u, mass = rng.lognormal(size=2000), rng.normal(120, 10, 2000)
    kind = np.where(rng.random(2000) < 0.25, "alloy", "organic")
    error = rng.normal(scale=np.where(kind == "alloy", 2, 1) * u)
    value = rng.normal(size=2000)
    features = {"mass": mass, "kind": kind}
    p = ss.Predictions(value, u, y_true=value + error, features=features)
    learned = ss.Recalibrator().fit(p.take(np.arange(2000) % 2 == 0))
    return Case(p.take(np.arange(2000) % 2 == 1), learned)


@pytest.fixture(scope="session")
def nasty():
    """A report on columns, labels and a title of all kinds of text."""
    rng = np.random.default_rng(0)
    u = rng.lognormal(size=600)
    features = {name: rng.normal(size=600) for name in NASTY[:-1]}
    features[NASTY[-1]] = np.array(NASTY, object)[rng.integers(0, len(NASTY), 600)]
    p = ss.Predictions(error=rng.normal(scale=u), y_std=u, features=features)
    learned = ss.Recalibrator(ss.RakedScaling()).fit(p)
    return Case(p, learned, title=" ".join(NASTY))


@pytest.fixture(scope="session")
def small():
    """A report on a few rows without features."""
    rng = np.random.default_rng(1)
    u = rng.lognormal(size=30)
    return Case(ss.Predictions(error=rng.normal(scale=u), y_std=u))
