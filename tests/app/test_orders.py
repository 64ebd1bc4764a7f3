"""What the page sends are fields of commands; what comes back is what these make."""

import io
import json

import numpy as np
import polars as pl
import pytest

import sigmascale as ss


def table(n_rows, factor=1.0, *, names=("E", "u", "x")):
    """Return a table whose uncertainties are too small by a factor, as CSV."""
    rng = np.random.default_rng(n_rows)
    u, x = rng.lognormal(size=(2, n_rows))
    columns = (factor * u * rng.normal(size=n_rows), u, x)
    return pl.DataFrame(dict(zip(names, columns, strict=True))).write_csv().encode()


@pytest.fixture(scope="module")
def server(start, tmp_path_factory):
    """A server with a table."""
    with start(tmp_path_factory.mktemp("orders")) as found:
        found.put("table", table(400), "x.csv")
        found.run("examine/table")
        yield found


@pytest.fixture
def read(server):
    """Return what can be downloaded under a name."""

    def download(name):
        status, headers, body = server.ask("GET", f"/{server.token}/files/{name}")
        assert status == 200, name
        assert headers["content-disposition"].startswith("attachment"), name
        return body

    return download


def test_columns_are_guessed_and_what_is_said_of_them_is_kept(server):
    slot = server.state()["slots"]["table"]
    assert slot["fields"] == {"error": "E", "uncertainty": "u"}
    assert slot["view"]["rows"] == 400
    assert [each["may_be"] for each in slot["view"]["columns"]] == [
        None,
        None,
        "features",
    ]
    said = {"error": "E", "uncertainty": "u", "features": ["x"], "min_std": 0.1}
    assert server.order("POST", "api/fields/table", said)[0] == 200
    assert server.run("examine/table")["slots"]["table"]["fields"] == said
    # the second file has the columns of the first
    server.put("known", table(120, 2), "known.csv")
    assert server.run("examine/known")["slots"]["known"]["fields"] == said
    del said["min_std"]
    server.order("POST", "api/fields/table", said)


def test_a_page_that_knows_the_state_is_told_only_what_is_going_on(server):
    revision = server.state()["revision"]
    _, told = server.order("GET", f"api/state?known={revision}")
    assert set(told) == {"revision", "job", "version"}


def test_fitting_a_second_file_tests_the_first_and_replaces_no_table(server, read):
    # names that commands would give to what they make
    server.put("known", table(300, 2), "x_recalibrated.csv")
    server.put("recalibrator", b"{}", "x_recalibrator.json")
    server.run("examine/known")
    state = server.run("run/fit", scaling="temperature")
    assert "fit" not in state["problems"], state["problems"]
    found = state["results"]["fit"]
    made, report, card, applied = found["files"]
    assert (made, report) == ("x_recalibrator-2.json", "x_before_after.html")
    assert applied == "x_recalibrated-2.csv"
    assert [line.split()[1] for line in found["lines"]] == ["fit", "check", "apply"]
    uploaded = server.folder / "uploads" / "x_recalibrated.csv"
    assert uploaded.read_bytes() == table(300, 2)
    assert json.loads(read(made))
    for page in (report, card):
        assert read(page).startswith(b"<!DOCTYPE html>")
    column = pl.read_csv(read(applied))["u_recalibrated"]
    u = pl.read_csv(table(400))["u"]
    np.testing.assert_allclose(column / u, column[0] / u[0], rtol=1e-9)
    assert 1.7 < column[0] / u[0] < 2.3


