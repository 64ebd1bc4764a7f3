"""Scalings: what each learns, and what all of them promise."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.isotonic import isotonic_regression

import sigmascale as ss
from sigmascale.exceptions import FewerBinsWarning, InvalidInputError
from sigmascale.recalibration.additive import Additive
from sigmascale.recalibration.scalings import SCALINGS, Learned

pytestmark = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.DegenerateFitWarning",
    "ignore::sigmascale.exceptions.FewerBinsWarning",
)


def rows(n=600, seed=0, **more):
    """Return rows whose u is wrong by u, by a number and by a label."""
    rng = np.random.default_rng(seed)
    u, mass = rng.lognormal(0, 0.5, n), rng.uniform(10, 100, n)
    kind = rng.choice(["alloy", "oxide", "salt"], n)
    true = 1.4 * u * np.where(kind == "alloy", 1.8, 1.0) * np.where(mass > 70, 1.5, 1)
    features = {"mass": mass, "kind": kind}
    return ss.Predictions(
        y_std=u, error=rng.normal(scale=true), features=features, **more
    )


def scale_of(scaling, p, new=None):
    return scaling.learn(p).map.of_rows(p if new is None else new)


def every():
    """Return all scalings, by name, and those of other columns than u."""
    found = {name: scaling() for name, scaling in SCALINGS.items()}
    found["by a number"] = ss.BinwiseScaling(10, by="mass")
    found["by a category"] = ss.BinwiseScaling(by="kind")
    found["by a pair"] = ss.BinwiseScaling((6, 4), by=("u", "mass"))
    found["raked on a line"] = ss.RakedScaling(base="linear")
    return found


# -- what all of them promise ----------------------------------------------------------


def test_scales_are_right_on_average_and_better_than_raw_for_other_rows():
    p, new = rows(3000), rows(3000, seed=1)
    for name, scaling in every().items():
        z2 = new.squared_error / scale_of(scaling, p, new) ** 2
        assert 0.85 < z2.mean() < 1.2, name


def test_scales_are_positive_and_finite_wherever_new_rows_are():
    p = rows()
    u = np.geomspace(1e-60, 1e60, 40)
    mass = np.resize([-1e30, 0, 55.5, 1e30], 40)
    kind = np.resize(["alloy", "never seen", "salt"], 40)
    new = ss.Predictions(y_std=u, features={"mass": mass, "kind": kind})
    for name, scaling in every().items():
        found = scale_of(scaling, p, new)
        assert np.isfinite(found).all(), name
        assert (found > 0).all(), name


def test_few_rows_equal_uncertainties_and_zero_errors_do_no_harm():
    rng = np.random.default_rng(3)
    sets = {
        "one row": (np.ones(1), np.array([2.0])),
        "three rows": (np.array([1.0, 2.0, 3.0]), np.array([1.0, -1.0, 0.5])),
        "equal u": (np.full(200, 0.5), rng.normal(size=200)),
        "half of the errors 0": (
            rng.lognormal(size=300),
            rng.normal(size=300) * (np.arange(300) % 2),
        ),
    }
    for scaling in SCALINGS.values():
        for name, (u, error) in sets.items():
            p = ss.Predictions(y_std=u, error=error)
            found = scale_of(scaling(), p)
            assert np.isfinite(found).all(), name
            assert (found > 0).all(), name
            assert found.max() < 100 * np.abs(error).max(), name


def test_scalings_are_estimators_with_parameters():
    for name, scaling in every().items():
        again = clone(scaling)
        assert again.get_params() == scaling.get_params(), name
        np.testing.assert_array_equal(
            scale_of(again, rows()), scale_of(scaling, rows())
        )


def test_scales_out_of_fold_belong_to_their_rows():
    p = rows(1000)
    for name in ("boosted", "raked"):
        learned = SCALINGS[name]().learn(p)
        ratio = np.log(learned.out_of_fold / learned.map.of_rows(p))
        assert 0 < np.abs(ratio).max() < 1.5, name
        assert np.mean(p.squared_error / learned.out_of_fold**2) == pytest.approx(
            1, abs=0.05
        )


# -- what each of them learns ----------------------------------------------------------


def test_temperature_scaling_has_one_factor():
    p = rows()
    found = scale_of(ss.TemperatureScaling(), p)
    np.testing.assert_allclose(found / p.y_std, np.sqrt(np.mean(p.z2)), 1e-12)


def test_binwise_scaling_makes_every_bin_right():
    p = rows(1000)
    found = scale_of(ss.BinwiseScaling(20, prior_rows=0), p)
    z2 = np.sort(p.y_std).searchsorted(p.y_std) // 50
    of_bins = np.bincount(z2, p.squared_error / found**2) / 50
    np.testing.assert_allclose(of_bins, 1, 1e-10)
    by_kind = scale_of(ss.BinwiseScaling(by="kind", prior_rows=0), p)
    for kind in ("alloy", "oxide", "salt"):
        own = p.features["kind"] == kind
        assert np.mean(p.squared_error[own] / by_kind[own] ** 2) == pytest.approx(
            1, rel=1e-10
        )


def test_fewer_bins_than_were_asked_for_are_told():
    p = ss.Predictions(y_std=np.repeat([1.0, 2.0, 3.0], 100), error=np.ones(300))
    with pytest.warns(FewerBinsWarning, match=r"40 bins of 'u'.* make 3"):
        ss.BinwiseScaling(40).learn(p)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ss.BinwiseScaling(3).learn(p)


def test_bins_of_few_rows_are_filled_up_with_average_ones():
    u = np.repeat([1.0, 2.0], [10, 90])
    error = np.repeat([3.0, 2.0], [10, 90])
    p = ss.Predictions(
        y_std=u, error=error, features={"k": np.repeat(["a", "b"], [10, 90])}
    )
    average = (10 * 9 + 90 * 1) / 100
    scaling = ss.BinwiseScaling(by="k", prior_rows=30)
    factor = scale_of(scaling, p) / u
    assert factor[0] ** 2 == pytest.approx((10 * 9 + 20 * average) / 30)
    assert factor[-1] ** 2 == pytest.approx(1)


def test_a_bin_whose_errors_are_all_0_gets_the_average_factor():
    kind = np.repeat(["a", "b"], 60)
    error = np.where(kind == "a", 0.0, 3.0)
    p = ss.Predictions(y_std=np.ones(120), error=error, features={"k": kind})
    factor = scale_of(ss.BinwiseScaling(by="k"), p)
    np.testing.assert_allclose(factor**2, np.where(kind == "a", 4.5, 9.0))


def test_equal_values_of_a_feature_are_parted_by_u():
    rng = np.random.default_rng(4)
    shells = rng.integers(0, 4, 400).astype(float)
    u = rng.lognormal(size=400)
    p = ss.Predictions(y_std=u, error=rng.normal(scale=u), features={"shells": shells})
    found = scale_of(ss.BinwiseScaling(40, by="shells", prior_rows=0), p)
    assert np.unique((found / u).round(9)).size == 40


def test_a_new_label_and_a_missing_value_get_the_average_factor():
    p = rows()
    average = np.sqrt(np.mean(p.z2))
    new = ss.Predictions(y_std=[2.0], features={"mass": [50.0], "kind": ["never seen"]})
    found = scale_of(ss.BinwiseScaling(by="kind"), p, new)
    assert found[0] == pytest.approx(2 * average)


def test_what_cannot_be_binned_is_refused_by_name():
    with pytest.raises(InvalidInputError, match="mass, kind"):
        ss.BinwiseScaling(by="weight").learn(rows())
    with pytest.raises(InvalidInputError, match="n_bins"):
        ss.BinwiseScaling(0).learn(rows())


def test_linear_scaling_finds_the_line_that_made_the_errors():
    rng = np.random.default_rng(5)
    u = rng.uniform(0.2, 3, 40_000)
    for b2 in (0.8**2, -(0.15**2)):
        e = rng.normal(scale=np.sqrt((1.3 * u) ** 2 + b2))
        base = ss.LinearScaling().learn(ss.Predictions(y_std=u, error=e)).map.base
        assert base.a == pytest.approx(1.3, rel=0.02)
        assert np.sign(base.b) * base.b**2 == pytest.approx(b2, abs=0.03)


def test_isotonic_scaling_is_that_of_scikit_learn_without_prior_rows():
    p = rows(500)
    found = scale_of(ss.IsotonicScaling(prior_rows=0), p)
    order = np.argsort(p.y_std)
    expected = isotonic_regression(p.squared_error[order])
    expected = np.maximum(expected, expected[expected > 0].min())
    np.testing.assert_allclose(found[order] ** 2, expected, 1e-10)
    assert (np.diff(scale_of(ss.IsotonicScaling(), p)[order]) >= 0).all()


def test_raked_scaling_makes_the_bins_of_all_columns_right_at_once():
    p = rows(4000)
    learned = ss.RakedScaling(5, prior_rows=0).learn(p)
    z2 = p.squared_error / learned.map.of_rows(p) ** 2
    level = z2.mean()
    for axis in learned.map.axes:
        columns = [*p.columns[:2], p.labels("kind")]
        codes = axis.codes(columns)
        means = np.bincount(codes, z2)[1:] / np.bincount(codes)[1:]
        np.testing.assert_allclose(means / level, 1, 0.01)  # the largest z² are capped


def test_of_very_many_columns_those_that_tell_most_are_raked():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(800, 24))
    factor = np.where(x[:, 23] > 0, 3.0, 1.0)
    p = ss.Predictions(
        y_std=np.ones(800), error=factor * rng.normal(size=800), features=x
    )
    found = scale_of(ss.RakedScaling(4), p)
    assert np.median(found[factor == 3]) > 1.8 * np.median(found[factor == 1])


def test_boosted_scaling_finds_what_two_columns_do_together():
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (6000, 3))
    factor = 2.0 ** np.sign(x[:, 0] * x[:, 1])
    u = np.ones(6000)
    p = ss.Predictions(y_std=u, error=rng.normal(scale=factor), features=x)
    found = scale_of(ss.BoostedScaling(), p)
    assert np.sqrt(np.mean(np.log(found / factor) ** 2)) < 0.2
    assert np.sqrt(np.mean(np.log(factor) ** 2)) > 0.69


def test_the_largest_uncertainties_are_right_where_errors_follow_a_power_of_u():
    rng = np.random.default_rng(12)
    u, new_u = rng.lognormal(0, 0.7, (2, 20_000))
    p = ss.Predictions(y_std=u, error=rng.normal(scale=u**1.6))
    new = ss.Predictions(y_std=new_u, error=rng.normal(scale=new_u**1.6))
    r = ss.Recalibrator().fit(p)
    assert "(u/u₀)^p" in r.describe()
    z2 = r.apply(new).z2
    assert z2[np.argsort(new_u)[-200:]].mean() == pytest.approx(1, abs=0.3)
    # far beyond all rows, it is a multiple of the line
    farther = r.predict(10 * u.max() * np.array([[1.0], [2.0]]))
    assert farther[1] / farther[0] == pytest.approx(2, rel=1e-3)


def test_the_line_stays_where_errors_follow_it_or_a_few_of_them_decide():
    rng = np.random.default_rng(13)
    u = rng.lognormal(0, 0.7, 5000)
    error = rng.normal(scale=np.hypot(u, 0.3))
    outliers = error.copy()
    outliers[np.argsort(u)[-3:]] *= 50
    for each in (error, outliers):
        learned = ss.BoostedScaling().learn(ss.Predictions(y_std=u, error=each))
        assert learned.map.base.power == 0


def test_boosted_scaling_learns_nothing_where_there_is_nothing():
    rng = np.random.default_rng(7)
    u = rng.lognormal(size=500)
    p = ss.Predictions(
        y_std=u, error=rng.normal(scale=u), features=rng.normal(size=(500, 5))
    )
    found = scale_of(ss.BoostedScaling(), p)
    assert np.abs(np.log(found / u)).max() < 0.35


def test_labels_are_right_beside_enormous_errors_of_no_weight():
    rng = np.random.default_rng(0)
    kind = np.repeat(["a", "b", "noise"], 400)
    factor, weights = np.repeat([[1.0, 3.0, 60.0], [1.0, 1.0, 1e-3]], 400, axis=1)
    error = factor * rng.normal(size=1200)
    columns = {"y_std": np.ones(1200), "features": {"kind": kind}}
    p = ss.Predictions(**columns, error=error, weights=weights)
    found = scale_of(ss.BoostedScaling(), p)
    for label in ("a", "b"):
        own = kind == label
        rms = np.sqrt(np.mean(error[own] ** 2))
        assert found[own][0] == pytest.approx(rms, rel=0.06)


def test_scales_out_of_fold_are_right_for_rare_labels():
    rng = np.random.default_rng(0)
    is_rare, u = np.arange(1500) % 12 == 0, rng.lognormal(size=1500)
    error = u * rng.normal(size=1500) * np.where(is_rare, 6.0, 1.0)
    p = ss.Predictions(y_std=u, error=error, features={"rare": is_rare})
    out_of_fold = ss.BoostedScaling().learn(p).out_of_fold
    assert np.mean(p.squared_error[is_rare] / out_of_fold[is_rare] ** 2) < 1.35


def test_bins_of_quantiles_hold_equal_weights():
    rng = np.random.default_rng(0)
    x = rng.random(4000)
    p = ss.Predictions(
        y_std=np.ones(4000),
        error=rng.normal(size=4000) * np.where(x > 0.95, 3.0, 1.0),
        features={"x": x},
        weights=np.where(x > 0.9, 9.0, 1.0),  # half of all
    )
    (axis,) = (a for a in ss.RakedScaling().learn(p).map.axes if a.column == 1)
    assert np.mean(axis.edges > 0.9) == pytest.approx(0.5, abs=0.1)


def test_thresholds_lie_between_values():
    rng = np.random.default_rng(8)
    x = np.round(rng.uniform(0, 1, 2000), 1)
    u = np.ones(2000)
    p = ss.Predictions(
        y_std=u,
        error=rng.normal(scale=1 + x),
        features={"x": x, "y": rng.normal(size=2000)},
    )
    moved = ss.Predictions(
        y_std=u, features={"x": np.nextafter(x, 2), "y": p.features["y"]}
    )
    for name in ("boosted", "raked"):
        learned = SCALINGS[name]().learn(p).map
        np.testing.assert_array_equal(learned.of_rows(moved), learned.of_rows(p))


def test_missing_values_of_features_are_learned_from():
    rng = np.random.default_rng(9)
    x = rng.normal(size=3000)
    x[rng.random(3000) < 0.3] = np.nan
    scale = np.where(np.isnan(x), 3.0, 1.0)
    p = ss.Predictions(
        y_std=np.ones(3000), error=rng.normal(scale=scale), features={"x": x}
    )
    for name in ("boosted", "raked"):
        found = scale_of(SCALINGS[name](), p)
        assert found[np.isnan(x)].mean() > 2 * found[~np.isnan(x)].mean(), name


def test_warnings_of_few_rows_name_the_line_that_fits():
    recalibrator = ss.Recalibrator(ss.BinwiseScaling(60))
    with pytest.warns(FewerBinsWarning) as caught:
        recalibrator.fit(rows(50))
    assert len(caught) == 2  # of bins that cannot be made, and of thin ones
    assert {warning.filename for warning in caught} == {__file__}


def test_a_column_that_nobody_knows_tells_nothing():
    rng = np.random.default_rng(4)
    u, n = rng.lognormal(size=200), 200
    error = u * rng.normal(size=n)
    columns = {
        "missing": np.full(n, np.nan),
        "known once": np.where(np.arange(n) == 7, 1.0, np.nan),
        "no label": np.full(n, None),
        "one label": np.where(np.arange(n) == 7, "a", None),
        "constant": np.ones(n),
    }
    plain = ss.Predictions(y_std=u, error=error)
    for name, x in columns.items():
        p = ss.Predictions(y_std=u, error=error, features={"x": x})
        for scaling in SCALINGS:
            found, wanted = (
                ss.Recalibrator(SCALINGS[scaling](), bias="auto").fit(q).predict(q)
                for q in (p, plain)
            )
            np.testing.assert_allclose(found, wanted, rtol=0.1, err_msg=name)


# -- one of your own -------------------------------------------------------------------


class MedianScaling(ss.Scaling):
    """Multiply all uncertainties by one robust factor."""

    def learn(self, rows):
        factor = np.median(rows.abs_z) / 0.6745
        return Learned(Additive(constant=float(np.log(factor))))


def test_one_class_with_learn_saves_exports_and_runs_in_a_lazy_frame(tmp_path):
    import onnxruntime
    import polars as pl

    p = rows()
    r = ss.Recalibrator(MedianScaling()).fit(p)
    expected = r.apply(p).distributions.quantile([0.05])[:, 0]
    r.save(tmp_path / "r.json")
    again = ss.load(tmp_path / "r.json").apply(p).distributions.quantile([0.05])[:, 0]
    np.testing.assert_allclose(again, expected, 1e-12)
    ss.export.to_onnx(r, tmp_path / "r.onnx", quantiles=[0.05])
    session = onnxruntime.InferenceSession(tmp_path / "r.onnx")
    given = dict(zip(p.names, (p.y_std, *p.features.values()), strict=True))
    given["y_pred"] = np.zeros(len(p))
    named = {each.name: given[each.name] for each in session.get_inputs()}
    found = session.run(None, named)
    assert any(np.allclose(x, expected, 1e-10) for x in found)
    frame = pl.LazyFrame({"u": p.y_std, **p.features})
    new = ss.frames.apply(r, frame, y_std="u", quantiles=[0.05]).collect()
    np.testing.assert_allclose(new["u_recalibrated_q0.05"], expected, 1e-10)
