"""Figures as SVG, for the inside of a page or as files of their own."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from .canvas import BLUE, CARD, GREEN, GREY, INK, ORANGE, SOFT, VERMILION, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
_FONTS = '"DejaVu Sans",Verdana,system-ui,Arial,sans-serif'
_REFERENCE = re.compile(r"#([\w.-]+)")
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
