"""What all figures share: colours, sizes, axes, panels, ticks and legends."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._support.checks import Floats, check_choice
from .._support.extras import needed_for
from .._support.text import shorten
from ..exceptions import InvalidInputError
from ..predictions.predictions import Predictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

Look = dict[str, Any]
# Okabe and Ito's colours, which all readers tell apart; before and after also differ
# in grey, by their marks, and by dashes.
INK, SOFT, GREY, CARD = "#000000", "#555555", "#999999", "#ffffff"
BLUE, VERMILION, GREEN, ORANGE = "#0072b2", "#d55e00", "#009e73", "#e69f00"
ALONE: Look = {"color": BLUE, "marker": "o"}
BEFORE: Look = {"color": VERMILION, "marker": "s", "label": "before"}
AFTER: Look = {"color": BLUE, "marker": "o", "label": "after"}
DASHES = (0, (5, 1.5))  # of lines of a set before recalibration
BAND: Look = {"color": GREY, "alpha": 0.3, "linewidth": 0}  # what is accepted
IDEAL: Look = {"color": INK, "linewidth": 0.8, "linestyle": "--", "zorder": 1}

_SCREEN = 4.5  # inches: text of 9 points is readable on a phone of that width
_COLUMN = {1: 8.5 / 2.54, 2: 17 / 2.54}  # inches: one column of a journal, and two
_width: ContextVar[float] = ContextVar("width", default=_SCREEN)


# -- figures and axes ------------------------------------------------------------------


@contextmanager
def style(name: Literal["paper"] = "paper", *, columns: int = 1) -> Iterator[None]:
    """Draw figures for print, while the context lasts.

    They are 8.5 or 17 cm wide, with text of 8 points, which PDF files have as TrueType
    fonts. Sets differ in colour, in grey and by their marks. Draw and save within the
    context; settings outside stay as they are.

    Parameters
    ----------
    name : {"paper"}, default "paper"
        The style.
    columns : {1, 2}, default 1
        How many columns of a page figures are wide.

    Yields
    ------
    None

    Examples
    --------
    >>> import io
    >>> import sigmascale as ss
    >>> p = ss.datasets.load_diabetes().test
    >>> file = io.BytesIO()
    >>> with ss.plots.style("paper"):
    ...     figure = ss.plots.calibration(p).figure
    ...     figure.savefig(file, format="pdf")
    >>> round(2.54 * float(figure.get_figwidth()), 1)
    8.5
    """
    from matplotlib import style as styles

    check_choice(name, "name", ("paper",))
    if columns not in _COLUMN:
        msg = f"`columns` must be 1 or 2; found {columns!r}."
        raise InvalidInputError(msg)
    settings: dict[str, Any] = {
        "axes.labelsize": 8.0,
        "axes.titlesize": 8.0,
        "legend.fontsize": 8.0,
        "xtick.labelsize": 8.0,
        "ytick.labelsize": 8.0,
        "font.size": 8.0,
        "axes.linewidth": 0.6,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "pdf.fonttype": 42,  # TrueType, which can be searched and edited
        "ps.fonttype": 42,
        "savefig.dpi": 300,
        "svg.fonttype": "none",
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
    }
    width = _width.set(_COLUMN[columns])
    try:
        with styles.context(["default", settings]):
            yield
    finally:
        _width.reset(width)


def text_size() -> float:
    """Return the size in points of text within figures."""
    from matplotlib import rcParams

    return min(8.5, float(rcParams["font.size"]))


def letter() -> float:
    """Return the mean width in points of a letter within figures."""
    return 0.58 * text_size()


def width_of_words(words: str) -> float:
    """Return the width in points of words within figures, of their longest line."""
    from matplotlib.textpath import TextPath

    lines = [TextPath((0, 0), line, size=text_size()) for line in words.split("\n")]
    return max(float(line.get_extents().width) for line in lines)


def results_of(
    before: Any, after: Any, kind: Any, compute: Callable[[Predictions], Any]
) -> list[Any]:
    """Return what is drawn of one set, or of two; of Predictions it is computed."""
    results = []
    for given in [before] if after is None else [before, after]:
        if isinstance(given, kind):
            results.append(given)
        elif isinstance(given, Predictions):
            results.append(compute(given))
        else:
            found = type(given).__name__
            msg = f"Pass Predictions or a {kind.__name__}; found {found}."
            raise InvalidInputError(msg, "kind")
    return results


def looks_of(results: Sequence[Any]) -> list[Look]:
    """Return how one set is drawn, or two."""
    return [dict(BEFORE), dict(AFTER)] if len(results) > 1 else [dict(ALONE)]


def axes_for(ax: Any, height: float | None = None) -> Axes:
    """Return axes to draw on: those given, or those of a new figure."""
    if ax is None:
        return new_figure(None, height).subplots()
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        msg = f"Pass a Matplotlib Axes as `ax`; found {type(ax).__name__}."
        raise InvalidInputError(msg, "kind")
    return ax


def panels(ax: Any, results: Sequence[Any]) -> list[Axes]:
    """Return axes for each result, side by side: `ax` itself is the first of them."""
    ax = axes_for(ax)
    if len(results) == 1:
        return [ax]
    halves = grid_in_place_of(ax, 1, 2)
    ax.set_subplotspec(halves[0])
    right = ax.figure.add_subplot(halves[1], sharey=ax)
    right.tick_params(labelleft=False)
    return [ax, right]


def grid_in_place_of(ax: Axes, n_rows: int, n_columns: int) -> Any:
    """Return a grid for panels where `ax` stands."""
    place = ax.get_subplotspec()
    if place is not None:
        return place.subgridspec(n_rows, n_columns)
    box = ax.get_position()
    edges = {"left": box.x0, "right": box.x1, "bottom": box.y0, "top": box.y1}
    figure: Any = ax.figure
    return figure.add_gridspec(n_rows, n_columns, **edges)


def new_figure(
    size: tuple[float, float] | None = None, height: float | None = None
) -> Figure:
    """Return a figure that pyplot does not know, and that notebooks show all the same.

    They do so by themselves only once pyplot is imported.
    """
    with needed_for("a figure"):
        from matplotlib.figure import Figure
    if size is None:
        width = _width.get()
        size = width, min(3.2, 0.75 * width) if height is None else height
        figure = Figure(size, layout="constrained")
        figure.sigmascale_room = {}  # type: ignore[attr-defined]
    else:
        figure = Figure(size, layout="constrained")
    figure._repr_png_ = partial(_as_png, figure)  # type: ignore[attr-defined]
    return figure


def make_room(ax: Axes, where: str, points: float) -> None:
    """Let a figure of a size of ours grow by what stands above or below its axes."""
    figure: Any = ax.figure
    room: dict[str, float] | None = getattr(figure, "sigmascale_room", None)
    if room is None:  # its size was asked for
        return
    before = sum(room.values())
    room[where] = max(points, room.get(where, 0.0))
    figure.set_figheight(figure.get_figheight() + (sum(room.values()) - before) / 72)


def _as_png(figure: Figure) -> bytes:
    """Return the picture that a notebook shows."""
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=150)
        return file.getvalue()


def styled(style: Look, look: Look) -> Look:
    """Return `look` changed by the user's style, whose keys may be short (`lw`)."""
    from matplotlib import cbook, lines

    return look | cbook.normalize_kwargs(style, lines.Line2D)


