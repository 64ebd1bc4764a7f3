"""Where the app keeps what it was given, and what it makes."""

import json
import time
import urllib.request

import numpy as np

PATIENCE = 120  # seconds; a busy machine computes slowly


def ask(server, method, path, body=b""):
    """Return what the server answers to its own page, as JSON."""
    request = urllib.request.Request(server.address + path, body or None, method=method)
    request.add_header("Origin", f"http://127.0.0.1:{server.port}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def recalibrated(server, **plan):
    """Recalibrate, wait, and return what the page is told of it."""
    order = {"method": "temperature", **plan}
    ask(server, "POST", "api/recalibrate", json.dumps(order).encode())
    stop = time.monotonic() + PATIENCE
    while (state := ask(server, "GET", "api/state"))["job"] is not None:
        assert time.monotonic() < stop, state
        time.sleep(0.1)
    assert state["problems"] == {}
    return ask(server, "GET", "api/everything")["results"]["recalibrated"]


def table(n_rows, factor):
    rng = np.random.default_rng(n_rows)
    lines = [f"{factor * e:.6f},1.5" for e in rng.normal(scale=1.5, size=n_rows)]
    return "\n".join(["E,u", *lines, ""]).encode()


def test_what_the_app_makes_never_takes_the_place_of_a_table(start, tmp_path):
    known = table(120, factor=2)
    with start(tmp_path) as server:
        ask(server, "PUT", "api/table/table?name=x.csv", table(400, factor=1))
        ask(server, "PUT", "api/table/known?name=x_calibration.csv", known)
        first = recalibrated(server, kind="random")
        assert first["rows"] == [200, 200]
        assert "x_calibration.csv" not in first["files"].values()
        second = recalibrated(server, kind="file")
        # from the rows of the second file, not from those that it is judged by
        assert second["rows"] == [120, 400]
        assert (server.folder / "uploads" / "x_calibration.csv").read_bytes() == known
        made = {path.name for path in (server.folder / "made").iterdir()}
        assert {*second["files"].values()} <= made