def test_new_predictions_are_recalibrated_by_a_file(server, read, tmp_path):
    state = server.run("run/fit", scaling="linear", test_share=0.5)
    recalibrator = read(state["results"]["fit"]["files"][0])
    server.put("recalibrator", b"{}", "mine.json")
    assert "recalibrator" in server.run("examine/recalibrator")["problems"]
    server.put("recalibrator", recalibrator, "mine.json")
    view = server.run("examine/recalibrator")["slots"]["recalibrator"]["view"]
    assert "LinearScaling, fitted to 200 rows" in " ".join(view["words"].split())
    server.put("new", table(50, names=("V", "sd", "x")), "x.txt")
    server.run("examine/new")
    fields = {"uncertainty": "sd", "prediction": "V"}
    server.order("POST", "api/fields/new", fields)
    state = server.run("run/apply", source="file", quantiles=[0.1, 0.9], coverage=0.8)
    found = state["results"]["apply"]
    (name,) = found["files"]
    new = pl.read_csv(read(name))
    assert new.height == 50
    assert found["head"]["columns"][0] not in ("V", "sd", "x")
    assert len(found["head"]["rows"]) == 8
    (tmp_path / "mine.json").write_bytes(recalibrator)
    p = ss.Predictions(new["V"], new["sd"], features={"x": new["x"]})
    expected = ss.load(tmp_path / "mine.json").apply(p)
    np.testing.assert_allclose(new["sd_recalibrated"], expected.y_std, rtol=1e-9)
    limits = expected.distributions.quantile([0.1, 0.9])
    added = [x for x in new.columns if "q0" in x or "low" in x or "high" in x]
    assert len(added) == 4
    for each in added:
        column = limits[:, int("high" in each or "q0.9" in each)]
        np.testing.assert_allclose(new[each], column, rtol=1e-8)


@pytest.mark.parametrize(
    ("step", "fields", "words"),
    [
        ("check", {"tolerance": 0.5}, "tolerance"),
        ("check", {"tolerance": "x"}, "tolerance"),
        ("check", {"magic": 1}, "magic"),
        ("fit", {"scaling": "magic", "test_share": 0.5}, "scaling"),
        ("fit", {"scaling": "raked", "test_share": 2}, "share"),
        ("apply", {"source": "file", "quantiles": ["x"]}, "quantiles"),
    ],
)
def test_what_no_command_takes_is_told_with_its_name(server, step, fields, words):
    state = server.run(f"run/{step}", **fields)
    assert step not in state["results"]
    assert words in state["problems"][step]["message"]
    assert "Traceback" not in state["problems"][step]["message"]


def test_files_are_named_by_the_server_alone_and_steps_need_theirs(server):
    for name in ("files", "output", "report", "recalibrator", "command"):
        status, told = server.order("POST", "api/run/check", {name: "/etc/passwd"})
        assert (status, told["code"]) == (400, "field")
    server.order("DELETE", "api/table/new")
    status, told = server.order("POST", "api/run/apply", {})
    assert (status, told["code"]) == (400, "no-file")


def test_tables_that_nobody_should_send_are_refused_in_words(server):
    parquet = io.BytesIO()
    pl.read_csv(table(60)).write_parquet(parquet)
    whole, bodies = parquet.getvalue(), [b"", b"E,u\n", b"\0" * 99, b"E,u\n1,2\n" * 3]
    for body in (*bodies, b"\xff\xfeE\0", b'"', b"PK\x03\x04", whole[:-9]):
        for name in ("a.csv", "a.parquet", "a.xlsx", "a.csv.gz"):
            assert server.put("known", body, name) == 200
            state = server.run("examine/known")
            assert state["problems"].get("known", {}).get("code") != "defect", body
    server.put("known", whole, "a.csv")  # whatever it is called
    state = server.run("examine/known")
    assert "known" in state["problems"] or state["slots"]["known"]["view"]["rows"] == 60
    server.order("DELETE", "api/table/known")


def test_one_thing_at_a_time_and_a_new_table_stops_it_and_forgets_the_old(server):
    server.run("run/check")
    made = server.state()["results"]["check"]["files"]
    server.order("POST", "api/run/fit", {"test_share": 0.5})
    status, told = server.order("POST", "api/run/check", {})
    assert (status, told["code"]) == (409, "busy")
    server.put("table", table(60), "y.csv")
    state = server.done()
    assert state["slots"]["table"]["file"] == "y.csv"
    assert state["results"] == {}
    for name in made:
        assert server.ask("GET", f"/{server.token}/files/{name}")[0] == 404
        assert not (server.folder / "made" / name).exists()


def test_the_demo_is_a_table_that_can_be_tested(server):
    state = server.run("demo")
    assert state["slots"]["table"]["file"] == "molecules.csv"
    server.run("examine/table")
    state = server.run("run/check")
    found = state["results"]["check"]
    assert found["result"] == "FAIL"
    names = [each["file"] for each in found["figures"]]
    for name in names:
        status, headers, body = server.ask(
            "GET", f"/{server.token}/files/{name}?show=1"
        )
        assert status == 200
        assert body.startswith(b"<svg")
        assert "sandbox" in headers["content-security-policy"]
