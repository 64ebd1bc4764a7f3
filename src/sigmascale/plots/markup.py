"""Figures as SVG, for the inside of a page or as files of their own."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from .._support.extras import needed_for
from .canvas import BLUE, CARD, GREEN, GREY, INK, ORANGE, SOFT, VERMILION, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# As variables that the style sheet of a page sets, and what they are in the dark.
_NAMES = {
    INK: "ink",
    CARD: "card",
    SOFT: "soft",
    GREY: "grey",
    BLUE: "blue",
    VERMILION: "vermilion",
    GREEN: "green",
    ORANGE: "orange",
}
_DARK = {
    "ink": "#e8e8e6",
    "card": "#1c1f22",
    "soft": "#b4b4b2",
    "grey": "#8a8a8a",
    "blue": "#56b4e9",
    "vermilion": "#ff8c42",
    "green": "#2fc79a",
    "orange": "#f0b429",
}
_FONTS = '"DejaVu Sans",Verdana,system-ui,Arial,sans-serif'
_REFERENCE = re.compile(r"#([\w.-]+)")  # of href and clip-path
_WITH_NUMBERS = ("d", "x", "y", "width", "height", "transform", "points")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_OPACITY = re.compile(r"(?<![\w-])opacity:([\d.]+)")


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
    with needed_for("a figure"):
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
        What makes identifiers unique: a different one for each figure of a page.
    title, description : str, optional
        What is shown, for those who cannot see it.
    alone : bool, default False
        Whether it is a file of its own, with its own style for light and dark.

    Returns
    -------
    str
        One element ``<svg>``.
    """
    root = _as_tree(figure, key)
    used: set[str] = set()  # identifiers to which something refers
    for element in root.iter():
        _shorten(element)
        for name in ("href", "clip-path"):
            used.update(_REFERENCE.findall(element.get(name, "")))
    for element in root.iter():
        _share_style(element)
        if element.get("id") not in used:
            element.attrib.pop("id", None)

    # one picture, with its words for those who cannot see it
    root.attrib = {
        "class": "plot",
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-labelledby": f"{key}-title {key}-desc",
    }
    for position, (tag, text) in enumerate([("title", title), ("desc", description)]):
        label = ElementTree.Element(tag, {"id": f"{key}-{tag}"})
        label.text = "".join(c if c.isprintable() else " " for c in text)
        root.insert(position, label)

    markup = ElementTree.tostring(root, encoding="unicode")
    return _alone(figure, markup) if alone else markup


def _as_tree(figure: Figure, key: str) -> ElementTree.Element:
    """Return what Matplotlib writes, without its metadata and style sheets."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": key}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if _local_name(str(child.tag)) in ("metadata", "style"):
                parent.remove(child)
    return root


def _shorten(element: ElementTree.Element) -> None:
    """Leave out name spaces and blanks, round numbers, and take the page's colours."""
    element.tag = _local_name(str(element.tag))
    element.tail = None
    element.text = (element.text or "").strip() or None
    attributes = {}
    for full_name, value in element.attrib.items():
        name = _local_name(full_name)
        if name == "style":
            value = _style(value)
        elif name in _WITH_NUMBERS:
            short = _LONG_NUMBER.sub(lambda digits: f"{float(digits[0]):.2f}", value)
            value = " ".join(short.split())
        attributes[name] = value
    element.attrib = attributes


def _local_name(name: str) -> str:
    """Return a name of XML without its name space, which stands in braces."""
    return name.rpartition("}")[2]


def _style(value: str) -> str:
    """Return a style in the page's colours, without families of fonts."""
    declarations = []
    for declaration in value.split(";"):
        name, _, setting = declaration.partition(":")
        name = name.strip()
        setting = setting.strip()
        if name == "font":  # size and families, of which the page has its own
            name = "font-size"
            setting = setting.split(" ")[0]
        if setting in _NAMES:
            setting = f"var(--{_NAMES[setting]},{setting})"
        if name and name != "font-family":
            declarations.append(f"{name}:{setting}")
    return ";".join(declarations)


def _share_style(group: ElementTree.Element) -> None:
    """Say the style of a cloud of points once, not for each of them."""
    tags = {child.tag for child in group}
    styles = {child.get("style") for child in group}
    if len(group) < 2 or tags != {"use"} or len(styles) > 1:
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
    tag, inside = svg.split(">", 1)
    return tag.replace("<svg ", head, 1) + ">" + style + inside + "\n"
