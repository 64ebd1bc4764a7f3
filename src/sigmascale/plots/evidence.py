"""Errors against u, in tenths of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..predictions.predictions import Predictions
from ..scores import Evidence, evidence
from ..validation.validation import Validation
from .canvas import (
    GREY,
    INK,
    Look,
    axes_for,
    explain,
    log_ticks,
    looks_of,
    results_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def tenths(
    before: Predictions | Evidence | Validation,
    after: Predictions | Evidence | Validation | None = None,
    *,
    tolerance: float = 1.25,
    ax: Axes | None = None,
) -> Axes:
    """Plot the root mean square error against u in tenths of u, with limits.

    Right uncertainties lie on the diagonal; the band is the tolerance.

    Parameters
    ----------
    before : Predictions, Evidence or Validation
        Rows with errors, or what :func:`sigmascale.scores.evidence` or
        :func:`sigmascale.validate` returns.
    after : Predictions, Evidence or Validation, optional
        Of the same rows after recalibration.
    tolerance : float, default 1.25
        The factor that is good enough.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import sigmascale as ss
    >>> ss.plots.tenths(ss.datasets.load_diabetes().test).get_ylabel()
    'RMS error'
    """
    first, second = _evidence_of(before), _evidence_of(after)
    stages: list[Evidence] = results_of(first, second, Evidence, evidence)
    ax = axes_for(ax)
    ax.set_xlabel("u (RMS of a tenth)")
    ax.set_ylabel("RMS error")

    # both axes hold all tenths, but for zeros, which have no logarithm
    sizes = []
    for stage in stages:
        for tenth in stage.tenths:
            sizes += [size for size in (tenth.u, tenth.rmse) if size > 0]
    if not sizes:
        ax.text(0.5, 0.5, "too few rows", ha="center", transform=ax.transAxes)
        return ax
    ends = np.array([min(sizes) / 1.4, max(sizes) * 1.4])

    # the diagonal with the band of what is good enough, and the tenths
    band: Look = {"color": GREY, "alpha": 0.2, "linewidth": 0, "label": "good enough"}
    ax.fill_between(ends, ends / tolerance, ends * tolerance, **band)
    ax.plot(ends, ends, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
    for stage, look in zip(stages, looks_of(stages), strict=True):
        _draw(ax, stage, look)

    for which in ("x", "y"):
        log_ticks(ax, which, *ends)
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    explain([ax])
    return ax


def _draw(ax: Axes, stage: Evidence, look: Look) -> None:
    """Draw the tenths of one set, with their limits."""
    points = [(tenth.u, tenth.rmse, tenth.low, tenth.high) for tenth in stage.tenths]
    u, rmse, low, high = np.array(points).T
    above = np.where(np.isfinite(high), high - rmse, 0)
    ax.errorbar(
        u,
        rmse,
        yerr=(rmse - low, above),
        linestyle="none",
        linewidth=1,
        markersize=4,
        color=look["color"],
        marker=look.get("marker", "o"),
        label=look.get("label", "tenths of the rows, 95 % limits"),
    )


def _evidence_of(stage: Any) -> Any:
    """Return the evidence of a validation; anything else as it is."""
    return stage.evidence if isinstance(stage, Validation) else stage
