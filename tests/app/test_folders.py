"""Where the app keeps what it was given, and what it makes."""

import json
import time
import urllib.request
from importlib.util import find_spec

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.persistence import dumps
from sigmascale.roles import Roles

PATIENCE = 120  # seconds; a busy machine computes slowly


def ask(server, method, path, body=b""):
    """Return what the server answers to its own page, as JSON."""
    request = urllib.request.Request(server.address + path, body or None, method=method)
    request.add_header("Origin", f"http://127.0.0.1:{server.port}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def table(n_rows, factor):
    """Return a table whose columns are called as parts of exports, or not at all."""
    rng = np.random.default_rng(n_rows)
    numbers = rng.normal(scale=[1.5 * factor, 1, 1, 1], size=(n_rows, 4))
    lines = [f"{e:.6f},1.5,{a:.6f},{b:.6f},{c:.6f}" for e, a, b, c in numbers]
    return "\n".join(["E,uncertainty,low,constant_0,", *lines, ""]).encode()


KNOWN = table(120, factor=2)


def finished(server):
    """Wait until nothing is going on, and return the state."""
    stop = time.monotonic() + PATIENCE
    while (state := ask(server, "GET", "api/state"))["job"] is not None:
        assert time.monotonic() < stop, state
        time.sleep(0.1)
    return state


def recalibrated(server, **plan):
    """Recalibrate, wait, and return what the page is told, and what is wrong."""
    order = {"method": "temperature", **plan}
    ask(server, "POST", "api/recalibrate", json.dumps(order).encode())
    state = finished(server)
    found = ask(server, "GET", "api/everything")["results"].get("recalibrated")
    return found, state["problems"]


@pytest.fixture(scope="module")
def server(start, tmp_path_factory):
    """A server with two tables, of which one is called as what is made of the other."""
    with start(tmp_path_factory.mktemp("folders")) as found:
        ask(found, "PUT", "api/table/table?name=x.csv", table(400, factor=1))
        ask(found, "PUT", "api/table/known?name=x_calibration.csv", KNOWN)
        yield found


def test_what_the_app_makes_takes_no_table_s_place_and_outlives_a_failed_export(server):
    first, _ = recalibrated(server, kind="random", method="raked")
    assert first["rows"] == [200, 200]
    assert ("onnx" in first["files"]) == (find_spec("onnx") is not None)
    # where something is in the way of an export, all else is made
    in_the_way = server.folder / "made" / "x-2_scaler.onnx"
    in_the_way.unlink(missing_ok=True)
    in_the_way.mkdir()
    second, problems = recalibrated(server, kind="file")
    if find_spec("onnx") is not None:
        assert any("x-2_scaler.onnx was not written" in x for x in second["warnings"])
    assert "onnx" not in second["files"]
    assert not any(" export " in command for command in second["commands"])
    assert problems == {}
    # from the rows of the second file, not from those that it is judged by
    assert second["rows"] == [120, 400]
    assert (server.folder / "uploads" / "x_calibration.csv").read_bytes() == KNOWN
    assert "x_calibration.csv" not in first["files"].values()
    made = {path.name for path in (server.folder / "made").iterdir()}
    assert {*second["files"].values()} <= made


@pytest.mark.parametrize(
    ("option", "value", "called"),
    [
        ("method", "magic", "Recalibrator"),
        ("share", "most", "Share to learn from"),
        ("bins", {"a": 1}, "Bins"),
        ("quantiles", "5, 95", "Quantiles"),
    ],
)
def test_what_is_no_value_of_an_option_is_told_in_the_words_of_the_page(
    server, option, value, called
):
    result, problems = recalibrated(server, kind="random", **{option: value})
    assert result is None
    assert f"“{called}”" in problems["recalibrated"]
    assert "--" not in problems["recalibrated"]


def applied(server, **wanted):
    """Recalibrate new predictions, and return what the page is told."""
    ask(server, "POST", "api/apply", json.dumps(wanted).encode())
    state = finished(server)
    found = ask(server, "GET", "api/everything")["results"].get("new")
    return found, state["problems"].get("new")


def test_new_predictions_are_recalibrated_by_a_file(server, tmp_path):
    rng = np.random.default_rng(0)
    u = rng.lognormal(size=600)
    r = ss.Recalibrator(ss.LinearScaling(), shift="constant").fit(
        pl.DataFrame({"u": u}), (rng.standard_t(3, 600) + 1) * u
    )
    roles = Roles("u", error=("E",))
    scaler = dumps(r, roles.to_dict()).encode()
    # its stem is that of the table, and it has another ending
    new = "V,u\n" + "".join(f"{i / 7},{x}\n" for i, x in enumerate(u[:50]))
    ask(server, "PUT", "api/table/new?name=x.txt", new.encode())
    ask(server, "PUT", "api/table/scaler?name=x_scaler.json", b"{}")
    told = ask(server, "GET", "api/everything")["tables"]["scaler"]
    assert "not a file of a recalibrator" in told["problem"]
    ask(server, "PUT", "api/table/scaler?name=x_scaler.json", scaler)
    wanted = {"source": "file", "quantiles": "0.1, 0.9", "shift": True}
    settings = {"roles": {"V": "prediction", "u": "ignored"}}
    ask(server, "POST", "api/settings/new", json.dumps(settings).encode())
    found, problem = applied(server, **wanted, coverage="0.8")
    assert problem is None
    made = found["files"]["new"]
    assert made == "x-3_recalibrated.csv"  # those of the table begin with x-2
    with urllib.request.urlopen(f"{server.address}files/{made}") as answer:
        table = pl.read_csv(answer.read())
    value = table["V"].to_numpy()
    columns = [f"u_recalibrated_{each}" for each in ("low", "high", "q0.1", "q0.9")]
    quantiles = r.predict_quantiles(table.select("u"), [0.1, 0.9] * 2)
    expected = value[:, None] + quantiles
    np.testing.assert_allclose(table.select(columns), expected, rtol=0, atol=1e-10)
    shifted = value + r.predict_shift(table.select("u"))
    np.testing.assert_allclose(table["u_recalibrated_shifted"], shifted, atol=1e-10)
    for name, wrong in {"quantiles": "5", "coverage": "all"}.items():
        found, problem = applied(server, **wanted | {name: wrong})
        assert found is None
        assert "“" in problem
        assert "--" not in problem
