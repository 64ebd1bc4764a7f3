"""What the tests share: data, golden values, the command line, a browser."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import websocket
from hypothesis import settings

from sigmascale.predictions.datasets import fetch_qm9

# The verdict on unchanged code must depend neither on the day nor on the machine.
settings.register_profile("sigmascale", deadline=None, derandomize=True)
settings.load_profile("sigmascale")
# Examples are drawn from the constants in modules that happen to be loaded, too, which
# depend on the tests before and on the name of the folder.
with suppress(ImportError):  # older versions do not
    from hypothesis.internal.conjecture import providers

    if hasattr(providers, "is_local_module_file"):
        providers.is_local_module_file = lambda _: False


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items):
    """Let one process run what shares much: a browser, an app, reports, a study."""
    groups = {"app": "browser", "report": "browser", "paper": "paper"}
    for item in items:
        if group := groups.get(item.path.parent.name):
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def qm9():
    """The sets `calibration`, `test` and `isotonic_test` of the published study.

    Each has Predictions with the features mass (X1) and heteroatom_fraction (X2).
    """
    folder = os.environ.get("SIGMASCALE_QM9")
    if not folder:
        pytest.skip("SIGMASCALE_QM9 does not name a folder with the QM9 files")
    return fetch_qm9(folder=folder)


@pytest.fixture(scope="session")
def golden():
    """Statistics of these sets by the study's own R code; needs no data."""
    path = Path(__file__).parent / "golden" / "qm9_golden.json"
    return json.loads(path.read_text(encoding="utf-8"))


class Outcome(NamedTuple):
    """What a command leaves behind: its exit code and what it printed."""

    code: int
    out: str
    err: str

    def says(self, match):
        """Return whether a pattern is in what it printed, however lines were broken."""
        return re.search(match, " ".join(f"{self.out} {self.err}".split())) is not None


class Pieces(io.BufferedIOBase):
    """A stream that gives pieces as they come, and is interrupted in the end."""

    def __init__(self, pieces):
        self.left = list(pieces)

    def readable(self):
        return True

    def read1(self, size=-1):
        if not self.left:
            raise KeyboardInterrupt
        return self.left.pop(0)


@pytest.fixture(scope="session")
def sigmascale():
    """Run a command line in this process, and return its :class:`Outcome`.

    Streams that are `closed` are None, as they are in a process that begins without.
    What comes from standard input are bytes, or pieces of them that come one by one.
    """
    from sigmascale.__main__ import main

    def run(*arguments, stdin=b"", columns="80", closed=()):
        streams = {
            "stdin": io.TextIOWrapper(
                io.BytesIO(stdin) if isinstance(stdin, bytes) else Pieces(stdin)
            ),
            "stdout": io.TextIOWrapper(io.BytesIO(), encoding="utf-8"),
            "stderr": io.TextIOWrapper(io.BytesIO(), encoding="utf-8"),
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["sigmascale", *map(str, arguments)])
            for name, stream in streams.items():
                patch.setattr(sys, name, None if name in closed else stream)
            patch.setattr(signal, "signal", lambda *_: None)  # the tests keep theirs
            patch.setenv("COLUMNS", columns)
            with pytest.raises(SystemExit) as end:
                main()
            for name in closed:  # the null device, which takes its place
                getattr(sys, name).close()
        texts = []
        for name in ("stdout", "stderr"):
            streams[name].flush()
            texts.append(streams[name].buffer.getvalue().decode())
        return Outcome(end.value.code, *texts)

    return run


# Chromium, driven through its DevTools protocol: no driver, no download.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60  # seconds; a busy machine starts a browser slowly


OVERFLOW = """[...document.querySelectorAll('body *')].filter(e =>
    !e.closest('svg, .wide, .skip, option, pre, input') &&
    (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 ||
     e.getBoundingClientRect().right > innerWidth + 1)
  ).map(e => e.tagName + ' ' + e.textContent.slice(0, 60))"""