def literal(name: str, longest: int = 40) -> str:
    """Return a user's name as text that Matplotlib draws as it is, shortened."""
    joiners = "\u200c\u200d"  # print nothing themselves, but make one emoji of two
    line = " ".join(name.split())
    shown = "".join(c if c.isprintable() or c in joiners else "\ufffd" for c in line)
    return shorten(shown, longest).replace("$", r"\$")


def variable(name: str, longest: int = 40) -> str:
    """Return the label of the axis of a variable."""
    return "uncertainty u" if name == "u" else literal(name, longest)


def remove_drawn(artists: Iterable[Any], gid: str) -> None:
    """Remove what was drawn on axes before under this name."""
    for artist in list(artists):
        if artist.get_gid() == gid:
            artist.remove()


def band(ax: Axes, x: Any, low: Any, high: Any, label: str) -> None:
    """Draw a grey band."""
    ax.fill_between(x, low, high, label=label, zorder=0, **BAND)


def diagonal(ax: Axes, low: float, high: float) -> None:
    """Draw the diagonal, anew if a shorter one is there."""
    remove_drawn(ax.lines, "diagonal")
    ax.plot([low, high], [low, high], gid="diagonal", **IDEAL)


# -- ticks and legends -----------------------------------------------------------------


def log_helps(values: Floats) -> bool:
    """Whether a logarithmic axis brings the median nearer to the middle."""
    low = float(values.min())
    high = float(values.max())
    if low <= 0 or high < 3 * low:
        return False
    # how far from the middle the median is on either axis
    median = float(np.median(values))
    on_linear = abs((median - low) / (high - low) - 0.5)
    on_log = abs(math.log(median / low) / math.log(high / low) - 0.5)
    if high > 30 * low:  # in doubt, many decades are logarithmic, and few are not
        return on_log < on_linear + 0.1
    return on_log < on_linear - 0.1


