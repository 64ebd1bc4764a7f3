"""What people ask next, in a terminal: sums of rows, acceptance, explanations."""

import json

import numpy as np
import polars as pl
import pytest

import sigmascale as ss


@pytest.fixture
def tables(tmp_path, monkeypatch, sigmascale):
    """Write a table of batches with correlated errors, and a recalibrator of it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    batch = np.repeat(np.arange(60), 10)
    u = rng.lognormal(0, 0.3, 600)
    z = np.sqrt(0.4) * rng.normal(size=60)[batch] + np.sqrt(0.6) * rng.normal(size=600)
    pred = rng.normal(size=600)
    columns = {"y_true": pred + 1.3 * u * z, "y_pred": pred, "y_std": u}
    table = pl.DataFrame({**columns, "batch": batch, "x": rng.normal(size=600)})
    table.write_csv("rows.csv")
    fit = ("fit", "rows.csv", "--groups", "batch", "--feature", "x", "-o", "r.json")
    assert sigmascale(*fit).code == 0
    return table


def test_sums_by_group_and_by_terms_are_those_of_python(tables, sigmascale):
    r = ss.load("r.json")
    names = {"y_pred": "y_pred", "y_std": "y_std", "features": ["x"], "groups": "batch"}
    rows = r.apply(ss.Predictions.from_frame(tables, **names))
    common = ("combine", "r.json", "rows.csv", "--groups", "batch")
    done = sigmascale(*common, "--by", "groups", "-o", "sums.csv")
    assert done.says("60 combinations of 600 rows.*correlation of z within 60 groups")
    expected = rows.combined(by="groups", rho=r.group_correlation_)
    found = pl.read_csv("sums.csv")
    np.testing.assert_allclose(found["u"], expected.y_std, rtol=1e-9)
    np.testing.assert_allclose(found["value"], expected.y_pred, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found["high"], expected.y_pred + 1.959964 * found["u"])

    terms = pl.DataFrame({"what": ["a", "a", "b"], "row": [0, 1, 5], "c": [1, -1, 2]})
    terms.write_csv("terms.csv")
    options = ("--terms", "terms.csv", "--rho", "0.2", "-o", "some.csv", "--json")
    told = json.loads(sigmascale(*common, *options).out)
    assert told["rho"] == 0.2
    C = np.zeros((2, 600))
    C[0, :2] = 1, -1
    C[1, 5] = 2
    expected = rows.combined(C, rho=0.2)
    found = pl.read_csv("some.csv")
    assert found["combination"].to_list() == ["a", "b"]
    np.testing.assert_allclose(found["u"], expected.y_std, rtol=1e-9)


def test_what_cannot_be_combined_is_refused(tables, sigmascale):
    common = ("combine", "r.json", "rows.csv", "-o", "sums.csv")
    assert sigmascale(*common).says("--by COLUMN, or --terms FILE")
    assert sigmascale(*common, "--by", "groups").says("`by` must name a column")
    pl.DataFrame({"a": ["x"], "b": ["no"]}).write_csv("terms.csv")
    assert sigmascale(*common, "--terms", "terms.csv").says("three columns")
    pl.DataFrame({"a": ["x"], "b": ["no"], "c": [1]}).write_csv("terms.csv")
    assert sigmascale(*common, "--terms", "terms.csv").says(
        "error: terms.csv: b must hold numbers"
    )
    assert sigmascale("fit", "rows.csv", "-o", "r.json").code == 0  # without groups
    assert sigmascale(*common, "--by", "batch").says("is not known: pass --rho 0")


def test_acceptance_is_told_beside_the_checks(tables, sigmascale):
    check = ("check", "rows.csv", "--groups", "batch", "--accept-limit")
    done = sigmascale(*check, "40", "--accept-share", "0.1", "--json")
    told = json.loads(done.out)["acceptance"]
    assert told["kept"] == 1
    assert told["upper"] <= 0.1
    assert sigmascale(*check, "0.001").says("NOTHING CAN BE ACCEPTED")


def test_explanations_become_columns_that_multiply_up(tables, sigmascale):
    apply = ("apply", "r.json", "rows.csv", "--explain", "-o", "why.csv")
    assert sigmascale(*apply).code == 0
    found = pl.read_csv("why.csv")
    u = "y_std_recalibrated"
    product = found[f"{u}_typical"].to_numpy().copy()
    for name in found.columns:
        if name.startswith(f"{u}_by_"):
            product *= found[name].to_numpy()
    np.testing.assert_allclose(product, found[u], rtol=1e-12)
    assert (found[f"{u}_inside"] == 1).all()
