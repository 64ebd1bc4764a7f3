"""What readers would stumble over, found in the pages as they were written.

Sphinx knows which links of the sources lead nowhere. Those of templates, of what the
README says, and pictures that were printed as text show only in the pages.
"""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.util import logging

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)]+)\)")
logger = logging.getLogger(__name__)


class Page(HTMLParser):
    """The anchors of a page, its links, and whether a picture is missing."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), set()
        text = path.read_text(encoding="utf-8")
        self.lacks_a_picture = "&lt;Figure size" in text
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Keep names and addresses."""
        for name, value in attributes:
            if name == "id":
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.add(value)


def read_as_readers_do(app, problem):
    """Warn of links that lead nowhere, and of pictures that are not shown."""
    if problem or app.builder.name != "html":
        return
    site = Path(app.outdir).resolve()
    pages = {
        file: Page(file)
        for file in site.rglob("*.html")
        if not {"_static", "_modules"} & set(file.parts)  # others wrote these
    }
    for file, page in pages.items():
        if page.lacks_a_picture:
            logger.warning("%s: a figure is shown as text", file.relative_to(site))
        for link in page.links:
            place = urlsplit(link)
            if place.scheme or place.netloc:
                continue
            target = (file.parent / unquote(place.path)).resolve()
            target = target if place.path else file
            anchor = unquote(place.fragment) if target in pages else ""
            if not target.exists() or (anchor and anchor not in pages[target].anchors):
                logger.warning("%s: nothing is at %s", file.relative_to(site), link)
    for link in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        if not urlsplit(link).scheme and not (ROOT / link.split("#")[0]).exists():
            logger.warning("README.md: nothing is at %s", link)


def setup(app):
    """Look at the pages once all are written."""
    app.connect("build-finished", read_as_readers_do, priority=900)  # after others
    return {"parallel_read_safe": True, "parallel_write_safe": True}
