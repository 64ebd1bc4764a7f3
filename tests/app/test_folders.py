"""Where the app keeps what it was given, and what it makes."""

import json
import time
import urllib.request

import numpy as np
import pytest

PATIENCE = 120  # seconds; a busy machine computes slowly


def ask(server, method, path, body=b""):
    """Return what the server answers to its own page, as JSON."""
    request = urllib.request.Request(server.address + path, body or None, method=method)
    request.add_header("Origin", f"http://127.0.0.1:{server.port}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def table(n_rows, factor):
    rng = np.random.default_rng(n_rows)
    lines = [f"{factor * e:.6f},1.5" for e in rng.normal(scale=1.5, size=n_rows)]
    return "\n".join(["E,u", *lines, ""]).encode()


KNOWN = table(120, factor=2)


def recalibrated(server, **plan):
    """Recalibrate, wait, and return what the page is told, and what is wrong."""
    order = {"method": "temperature", **plan}
    ask(server, "POST", "api/recalibrate", json.dumps(order).encode())
    stop = time.monotonic() + PATIENCE
    while (state := ask(server, "GET", "api/state"))["job"] is not None:
        assert time.monotonic() < stop, state
        time.sleep(0.1)
    found = ask(server, "GET", "api/everything")["results"].get("recalibrated")
    return found, state["problems"]


@pytest.fixture(scope="module")
def server(start, tmp_path_factory):
    """A server with two tables, of which one is called as what is made of the other."""
    with start(tmp_path_factory.mktemp("folders")) as found:
        ask(found, "PUT", "api/table/table?name=x.csv", table(400, factor=1))
        ask(found, "PUT", "api/table/known?name=x_calibration.csv", KNOWN)
        yield found


def test_what_the_app_makes_never_takes_the_place_of_a_table(server):
    first, _ = recalibrated(server, kind="random")
    assert first["rows"] == [200, 200]
    second, _ = recalibrated(server, kind="file")
    # from the rows of the second file, not from those that it is judged by
    assert second["rows"] == [120, 400]
    assert (server.folder / "uploads" / "x_calibration.csv").read_bytes() == KNOWN
    assert "x_calibration.csv" not in first["files"].values()
    made = {path.name for path in (server.folder / "made").iterdir()}
    assert {*second["files"].values()} <= made


@pytest.mark.parametrize(
    ("option", "value"), [("method", "magic"), ("share", "most"), ("bins", {"a": 1})]
)
def test_what_is_no_value_of_an_option_is_told_by_the_command(server, option, value):
    result, problems = recalibrated(server, kind="random", **{option: value})
    assert result is None
    assert f"--{option}" in problems["recalibrated"]