# The contrast of WCAG 2: (L1 + 0.05) / (L2 + 0.05), 4.5 for text. The background is
# that of the nearest element that has one.
CONTRAST = """(() => {
  const rgb = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => rgb(c).slice(0, 3).map(v => v / 255).map(v =>
    v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const background = e => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if ((rgb(c)[3] ?? 1) > 0.99) return c;
    }
    return 'rgb(255, 255, 255)';
  };
  const own = e => [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim());
  return [...document.querySelectorAll('body *')].filter(own)
    .filter(e => !['title', 'desc'].includes(e.tagName) && !e.disabled).map(e => {
      const style = getComputedStyle(e);
      const a = light(e.closest('svg') ? style.fill : style.color);
      const b = light(background(e));
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05),
              e.tagName + ' ' + e.textContent.slice(0, 40), b];
    });
})()"""


class Browser:
    """A page of headless Chromium that keeps a record of all that happens in it."""

    def __init__(self, port):
        self.socket = websocket.create_connection(
            f"ws://127.0.0.1:{port[0]}{port[1]}", timeout=PATIENCE, suppress_origin=True
        )
        self.sent, self.session, self.events = 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.sent:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.note(answer)

    def note(self, event):
        if "method" not in event:  # the answer to what is sent below
            return
        self.events.append((event["method"], event["params"]))
        if event["method"] == "Page.javascriptDialogOpening":  # it blocks the page
            message = {"method": "Page.handleJavaScriptDialog", "id": 10**9}
            message |= {"params": {"accept": True}, "sessionId": self.session}
            self.socket.send(json.dumps(message))

    def of_kind(self, *methods):
        return [params for method, params in self.events if method in methods]

    def resize(self, width, *, dark=False, height=900):
        """Make the window so wide, and the page light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path, *, width, dark=False):
        """Load a file or an address in such a window, and wait until it is drawn."""
        self.resize(width, dark=dark)
        address = path if isinstance(path, str) else path.as_uri()
        for each in ("about:blank", address):  # the page before asks for nothing more
            self.events.clear()
            self.call("Page.navigate", url=each)
            stop = time.monotonic() + PATIENCE
            while not self.of_kind("Page.loadEventFired"):
                assert time.monotonic() < stop, "the page did not load"
                self.note(json.loads(self.socket.recv()))
        self.run("new Promise(r => requestAnimationFrame(() => setTimeout(r, 100)))")

    def download_to(self, folder):
        """Let downloads go to a folder, and say when each is whole."""
        session, self.session = self.session, None
        behaviour = {"behavior": "allow", "downloadPath": str(folder)}
        self.call("Browser.setDownloadBehavior", eventsEnabled=True, **behaviour)
        self.session = session

    def downloads(self):
        """Return how many downloads are whole."""
        progress = self.of_kind("Browser.downloadProgress")
        return sum(each["state"] == "completed" for each in progress)

    def overflowing(self):
        """Return what is wider than its place, but for what scrolls by itself."""
        return self.run(OVERFLOW)

    def contrasts(self):
        """Return contrast, words and the lightness behind them, of every text."""
        return self.run(CONTRAST)

    def complaints(self):
        """Return what the console, or a dialog, has said."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        kinds += ("Page.javascriptDialogOpening",)
        entries = [each["entry"]["text"] for each in self.of_kind("Log.entryAdded")]
        return [*self.of_kind(*kinds), *entries]

    def requested(self):
        """Return the addresses that were asked for."""
        requests = self.of_kind("Network.requestWillBeSent")
        return [each["request"]["url"] for each in requests]

    def run(self, script):
        """Return what JavaScript of ours finds in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")


@contextmanager
def chromium(folder):
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no Chromium here: none of {', '.join(NAMES)} was found")
    options = ["--headless=new", "--remote-debugging-port=0", "--disable-gpu"]
    options += ["--no-first-run", "--disable-extensions", "--disable-dev-shm-usage"]
    options += ["--disable-background-networking", f"--user-data-dir={folder}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--no-sandbox")  # which root in a container cannot have
    process = subprocess.Popen(
        [program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        port_file = folder / "DevToolsActivePort"
        stop = time.monotonic() + PATIENCE
        while not (port_file.exists() and len(port_file.read_text().split()) == 2):
            assert process.poll() is None, "Chromium ended at once"
            assert time.monotonic() < stop, "Chromium did not start"
            time.sleep(0.05)
        browser = Browser(port_file.read_text().split())
        try:
            yield browser
        finally:
            browser.socket.close()
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as page:
        yield page
