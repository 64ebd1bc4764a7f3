"""Plots of results; what is drawn was computed elsewhere.

Every function returns the Matplotlib Axes it drew on, shows nothing and changes no
global setting: ``plot_local_zms(result).figure.savefig("zms.png")``. Without `ax`
it makes a figure of its own that pyplot does not know, so no display is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ._checks import Floats, Labels, check_count, check_pair, rng_from
from .conditional_coverage import LocalCoverage
from .confidence import ConfidenceCurve
from .exceptions import InvalidInputError
from .local import LocalZMS
from .partitions import Cells
from .scaling import BinwiseScaling, GroupScaling, RakedScaling
from .scores import zms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

Look = dict[str, Any]
# Blue and vermilion of Okabe and Ito, apart for every kind of colour vision; a second
# marker tells them apart in print without colour.
_BLUE, _VERMILION, _BLACK, _GREY = "#0072B2", "#D55E00", "#000000", "#999999"
_TEXT, _LETTER = "small", 4.6  # of legends and names of groups; typical width in points


def plot_confidence_curve(
    curve: ConfidenceCurve, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot a confidence curve with its oracle and its probabilistic reference.

    The curve of honest uncertainties stays in the grey band of the reference, if the
    errors are normal; heavy tails take it out of the band, too.

    Parameters
    ----------
    curve : ConfidenceCurve
        What :func:`confidence_curve` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure. Curves drawn in the same axes share
        one legend: give each a `label` and a `color`.
    **style
        Properties of the curve, a Matplotlib line.

    Examples
    --------
    >>> from sigmascale import confidence_curve
    >>> curve = confidence_curve([0.1, -0.3, 0.2], [0.1, 0.2, 0.1])
    >>> plot_confidence_curve(curve).get_ylabel()
    'RMSE of the rows left'
    """
    ax = _axes(ax, curve, ConfidenceCurve, "curve")
    x, low, high = curve.pruned, curve.reference_low, curve.reference_high
    line: Look = {"color": _BLUE, "linewidth": 1.8, "label": "data", "zorder": 3}
    ax.plot(x, curve.error, **_styled(style, line))
    ax.fill_between(x, low, high, color=_GREY, alpha=0.35, linewidth=0)
    ax.plot(x, curve.reference, ":", color="#555555", linewidth=1, label="reference")
    ax.plot(x, curve.oracle, "--", color=_BLACK, linewidth=1, label="oracle")
    known = curve.statistic in {"rmse", "mae"}
    name = curve.statistic.upper() if known else _literal(curve.statistic, 24)
    ax.set(xlim=(0, 1), xlabel="fraction of rows removed")
    ax.set_ylabel(f"{name} of the rows left")
    # All curves of these axes count, not only this one.
    bottom, top = min(0.0, ax.dataLim.y0), ax.dataLim.y1
    _legend_above(ax, bottom, top + (0.03 * (top - bottom) or 1))
    return ax


def plot_local_zms(result: LocalZMS, *, ax: Axes | None = None, **style: Any) -> Axes:
    """Plot <Z²> of each bin with its interval against the variable; the target is 1.

    Bins whose interval misses 1 have another colour and marker. The average over all
    rows stands in the right margin. A triangle at the bottom is a bin whose <Z²> is 0.

    Parameters
    ----------
    result : LocalZMS
        What :func:`local_zms` returns, or an entry of ``validate(...).local``.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    **style
        Properties of the points, a Matplotlib line; `color`, `marker` and `label`
        are those of the valid bins alone.

    Examples
    --------
    >>> from sigmascale import datasets, local_zms
    >>> data = datasets.make_molecules(500)
    >>> plot_local_zms(local_zms(data.error, data.uncertainty, n_bins=9)).get_yscale()
    'log'
    """
    ax = _axes(ax, result, LocalZMS, "result")
    bottom, top = _zms_range(result)
    ax.set_yscale("log")
    # What is not clipped must not lie below the axis.
    overall = np.maximum(result.overall, bottom)
    x = _plot_bins(ax, result, result.zms, 1, overall, style)
    if (zero := result.zms <= 0).any():
        look: Look = {"color": _VERMILION, "transform": ax.get_xaxis_transform()}
        ax.plot(x[zero], np.full(zero.sum(), 0.03), "v", **look)
    ax.set_ylabel("local ⟨Z²⟩")
    _legend_above(ax, bottom, top, _valid_bins(result))
    _log_ticks(ax, "y", *ax.get_ylim())
    return ax


