"""Assertions for test suites: that uncertainties stay calibrated."""

from __future__ import annotations

from typing import Any

from .predictions.predictions import Predictions
from .validation.advice import validate


def assert_calibrated(
    p: Predictions, *, inconclusive: bool = True, **options: Any
) -> None:
    """Raise an AssertionError, with the printed result, if a check of p fails.

    Parameters
    ----------
    p : Predictions
        Rows with known errors.
    inconclusive : bool, default True
        Whether an inconclusive result is accepted; else all checks must pass.
    **options
        Those of :func:`sigmascale.validate`, such as ``tolerance=1.5``.

    Examples
    --------
    >>> import sigmascale as ss
    >>> from sigmascale.testing import assert_calibrated
    >>> data = ss.datasets.load_melting()
    >>> assert_calibrated(data.test, tolerance=1.5)
    Traceback (most recent call last):
    AssertionError: NOT CALIBRATED: overconfident, u is too small overall
    ...
    """
    v = validate(p, **options)
    accepted = {"pass", "inconclusive"} if inconclusive else {"pass"}
    if v.result not in accepted:
        raise AssertionError(str(v))
