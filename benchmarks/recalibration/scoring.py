"""What a method is worth on one set."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np

import sigmascale as ss

from .methods import Method
from .sets import Part, RecalibrationSet

COVERAGE = 0.95
BINS = 20

# What is measured, and what it is called in tables; lower is better in all of them.
SCORES = {
    "nll": "NLL",
    "crps": "CRPS",
    "interval": "interval score",
    "coverage": "coverage off by",
    "calibration": "calibration",
    "consistency": "consistency",
    "adaptivity": "adaptivity",
}


@dataclass(frozen=True)
class Outcome:
    """The scores of a method on the test part of a set.

    Attributes
    ----------
    set, method : str
        Their names.
    scores : dict of str to float
        By the names in SCORES; NaN where there is none.
    seconds : float
        Of the processor, for the fit.
    problem : str
        What went wrong, if anything did.
    """

    set: str
    method: str
    scores: dict[str, float]
    seconds: float
    problem: str = ""


def measure(data: RecalibrationSet, method: type[Method]) -> Outcome:
    """Fit a method on the calibration part, and score it on the test part."""
    learned, part = method(), data.calibration
    seconds = np.nan
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            learned.fit(part.X, part.error, part.groups)
            seconds = time.process_time() - start
            u = np.asarray(learned.predict(data.test.X), dtype=float)
            found = learned.distributions(data.test.X)
            scores = score(data.test, u, found)
            return Outcome(data.name, method.name, scores, seconds)
    except Exception as problem:
        words = f"{type(problem).__name__}: {problem}".splitlines()[0]
        nothing = dict.fromkeys(SCORES, np.nan)
        return Outcome(data.name, method.name, nothing, seconds, words)


def score(test: Part, u: np.ndarray, found: ss.Distributions) -> dict[str, float]:
    """Return the scores of uncertainties, and of the distributions that go with them.

    NLL is that of a normal law, of errors that a shift leaves. Calibration is
    abs(ln <Z²>), consistency S_u, and adaptivity the mean S of features.
    """
    e = test.error - found.location
    if u.shape != e.shape or not (np.isfinite(u).all() and (u > 0).all()):
        msg = "uncertainties must be finite and positive, one for each row"
        raise ValueError(msg)
    interval = found.interval(COVERAGE)
    widths = ss.interval_scores(test.error, interval, coverage=COVERAGE)
    n_bins = max(1, min(BINS, e.size // 10))
    local = [
        ss.local_calibration_error(
            e, u, by=column.to_numpy(), n_bins=n_bins, ties=test.u
        )
        for column in test.X.iter_columns()
        if column.name != "u"
    ]
    return {
        "nll": ss.nll(e, u),
        "crps": float(found.crps(test.error).mean()),
        "coverage": abs(ss.picp(test.error, interval) - COVERAGE),
        "interval": widths.interval_score,
        "calibration": abs(float(np.log(ss.zms(e, u)))),
        "consistency": ss.local_calibration_error(e, u, n_bins=n_bins, ties=test.u),
        "adaptivity": float(np.mean(local)) if local else np.nan,
    }
