"""Several targets of wide lazy frames."""

import duckdb
import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.persistence import load_maps

NAMES = ["a", "b", "c"]
ERRORS, UNCERTAINTIES = ["E_a", "E_b", "E_c"], ["u_a", "u_b", "u_c"]


def make(n=600):
    rng = np.random.default_rng(0)
    u, x = rng.lognormal(0, 0.5, (n, 3)), rng.random(n)
    error = rng.normal(scale=np.hypot(u, [0.1, 0.5, 0.5]) * (1 + x[:, None]))
    error[n // 10 :, 2] = np.nan
    return pl.DataFrame(
        {
            **dict(zip(ERRORS, error.T, strict=True)),
            **dict(zip(UNCERTAINTIES, u.T, strict=True)),
            "x": x,
        },
        nan_to_null=True,
    )


def engines(frame):
    yield frame.lazy()
    yield duckdb.table("frame")


def collected(lazy):
    return lazy.pl() if hasattr(lazy, "pl") else lazy.collect()


@pytest.mark.parametrize(
    "template", [ss.LinearScaling(), ss.BinwiseScaling(3, by="x")], ids=["linear", "x"]
)
def test_lazy_frames_get_a_column_for_each_target(template, tmp_path):
    frame = make()
    X, y = frame.select(*UNCERTAINTIES, "x"), frame.select(*ERRORS)
    targets = ss.RecalibratedTargets(template, names=NAMES).fit(X, y)
    path = tmp_path / "targets.json"
    ss.save(targets, path)
    expected = targets.predict(X)
    for lazy in engines(frame):
        for scaler in (targets, load_maps(path)):
            found = collected(ss.frames.predict(scaler, lazy))
            new = [f"{u}_recalibrated" for u in UNCERTAINTIES]
            assert found.columns == [*frame.columns, *new]
            np.testing.assert_allclose(found.select(new), expected, rtol=1e-12)


def test_what_is_missing_stays_so_and_columns_can_have_other_names():
    frame = make()
    targets = ss.RecalibratedTargets(names=NAMES)
    u, error = (frame.select(n).to_numpy() for n in (UNCERTAINTIES, ERRORS))
    targets.fit(u, error)
    renamed = pl.DataFrame({"s_c": u[:, 2], "s_a": u[:, 0], "s_b": u[:, 1]})
    renamed = renamed.with_columns(
        pl.when(pl.int_range(pl.len()) == 1).then(None).otherwise("s_b").alias("s_b")
    )
    columns = ["s_a", "s_b", "s_c"]
    for lazy in engines(renamed):
        found = collected(
            ss.frames.predict(targets, lazy, uncertainty=columns, name="new_*")
        )
        new = found.select("new_a", "new_b", "new_c").to_numpy()
        assert np.isnan(new[1, 1])
        expected = targets.predict(renamed.select(columns).to_numpy())
        np.testing.assert_allclose(new, expected, rtol=1e-12)
    # without names, the first columns are the uncertainties
    first = collected(ss.frames.predict(targets, renamed.select(columns).lazy()))
    np.testing.assert_allclose(first[:, 3:], expected, rtol=1e-12)


def test_wide_frames_are_fitted_lazily():
    frame = make()
    columns = {"error": ERRORS, "uncertainty": UNCERTAINTIES, "features": ["x"]}
    X, y = frame.select(*UNCERTAINTIES, "x"), frame.select(*ERRORS)
    found = []
    for lazy in engines(frame):
        targets = ss.RecalibratedTargets(names=NAMES)
        assert ss.frames.fit(targets, lazy, **columns) is targets
        assert [s.n_samples_fit_ for s in targets.recalibrators_.values()] == [
            600,
            600,
            60,
        ]
        found.append(targets.predict(X))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    # entries are independent, as those of a long table are
    row, k = np.nonzero(~np.isnan(y.to_numpy()))
    table = pl.DataFrame(
        {"u": X.to_numpy()[row, k], "x": X["x"].to_numpy()[row], "t": k.astype(str)}
    )
    long = ss.RecalibratedTargets(by="t").fit(table, y.to_numpy()[row, k])
    np.testing.assert_allclose(found[0][row, k], long.predict(table), rtol=1e-9)
    sampled = ss.RecalibratedTargets(names=NAMES)
    ss.frames.fit(sampled, frame.lazy(), **columns, sample=600)
    assert "sample of" in sampled.recalibrators_["a"].describe()
    z2 = (y.to_numpy() / sampled.predict(X)) ** 2
    np.testing.assert_allclose(np.nanmean(z2, axis=0), 1.0, atol=0.3)


def test_frames_that_do_not_fit_are_refused():
    frame = make()
    targets = ss.RecalibratedTargets(names=NAMES)
    with pytest.raises(InvalidInputError, match="must be wide"):
        ss.frames.fit(targets, frame.lazy(), error=["E_a"], uncertainty=["u_a", "u_b"])
    with pytest.raises(InvalidInputError, match="there is no 'E'"):
        ss.frames.fit(
            targets, frame.lazy(), error=["E", "E_b", "E_c"], uncertainty=UNCERTAINTIES
        )
    with pytest.raises(InvalidInputError, match="lists of them are for"):
        ss.frames.fit(
            ss.LinearScaling(), frame.lazy(), error=ERRORS, uncertainty=UNCERTAINTIES
        )
    targets.fit(frame.select(UNCERTAINTIES), frame.select(ERRORS))
    with pytest.raises(InvalidInputError, match="must have a star"):
        ss.frames.predict(targets, frame.lazy(), name="new")
    with pytest.raises(InvalidInputError, match="a list of 3 columns"):
        ss.frames.predict(targets, frame.lazy(), uncertainty="u_a")
    one = ss.TemperatureScaling().fit([1.0, 2.0], [2.0, 1.0])
    with pytest.raises(InvalidInputError, match="lists are for several targets"):
        ss.frames.predict(one, frame.lazy(), uncertainty=["u_a"])
    table = pl.DataFrame({"u": [1.0, 2.0] * 10, "t": ["a", "b"] * 10})
    long = ss.RecalibratedTargets(by="t").fit(table, np.arange(20) - 9.5)
    with pytest.raises(InvalidInputError, match="of a long table"):
        ss.frames.predict(long, table.lazy())
