"""Figures of decisions: which predictions are accepted, and why u is wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._support import numerals
from ..recalibration.explanation import Explanation
from ..validation.acceptance import Acceptance
from .canvas import (
    BLUE,
    GREY,
    INK,
    VERMILION,
    axes_for,
    band,
    explain,
    factor_ticks,
    label_axes,
    literal,
    name_rows,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS = 8  # that matter most


def acceptance(a: Acceptance, *, ax: Axes | None = None, **style: Any) -> Axes:
    """Plot the share of errors beyond the limit against the share of rows kept.

    Parameters
    ----------
    a : Acceptance
        What :func:`sigmascale.accept` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    **style
        Properties of the curve, a Matplotlib line.

    Examples
    --------
    >>> import sigmascale as ss
    >>> a = ss.accept(ss.datasets.load_health().test, limit=4.0)
    >>> ss.plots.acceptance(a).get_xlabel()
    'share of the rows kept, smallest u first'
    """
    ax = axes_for(ax)
    _, kept, beyond, upper = a.curve.T
    level = numerals.level(a.confidence)
    band(ax, kept, beyond, upper, f"upper {level} limit")
    what = f"errors larger than {numerals.number(a.limit)}"
    ax.plot(kept, beyond, **styled(style, {"color": BLUE, "label": what}))
    allowed = f"allowed, {numerals.percent(a.share, 1)}"
    ax.axhline(a.share, color=INK, linewidth=1, linestyle="--", label=allowed)
    if a.up_to is not None:
        mark = f"accepted, {numerals.percent(a.kept)} of the rows"
        ax.plot([a.kept], [a.upper], "o", color=VERMILION, label=mark, clip_on=False)
    top = max(2 * a.share, 1.1 * float(beyond.max()))
    ax.set(xlim=(0, 1), ylim=(0, min(top, 1.0)))
    first = "smallest u first" if a.ranking == "u" else "smallest risk first"
    label_axes([ax], f"share of the rows kept, {first}", "share of their errors")
    explain([ax])
    return ax


def explanation(
    e: Explanation, row: int | None = None, *, ax: Axes | None = None
) -> Axes:
    """Plot the factors that make u what it is: of one row, or their range over all.

    Parameters
    ----------
    e : Explanation
        What ``r.explain(p)`` returns.
    row : int, optional
        The row; by default bars reach from the 5th to the 95th percentile of all rows,
        with a mark at the median.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.load_health()
    >>> e = ss.Recalibrator().fit(data.calibration).explain(data.test)
    >>> ss.plots.explanation(e, row=0).get_xlabel()
    'factor of u'
    """
    logs = np.log(e.factors if row is None else e.factors[[row]])
    strength = np.sqrt((logs**2).mean(axis=0))
    columns = np.argsort(strength, kind="stable")[::-1][:MOST_COLUMNS]
    columns = columns[(strength[columns] > 0) | (columns == 0)]
    ax = axes_for(ax, height=0.9 + 0.28 * len(columns))
    if row is None:
        low, middle, high = np.exp(np.quantile(logs[:, columns], [0.05, 0.5, 0.95], 0))
        label = "90 % of the rows"
    else:
        middle = np.exp(logs[0, columns])
        low, high = np.minimum(middle, 1), np.maximum(middle, 1)
        label = (
            f"row {row}: u = {numerals.number(e.u[row])} = "
            f"{numerals.number(e.typical)} × factors"
        )
    at = np.arange(len(columns))
    ax.barh(at, high - low, left=low, height=0.6, color=BLUE, alpha=0.7, label=label)
    if row is None:
        ax.plot(middle, at, "|", color=INK, markersize=10, label="median")
    ax.axvline(1, color=GREY, linewidth=1, label="_typical")
    beside = name_rows(ax, [literal(e.names[k]) for k in columns])
    ends = min(0.8, 0.95 * float(low.min())), max(1.25, 1.05 * float(high.max()))
    factor_ticks(ax, "x", *ends)
    label_axes([ax], "factor of u", "")
    explain([ax], beside=beside)
    return ax