def width_of(ax: Axes) -> float:
    """Return the width of the axes in typographic points, as it will be."""
    figure: Any = ax.figure
    width = float(ax.bbox.width * 72 / figure.dpi)
    if figure.get_layout_engine() is None:
        return width
    # the layout will leave some 45 points for the labels of each column of axes
    place = ax.get_subplotspec()
    if place is None:
        return width
    column = place.get_topmost_subplotspec()
    whole = float(figure.bbox.width * 72 / figure.dpi)
    share = width / (float(column.get_position(figure).width) * whole)
    n_columns = float(column.get_gridspec().ncols / len(column.colspan))
    return share * (whole / n_columns - 45)


def log_ticks(ax: Axes, which: str, low: float, high: float) -> None:
    """Make an axis logarithmic, with as many plain numbers as there is room for."""
    ax.set(**{f"{which}scale": "log"})
    if math.log10(high / low) <= 4:
        from .ticks import plain_numbers

        _set_ticks(ax, which, plain_numbers)


def factor_ticks(ax: Axes, which: str, low: float, high: float) -> None:
    """Make an axis of factors logarithmic, with numbers to be read at a glance."""
    from .ticks import FACTORS

    ax.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    _set_ticks(ax, which, lambda *_: FACTORS)


def _set_ticks(ax: Axes, which: str, choices: Any) -> None:
    """Put ticks at the finest of some choices that has room on the x or y axis."""
    from matplotlib.ticker import NullLocator

    from .ticks import RoomyLog

    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(RoomyLog(choices, text_size()))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(NullLocator())


