"""Servers, one for a whole run where that will do, and a person who uses the page."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import polars as pl
import pytest

from sigmascale.datasets import make_molecules

PATIENCE = 150  # seconds; a busy machine computes slowly


class Server:
    """A running `sigmascale app`."""

    def __init__(self, process, address, folder):
        self.process, self.address, self.temporary = process, address, folder
        self.port, self.token = (
            urlsplit(address).port,
            urlsplit(address).path.strip("/"),
        )

    @property
    def folder(self):
        """The private folder, if there is one."""
        return next(self.temporary.glob("sigmascale-app-*"), None)

    @property
    def files(self):
        """What is in it, but for links to tables."""
        return sorted(
            str(path.relative_to(self.folder))
            for path in self.folder.rglob("*")
            if path.is_file() and not path.is_symlink()
        )


@contextmanager
def running(temporary, *arguments, **environment):
    """Start `sigmascale app` on a free port, and end it."""
    environment = {**os.environ, "TMPDIR": str(temporary), **environment}
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "sigmascale",
            "app",
            "--no-browser",
            *map(str, arguments),
        ],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), address
        yield Server(process, address, Path(temporary))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        process.stdout.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("server"), "--largest", 64) as found:
        yield found


class Person:
    """Someone who looks at the page, clicks, chooses files and types."""

    def __init__(self, browser, server):
        self.browser, self.server = browser, server
        self.addresses = []

    def open(self, width=1280, dark=False):
        self.browser.open(self.server.address, width=width, dark=dark)
        self.wait("document.querySelector('#table .drop')")

    def run(self, script):
        return self.browser.run(script)

    def wait(self, script, seconds=PATIENCE):
        """Wait until JavaScript finds something; return it."""
        stop = time.monotonic() + seconds
        while True:
            found = self.run(
                f"(() => {{ const f = {script}; return f instanceof Node || f; }})()"
            )
            if found:
                return found
            assert time.monotonic() < stop, (script, self.text()[-1500:])
            time.sleep(0.05)

    def text(self, selector="body"):
        return self.run(
            f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"
        )

    def click(self, selector, words=None):
        """Click where an element is, as a mouse does."""
        which = (
            "true" if words is None else f"e.textContent.includes({json.dumps(words)})"
        )
        find = (
            f"[...document.querySelectorAll({json.dumps(selector)})].find(e => {which})"
        )
        self.wait(f"({find}) && !({find}).disabled")
        box = self.run(
            f"(() => {{ const e = {find}; e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect();"
            " return [b.x + Math.min(b.width, 400) / 2, b.y + b.height / 2]; })()"
        )
        where = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.call("Input.dispatchMouseEvent", type=kind, **where)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.browser.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, **text
            )

    def choose_file(self, slot, path):
        """Choose a file in the dialog of an input."""
        self.wait(f"document.getElementById('file-{slot}')")
        found = self.browser.call(
            "Runtime.evaluate", expression=f"document.getElementById('file-{slot}')"
        )
        self.browser.call(
            "DOM.setFileInputFiles",
            files=[str(path)],
            objectId=found["result"]["objectId"],
        )

    def drop_file(self, selector, path):
        """Drag a file onto an element, and drop it."""
        box = self.run(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect(); return [b.x + 20, b.y + 10]; })()"
        )
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.browser.call(
                "Input.dispatchDragEvent", type=kind, x=box[0], y=box[1], data=data
            )

    def select(self, selector, value):
        """Choose an option of a list."""
        self.wait(f"document.querySelector({json.dumps(selector)})")
        self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            f" e.focus(); e.value = {json.dumps(value)};"
            " e.dispatchEvent(new Event('input', {bubbles: true}));"
            " e.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def role(self, column, role, slot="table"):
        name = column.replace("\\", "\\\\").replace('"', '\\"')
        self.select(f'[data-key^="role {slot}"][data-column="{name}"]', role)
        self.idle()

    def idle(self, seconds=PATIENCE):
        """Wait until nothing is going on."""
        time.sleep(0.1)
        stop = time.monotonic() + seconds
        while self.state()["job"] is not None:
            assert time.monotonic() < stop, self.state()
            time.sleep(0.1)
        time.sleep(0.1)
        revision = self.state()["revision"]
        self.wait(f"Number(document.body.dataset.revision) >= {revision}")

    def state(self):
        return self.run("fetch('api/state').then(a => a.json())")

    def everything(self):
        return self.run("fetch('api/everything').then(a => a.json())")

    def judge(self):
        self.click("button", "Judge")
        self.wait("document.querySelector('#verdict .card')")
        self.idle()

    def download(self, folder):
        """Download what is offered one by one, and the rest in one archive.

        Chromium lets a page download ten files, and no more without a question.
        """
        self.browser.download_to(folder)
        self.run(
            "document.querySelectorAll('#take details').forEach(d => d.open = true)"
        )
        every = "[...document.querySelectorAll('#take a[download]')]"
        names = self.run(f"{every}.map(a => a.download)")
        pictures = [name for name in names if name.endswith((".svg", ".png"))]
        few = [name for name in names if name not in pictures[1:-1]]
        before = self.browser.downloads()
        for count, name in enumerate(few, 1):
            self.click(f'#take a[download="{name}"]')
            stop = time.monotonic() + PATIENCE
            # a name that exists may be a place that is kept for what is to come
            while self.browser.downloads() < before + count:
                assert time.monotonic() < stop, name
                self.browser.run("1")
                time.sleep(0.02)
        with zipfile.ZipFile(folder / "sigmascale.zip") as archive:
            for entry in archive.namelist():
                content = archive.read(entry)
                alone = folder / Path(entry).name
                assert not alone.exists() or alone.read_bytes() == content
                (folder / entry).parent.mkdir(exist_ok=True)
                (folder / entry).write_bytes(content)
        (folder / "sigmascale.zip").unlink()
        for name in few:
            if name in pictures:
                (folder / name).unlink()
        return names

    def picture(self, path, top=0, height=None):
        """Take a picture of the page, or of a part of it."""
        whole = self.run("document.documentElement.scrollHeight")
        width = self.run("innerWidth")
        clip = {"x": 0, "y": top, "width": width, "height": height or whole, "scale": 1}
        shot = self.browser.call(
            "Page.captureScreenshot", captureBeyondViewport=True, clip=clip
        )
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def complaints(self):
        """Return what the console, or a dialog, has said."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        kinds += ("Page.javascriptDialogOpening",)
        entries = [e["entry"]["text"] for e in self.browser.of_kind("Log.entryAdded")]
        return [*self.browser.of_kind(*kinds), *entries]

    def outside(self):
        """Return requests that went elsewhere."""
        own = f"http://127.0.0.1:{self.server.port}/"
        found = [
            each["request"]["url"]
            for each in self.browser.of_kind("Network.requestWillBeSent")
            # the page before may have asked its own server while it was left
            if each["documentURL"].startswith(own)
        ]
        assert any(each.startswith(own) for each in found)
        return [each for each in found if not each.startswith((own, "data:,"))]