def plot_local_coverage(
    result: LocalCoverage, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot the coverage of each bin with its interval against the variable.

    The dashed line is the coverage that the intervals were made for. Bins whose
    confidence interval misses it have another colour and marker. The coverage of all
    rows stands in the right margin.

    Parameters
    ----------
    result : LocalCoverage
        What :func:`local_coverage` returns.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    **style
        Properties of the points, a Matplotlib line; `color`, `marker` and `label`
        are those of the valid bins alone.

    Examples
    --------
    >>> from sigmascale import datasets, local_coverage, normal_interval
    >>> data = datasets.make_molecules(500)
    >>> interval = normal_interval(data.uncertainty, 0.9)
    >>> result = local_coverage(data.error, data.uncertainty, interval, n_bins=9)
    >>> plot_local_coverage(result).get_ylabel()
    'local coverage (target 0.9)'
    """
    ax = _axes(ax, result, LocalCoverage, "result")
    _plot_bins(ax, result, result.coverage, result.target, result.overall, style)
    ax.set_ylabel(f"local coverage (target {result.target:g})")
    lowest = min(result.low.min(), result.overall[1], result.target)
    bottom = float(lowest - 0.05 * (1 - lowest))
    _legend_above(ax, bottom, 1.01, _valid_bins(result))
    # the space of the legend is not of possible values
    ax.set_yticks([tick for tick in ax.get_yticks() if max(bottom, 0) <= tick <= 1])
    return ax


def plot_factors(
    scaler: RakedScaling | BinwiseScaling | GroupScaling,
    variable: str | None = None,
    *,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Plot the factors of the bins, or labels, of one variable; 1 is no change.

    Parameters
    ----------
    scaler : RakedScaling, BinwiseScaling or GroupScaling
        A fitted recalibrator; its bins must be of one variable, not cells of two.
    variable : str, optional
        For raking, a key of its `factors_`, but not a pair of variables; for the
        others, which have one variable, the label of the axis.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    **style
        Properties of the line.

    Examples
    --------
    >>> from sigmascale import RakedScaling, datasets
    >>> data = datasets.make_molecules(500)
    >>> scaler = RakedScaling(n_bins=5).fit(data.X, data.error)
    >>> plot_factors(scaler, "u").get_ylabel()
    'factor'
    """
    ax = _axes(ax, scaler, (RakedScaling, BinwiseScaling, GroupScaling), "scaler")
    name, limits, factors = _factors(scaler, variable)
    look: Look = {"color": _BLUE, "linewidth": 1.5}
    ax.axhline(1, color=_BLACK, linewidth=0.8, linestyle="--", zorder=1)
    if factors.size == limits.size:  # labels
        look |= {"linestyle": "none", "marker": "o"}
        ax.plot(np.arange(limits.size), factors, **_styled(style, look))
        _name_ticks(ax, [_literal(str(label), 14) for label in limits])
    else:
        # the first and last bins are open; they are drawn as wide as their neighbours
        edges = np.array([0.0, 1.0])
        if log := limits.size > 1 and _log_helps(limits):
            ends = (limits[:1] ** 2 / limits[1:2], limits[-1:] ** 2 / limits[-2:-1])
            edges = np.concatenate([ends[0], limits, ends[1]])
        elif limits.size:
            steps = np.diff(limits) if limits.size > 1 else np.ones(1)
            ends = (limits[:1] - steps[:1], limits[-1:] + steps[-1:])
            edges = np.concatenate([ends[0], limits, ends[1]])
        ax.plot(
            np.repeat(edges, 2)[1:-1], np.repeat(factors, 2), **_styled(style, look)
        )
        if log:
            _log_ticks(ax, "x", edges[0], edges[-1])
    ax.set_xlabel("uncertainty u" if name == "u" else _literal(name))
    ax.set_ylabel("factor")
    return ax


def _factors(scaler: Any, variable: str | None) -> tuple[str, Any, Floats]:
    """Return a variable with the limits (or labels) and factors of its bins."""
    if isinstance(scaler, RakedScaling):
        if variable is None or variable not in scaler.limits_:
            known = ", ".join(scaler.limits_)
            msg = f"`variable` must be one of {known}; found {variable!r}."
            raise InvalidInputError(msg)
        # the first factor is for missing values
        return variable, scaler.limits_[variable], scaler.factors_[variable][1:]
    name = variable or ("u" if scaler.by in (0, "u") else str(scaler.by))
    if isinstance(scaler, GroupScaling):  # the last factor is for other labels
        return name, scaler.groups_.labels, scaler.factors_[:-1]
    if isinstance(scaler.partition_, Cells):
        msg = f"`scaler` must have bins of one variable; found cells of {scaler.by!r}."
        raise InvalidInputError(msg)
    return name, scaler.partition_.limits, scaler.factors_


def plot_errors(
    error: Any,
    uncertainty: Any,
    *,
    ax: Axes | None = None,
    max_points: int = 5000,
    rng: int | np.random.Generator | None = 0,
    **style: Any,
) -> Axes:
    """Plot errors against uncertainties, with lines at ±2u.

    About 5 % of normal errors lie beyond the lines, at every u. The axes leave out
    far outliers; the legend counts them.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    max_points : int, default 5000
        Of more rows than this, a random subset is drawn, and the legend says so.
    rng : int, Generator or None, default 0
        Seed of the subset.
    **style
        Properties of the points, a Matplotlib line.

    Examples
    --------
    >>> plot_errors([0.1, -0.3, 0.2], [0.1, 0.2, 0.1]).get_ylabel()
    'error E'
    """
    e, u = check_pair(error, uncertainty)
    max_points, generator = check_count(max_points, "max_points"), rng_from(rng)
    ax = _axes(ax)
    # Wide enough for nearly all rows and, unless u is far too large, for the lines.
    small, large = np.quantile(u, (0.005, 0.995))
    left, right = 0.95 * max(u.min(), small / 3), 1.05 * min(u.max(), 3 * large)
    most = 1.2 * float(np.quantile(np.abs(e), 0.995))
    lines = 2.2 * float(np.quantile(u, 0.9))
    reach = max(most, min(lines, 4 * most or lines))
    rows, notes = np.arange(e.size), []
    if e.size > max_points:
        rows = np.sort(generator.choice(e.size, max_points, replace=False))
        notes.append(f"{max_points} of {e.size} rows shown")
    inside = (np.abs(e[rows]) <= reach) & (u[rows] >= left) & (u[rows] <= right)
    if not inside.all():
        notes.append(f"{np.count_nonzero(~inside)} outside the axes")
        rows = rows[inside]
    look: Look = {"color": _BLUE, "marker": "o", "linestyle": "none", "label": "E"}
    look |= {"markersize": 1.8, "markeredgewidth": 0, "rasterized": True}
    look |= {"alpha": 0.8 if rows.size < 500 else 0.4}
    ax.plot(u[rows], e[rows], **_styled(style, look))
    ax.axhline(0, color=_GREY, linewidth=0.8, zorder=1)
    # The lines end where the errors do, below the legend.
    grid = np.geomspace(left, max(left, min(right, reach / 2)), 200)
    for sign, label in ((2, "±2u"), (-2, None)):
        ax.plot(grid, sign * grid, color=_VERMILION, linewidth=1.3, label=label)
    if _log_helps(u):
        _log_ticks(ax, "x", left, right)
    ax.set(xlim=(left, right), xlabel="uncertainty u", ylabel="error E")
    for handle in _legend_above(ax, -reach, reach, *notes).get_lines():
        handle.set(alpha=1, markersize=4)
    return ax


def plot_z_histogram(
    error: Any, uncertainty: Any, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Plot the density of z = error / uncertainty against the standard normal.

    The edge bins hold what lies beyond the axis; the legend counts it.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    **style
        Properties of the histogram, a Matplotlib patch.

    Examples
    --------
    >>> plot_z_histogram([0.1, -0.3, 0.2], [0.1, 0.2, 0.1]).get_ylabel()
    'density'
    """
    e, u = check_pair(error, uncertainty)
    ax = _axes(ax)
    z = e / u
    # The normal must remain visible, so that the axis never reaches beyond 10.
    limit = float(np.clip(np.ceil(np.quantile(np.abs(z), 0.99)), 4, 10))
    clipped = np.clip(z, -limit, limit)
    n_bins = 1 + 2 * int(np.clip(2 * np.cbrt(z.size), 8, 40))
    density, edges = np.histogram(clipped, n_bins, (-limit, limit), density=True)
    look: Look = {"alpha": 0.5, "label": "z = E/u"}
    look |= {} if "color" in style else {"facecolor": _BLUE}
    ax.stairs(density, edges, fill=True, **_styled(style, look, patch=True))
    grid = np.linspace(-limit, limit, 401)
    normal = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    ax.plot(grid, normal, color=_BLACK, linewidth=1.3, label="standard normal")
    ax.set(xlim=(-limit, limit), xlabel="z = E/u", ylabel="density")
    notes = [f"⟨Z²⟩ = {zms(e, u):.3g}"]
    if beyond := np.count_nonzero(np.abs(z) > limit):
        notes.append(f"{beyond} beyond ±{limit:g} in edge bins")
    _legend_above(ax, 0, 1.03 * max(density.max(), normal.max()), *notes)
    return ax


def _axes(ax: Any, result: Any = None, kind: Any = None, name: str = "") -> Axes:
    """Return axes to draw on, after a look at what is to be drawn."""
    try:
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure
    except ImportError as problem:
        msg = 'Plots need Matplotlib: pip install "sigmascale[cli]".'
        raise ImportError(msg) from problem
    if kind is not None and not isinstance(result, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(each.__name__ for each in kinds)
        msg = f"`{name}` must be a {names}; found {type(result).__name__}."
        raise InvalidInputError(msg)
    if ax is not None and not isinstance(ax, Axes):
        msg = f"`ax` must be a Matplotlib Axes; found {type(ax).__name__}."
        raise InvalidInputError(msg)
    return Figure(layout="constrained").subplots() if ax is None else ax


def _styled(style: Look, look: Look, *, patch: bool = False) -> Look:
    """Return `look` changed by the user's style, whose keys may be short (`lw`)."""
    from matplotlib import cbook, lines, patches

    artist = patches.Patch if patch else lines.Line2D
    return look | cbook.normalize_kwargs(style, artist)


def _printable(character: str) -> str:
    # joiners print nothing themselves, but make one emoji of two
    joins = character in "\u200c\u200d"
    return character if joins or character.isprintable() else "\ufffd"


def _literal(name: str, longest: int = 48) -> str:
    """Return a user's name as text that Matplotlib draws as it is, shortened."""
    shown = "".join(map(_printable, " ".join(name.split())))
    if len(shown) > longest:  # what tells names apart may stand at the end
        shown = f"{shown[: longest // 2]}…{shown[-longest // 2 :]}"
    return shown.replace("$", r"\$")


def _size(ax: Axes) -> tuple[float, float]:
    """Return the width and height of the axes in typographic points."""
    pixel = 72 / ax.figure.dpi
    return float(ax.bbox.width * pixel), float(ax.bbox.height * pixel)


def _plot_bins(
    ax: Axes,
    result: LocalZMS | LocalCoverage,
    values: Floats,
    target: float,
    overall: Any,
    style: Look,
) -> Labels:
    """Plot values of bins with intervals, that of all rows beside; return their x."""
    x: Labels = np.arange(values.size) if result.is_grouped else result.x
    ax.axhline(target, color=_BLACK, linewidth=0.8, linestyle="--", zorder=1)
    size = 4.5 if x.size <= 40 else 3.5 if x.size <= 120 else 2.5
    good: Look = {"color": _BLUE, "marker": "o", "label": "valid", "markersize": size}
    good = _styled(style, good | {"linestyle": "none", "markeredgewidth": 0})
    bad = good | {"color": _VERMILION, "marker": "X", "label": "not valid"}
    bad["markersize"] *= 1.3
    bad = {k: v for k, v in bad.items() if not k.endswith(("facecolor", "edgecolor"))}
    for rows, look in ((result.valid, good), (~result.valid, bad)):
        if rows.any():
            (points,) = ax.plot(x[rows], values[rows], **look)
            bars = ax.vlines(x[rows], result.low[rows], result.high[rows])
            bars.set(color=points.get_color(), alpha=points.get_alpha(), linewidth=0.8)
    look = {"transform": ax.get_yaxis_transform(), "clip_on": False}
    _, low, high = result.overall
    look["color"] = _BLUE if low <= target <= high else _VERMILION
    value, *limits = overall
    ax.plot([1.035, 1.035], limits, linewidth=1.5, **look)
    ax.plot([1.035], [value], "s", markersize=4, label="all rows", **look)
    if result.is_grouped:
        ax.set_xlim(-0.6, x.size - 0.4)
        _name_ticks(ax, [_literal(str(name), 14) for name in result.x])
    elif _log_helps(result.x):
        _log_ticks(ax, "x", result.x.min(), result.x.max())
    ax.set_xlabel("uncertainty u" if result.name == "u" else _literal(result.name))
    return x


def _valid_bins(result: LocalZMS | LocalCoverage) -> str:
    lower, upper = result.fraction_interval
    return f"valid bins: {result.fraction_valid:.2f} [{lower:.2f}, {upper:.2f}]"


def _zms_range(result: LocalZMS) -> tuple[float, float]:
    """Return limits of a logarithmic axis for <Z²>, the target among them."""
    # An interval may reach down to 0; the points must not be squashed for it.
    floor = result.zms.min(where=result.zms > 0, initial=1) / 4
    low = max(floor, min(result.low.min(), result.overall[1]))
    high = max(result.high.max(), result.overall[2])
    return min(0.8, float(low / 1.1)), max(1.25, float(high * 1.1))


def share_zms_range(axes: Iterable[Axes]) -> None:
    """Give plots of local <Z²> the same range, so that they can be compared.

    Parameters
    ----------
    axes : iterable of matplotlib Axes
        What :func:`plot_local_zms` drew on.

    Examples
    --------
    >>> from sigmascale import datasets, local_zms
    >>> data = datasets.make_molecules(500)
    >>> before, after = (
    ...     plot_local_zms(local_zms(data.error, u, n_bins=9))
    ...     for u in (data.uncertainty, data.true_sigma)
    ... )
    >>> share_zms_range([before, after])
    >>> before.get_ylim() == after.get_ylim()
    True
    """
    axes = list(axes)
    lows, highs = zip(*(ax.get_ylim() for ax in axes), strict=True)
    for ax in axes:
        ax.set_ylim(min(lows), max(highs))
        _log_ticks(ax, "y", min(lows), max(highs))


def _log_helps(x: Floats) -> bool:
    """Whether a logarithmic axis brings the median nearer to the middle."""
    low, middle, high = float(x.min()), float(np.median(x)), float(x.max())
    if low <= 0 or high < 3 * low:
        return False
    linear = abs((middle - low) / (high - low) - 0.5)
    log = abs(math.log(middle / low) / math.log(high / low) - 0.5)
    return log < (linear + 0.1 if high > 30 * low else linear - 0.1)


def _log_ticks(ax: Axes, which: str, low: float, high: float) -> None:
    """Make an axis logarithmic, with as many plain numbers as there is room for."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set(**{f"{which}scale": "log"})
    if (decades := math.log10(high / low)) <= 4:
        width, height = _size(ax)
        axis, room = (ax.xaxis, width / 32) if which == "x" else (ax.yaxis, height / 12)
        choices = ([*range(1, 10)], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3])
        # Numbers are densest below the next power of 10.
        fit = (s for s in choices if math.log10(10 / s[-1]) * room >= decades)
        axis.set_major_locator(LogLocator(subs=next(fit, [1])))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())


def _name_ticks(ax: Axes, names: list[str]) -> None:
    """Name groups along x: slanted if they are long, only some if they are many."""
    width = _size(ax)[0] / len(names)
    flat = (max(map(len, names)) + 2) * _LETTER <= width
    step = 1 if flat else math.ceil(12 / width)
    slant: Look = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
    look = {"fontsize": _TEXT} | ({} if flat else slant)
    ax.set_xticks(range(0, len(names), step), names[::step], **look)
    ax.set_xticks(range(len(names)), minor=True)


def _legend_above(ax: Axes, low: float, high: float, *notes: str) -> Legend:
    """Set the range of y and, in free space above it, notes and a legend."""
    entries = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    width, height = _size(ax)
    needed = [27 + _LETTER * len(label) for label in entries]
    columns = len(needed) if sum(needed) <= width else int(width / max(needed)) or 1
    note = (", " if _LETTER * len(", ".join(notes)) <= width else "\n").join(notes)
    look: Look = {"loc": "upper left", "ncols": columns, "fontsize": _TEXT}
    look |= {"title": note or None, "title_fontsize": _TEXT, "alignment": "left"}
    look |= {"frameon": False, "borderaxespad": 0, "columnspacing": 1}
    legend = ax.legend([*entries.values()], [*entries], handlelength=1.5, **look)
    lines = math.ceil(len(entries) / columns) + len(note.splitlines())
    to_axis = ax.yaxis.get_transform()
    bottom, top = to_axis.transform([low, high])
    top = bottom + (top - bottom) / (1 - min(0.5, (6 + 12 * lines) / height))
    ax.set_ylim(low, float(to_axis.inverted().transform([top])[0]))
    return legend
