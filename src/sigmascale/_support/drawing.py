"""What plots share: axes, colours, names as text, ticks and legends."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exceptions import InvalidInputError
from .checks import Floats
from .render import shorten_middle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

Look = dict[str, Any]
# Blue and vermilion of Okabe and Ito, apart for every kind of colour vision; a second
# marker tells them apart in print without colour.
BLUE, VERMILION = "#0072B2", "#D55E00"
BLACK, DARK, GREY = "#000000", "#555555", "#999999"
TEXT, LETTER = "small", 4.6  # of legends and names of groups; typical width in points


def axes_for(ax: Any, result: Any = None, kind: Any = None, name: str = "") -> Axes:
    """Return axes to draw on, after a look at what is to be drawn."""
    try:
        from matplotlib.axes import Axes
    except ImportError as problem:
        msg = 'Plots need Matplotlib: pip install ".[cli]" in a checkout.'
        raise ImportError(msg) from problem
    if kind is not None and not isinstance(result, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(each.__name__ for each in kinds)
        msg = f"`{name}` must be a {names}; found {type(result).__name__}."
        raise InvalidInputError(msg)
    if ax is not None and not isinstance(ax, Axes):
        msg = f"`ax` must be a Matplotlib Axes; found {type(ax).__name__}."
        raise InvalidInputError(msg)
    return new_figure().subplots() if ax is None else ax


def new_figure(size: tuple[float, float] | None = None) -> Figure:
    """Return a figure that pyplot does not know, and that notebooks show all the same.

    They do so by themselves only once pyplot is imported.
    """
    from matplotlib.figure import Figure

    figure = Figure(size, layout="constrained")
    figure._repr_png_ = partial(_as_png, figure)  # type: ignore[attr-defined]
    return figure


def _as_png(figure: Figure) -> bytes:
    with io.BytesIO() as file:
        figure.savefig(file, format="png")
        return file.getvalue()


def styled(style: Look, look: Look, *, patch: bool = False) -> Look:
    """Return `look` changed by the user's style, whose keys may be short (`lw`)."""
    from matplotlib import cbook, lines, patches

    artist = patches.Patch if patch else lines.Line2D
    return look | cbook.normalize_kwargs(style, artist)


def printable(character: str) -> str:
    # joiners print nothing themselves, but make one emoji of two
    joins = character in "\u200c\u200d"
    return character if joins or character.isprintable() else "\ufffd"


def literal(name: str, longest: int = 48) -> str:
    """Return a user's name as text that Matplotlib draws as it is, shortened."""
    shown = "".join(map(printable, " ".join(name.split())))
    return shorten_middle(shown, longest).replace("$", r"\$")


def variable_label(name: str, longest: int = 48) -> str:
    """Return what stands beside the axis of a variable."""
    return "uncertainty u" if name == "u" else literal(name, longest)


def size_of(ax: Axes) -> tuple[float, float]:
    """Return the width and height of the axes in typographic points."""
    pixel = 72 / ax.figure.dpi
    return float(ax.bbox.width * pixel), float(ax.bbox.height * pixel)


def log_helps(x: Floats) -> bool:
    """Whether a logarithmic axis brings the median nearer to the middle."""
    low, middle, high = float(x.min()), float(np.median(x)), float(x.max())
    if low <= 0 or high < 3 * low:
        return False
    linear = abs((middle - low) / (high - low) - 0.5)
    log = abs(math.log(middle / low) / math.log(high / low) - 0.5)
    return log < (linear + 0.1 if high > 30 * low else linear - 0.1)


def log_ticks(ax: Axes, which: str, low: float, high: float) -> None:
    """Make an axis logarithmic, with as many plain numbers as there is room for."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set(**{f"{which}scale": "log"})
    if (decades := math.log10(high / low)) <= 4:
        width, height = size_of(ax)
        axis, room = (ax.xaxis, width / 32) if which == "x" else (ax.yaxis, height / 12)
        choices = ([*range(1, 10)], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3])
        # Numbers are densest below the next power of 10.
        fit = (s for s in choices if math.log10(10 / s[-1]) * room >= decades)
        axis.set_major_locator(LogLocator(subs=next(fit, [1])))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())


def name_ticks(ax: Axes, labels: Iterable[Any]) -> None:
    """Name groups along x: slanted if they are long, only some if they are many."""
    names = [literal(str(label), 14) for label in labels]
    width = size_of(ax)[0] / len(names)
    flat = (max(map(len, names)) + 2) * LETTER <= width
    step = 1 if flat else math.ceil(12 / width)
    slant: Look = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
    look = {"fontsize": TEXT} | ({} if flat else slant)
    ax.set_xticks(range(0, len(names), step), names[::step], **look)
    ax.set_xticks(range(len(names)), minor=True)


def legend_above(ax: Axes, low: float, high: float, *notes: str) -> Legend:
    """Set the range of y and, in free space above it, notes and a legend."""
    entries = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    width, height = size_of(ax)
    needed = [27 + LETTER * len(label) for label in entries]
    columns = len(needed) if sum(needed) <= width else int(width / max(needed)) or 1
    note = (", " if LETTER * len(", ".join(notes)) <= width else "\n").join(notes)
    look: Look = {"loc": "upper left", "ncols": columns, "fontsize": TEXT}
    look |= {"title": note or None, "title_fontsize": TEXT, "alignment": "left"}
    look |= {"frameon": False, "borderaxespad": 0, "columnspacing": 1}
    legend = ax.legend([*entries.values()], [*entries], handlelength=1.5, **look)
    lines = math.ceil(len(entries) / columns) + len(note.splitlines())
    to_axis = ax.yaxis.get_transform()
    bottom, top = to_axis.transform([low, high])
    top = bottom + (top - bottom) / (1 - min(0.5, (6 + 12 * lines) / height))
    ax.set_ylim(low, float(to_axis.inverted().transform([top])[0]))
    return legend
