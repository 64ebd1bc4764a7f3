import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sigmascale as ss
from sigmascale.exceptions import UnseenCategoryWarning

PHASES = np.array(["gas", "liquid", "solid"])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    u = rng.lognormal(0, 0.5, 300)
    phase = PHASES[rng.integers(0, 3, 300)]
    phase[:4] = "plasma"
    scale = {"gas": 1, "liquid": 2, "solid": 4, "plasma": 9}
    return u, phase, rng.normal(scale=u * [scale[p] for p in phase])


def expected_factors(u, labels, error, min_size=10):
    """Return the factor of each label, and the average one, by a plain loop."""
    z2 = (error / u) ** 2
    average = np.sqrt(z2.mean())
    factors = {}
    for label in set(labels):
        of_label = [z2[i] for i in range(len(z2)) if labels[i] == label]
        enough = len(of_label) >= min_size
        factors[label] = np.sqrt(np.mean(of_label)) if enough else average
    return factors, average


@pytest.mark.parametrize("min_size", [1, 4, 5, 10])
def test_factors_are_those_of_a_plain_loop(data, min_size):
    u, phase, error = data
    factors, average = expected_factors(u, phase, error, min_size)
    X = pl.DataFrame({"u": u, "phase": phase})
    scaler = ss.CategoryScaling(by="phase", min_size=min_size).fit(X, error)
    expected = u * [factors[p] for p in phase]
    np.testing.assert_allclose(scaler.predict(X), expected, rtol=1e-12)
    assert scaler.factors_[-1] == pytest.approx(average, rel=1e-12)
    with_own = [p for p in factors if min_size <= 4 or p != "plasma"]
    assert list(scaler.categories_.labels) == sorted(with_own)
    assert scaler.sums_.n.sum() == u.size


def test_every_large_group_is_calibrated_on_the_calibration_set(data):
    u, phase, error = data
    X = pd.DataFrame({"u": u, "phase": phase})
    predicted = ss.CategoryScaling().fit(X, error).predict(X)
    for p in PHASES:
        assert ss.zms(error[phase == p], predicted[phase == p]) == pytest.approx(1)


def test_labels_never_seen_take_the_average_factor_with_a_warning_that_counts(data):
    u, phase, error = data
    scaler = ss.CategoryScaling().fit(pl.DataFrame({"u": u, "phase": phase}), error)
    factors, average = expected_factors(u, phase, error)
    new = pl.DataFrame(
        {"u": np.full(5, 2.0), "phase": ["ice", "gas", "plasma", "", "zebra"]}
    )
    message = (
        "^3 of 5 rows have a label in column 'phase' that was not seen in fit; they"
    )
    with pytest.warns(UnseenCategoryWarning, match=message):
        predicted = scaler.predict(new)
    expected = [average, factors["gas"], average, average, average]
    np.testing.assert_allclose(predicted, 2 * np.array(expected), rtol=1e-12)
    # a group that was too small was seen: no warning, the average factor
    small = scaler.predict(pl.DataFrame({"u": [1.0], "phase": ["plasma"]}))
    np.testing.assert_allclose(small, average, rtol=1e-12)


def missing_label_tables(u, phase):
    """Return tables of all kinds in which the label "liquid" is missing."""
    text = [None if p == "liquid" else str(p) for p in phase]
    number = np.select([phase == "gas", phase == "solid"], [1.0, 2.0], np.nan)
    number[phase == "plasma"] = 7
    return {
        "object array": np.array(list(zip(u, text, strict=True)), dtype=object),
        "object array with all that is missing": np.array(
            [
                (u[i], [None, pd.NA, pd.NaT, np.nan][i % 4] if p is None else p)
                for i, p in enumerate(text)
            ],
            dtype=object,
        ),
        "array of numbers": np.column_stack([u, number]),
        "pandas object": pd.DataFrame({"u": u, "p": pd.Series(text, dtype=object)}),
        "pandas string": pd.DataFrame({"u": u, "p": pd.array(text, dtype="string")}),
        "pandas category": pd.DataFrame({"u": u, "p": pd.Categorical(text)}),
        "pandas number": pd.DataFrame({"u": u, "p": number}),
        "pandas integer": pd.DataFrame(
            {"u": u, "p": pd.array(number, dtype="Float64").astype("Int64")}
        ),
        "polars": pl.DataFrame({"u": u, "p": text}),
        "polars category": pl.DataFrame(
            {"u": u, "p": pl.Series(text, dtype=pl.Categorical)}
        ),
        "pyarrow": pa.table({"u": u, "p": text}),
        "pyarrow dictionary": pa.table(
            {"u": u, "p": pa.array(text).dictionary_encode()}
        ),
    }


