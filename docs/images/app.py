"""Take the picture of the app, in Chromium: python -m docs.images.app."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

from tests.app.conftest import Person, running
from tests.conftest import chromium


def main() -> None:
    """Write the result of the demo in the app as PNG, beside this file."""
    with tempfile.TemporaryDirectory() as name:
        temporary, profile = Path(name, "app"), Path(name, "chromium")
        temporary.mkdir()
        with running(temporary) as server, chromium(profile) as browser:
            person = Person(browser, server)
            person.open(width=820)
            person.click("demo")
            person.click("features table")
            person.click("check")
            person.wait("document.querySelector('#check .boxes')")
            person.idle()
            browser.resize(820, height=5000)  # all is seen, and nothing scrolls
            person.wait("[...document.images].every(each => each.complete)")
            figure = "document.querySelector('#check figure')"
            height = person.run(f"{figure}.getBoundingClientRect().bottom + 8")
            clip = {"x": 0, "y": 0, "width": 820, "height": height, "scale": 1}
            shot = browser.call("Page.captureScreenshot", clip=clip)
    Path(__file__).with_suffix(".png").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