def name_ticks(ax: Axes, labels: Iterable[Any]) -> None:
    """Name labels along x: slanted if they are long, only some if they are many."""
    labels = [str(label) for label in labels]
    width = width_of(ax) / len(labels)
    names = [literal(label, 14) for label in labels]
    step = 1
    look: Look = {"fontsize": text_size()}
    is_flat = (max(map(len, names)) + 2) * letter() <= width
    if not is_flat:
        names = [literal(label, 10) for label in labels]
        step = math.ceil(12 / width)  # a slanted name takes 12 points
        look |= {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
        make_room(ax, "below", 0.87 * max(map(len, names)) * letter())
    ax.set_xticks(range(0, len(names), step), names[::step], **look)
    ax.set_xticks(range(len(names)), minor=True)
    ax.set_xlim(-0.6, len(names) - 0.4)


def name_rows(ax: Axes, names: Sequence[str]) -> float:
    """Name rows beside y, from the top down; return how many points the names take."""
    ax.set(ylim=(len(names) - 0.4, -0.6))
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    return letter() * max(map(len, names))


def in_lines(words: str, width: float) -> str:
    """Return words in as many lines as a width in points needs."""
    letters = max(10, int(width / letter()))
    whole = words.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = wrap(whole, letters, break_long_words=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def label_axes(axes: Sequence[Axes], x: str, y: str) -> None:
    """Label both axes, in lines that have room; of panels, the first alone has y."""
    for ax in axes:
        ax.set_xlabel(in_lines(x, width_of(ax)))
    axes[0].set_ylabel(y)


def explain(
    axes: Sequence[Axes],
    looks: Sequence[Look] = (),
    notes: Sequence[str] = (),
    *,
    beside: float = 0.0,
) -> Legend:
    """Put a legend above the axes, and above each panel what it shows, in its colour.

    Of panels that show a set each, with their `looks`, the legend has what they share,
    in grey. Words next to the axes take `beside` points.
    """
    size = text_size()
    are_panels = len(axes) > 1 and bool(looks)  # a set each

    # titles: the name of each panel, and its note
    n_lines = 0
    for i, ax in enumerate(axes):
        lines = []
        colour = INK
        if are_panels:
            lines.append(looks[i]["label"])
            colour = looks[i]["color"]
        if notes:
            lines += in_lines(notes[i], width_of(ax)).split("\n")
        ax.set_title("\n".join(lines), loc="left", fontsize=size, color=colour, pad=4)
        n_lines = max(n_lines, len(lines))

    # what has a name in any panel, each once
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, names = ax.get_legend_handles_labels()
        entries = dict(zip(names, handles, strict=True)) | entries

    # the legend, in as many columns as there is room for, above the titles
    room = sum(width_of(ax) for ax in axes) - beside
    shown = []
    for name in entries:
        fits = width_of_words(name) <= room - 3 * size
        shown.append(name if fits else in_lines(name, room - 3 * size))
    n_columns = _columns(shown, room)
    look: Look = {"loc": "lower left", "borderaxespad": 0.2, "frameon": False}
    look |= {"fontsize": size, "borderpad": 0.1, "handlelength": 1.5}
    look |= {"ncols": n_columns, "columnspacing": 1}
    legend = axes[0].legend([*entries.values()], shown, **look)
    titles = 1.25 * size * n_lines + (4 if n_lines else 0)
    _raise_legend(legend, axes[0], titles, titles + _height_of(shown, n_columns))
    if are_panels:
        for handle in legend.legend_handles:
            _make_grey(handle)
    return legend


def _raise_legend(legend: Legend, ax: Axes, bottom: float, top: float) -> None:
    """Put a legend so many points above the axes, and have the layout leave room.

    It may be wider than a panel, so that the layout must not look at the legend itself.
    """
    from matplotlib.transforms import ScaledTranslation

    above = ScaledTranslation(0, bottom / 72, ax.figure.dpi_scale_trans)
    legend.set_bbox_to_anchor((0, 1), transform=ax.transAxes + above)
    legend.set_in_layout(False)

    # an invisible letter as high as its top, which the layout does look at
    remove_drawn(ax.texts, _STRUT)
    make_room(ax, "above", top - 2 * text_size())  # one line is always there
    place: Look = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate(" ", (0, 1), (0, top), va="top", fontsize=1, gid=_STRUT, **place)


_STRUT = "room for the legend"


def _height_of(names: Sequence[str], n_columns: int) -> float:
    """Return the height in points of a legend, with a little room below and above."""
    n_rows = math.ceil(len(names) / n_columns)
    n_lines = [name.count("\n") + 1 for name in names]
    columns = np.array_split(n_lines, n_columns)  # as Matplotlib does
    most_lines = max((int(column.sum()) for column in columns), default=0)
    return text_size() * (1.2 * most_lines + 0.5 * n_rows + 0.4)


def _make_grey(handle: Any) -> None:
    """Take the colour of a set from an entry of the legend that two sets share."""
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D

    if isinstance(handle, Line2D):
        if to_hex(handle.get_color()) in (BLUE, VERMILION):
            hollow = str(handle.get_markerfacecolor()) == "none"
            handle.set(color=SOFT, markeredgecolor=SOFT)
            handle.set_markerfacecolor("none" if hollow else SOFT)
    elif to_hex(handle.get_facecolor()) in (BLUE, VERMILION):
        handle.set_facecolor(SOFT)


def _columns(names: Sequence[str], room: float) -> int:
    """Return how many columns of a legend fit into a width in points."""
    widths = [width_of_words(name) for name in names]
    for n_columns in range(len(names), 1, -1):
        columns = np.array_split(widths, n_columns)  # as Matplotlib does
        longest = sum(float(column.max()) for column in columns)
        if longest + n_columns * 3.4 * text_size() <= room:  # names, and their marks
            return n_columns
    return 1