@pytest.fixture(scope="session")
def start():
    """Start a server with other arguments."""
    return running


@pytest.fixture(scope="session")
def visit():
    """Look at the page of another server."""
    return Person


@pytest.fixture
def person(browser, server):
    found = Person(browser, server)
    yield found
    assert found.complaints() == []
    assert found.outside() == []


@pytest.fixture(scope="session")
def new_predictions(tmp_path_factory):
    """A table without errors, whose uncertainties are called otherwise."""
    data = make_molecules(300, seed=7)
    columns = {"value": np.linspace(-1, 1, 300), "sd": data.uncertainty}
    columns |= {"mass": data.mass, "hetero": data.heteroatom_fraction}
    path = tmp_path_factory.mktemp("new") / "new.csv"
    pl.DataFrame(columns).with_columns(OxNy=pl.lit("O1N2")).write_csv(path)
    return path


@pytest.fixture(scope="session")
def demo(browser, new_predictions, tmp_path_factory):
    """Someone who has taken the demo through all steps, once for a whole run."""
    with running(tmp_path_factory.mktemp("demo")) as server:
        person = Person(browser, server)
        person.open()
        person.click("button", "Take the demo")
        person.wait("document.querySelector('#table .columns')")
        person.idle()
        person.judge()
        person.click("button", "Draw the other pictures")
        person.wait("document.querySelectorAll('#verdict figure img').length >= 3")
        person.idle()
        person.click("#recalibrate button", "Recalibrate")
        person.wait("document.getElementById('busy').hidden === false")
        assert "recalibrating" in person.text("#busy")
        person.wait("document.querySelector('#recalibrate .card')")
        person.idle()
        person.choose_file("new", new_predictions)
        person.wait("document.querySelector('#new .columns')")
        person.role("sd", "uncertainty", "new")
        person.role("value", "prediction", "new")
        person.select('[data-key="new quantiles"]', "0.05, 0.95")
        person.click("#new button", "Recalibrate these")
        person.wait("document.querySelector('#new a[download]')")
        person.idle()
        yield person


@pytest.fixture
def finished_alone(demo, own_browser):
    """The page of the demo in a browser of its own."""
    person = Person(own_browser, demo.server)
    person.open()
    person.wait("document.querySelector('#recalibrate .card')")
    person.idle()
    yield person
    assert person.complaints() == []
    assert person.outside() == []


@pytest.fixture
def finished(demo):
    """The page of the demo, wherever the browser has been since."""
    if demo.run("location.href") != demo.server.address:
        demo.open()
        demo.wait("document.querySelector('#recalibrate .card')")
        demo.idle()
    yield demo
    assert demo.complaints() == []
    assert demo.outside() == []
