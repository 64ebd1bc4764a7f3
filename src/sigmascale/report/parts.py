"""The parts of a report as files of their own: pictures, and the methods as text."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._support.files import whole_file, write_text
from .svg import COLOURS, inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

    def save(self, title: str, figure: Figure, caption: str) -> None:
        """Write a picture as SVG, for light and dark pages, and as PNG."""
        words = re.sub(r"[^a-z0-9]+", "-", f"{title} {caption.split(':')[0]}".lower())
        name = f"{len(self._pictures) + 1:02d}-{words[:48].strip('-')}"
        write_text(self._folder / f"{name}.svg", _alone(figure, title, caption))
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


def _alone(figure: Figure, title: str, caption: str) -> str:
    """Return a figure as an SVG file: the report's, with a style sheet of its own."""
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
    svg = inline_svg(figure, "p", title, caption)
    first, rest = svg.split(">", 1)
    return first.replace("<svg ", head, 1) + ">" + style + rest + "\n"
