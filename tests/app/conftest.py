"""Servers, one for a whole run where that will do, and a person who uses the page."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

PATIENCE = 150  # seconds; a busy machine computes slowly


class Server:
    """A running `sigmascale app`, and what one can ask it."""

    def __init__(self, process, address, folder):
        self.process, self.address, self.temporary = process, address, folder
        self.port = urlsplit(address).port
        self.token = urlsplit(address).path.strip("/")
        self.own = {"Origin": f"http://127.0.0.1:{self.port}"}

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

    def ask(self, method, path, body=None, **headers):
        """Return status, headers and body of the answer to any request."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            line.request(method, path, body, headers)
            answer = line.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            line.close()

    def order(self, method, path, body=None):
        """Return the status and the JSON of the answer to the page."""
        kind = {"Content-Type": "application/json"}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        told = self.ask(method, f"/{self.token}/{path}", body, **self.own, **kind)
        return told[0], json.loads(told[2] or b"{}")

    def put(self, slot, body, name="a.csv"):
        path = f"/{self.token}/api/table/{slot}?name={name}"
        return self.ask("PUT", path, body, **self.own)[0]

    def state(self):
        return self.order("GET", "api/state")[1]

    def done(self):
        """Wait until nothing is going on, and return the state."""
        stop = time.monotonic() + PATIENCE
        while (state := self.state())["job"] is not None:
            assert time.monotonic() < stop, state
            time.sleep(0.05)
        return state

    def run(self, path, **fields):
        """Give an order, wait for its end, and return the state."""
        status, told = self.order("POST", f"api/{path}", fields)
        assert status == 200, told
        return self.done()


@contextmanager
def running(temporary, *arguments, browser=False, **environment):
    """Start `sigmascale app` on a free port, and end it."""
    environment = {**os.environ, "TMPDIR": str(temporary), **environment}
    command = [sys.executable, "-m", "sigmascale", "app"]
    command += [] if browser else ["--no-browser"]
    process = subprocess.Popen(
        [*command, *map(str, arguments)],
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
            process.wait(60)
        process.stdout.close()


class Person:
    """Someone who looks at the page, clicks, chooses files and types."""

    def __init__(self, browser, server):
        self.browser, self.server = browser, server

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

    def control(self, key):
        """Return what finds a control, once it is there and can be used."""
        find = f"document.querySelector({json.dumps(f'[data-key={json.dumps(key)}]')})"
        self.wait(f"({find}) && !({find}).disabled")
        return find

    def click(self, key):
        """Click where a control is, as a mouse does."""
        box = self.run(
            f"(() => {{ const e = {self.control(key)}; e.scrollIntoView({{block:"
            " 'center'}); const b = e.getBoundingClientRect();"
            " return [b.x + Math.min(b.width, 400) / 2, b.y + b.height / 2]; })()"
        )
        where = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.call("Input.dispatchMouseEvent", type=kind, **where)

    def set(self, key, value):
        """Choose an option of a list, or type into a field."""
        self.run(
            f"(() => {{ const e = {self.control(key)}; e.focus(); e.value ="
            f" {json.dumps(value)}; e.dispatchEvent(new Event('change')); }})()"
        )

    def choose_file(self, slot, path):
        """Choose a file in the dialog of an input."""
        find = self.control(f"file {slot}")
        found = self.browser.call("Runtime.evaluate", expression=find)["result"]
        about = {"files": [str(path)], "objectId": found["objectId"]}
        self.browser.call("DOM.setFileInputFiles", **about)

    def drop_file(self, selector, path):
        """Drag a file onto an element, and drop it."""
        find = f"document.querySelector({json.dumps(selector)})"
        x, y = self.run(
            f"(() => {{ const b = {find}.getBoundingClientRect();"
            " return [b.x + 20, b.y + 10]; })()"
        )
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.browser.call("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def idle(self):
        """Wait until nothing is going on, and the page shows what came of it."""
        time.sleep(0.1)
        revision = self.server.done()["revision"]
        self.wait(f"Number(document.body.dataset.revision) >= {revision}")

    def download(self, folder):
        """Download all that is offered; Chromium says when each file is whole."""
        self.browser.download_to(folder)
        names = self.run(
            "[...document.querySelectorAll('#take a')].map(a => a.download)"
        )
        before = self.browser.downloads()
        for count, name in enumerate(names, 1):
            link = json.dumps(f"#take a[download={json.dumps(name)}]")
            self.run(f"document.querySelector({link}).click()")
            stop = time.monotonic() + PATIENCE
            while self.browser.downloads() < before + count:
                assert time.monotonic() < stop, name
                self.run("1")
                time.sleep(0.02)
        return names

    def outside(self):
        """Return requests that went elsewhere."""
        own = f"http://127.0.0.1:{self.server.port}/"
        return [
            x for x in self.browser.requested() if not x.startswith((own, "data:,"))
        ]


@pytest.fixture(scope="session")
def start():
    """Start a server with other arguments."""
    return running


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("server"), "--largest", 64) as found:
        yield found


@pytest.fixture
def person(browser, server):
    for slot in ("table", "known", "new", "recalibrator"):
        server.order("DELETE", f"api/table/{slot}")
    found = Person(browser, server)
    yield found
    assert browser.complaints() == []
    assert found.outside() == []
