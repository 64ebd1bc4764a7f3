"""What all figures share: colours, axes, ticks, legends, and SVG for pages."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from .._support.checks import Floats
from .._support.text import shorten
from ..exceptions import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

Look = dict[str, Any]
# Okabe and Ito's colours, which all readers tell apart; before and after also differ
# in grey, and by their marks.
INK, SOFT, GREY, CARD = "#000000", "#555555", "#999999", "#ffffff"
BLUE, VERMILION, GREEN, ORANGE = "#0072b2", "#d55e00", "#009e73", "#e69f00"
BEFORE: Look = {"color": VERMILION, "marker": "s", "label": "before"}
AFTER: Look = {"color": BLUE, "marker": "o", "label": "after"}
# As variables that the style sheet of a page sets, and what they are in the dark.
_NAMES = {
    **{INK: "ink", CARD: "card", SOFT: "soft", GREY: "grey"},
    **{BLUE: "blue", VERMILION: "vermilion", GREEN: "green", ORANGE: "orange"},
}
_DARK = {
    **{"ink": "#e8e8e6", "card": "#1c1f22", "soft": "#b4b4b2", "grey": "#8a8a8a"},
    **{"blue": "#56b4e9", "vermilion": "#ff8c42", "green": "#2fc79a"},
    "orange": "#f0b429",
}
SIZE = (4.5, 3.2)  # inches: text of 9 points is readable on a phone of that width
TEXT, LETTER = 8.5, 5.0  # points: text within figures, and the width of a letter
_FONTS = '"DejaVu Sans",Verdana,system-ui,Arial,sans-serif'
_REFERENCE = re.compile(r"#([\w.-]+)")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_OPACITY = re.compile(r"(?<![\w-])opacity:([\d.]+)")


# -- figures and axes ------------------------------------------------------------------


def axes_for(
    ax: Any, result: Any, kind: Any, height: Callable[[Any], float] | None = None
) -> Axes:
    """Return axes to draw on, after a look at what is to be drawn."""
    try:
        from matplotlib.axes import Axes
    except ImportError as problem:
        msg = 'Figures need Matplotlib: pip install "sigmascale[cli]".'
        raise ImportError(msg) from problem
    for found, wanted in ((result, kind), (ax, (Axes, type(None)))):
        if not isinstance(found, wanted):
            name = "Matplotlib Axes as `ax`" if found is ax else kind.__name__
            msg = f"Pass a {name}; found {type(found).__name__}."
            raise InvalidInputError(msg, "kind")
    if ax is None:
        size = SIZE if height is None else (SIZE[0], height(result))
        return new_figure(size).subplots()
    found_ax: Axes = ax
    return found_ax


def new_figure(size: tuple[float, float] = SIZE) -> Figure:
    """Return a figure that pyplot does not know, and that notebooks show all the same.

    They do so by themselves only once pyplot is imported.
    """
    from matplotlib.figure import Figure

    figure = Figure(size, layout="constrained")
    figure._repr_png_ = partial(_as_png, figure)  # type: ignore[attr-defined]
    return figure


def _as_png(figure: Figure) -> bytes:
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=150)
        return file.getvalue()


def styled(style: Look, look: Look, *, patch: bool = False) -> Look:
    """Return `look` changed by the user's style, whose keys may be short (`lw`)."""
    from matplotlib import cbook, lines, patches

    artist = patches.Patch if patch else lines.Line2D
    return look | cbook.normalize_kwargs(style, artist)


def literal(name: str, longest: int = 40) -> str:
    """Return a user's name as text that Matplotlib draws as it is, shortened."""
    joiners = "\u200c\u200d"  # print nothing themselves, but make one emoji of two
    line = " ".join(name.split())
    shown = (x if x.isprintable() or x in joiners else "\ufffd" for x in line)
    return shorten("".join(shown), longest).replace("$", r"\$")


def variable(name: str, longest: int = 40) -> str:
    """Return what stands beside the axis of a variable."""
    return "uncertainty u" if name == "u" else literal(name, longest)


def band(ax: Axes, x: Any, low: Any, high: Any, label: str) -> None:
    """Draw a grey band."""
    look: Look = {"color": GREY, "alpha": 0.3, "linewidth": 0, "zorder": 0}
    ax.fill_between(x, low, high, label=label, **look)


