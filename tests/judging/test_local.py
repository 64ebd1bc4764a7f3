import json

import numpy as np
import polars as pl
import pytest

from sigmascale import local_zms
from sigmascale.exceptions import FewerBinsWarning, InvalidInputError
from sigmascale.judging.intervals import METHODS, wilson_limits
from sigmascale.judging.local import check_settings, measure
from sigmascale.predictions import as_predictions

RNG = np.random.default_rng(5)
N = 2000
U = RNG.uniform(1, 3, N)
ERROR = RNG.normal(size=N) * U
MASS = RNG.normal(size=N)
STRATA = RNG.integers(0, 5, N).astype(float)
PHASE = RNG.choice(["gas", "liquid", "solid"], N, p=[0.2, 0.3, 0.5])


def assert_same(found, expected):
    for name, value in vars(expected).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)
        elif name != "name":
            assert getattr(found, name) == value, name


# --- one variable --------------------------------------------------------------------


@pytest.mark.parametrize("by", [None, MASS])
def test_bins_hold_consecutive_values_with_their_mean_square_z(by):
    found = local_zms(ERROR, U, by=by, n_bins=7, method="moments")
    x = U if by is None else by
    bins = np.split(np.argsort(x), [286, 571, 857, 1143, 1429, 1714])
    z2 = (ERROR / U) ** 2
    np.testing.assert_allclose(found.zms, [z2[rows].mean() for rows in bins])
    np.testing.assert_array_equal(found.n, [rows.size for rows in bins])
    np.testing.assert_array_equal(found.x_min, [x[rows].min() for rows in bins])
    np.testing.assert_array_equal(found.x_max, [x[rows].max() for rows in bins])
    for middle, rows in zip(found.x, bins, strict=True):
        assert np.median(x[rows]) == pytest.approx(middle, abs=0.01)
    assert found.overall[0] == pytest.approx(z2.mean())
    assert found.overall[1] < z2.mean() < found.overall[2]
    assert not found.is_grouped


@pytest.mark.parametrize("method", METHODS)
def test_a_bin_is_valid_where_its_interval_holds_1(method):
    found = local_zms(ERROR, 1.2 * U, n_bins=40, method=method)
    np.testing.assert_array_equal(found.valid, (found.low <= 1) & (found.high >= 1))
    assert 0 < found.fraction_valid < 0.9
    assert found.fraction_valid == np.mean(found.valid)
    count = int(np.sum(found.valid))
    assert found.fraction_interval == wilson_limits(count, 40)
    assert np.all(found.low < found.zms)
    assert np.all(found.zms < found.high)
    assert found.method == method


def test_one_bin_holds_all_rows():
    found = local_zms(ERROR, U, n_bins=1, method="moments")
    assert found.n.tolist() == [N]
    np.testing.assert_allclose(
        [found.zms[0], found.low[0], found.high[0]], found.overall
    )


def test_confidence_widens_bins_overall_and_fraction_alike():
    narrow, wide = (
        local_zms(ERROR, 1.1 * U, n_bins=20, confidence=c, method="moments")
        for c in (0.5, 0.99)
    )
    assert np.all(wide.low < narrow.low)
    assert np.all(narrow.high < wide.high)
    assert wide.overall[1] < narrow.overall[1]
    assert narrow.overall[2] < wide.overall[2]
    assert wide.fraction_valid > narrow.fraction_valid
    count = int(np.sum(wide.valid))
    assert wide.fraction_interval == wilson_limits(count, 20, 0.99)


def test_strata_are_cut_by_ties_and_by_u_unless_told_otherwise():
    by_u = local_zms(ERROR, U, by=STRATA, n_bins=20, method="student")
    assert_same(
        local_zms(ERROR, U, by=STRATA, n_bins=20, method="student", ties=U), by_u
    )
    z2 = (ERROR / U) ** 2
    for ties, found in (
        (U, by_u),
        (MASS, local_zms(ERROR, U, by=STRATA, n_bins=20, method="student", ties=MASS)),
    ):
        bins = np.array_split(np.lexsort((ties, STRATA)), 20)
        np.testing.assert_allclose(found.zms, [z2[rows].mean() for rows in bins])


