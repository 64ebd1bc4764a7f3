"""Weights on the command line."""

import json

import numpy as np
import polars as pl
import pytest

import sigmascale as ss


@pytest.fixture
def files(tmp_path):
    """A calibration set with weights, and new rows of other inputs."""
    rng = np.random.default_rng(0)
    for name, shift in (("cal", 0), ("new", 1)):
        x, u = rng.normal(shift, size=300), rng.uniform(1, 2, 300)
        error = rng.normal(scale=u * np.exp(x / 3))
        w = rng.integers(0, 3, 300)
        table = pl.DataFrame({"E": error, "u": u, "x": x, "w": w})
        table.write_csv(tmp_path / f"{name}.csv")
    return tmp_path


def read(files, name):
    table = pl.read_csv(files / f"{name}.csv")
    return (table[each].to_numpy() for each in ("E", "u", "x", "w"))


def test_weights_of_a_column_are_those_of_python(sigmascale, files):
    out = files / "s.json"
    options = ("--method", "temperature", "--weight", "w", "-o", out, "--json")
    told = json.loads(sigmascale("fit", files / "cal.csv", *options).out)
    error, u, x, w = read(files, "cal")
    expected = ss.TemperatureScaling().fit(u, error, sample_weight=w)
    assert ss.load(out).scaling_.factor_ == expected.factor_
    assert told["data"]["weight"] == "w"
    assert "in effect" in told["words"]
    options = ("--feature", "x", "--weight", "w", "--json")
    judged = sigmascale("check", files / "cal.csv", *options)
    found = json.loads(judged.out)
    expected = ss.validate(error, u, {"x": x}, sample_weight=w)
    assert found["scores"] == pytest.approx(expected.scores.to_dict())
    assert found["answer"] == expected.answer
    both = (files / "cal.csv", files / "new.csv", "--weight", "w", "--json")
    table = json.loads(sigmascale("compare", *both, "--bins", 5).out)
    error, u, x, w = read(files, "new")
    assert table["test"]["weight"] == "w"
    zms = ss.zms(error, u, sample_weight=w)
    found = table["before"]["verdicts"]["average"]["interval"][0]
    assert found == pytest.approx(zms)


def test_all_features_are_without_the_weights(sigmascale, files):
    out = files / "s.json"
    options = ("--all-features", "--weight", "w", "--method", "raked", "-o", out)
    told = json.loads(sigmascale("fit", files / "cal.csv", *options, "--json").out)
    assert told["data"]["numbers"] == ["x"]
    # new rows need no weights
    new = pl.read_csv(files / "new.csv").drop("w")
    new.write_csv(files / "bare.csv")
    sigmascale("apply", out, files / "bare.csv", "-o", files / "out.csv")


def test_inputs_that_have_shifted(sigmascale, files):
    out = files / "s.json"
    options = ("--feature", "x", "--method", "temperature", "-o", out)
    to = ("--weigh-for", files / "new.csv")
    told = json.loads(sigmascale("fit", files / "cal.csv", *options, *to, "--json").out)
    error, u, x, _ = read(files, "cal")
    _, new_u, new_x, _ = read(files, "new")
    weights = ss.covariate_weights(
        np.column_stack([u, x]), np.column_stack([new_u, new_x])
    )
    expected = ss.TemperatureScaling().fit(u, error, sample_weight=weights)
    assert ss.load(out).scaling_.factor_ == pytest.approx(expected.factor_)
    assert told["weighed"]["n_effective"] == pytest.approx(weights.n_effective)
    shown = sigmascale("fit", files / "cal.csv", *options, *to).out
    assert "rows count as" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--weight", "x"), "column 'x', row 2.*negative"),
        (("--weight", "E"), "'E' .*part already"),
        (("--weight", "v"), "--weight .*'v'"),
        (("--weight", "w", "--feature", "w"), "'w' .*part already"),
        (("--weight", "w", "--weigh-for", "new.csv"), "pass it without --weight"),
    ],
)
def test_weights_that_cannot_be_are_refused(sigmascale, files, options, message):
    import re

    full = [files / each if each == "new.csv" else each for each in options]
    found = sigmascale("fit", files / "cal.csv", *full, "-o", files / "s.json")
    assert found.code == 2
    assert re.search(message, found.err.replace("\n", " "))
    assert not (files / "s.json").exists()


def test_tables_that_are_only_queried_know_weights_too(sigmascale, files):
    pl.read_csv(files / "cal.csv").write_parquet(files / "cal.parquet")
    for engine in ("polars", "memory"):
        lazy = ("--engine", engine, "--weight", "w", "-o", files / f"{engine}.json")
        sigmascale("fit", files / "cal.parquet", "--method", "isotonic", *lazy)
    found, expected = (ss.load(files / f"{each}.json") for each in ("polars", "memory"))
    u = pl.DataFrame({"u": np.linspace(1, 2, 50)})
    np.testing.assert_allclose(found.predict(u), expected.predict(u), rtol=1e-9)
    shift = ("--engine", "polars", "--weigh-for", files / "new.csv")
    refused = sigmascale("fit", files / "cal.parquet", *shift, "-o", files / "n.json")
    assert refused.code == 2
    assert refused.says("--weigh-for .*in memory")