def diagonal(ax: Axes, low: float, high: float) -> None:
    """Draw the diagonal, anew if a shorter one is there."""
    for line in [line for line in ax.lines if line.get_gid() == "diagonal"]:
        line.remove()
    look: Look = {"color": INK, "linewidth": 0.8, "linestyle": "--", "zorder": 1}
    ax.plot([low, high], [low, high], gid="diagonal", **look)


# -- ticks and legends -----------------------------------------------------------------


def log_helps(x: Floats) -> bool:
    """Whether a logarithmic axis brings the median nearer to the middle."""
    low, middle, high = float(x.min()), float(np.median(x)), float(x.max())
    if low <= 0 or high < 3 * low:
        return False
    linear = abs((middle - low) / (high - low) - 0.5)
    log = abs(math.log(middle / low) / math.log(high / low) - 0.5)
    return log < (linear + 0.1 if high > 30 * low else linear - 0.1)


def _size_of(ax: Axes) -> tuple[float, float]:
    """Return the width and height of the axes in typographic points."""
    pixel = 72 / ax.figure.dpi
    return float(ax.bbox.width * pixel), float(ax.bbox.height * pixel)


def log_ticks(ax: Axes, which: str, low: float, high: float) -> None:
    """Make an axis logarithmic, with as many plain numbers as there is room for."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set(**{f"{which}scale": "log"})
    if (decades := math.log10(high / low)) <= 4:
        width, height = _size_of(ax)
        axis, room = (ax.xaxis, width / 36) if which == "x" else (ax.yaxis, height / 12)
        choices = ([*range(1, 10)], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3])
        # numbers are densest below the next power of 10
        fit = (s for s in choices if math.log10(10 / s[-1]) * room >= decades)
        axis.set_major_locator(LogLocator(subs=next(fit, [1])))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())


def factor_ticks(ax: Axes, which: str, low: float, high: float) -> None:
    """Make an axis of factors logarithmic, with numbers to be read at a glance."""
    from matplotlib.ticker import FixedLocator, NullLocator

    room = _size_of(ax)[0] / 34 if which == "x" else _size_of(ax)[1] / 14
    for steps in (
        (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2),
        (0.25, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3, 4),
        (0.1, 0.2, 0.33, 0.5, 0.67, 1, 1.5, 2, 3, 5, 10),
        (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100),
    ):
        inside = [each for each in steps if low <= each <= high]
        near = min(np.diff(np.log(inside)), default=0) if len(inside) > 2 else 0
        if near * room >= math.log(high / low):
            break
    ax.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(FixedLocator(inside))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(NullLocator())


def name_ticks(ax: Axes, labels: Iterable[Any]) -> None:
    """Name labels along x: slanted if they are long, only some if they are many."""
    names = [literal(str(label), 14) for label in labels]
    width = _size_of(ax)[0] / len(names)
    flat = (max(map(len, names)) + 2) * LETTER <= width
    step = 1 if flat else math.ceil(12 / width)
    slant: Look = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
    look = {"fontsize": TEXT} | ({} if flat else slant)
    ax.set_xticks(range(0, len(names), step), names[::step], **look)
    ax.set_xticks(range(len(names)), minor=True)
    ax.set_xlim(-0.6, len(names) - 0.4)


def legend_above(ax: Axes, *notes: str) -> Legend:
    """Put notes and a legend above the axes, in as many columns as have room."""
    entries = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    width, _ = _size_of(ax)
    needed = [27 + LETTER * len(label) for label in entries]
    fits = sum(needed) <= width
    columns = len(needed) if fits else max(1, int(width / max(needed, default=1)))
    joined = ", ".join(notes)
    note = joined if LETTER * len(joined) <= width else "\n".join(notes)
    look: Look = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    look |= {"title": note or None, "title_fontsize": TEXT, "alignment": "left"}
    look |= {"fontsize": TEXT, "frameon": False, "columnspacing": 1, "borderpad": 0.1}
    look |= {"ncols": columns, "handlelength": 1.5}
    return ax.legend([*entries.values()], [*entries], **look)


def notes_of(ax: Axes, style: Look, note: str) -> list[str]:
    """Return a note, with its name if it has one, after those that are there."""
    legend = ax.get_legend()
    there = "" if legend is None else legend.get_title().get_text()
    name = f"{style['label']}: " if "label" in style else ""
    return [*filter(None, re.split(r"\n|, (?=\w+: )", there)), name + note]


# -- SVG for pages ---------------------------------------------------------------------


@contextmanager
def drawing() -> Iterator[Callable[..., Figure]]:
    """Give new figures, in a style of their own, whatever the user's is.

    Examples
    --------
    >>> from sigmascale import plots
    >>> with plots.drawing() as new_figure:
    ...     text = plots.svg(new_figure((3, 2)), key="a", title="Nothing")
    >>> text[:23]
    '<svg class="plot" viewB'
    """
    from matplotlib import style

    plain = style.context(["default", {"svg.fonttype": "none", "font.size": 9.0}])
    with plain, warnings.catch_warnings():
        # the reader's browser has fonts of its own, for emoji and every script
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        warnings.filterwarnings("ignore", "Matplotlib currently does not support")
        yield new_figure


def svg(
    figure: Figure,
    *,
    key: str = "figure",
    title: str = "",
    description: str = "",
    alone: bool = False,
) -> str:
    """Return a figure as SVG, the same for the same figure on any day.

    Text stays text, and colours are variables that a page may set, for light and dark.

    Parameters
    ----------
    figure : matplotlib Figure
        What is drawn; best made within :func:`drawing`.
    key : str, default "figure"
        What identifiers start with: a different one for each figure of a page.
    title, description : str, optional
        What is shown, for those who cannot see it.
    alone : bool, default False
        Whether it is a file of its own, with its own style for light and dark.

    Returns
    -------
    str
        One element ``<svg>``.
    """
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": key}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if _tag(child) in ("metadata", "style"):
                parent.remove(child)
    names: dict[str, str] = {}
    for element in root.iter():
        element.tag, element.tail = _tag(element), None
        element.text = (element.text or "").strip() or None
        element.attrib = {
            name.rpartition("}")[2]: _value(name.rpartition("}")[2], value, names, key)
            for name, value in element.attrib.items()
        }
    for element in root.iter():
        _share_style(element)
        name = element.attrib.pop("id", None)  # kept only if something refers to it
        if name in names:
            element.set("id", names[name])
    view = root.attrib["viewBox"]
    root.attrib = {"class": "plot", "viewBox": view, "role": "img"}
    root.attrib["aria-labelledby"] = f"{key}-title {key}-desc"
    for position, (tag, text) in enumerate([("title", title), ("desc", description)]):
        label = ElementTree.Element(tag, {"id": f"{key}-{tag}"})
        label.text = "".join(x if x.isprintable() else " " for x in text)
        root.insert(position, label)
    found = ElementTree.tostring(root, encoding="unicode")
    return _alone(figure, found) if alone else found


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _value(name: str, value: str, names: dict[str, str], key: str) -> str:
    """Return an attribute with short numbers, own names, and the page's colours."""
    if name in ("href", "clip-path"):

        def rename(found: re.Match[str]) -> str:
            return "#" + names.setdefault(found[1], f"{key}-{len(names)}")

        return _REFERENCE.sub(rename, value)
    if name == "style":
        kept = []
        for declaration in value.split(";"):
            what, _, how = (part.strip() for part in declaration.partition(":"))
            if what == "font":  # size and families, of which the page has its own
                what, how = "font-size", how.split(" ")[0]
            if what and what != "font-family":
                how = f"var(--{_NAMES[how]},{how})" if how in _NAMES else how
                kept.append(f"{what}:{how}")
        return ";".join(kept)
    if name in ("d", "x", "y", "width", "height", "transform", "points"):
        short = _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}", value)
        return " ".join(short.split())
    return value


def _share_style(group: ElementTree.Element) -> None:
    """Say the style of a cloud of points once, not for each of them."""
    styles = {child.get("style") for child in group}
    if len(group) < 2 or {_tag(child) for child in group} != {"use"} or len(styles) > 1:
        return
    for child in group:
        style = child.attrib.pop("style", "")
        # the opacity of a group would be that of all points together
        shared = _OPACITY.sub(r"fill-opacity:\1;stroke-opacity:\1", style)
        group.set("style", shared)


def _alone(figure: Figure, svg: str) -> str:
    """Return the SVG of a figure as a file, with a style sheet of its own."""
    width, height = figure.get_size_inches()
    light = ";".join(f"--{name}:{colour}" for colour, name in _NAMES.items())
    dark = ";".join(f"--{name}:{colour}" for name, colour in _DARK.items())
    style = (
        f"<style>:root{{{light};background:var(--card)}}"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f"svg{{fill:var(--ink);color:var(--ink);font-family:{_FONTS};"
        "stroke-linejoin:round}</style>"
    )
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'width="{width:g}in" height="{height:g}in" '
    )
    first, rest = svg.split(">", 1)
    return first.replace("<svg ", head, 1) + ">" + style + rest + "\n"