def test_fewer_bins_are_made_where_one_would_have_under_5_rows():
    with pytest.warns(
        FewerBinsWarning, match="100 bins .* 42 rows give at most 8 of 5"
    ):
        found = local_zms(ERROR[:42], U[:42], n_bins=100)
    assert found.n.tolist() == [5, 6, 5, 5, 5, 6, 5, 5]


def test_two_rows_make_one_bin():
    found = local_zms([1.0, 2.0], [1.0, 1.0])
    assert found.zms.tolist() == [2.5]
    assert 1 <= found.low[0] <= 2.5 <= found.high[0] <= 4


def test_the_scale_of_errors_and_uncertainties_does_not_matter():
    found = local_zms(ERROR, U, by=MASS, n_bins=20)
    # a power of 2 leaves every bit of z in its place
    assert_same(local_zms(ERROR / 1024, U / 1024, by=MASS, n_bins=20), found)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by", [None, MASS, STRATA, PHASE])
def test_the_order_of_rows_does_not_matter(by, method):
    # rounded, so that there are ties in everything
    error, u = np.round(ERROR, 1), np.round(U)
    place = np.random.default_rng(0).permutation(N)
    again = local_zms(
        error[place],
        u[place],
        by=None if by is None else by[place],
        n_bins=30,
        method=method,
    )
    found = local_zms(error, u, by=by, n_bins=30, method=method)
    for name in ("zms", "low", "high"):
        np.testing.assert_allclose(
            getattr(again, name), getattr(found, name), rtol=1e-9
        )
    np.testing.assert_array_equal(again.valid, found.valid)


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_matters_to_the_bootstrap_and_to_nothing_else(method):
    first, again, other = (
        local_zms(ERROR, U, n_bins=20, method=method, rng=seed) for seed in (0, 0, 1)
    )
    assert_same(again, first)
    resampled = method in ("bca", "bootstrap-t")
    assert np.any(first.low != other.low) == resampled
    np.testing.assert_array_equal(first.zms, other.zms)


def test_more_resamples_change_the_bootstrap_a_little():
    few, many = (local_zms(ERROR, U, n_bins=20, n_resamples=n) for n in (1500, 15_000))
    width = many.high - many.low
    assert 0 < np.max(np.abs(few.low - many.low) / width) < 0.15


def test_all_zero_errors_in_a_bin_are_invalid_and_finite():
    error = np.where(U < 1.2, 0.0, ERROR)
    for method in METHODS:
        found = local_zms(error, U, n_bins=20, method=method)
        assert (found.zms[0], found.low[0], found.high[0]) == (0, 0, 0)
        assert not found.valid[0]
        assert np.all(np.isfinite(found.high))


# --- groups --------------------------------------------------------------------------


def test_labels_make_one_bin_each():
    found = local_zms(ERROR, U, by=PHASE, method="moments")
    z2 = (ERROR / U) ** 2
    labels = ["gas", "liquid", "solid"]
    for column in (found.x, found.x_min, found.x_max):
        assert column.tolist() == labels
    np.testing.assert_allclose(
        found.zms, [z2[label == PHASE].mean() for label in labels]
    )
    np.testing.assert_array_equal(found.n, [np.sum(label == PHASE) for label in labels])
    assert found.is_grouped
    assert "liquid" in str(found)


def test_groups_of_under_5_rows_are_not_judged():
    # an interval from one row has no width, and would call honest groups invalid
    labels = np.array([f"g{i // 4 if i < 12 else 100}" for i in range(N)])
    with pytest.warns(
        FewerBinsWarning, match="3 of 4 groups of `by` have fewer than 5 rows"
    ):
        found = local_zms(ERROR, U, by=labels, method="moments")
    assert found.x.tolist() == ["g100"]
    assert found.n.tolist() == [N - 12]
    assert found.zms[0] == pytest.approx(np.mean((ERROR / U)[12:] ** 2))
    assert found.overall[0] == pytest.approx(np.mean((ERROR / U) ** 2))


def test_groups_that_are_all_small_are_refused():
    labels = np.array([f"g{i // 4}" for i in range(N)])
    with pytest.raises(
        InvalidInputError,
        match=r"`by` must have a label with at least 5 .* of 500 groups has 4\. Merge",
    ):
        local_zms(ERROR, U, by=labels)


# --- several variables ---------------------------------------------------------------


