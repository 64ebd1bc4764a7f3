"""Acceptance: which predictions may be used as they are, with a stated assurance.

Rows are accepted from the smallest uncertainty on, as long as an upper confidence limit
of the share of errors beyond a limit stays below what is allowed: a fixed sequence of
tests, each at the full level, that ends with the first that fails. The limit is that of
Clopper and Pearson for the effective number of rows,

    n = (Σ w)² / (Σ w² + ρ (Σ_g (Σ w)² − Σ w²)),

with the correlation ρ of large |z| within groups (Korn and Graubard 1998). Three
sequences begin at the first rows that can show anything, at a quarter and at half of
all rows, each at a third of the level, so that rows whose u fails at its small end do
not end it all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from .._support import numerals
from .._support.checks import Bools, Floats, Ints, check_fraction, is_real, need
from .._support.render import Cells, Result
from .._support.weighting import pair_products
from ..exceptions import InvalidInputError
from ..predictions.predictions import Predictions, check_predictions

STARTS = (0.0, 0.25, 0.5)  # shares of the rows: keeps .37 of rows where one start none
N_STEPS = 50
LARGE = (0.8, 0.95)  # quantiles of |z| beyond which it is large


@dataclass(frozen=True, repr=False)
class Acceptance(Result):
    """Which predictions are accepted: those with at most so large a u, or risk.

    Attributes
    ----------
    limit, share, confidence : float
        What was asked: at most this share of errors is larger than the limit.
    ranking : {"u", "risk"}
        What rows are ranked by: u, or ``P(|error| > limit)`` of their distributions.
    up_to : float or None
        The largest u, or risk, that is accepted; None if none can be.
    kept : float
        The share of rows that are accepted.
    beyond, upper : float
        The share of their errors beyond the limit, and its upper confidence limit.
    n_rows, n_effective : float
        The rows that were tested.
    rows_needed : int or None
        Where nothing is accepted: about how many rows could show it, if shares stay as
        they are; None if the share is not below what is allowed anywhere.
    curve : array of shape (n_steps, 4)
        Of each step the largest u (or risk), the share of rows kept, the share of their
        errors beyond the limit, and its upper confidence limit.
    """

    limit: float
    share: float
    confidence: float
    ranking: Literal["u", "risk"]
    up_to: float | None
    kept: float
    beyond: float
    upper: float
    n_rows: int
    n_effective: float
    rows_needed: int | None
    curve: Floats

    def of(self, p: Predictions) -> Bools:
        """Return which rows are accepted, from u or distributions alone."""
        p = check_predictions(p, errors=False)
        if self.up_to is None:
            return np.zeros(p.n_rows, dtype=bool)
        if self.ranking == "risk" and p.recalibrated is None:
            msg = (
                "`p` must be recalibrated, as the rows were by which the limit was "
                "found: pass r.apply(p)."
            )
            raise InvalidInputError(msg)
        values = p.y_std if self.ranking == "u" else risk(p, self.limit)
        return np.asarray(values <= self.up_to)

    def __str__(self) -> str:
        """Return what is accepted, in sentences."""
        allowed = numerals.percent(self.share, 1)
        asked = (
            f"at most {allowed} of errors larger than {numerals.number(self.limit)}, "
            f"{numerals.level(self.confidence)} confidence, {self.n_rows:,} rows"
        )
        if self.up_to is None:
            if self.rows_needed is None:
                why = "more errors are larger than that, however small u is."
            else:
                why = f"about {numerals.about(self.rows_needed)} rows could show it."
            return f"NOTHING CAN BE ACCEPTED: {why}\n({asked})"
        what = "u" if self.ranking == "u" else "P(|error| > limit)"
        return (
            f"ACCEPT {what} up to {numerals.number(self.up_to)}: "
            f"{numerals.percent(self.kept)} of the rows\n"
            f"{numerals.percent(self.beyond, 1)} of their errors are larger than "
            f"{numerals.number(self.limit)}, upper limit "
            f"{numerals.percent(self.upper, 1)}\n({asked})"
        )

    def _cells(self) -> Cells:
        head = ("u" if self.ranking == "u" else "risk", "kept", "beyond", "upper limit")
        rows = []
        for value, kept, beyond, upper in self.curve:
            shares = (numerals.percent(x, 1) for x in (kept, beyond, upper))
            rows.append((numerals.number(value), *shares))
        return head, rows


def risk(p: Predictions, limit: float) -> Floats:
    """Return P(|error| > limit) of the distributions of rows."""
    d = p.distributions
    centre = np.zeros(p.n_rows) if p.y_pred is None else p.y_pred
    beyond = 1 - d.cdf(centre + limit) + d.cdf(centre - limit)
    return beyond.round(9)  # equal ones are equal to the last bit


def accept(
    p: Predictions, *, limit: float, share: float = 0.05, confidence: float = 0.95
) -> Acceptance:
    """Return up to which u predictions may be used as they are.

    Among rows with a u up to that, at most a share of errors is larger than the limit,
    with the confidence asked for. Rows that have distributions are ranked by
    ``P(|error| > limit)`` in place of u.

    Parameters
    ----------
    p : Predictions
        Rows with known errors that neither the model nor a recalibrator has seen.
        Groups and weights count.
    limit : float
        The largest error, in the unit of the predictions, that does no harm.
    share : float, default 0.05
        The share of errors that may be larger.
    confidence : float, default 0.95
        Of the promise.

    Returns
    -------
    Acceptance

    References
    ----------
    E. L. Korn and B. I. Graubard, Survey Methodology 24, 193 (1998).

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.lognormal(0, 0.7, 1000)
    >>> p = ss.Predictions(y_std=u, error=rng.normal(scale=u))
    >>> a = ss.accept(p, limit=2.0)
    >>> bool(a.upper <= 0.05), round(a.kept, 2)
    (True, 0.66)
    """
    p = check_predictions(p)
    is_positive = is_real(limit) and 0 < limit < np.inf
    need(is_positive, "limit", "be a positive number, in the unit of errors", limit)
    share = check_fraction(share, "share")
    confidence = check_fraction(confidence, "confidence")

    # rows from the most to the least certain; equal ones are tested together
    ranking: Literal["u", "risk"] = "u" if p.recalibrated is None else "risk"
    values = p.y_std if ranking == "u" else risk(p, limit)
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    size = np.sqrt(p.squared_error * p.dim)
    if p.shape is not None:
        size = np.abs(p.residual)  # straightened errors have no unit
    size = size[order]
    is_beyond = size > limit
    w = np.ones(p.n_rows) if p.weights is None else p.weights[order]
    group = np.arange(p.n_rows) if p.groups is None else p.groups[order]
    rho = 0.0 if p.groups is None else _correlation_of_large(p.abs_z[order], group)

    # effective rows, share beyond and its limit after each step
    error_rate = (1 - confidence) / len(STARTS)
    least = int(np.ceil(np.log(error_rate) / np.log1p(-share)))  # with none beyond
    ends = _ends(ranked, min(least, -(-p.n_rows // 4)))
    n = np.array([_effective(w[:end], group[:end], rho) for end in ends])
    beyond = np.array([w[:end] @ is_beyond[:end] / w[:end].sum() for end in ends])
    upper = _upper_limit(beyond * n, n, error_rate)

    # each sequence begins where rows could show something, and ends when they do not
    best = -1
    for start in STARTS:
        begins = (ends >= start * p.n_rows) & (n >= least)
        if not begins.any():
            continue
        first = int(np.argmax(begins))
        fails = np.flatnonzero(upper[first:] > share)
        last = first + (int(fails[0]) if fails.size else len(ends) - first) - 1
        if last >= first:
            best = max(best, last)

    weight = np.cumsum(w)
    kept = weight[ends - 1] / weight[-1]
    curve = np.column_stack([ranked[ends - 1], kept, beyond, upper])
    none = np.array([np.nan, 0.0, np.nan, np.nan])
    up_to, kept_of_best, *shares = map(float, none if best < 0 else curve[best])
    needed = _rows_needed(beyond, n, p.n_rows, share, error_rate)
    return Acceptance(
        limit=float(limit),
        share=share,
        confidence=confidence,
        ranking=ranking,
        up_to=None if best < 0 else up_to,
        kept=kept_of_best,
        beyond=shares[0],
        upper=shares[1],
        n_rows=p.n_rows,
        n_effective=float(n[-1]),
        rows_needed=needed if best < 0 else None,
        curve=curve,
        _origin=p.origin,
    )


def _ends(ranked: Floats, least: int) -> Ints:
    """Return after how many rows there is a step: each value has all of its rows."""
    steps = np.round(np.geomspace(least, ranked.size, N_STEPS)).astype(np.int64)
    return np.unique(np.searchsorted(ranked, ranked[steps - 1], side="right"))


def _effective(w: Floats, group: Ints, rho: float) -> float:
    """Return the effective number of rows with weights, correlated within groups."""
    own = float(w @ w)
    together = float((np.bincount(group, w) ** 2).sum())
    return float(w.sum() ** 2 / (own + rho * (together - own)))


def _upper_limit(k: Floats, n: Floats, error_rate: float) -> npt.NDArray[np.float64]:
    """Return Clopper and Pearson's upper limits of k of n."""
    missing = np.maximum(n - k, 1e-9)
    return np.asarray(special.betaincinv(k + 1, missing, 1 - error_rate))


def _correlation_of_large(abs_z: Floats, group: Ints) -> float:
    """Return the correlation within groups of "|z| is large", plus a standard error."""
    largest = 0.0
    for level in LARGE:
        x = (abs_z > np.quantile(abs_z, level)).astype(np.float64)
        x -= x.mean()
        products, pairs = pair_products(x, group)
        if not pairs.any() or not x.any():
            continue
        products = products / (x**2).mean()
        rho = products.sum() / pairs.sum()
        noise = np.sqrt(((products - rho * pairs) ** 2).sum()) / pairs.sum()
        largest = max(largest, float(rho + noise))
    return min(largest, 1.0)


def _rows_needed(
    beyond: Floats, n: Floats, n_rows: int, share: float, error_rate: float
) -> int | None:
    """Return how many rows could show the share of the best step, if it stays."""
    best = int(np.argmin(beyond))
    if beyond[best] >= share:
        return None
    times = 2 ** np.arange(0, 15.01, 0.25)
    upper = _upper_limit(times * beyond[best] * n[best], times * n[best], error_rate)
    shown = np.flatnonzero(upper <= share)
    return int(np.ceil(times[shown[0]] * n_rows)) if shown.size else None
