"""A Matplotlib figure as SVG, inside an HTML page or as a file of its own.

What Matplotlib writes is a file of its own: its identifiers repeat from figure to
figure, its style sheet would reach the whole page, its colours know no dark mode, and
it carries the date. Here it becomes one element among others, the same for the same
figure on any day.
"""

from __future__ import annotations

import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from .._support.files import whole_file, write_text
from .text import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (4.5, 3.2)  # inches; text of 10 points is readable on a phone of that width
# The colours of plots, as variables that the page's style sheet sets; the colour
# itself is for where there is no style sheet.
COLOURS = {
    "#000000": "ink",
    "#ffffff": "card",
    "#0072b2": "blue",
    "#d55e00": "vermilion",
    "#999999": "grey",
    "#555555": "soft",
}
CONTENTS, METHODS = "contents.json", "methods.txt"
DOTS_PER_INCH = 200
DARK = {
    "ink": "#e8e8e6",
    "card": "#1c1f22",
    "blue": "#56b4e9",
    "vermilion": "#ff8c42",
    "grey": "#8a8a8a",
    "soft": "#b4b4b2",
}
FONTS = '"DejaVu Sans",Verdana,system-ui,Arial,sans-serif'
_REFERENCE = re.compile(r"#([\w.-]+)")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_COORDINATES = ("d", "x", "y", "width", "height", "transform", "points")


@contextmanager
def drawing() -> Iterator[Callable[[], Figure]]:
    """Give new figures, in a style of the report's own."""
    from matplotlib import style
    from matplotlib.figure import Figure

    # the user's own style must not reach the report; text remains text
    plain = style.context(["default", {"svg.fonttype": "none"}])
    with plain, warnings.catch_warnings():
        # the reader's browser has fonts of its own, for emoji and every script
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        warnings.filterwarnings("ignore", "Matplotlib currently does not support")
        yield lambda: Figure(SIZE, layout="constrained")


def inline_svg(figure: Figure, key: str, title: str, description: str) -> str:
    """Return a figure as an SVG element whose identifiers start with `key`."""
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True)
    root = ElementTree.fromstring(file.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if _tag(child) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _tag(element)
        _rewrite_attributes(element)
    _rename_identifiers(root, key)
    for element in root.iter():
        if element.text and not element.text.strip():
            element.text = None
        element.tail = None
        if element.tag == "g":
            _share_style(element)
    view = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib |= {"class": "plot", "viewBox": view, "role": "img"}
    root.attrib["aria-labelledby"] = f"{key}-title {key}-desc"
    for position, (tag, text) in enumerate([("title", title), ("desc", description)]):
        label = Element(tag, {"id": f"{key}-{tag}"})
        label.text = clean(text)
        root.insert(position, label)
    return ElementTree.tostring(root, encoding="unicode")


def _tag(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _rename_identifiers(root: Element, key: str) -> None:
    """Give short, unique names to what something refers to, and none to the rest."""
    names: dict[str, str] = {}

    def rename(found: re.Match[str]) -> str:
        return "#" + names.setdefault(found[1], f"{key}-{len(names)}")

    for element in root.iter():
        for attribute in ("href", "clip-path"):
            if value := element.get(attribute):
                element.set(attribute, _REFERENCE.sub(rename, value))
    for element in root.iter():
        if (name := element.attrib.pop("id", None)) in names:
            element.set("id", names[name])


def _rewrite_attributes(element: Element) -> None:
    for name, value in list(element.attrib.items()):
        plain = name.rpartition("}")[2]
        if plain != name:  # xlink:href
            element.set(plain, element.attrib.pop(name))
        if plain in _COORDINATES:
            value = _LONG_NUMBER.sub(lambda m: f"{float(m[0]):.2f}", value)
            value = " ".join(value.split())
            element.set(plain, value)
        if plain == "transform" and value.startswith("rotate(-0"):
            element.attrib.pop(plain)
        if plain == "style":
            element.set(plain, _restyle(value))


def _restyle(style: str) -> str:
    """Use the page's font and colours."""
    kept = []
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font":  # older versions: size and families
            name, value = "font-size", value.split(" ")[0]
        if value in COLOURS:
            value = f"var(--{COLOURS[value]},{value})"
        if name != "font-family":
            kept.append(f"{name}:{value}")
    return ";".join(kept)


def _share_style(group: Element) -> None:
    """Say the style of a cloud of points once, not for each of them."""
    styles = {child.get("style") for child in group}
    if len(group) < 2 or {child.tag for child in group} != {"use"} or len(styles) > 1:
        return
    (style,) = styles
    if style is None:
        return
    for child in group:
        child.attrib.pop("style")
    # the opacity of a group would be that of all points together
    opacity = re.compile(r"(?<![\w-])opacity:([\d.]+)")
    group.set("style", opacity.sub(r"fill-opacity:\1;stroke-opacity:\1", style))


class Parts:
    """A folder that pictures are written to, one after the other.

    Parameters
    ----------
    folder : path-like
        Is made if it is not there. `contents.json` in it lists the pictures with their
        captions.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._pictures: list[dict[str, str]] = []

    def save(self, title: str, figure: Figure, caption: str, svg: str) -> None:
        """Write a picture as SVG, for light and dark pages, and as PNG."""
        words = re.sub(r"[^a-z0-9]+", "-", f"{title} {caption.split(':')[0]}".lower())
        name = f"{len(self._pictures) + 1:02d}-{words[:48].strip('-')}"
        write_text(self._folder / f"{name}.svg", _alone(figure, svg))
        figure.set_layout_engine("none")  # it is found: that of the SVG
        with whole_file(self._folder / f"{name}.png") as part:
            figure.savefig(part, dpi=DOTS_PER_INCH, format="png", facecolor="white")
        self._pictures.append({"name": name, "title": title, "caption": caption})

    def finish(self, methods: list[str], references: list[str]) -> None:
        """Write the methods, and the list of all that was written."""
        numbered = [f"[{i}] {text}" for i, text in enumerate(references, 1)]
        paragraphs = [*methods, "\n".join(numbered)]
        write_text(self._folder / METHODS, "\n\n".join(paragraphs) + "\n")
        listed: dict[str, Any] = {"pictures": self._pictures, "methods": METHODS}
        text = json.dumps(listed, indent=1, ensure_ascii=False)
        write_text(self._folder / CONTENTS, text + "\n")


def _alone(figure: Figure, svg: str) -> str:
    """Return the SVG of a report's figure as a file, with a style sheet of its own."""
    width, height = figure.get_size_inches()
    light = ";".join(f"--{name}:{colour}" for colour, name in COLOURS.items())
    dark = ";".join(f"--{name}:{colour}" for name, colour in DARK.items())
    style = (
        f"<style>:root{{{light};background:var(--card)}}"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f"svg{{fill:var(--ink);color:var(--ink);font-family:{FONTS};"
        "stroke-linejoin:round}</style>"
    )
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width:g}in" height="{height:g}in" '
    )
    first, rest = svg.split(">", 1)
    return first.replace("<svg ", head, 1) + ">" + style + rest + "\n"