def by_variable(features, *, n_bins, method="bca", ties=None, rng=0, **others):
    settings = check_settings(n_bins, method, **others)
    rows = as_predictions(ERROR, U, features)
    return measure(rows, settings, np.random.default_rng(rng), ties=ties).local


def test_variables_are_answered_by_name_as_one_by_one():
    features = {"mass": MASS, "phase": PHASE}
    found = by_variable(features, n_bins=20, method="moments")
    assert list(found) == ["u", "mass", "phase"]
    for name, by in (("u", None), ("mass", MASS), ("phase", PHASE)):
        assert found[name].name == name
        expected = local_zms(ERROR, U, by=by, n_bins=20, method="moments")
        assert_same(found[name], expected)


def test_features_come_as_a_dict_a_data_frame_or_an_array():
    named = {"X1": MASS, "X2": STRATA}
    expected = by_variable(named, n_bins=20)
    for features in (np.column_stack([MASS, STRATA]), pl.DataFrame(named)):
        found = by_variable(features, n_bins=20)
        assert list(found) == ["u", "X1", "X2"]
        for name, local in found.items():
            assert_same(local, expected[name])


def test_a_warning_about_too_many_bins_is_said_once_for_all_variables():
    with pytest.warns(FewerBinsWarning, match="401 bins were asked for") as caught:
        by_variable({"mass": MASS, "strata": STRATA}, n_bins=401, method="moments")
    assert len(caught) == 1


@pytest.mark.parametrize(
    "arguments", [{"rng": 3}, {"n_resamples": 200}, {"confidence": 0.9}, {"ties": MASS}]
)
def test_arguments_reach_every_variable(arguments):
    arguments = {"method": "moments" if "ties" in arguments else "bca", **arguments}
    by_name = {"strata": STRATA}
    found = by_variable(by_name, n_bins=20, **arguments)
    plain = by_variable(by_name, n_bins=20, method=arguments["method"])
    assert np.any(found["strata"].low != plain["strata"].low)
    assert_same(found["u"], local_zms(ERROR, U, n_bins=20, **arguments))


# --- what is reported ----------------------------------------------------------------


def test_local_results_print_and_serialise():
    found = local_zms(ERROR, U, n_bins=20)
    table = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert table["zms"] == found.zms.tolist()
    assert table["valid"] == found.valid.tolist()
    lines = str(found).splitlines()
    assert lines[0].split() == ["u", "from", "rows", "<Z²>", "interval", "valid"]
    assert len(lines) == 22
    assert lines[2].split()[1:3] == ["100", f"{found.zms[0]:.3f}"]
    assert found._repr_html_().count("<tr>") == 21
    assert "fraction_valid=" in repr(found)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (
            {"method": "magic"},
            '`method` must be one of "bca", "bootstrap-t", "student"',
        ),
        ({"n_bins": 0}, "`n_bins` must be at least 1; found 0"),
        ({"n_resamples": 5}, "`n_resamples` must be at least 20; found 5"),
        ({"confidence": 0}, "`confidence` must lie strictly between 0 and 1; found 0"),
        ({"ties": MASS[:5]}, "`error` and `ties` must have the same number of rows"),
        ({"ties": PHASE}, "`ties` must hold numbers; row 0 is"),
        ({"rng": 0.5}, "`rng` must be a seed"),
    ],
)
def test_wrong_arguments_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        local_zms(ERROR, U, **arguments)


def test_one_row_and_bad_rows_are_refused():
    with pytest.raises(InvalidInputError, match="An interval needs at least 2 rows"):
        local_zms([1.0], [1.0])
    with pytest.raises(InvalidInputError, match=r"first at row 1: nan"):
        local_zms([1.0, np.nan], [1.0, 1.0])
    with pytest.raises(
        InvalidInputError, match="`uncertainty` must be strictly positive"
    ):
        local_zms([1.0, 1.0], [1.0, 0.0])


def test_a_variable_with_gaps_or_another_length_is_refused():
    with pytest.raises(InvalidInputError, match=r"`by` must be finite.* 1 of 2000 "):
        local_zms(ERROR, U, by=np.where(np.arange(N) == 3, np.nan, MASS))
    with pytest.raises(InvalidInputError, match="`by` must have the same number"):
        local_zms(ERROR, U, by=MASS[:7])