def test_a_missing_label_is_a_label_of_its_own_in_tables_of_all_kinds(data):
    u, phase, error = data
    factors, _ = expected_factors(u, phase, error)
    expected = u * [factors[p] for p in phase]
    for kind, table in missing_label_tables(u, phase).items():
        predicted = ss.CategoryScaling().fit(table, error).predict(table)
        np.testing.assert_allclose(predicted, expected, rtol=1e-12, err_msg=kind)


def test_a_list_of_rows_may_mix_numbers_and_text(data):
    u, phase, error = data
    factors, _ = expected_factors(u, phase, error)
    rows = [[float(a), str(b)] for a, b in zip(u, phase, strict=True)]
    as_text = np.array(rows)  # NumPy makes text of it all
    assert as_text.dtype.kind == "U"
    for table in (rows, as_text):
        predicted = ss.CategoryScaling().fit(table, error).predict(table)
        np.testing.assert_allclose(predicted, u * [factors[p] for p in phase])


def test_large_whole_numbers_are_labels_in_lists_and_columns_of_objects(data):
    u, phase, error = data
    factors, _ = expected_factors(u, phase, error)
    whole = [2**60 + sorted(set(phase)).index(p) for p in phase]
    rows = [[float(a), b] for a, b in zip(u, whole, strict=True)]
    frame = pd.DataFrame({"u": u, "x": pd.Series(whole, dtype=object)})
    for table in (rows, frame):
        predicted = ss.CategoryScaling().fit(table, error).predict(table)
        np.testing.assert_allclose(predicted, u * [factors[p] for p in phase])


def test_text_that_writes_numbers_is_the_same_label_in_tables_of_all_kinds(data):
    u, phase, error = data
    text = np.where(phase == "gas", "1", "2.50")
    rows = [[float(a), str(b)] for a, b in zip(u, text, strict=True)]
    frame = pl.DataFrame({"u": u, "label": text})
    expected = ss.CategoryScaling().fit(frame, error).predict(frame)
    for table in (rows, np.array(rows, dtype=object), frame.to_arrow()):
        scaler = ss.CategoryScaling().fit(table, error)
        assert list(scaler.categories_.labels) == ["1", "2.50"]
        np.testing.assert_array_equal(scaler.predict(table), expected)


def test_numbers_truth_values_and_dates_can_be_labels(data):
    u, phase, error = data
    solid = phase == "solid"
    factors, _ = expected_factors(u, solid, error)
    expected = u * [factors[s] for s in solid]
    days = np.where(solid, np.datetime64("2024-02-01"), np.datetime64("2024-01-01"))
    for column in (solid, np.where(solid, 1e9, -2.5), days.astype("M8[us]")):
        X = pd.DataFrame({"u": u, "label": column})
        found = ss.CategoryScaling().fit(X, error).predict(X)
        np.testing.assert_allclose(found, expected)


def test_a_number_is_not_taken_for_the_text_that_writes_it(data):
    u, phase, error = data
    text = pl.DataFrame({"u": u, "label": np.where(phase == "gas", "1", "2")})
    scaler = ss.CategoryScaling().fit(text, error)
    _, average = expected_factors(u, phase, error)
    with pytest.warns(UnseenCategoryWarning, match="^2 of 2 rows"):
        predicted = scaler.predict(pl.DataFrame({"u": [1.0, 3.0], "label": [1, 2]}))
    np.testing.assert_allclose(predicted, [average, 3 * average], rtol=1e-12)


def test_a_group_of_only_zero_errors_takes_the_average_factor(data):
    u, phase, error = data
    error = np.where(phase == "gas", 0, error)
    X = pl.DataFrame({"u": u, "phase": phase})
    predicted = ss.CategoryScaling().fit(X, error).predict(X)
    average = np.sqrt(np.mean((error / u) ** 2))
    gas = phase == "gas"
    np.testing.assert_allclose(predicted[gas], average * u[gas], rtol=1e-12)


def test_only_small_groups_leave_one_factor_for_all(data):
    u, phase, error = data
    X = pl.DataFrame({"u": u, "phase": phase})
    scaler = ss.CategoryScaling(min_size=301).fit(X, error)
    single = ss.TemperatureScaling().fit(u, error)
    np.testing.assert_allclose(scaler.factors_, [single.factor_], rtol=1e-12)
    np.testing.assert_allclose(scaler.predict(X), single.predict(u), rtol=1e-12)


def test_ten_rows_are_enough_for_a_factor_unless_said_otherwise():
    label = np.repeat(["nine", "ten", "many"], [9, 10, 30])
    X = pl.DataFrame({"u": np.ones(49), "label": label})
    scaler = ss.CategoryScaling().fit(X, np.repeat([3.0, 2.0, 1.0], [9, 10, 30]))
    assert scaler.categories_.labels == ("many", "ten")
    np.testing.assert_allclose(scaler.factors_[:2], [1, 2], rtol=1e-12)
