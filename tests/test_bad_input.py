"""Every public function and estimator against bad input: a table of both.

The answer is the right result, or an error that names argument, row and remedy.
"""

import dataclasses
import inspect
import math
import reprlib
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError, NotANumberError
from sigmascale.scaling import scalers

SCALERS = tuple(scalers().values())

N = 60
RNG = np.random.default_rng(0)
U = RNG.lognormal(0, 0.5, N)
E = RNG.normal(scale=U)
X1 = RNG.normal(size=N)
LABEL = np.arange(N) % 4.0

own_warnings_are_fine = pytest.mark.filterwarnings(
    *(
        f"ignore::sigmascale.exceptions.{name}"
        for name, each in vars(ss.exceptions).items()
        if inspect.isclass(each) and issubclass(each, UserWarning)
    ),
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


def feature_of(u):
    return {"x": np.arange(len(u)) % 7.0} if np.ndim(u) == 1 else None


# Functions of errors and uncertainties, quick ones.
OF_PAIRS = {
    "zms": ss.zms,
    "nll": ss.nll,
    "calibration_error": ss.calibration_error,
    "local_calibration_error": lambda e, u: ss.local_calibration_error(e, u, n_bins=5),
    "ence": lambda e, u: ss.ence(e, u, n_bins=5),
    "uce": lambda e, u: ss.uce(e, u, n_bins=5),
    "scorecard": lambda e, u: ss.scorecard(e, u, feature_of(u), n_bins=5),
    "local_zms": lambda e, u: ss.local_zms(e, u, n_bins=5, n_resamples=30),
    "validate": lambda e, u: ss.validate(
        e, u, feature_of(u), n_bins=5, n_resamples=30, n_draws=40
    ),
    "reference_scores": lambda e, u: ss.reference_scores(
        u, error=e, n_draws=4, n_bins=5, distribution="empirical"
    ),
    "confidence_curve": lambda e, u: ss.confidence_curve(e, u, n_draws=4),
    "crps": ss.crps,
    "calibration_curve": ss.calibration_curve,
    "pit_histogram": ss.pit_histogram,
    "reliability_diagram": ss.reliability_diagram,
    "distribution_scores": ss.distribution_scores,
    "miscalibration_area": ss.miscalibration_area,
    "adversarial_group_calibration": lambda e, u: ss.adversarial_group_calibration(
        e, u, n_sizes=2, n_trials=2
    ),
    "local_coverage": lambda e, u: ss.local_coverage(
        e, u, ss.normal_interval(u), n_bins=5
    ),
    "coverage_at_95": ss.coverage_at_95,
    "relative_calibration_error": lambda e, u: ss.relative_calibration_error(
        e, u, n_resamples=20
    ),
    "tails": lambda e, u: ss.tails(e, u, n_resamples=20, n_draws=4),
}
# Functions of sets (X, y), quick ones.
OF_SETS = {
    "compare": lambda X, y: ss.compare(
        [ss.TemperatureScaling()], (X, y), (X, y), n_bins=5, method="moments"
    ),
    "scan_bins": lambda X, y: ss.scan_bins(
        (X, y), (X, y), n_bins=(1, 3), score_bins=5, method="moments", n_draws=4
    ),
    "choose_n_bins": lambda X, y: ss.choose_n_bins(X, y, n_bins=(1, 3)),
}
QUICK = {
    ss.BinwiseScaling: {"n_bins": 5},
    ss.RakedScaling: {"n_bins": 5, "shrinkage": 10.0},
    ss.BoostedScaling: {"max_trees": 3, "n_folds": 2},
    ss.SelectedScaling: {"candidates": {"one": ss.TemperatureScaling()}, "n_folds": 2},
}
ESTIMATORS = {
    Scaler.__name__: lambda X, y, Scaler=Scaler: (
        Scaler(**QUICK.get(Scaler, {})).fit(X, y).predict(X)
    )
    for Scaler in SCALERS
}
ESTIMATORS["Recalibrator"] = lambda X, y: (
    ss.Recalibrator(ss.LinearScaling(), shift="constant").fit(X, y).predict(X)
)
OF_TABLES = {**OF_SETS, **ESTIMATORS}


def test_the_tables_name_everything_public_that_takes_data():
    # `load` and `save` take files: tests/test_persistence.py
    # of intervals, or of u alone: tests/test_coverage.py, tests/test_metrics.py
    others = {"picp", "interval_scores"}
    others |= {"normal_interval", "sharpness", "load", "save"}
    others |= {"RecalibratedRegressor"}  # takes what its regressor takes
    others |= {"Predictions", "rows_needed"}  # tests/predictions, tests/judging
    others |= {"Distributions"}  # tests/test_distributions.py
    # of tables with gaps: tests/targets
    others |= {"RecalibratedTargets", "split_targets"}
    others |= {"covariate_weights"}  # of two tables: tests/test_weights.py
    # rows piece by piece: tests/test_streaming.py, tests/monitoring
    others |= {"RunningScores", "Monitor"}
    tested = {*OF_PAIRS, *OF_TABLES, *others}
    results = {
        name for name in ss.__all__ if dataclasses.is_dataclass(getattr(ss, name))
    }
    assert tested == {
        name
        for name in ss.__all__
        if callable(getattr(ss, name)) and name not in results - others
    }


def with_value(column, row, value):
    changed = column.astype(object if isinstance(value, str) else type(value))
    changed[row] = value
    return changed


def is_free_of_nan(value):
    if dataclasses.is_dataclass(value):
        return is_free_of_nan(
            value.to_dict() if hasattr(value, "to_dict") else vars(value)
        )
    if isinstance(value, dict):
        return all(is_free_of_nan(each) for each in value.values())
    if isinstance(value, (list, tuple)):
        return all(is_free_of_nan(each) for each in value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "f" or not np.isnan(value).any()
    return not (isinstance(value, float) and math.isnan(value))


def test_what_looks_for_nan_finds_it():
    assert is_free_of_nan({"a": [1.0, (np.ones(3), "nan")]})
    for hidden in (np.nan, {"a": [np.array([1, np.nan])]}, (1, [[np.nan]])):
        assert not is_free_of_nan(hidden)
    curve = ss.confidence_curve(E, U, n_draws=4)
    assert is_free_of_nan(curve)
    assert not is_free_of_nan(dataclasses.replace(curve, error=np.array([np.nan])))


# --- errors and uncertainties --------------------------------------------------------

SAME_LENGTH = "`error` and `uncertainty` .*found "
BAD_PAIRS = {
    "NaN error": (
        (with_value(E, 3, np.nan), U),
        r"`error` must be finite.*1 of 60 values is not \(first at row 3: nan\)\. Drop",
    ),
    "infinite error": (
        (with_value(E, 59, -np.inf), U),
        r"`error` must be finite.*1 of 60 .*row 59: -inf\).*Drop or repair",
    ),
    "masked error": (
        (np.ma.array(E, mask=np.sort(U)[-3] < U), U),
        r"`error` must be finite.*2 of 60 values are not",
    ),
    "missing error": (
        (pd.Series(E, dtype="Float64").where(np.arange(N) != 5), U),
        r"`error` must be finite.*row 5: nan\).*Drop or repair",
    ),
    "null uncertainty": (
        (E, pl.Series([None, *U[1:]])),
        r"`uncertainty` must be finite.*row 0: nan\).*Drop or repair",
    ),
    "NaN uncertainty": (
        (E, with_value(U, 3, np.nan)),
        r"`uncertainty` must be finite.*1 of 60 .*row 3: nan\).*Drop or repair",
    ),
    "infinite uncertainty": (
        (E, with_value(U, 3, np.inf)),
        r"`uncertainty` must be finite.*1 of 60 .*row 3: inf\).*Drop or repair",
    ),
    "negative uncertainty": (
        (E, with_value(U, 3, -0.5)),
        r"`uncertainty` .*1 of 60 .*row 3: -0\.5\)\. Drop",
    ),
    "zero uncertainty": (
        (E, with_value(U, 3, 0.0)),
        r"`uncertainty` .*1 of 60 .*row 3: 0\)\. Drop",
    ),
    "only zero uncertainties": (
        (E, 0 * U),
        r"`uncertainty` must be strictly positive; 60 of 60 .*row 0: 0\)\. Drop",
    ),
    "tiny uncertainty": (
        (E, with_value(U, 3, 1e-80)),
        r"`uncertainty` must be between .*row 3: 1e-80\)\. Choose another unit",
    ),
    "enormous uncertainty": (
        (E, with_value(U, 3, 1e80)),
        r"`uncertainty` must be between .*row 3: 1e\+80\)\. Choose another unit",
    ),
    "enormous error": (
        (with_value(E, 3, 1e80), U),
        r"`error` must be below .*row 3: 1e\+80\)\. Are both in the same unit",
    ),
    "absurd z": (
        (1e40 * E, 1e-40 * U),
        r"`error` must be below .*60 of 60 .*Are both in the same unit",
    ),
    "unequal lengths": ((E, U[:-1]), SAME_LENGTH + "60 and 59.*Pass columns of one"),
    "a single error": ((E[:1], U), SAME_LENGTH + "1 and 60"),
    "no errors": (([], U), "`error` .*found 0. Is the file"),
    "no rows": ((E, []), "`uncertainty` .*found 0. Is the"),
    "errors in two columns": (
        (np.column_stack([E, E]), U),
        r"`error` .*found shape \(60, 2\).*Pass one column",
    ),
    "uncertainties as a column": (
        (E, U[:, None]),
        r"`uncertainty` .*found shape \(60, 1\).*Pass one",
    ),
    "a frame of errors": (
        (pd.DataFrame({"error": E}), U),
        r"`error` .*found shape \(60, 1\).*Pass one column",
    ),
    "a scalar": ((1.0, U), r"`error` .*found shape \(\)"),
    "a scalar array": (
        (E, np.array(1.0)),
        r"`uncertainty` .*found shape \(\)",
    ),
    "a dict": (({"error": E}, U), "`error` must be one-dimensional"),
    "nothing": ((E, None), "`uncertainty` must be one-dimensional"),
    "rows of unequal length": (
        ([[1.0, 2.0], [3.0]], U),
        "`error` .*equal length.*Pad or drop",
    ),
    "complex errors": (
        (E * 1j, U),
        "`error` must hold real numbers; complex.*Pass the",
    ),
}
NOT_NUMBERS = {
    "text": (
        (with_value(E, 7, "n/a"), U),
        r"`error` .*row 7 is 'n/a'.*Convert or drop",
    ),
    "text among uncertainties": (
        (E, pl.Series(["low", *U[1:].astype(str)])),
        r"`uncertainty` .*row 0 is 'low'.*Convert or drop",
    ),
    "numbers as Python alone writes them": (
        (E, ["1_000", *U[1:].astype(str)]),
        r"`uncertainty` .*row 0 is '1_000'.*Convert or drop",
    ),
    "other digits": (
        (np.array([*E[1:].astype(str), "١٢"]), U),
        r"`error` .*row 59 is '١٢'.*Convert or drop",
    ),
    "bytes": ((E, U.astype("S")), r"`uncertainty` .*row 0 is b'.*Convert or drop"),
    "numbers beyond all bounds": (
        ([10**400, *E[1:]], U),
        r"`error` .*row 0 is 1000.*0000.*Convert or drop",
    ),
    "dates": (
        (np.arange(N).astype("M8[D]"), U),
        "`error` .*found dates or times.*Convert",
    ),
    "time stamps": (
        (E, pd.Series(pd.date_range("2024-01-01", periods=N, tz="UTC"))),
        "`uncertainty` .*row 0 is Timestamp",
    ),
}


@pytest.mark.parametrize("function", OF_PAIRS)
@pytest.mark.parametrize("case", BAD_PAIRS)
def test_bad_errors_and_uncertainties_are_refused_with_place_and_remedy(function, case):
    (error, u), message = BAD_PAIRS[case]
    with pytest.raises(InvalidInputError, match=message):
        OF_PAIRS[function](error, u)


@pytest.mark.parametrize("function", OF_PAIRS)
@pytest.mark.parametrize("case", NOT_NUMBERS)
def test_what_is_not_a_number_is_also_a_type_error(function, case):
    (error, u), message = NOT_NUMBERS[case]
    with pytest.raises(NotANumberError, match=message) as caught:
        OF_PAIRS[function](error, u)
    assert isinstance(caught.value, (ValueError, TypeError))


# --- degenerate but valid data -------------------------------------------------------

VALID = {
    "constant uncertainties": (E, np.ones(N)),
    "constant everything": (np.ones(N), np.ones(N)),
    "only zero errors": (0 * E, U),
    "one error that is not zero": (np.where(np.arange(N) == 3, 1.0, 0), U),
    "zero errors in a bin": (np.where(np.quantile(U, 0.3) > U, 0, E), U),
    "zero errors but for two": (np.where(np.arange(N) < N - 2, 0, E), U),
    "tiny errors": (1e-200 * E, U),
    "an enormous error": (np.where(np.arange(N) == 3, 1e44, E), U),
    "two rows": (E[:2], U[:2]),
    "seven rows": (E[:7], U[:7]),
    "integers": (np.arange(N) - 20, 1 + np.arange(N) % 5),
    "single precision": (E.astype("float32"), U.astype("float32")),
    "objects": (E.astype(object), U.astype(object)),
    "truth values": (E > 0, U > -1),
}
NO_ERRORS = r"`error` must not be 0 in every row|z-scores have no distribution"
CANNOT = {
    ("reference_scores", "only zero errors"): NO_ERRORS,
    ("reference_scores", "tiny errors"): NO_ERRORS,
    ("reliability_diagram", "only zero errors"): NO_ERRORS,
    ("reliability_diagram", "tiny errors"): NO_ERRORS,
    ("validate", "tiny errors"): NO_ERRORS,
    ("tails", "only zero errors"): NO_ERRORS,
    ("tails", "two rows"): "at least 5 rows for tails; found 2",
    ("choose_n_bins", "two rows"): "`cv` must not exceed .* found 5 for 2 rows",
}


@own_warnings_are_fine
@pytest.mark.parametrize("function", OF_PAIRS)
@pytest.mark.parametrize("case", VALID)
def test_degenerate_data_give_results_that_are_numbers(function, case):
    message = CANNOT.get((function, case))
    if message:
        with pytest.raises(InvalidInputError, match=message):
            OF_PAIRS[function](*VALID[case])
    else:
        assert is_free_of_nan(OF_PAIRS[function](*VALID[case]))


@own_warnings_are_fine
@pytest.mark.parametrize("function", OF_TABLES)
@pytest.mark.parametrize("case", VALID)
def test_degenerate_tables_give_results_that_are_numbers(function, case):
    error, u = VALID[case]
    X = np.column_stack([u.astype(float), np.arange(u.size) % 4.0, np.ones(u.size)])
    message = CANNOT.get((function, case))
    if message:
        with pytest.raises(InvalidInputError, match=message):
            OF_TABLES[function](X, error)
    else:
        result = OF_TABLES[function](X, error)
        assert is_free_of_nan(result)
        if function in ESTIMATORS:
            assert result.shape == u.shape
            assert (result > 0).all()
            assert np.isfinite(result).all()


@pytest.mark.parametrize("function", ["local_zms", "validate"])
def test_one_row_has_no_interval(function):
    with pytest.raises(InvalidInputError, match="needs at least 2 rows; found"):
        OF_PAIRS[function](E[:1], U[:1])


# --- tables --------------------------------------------------------------------------

X = np.column_stack([U, LABEL, X1])
BAD_TABLES = {
    "NaN uncertainty": (
        (with_value(X, (3, 0), np.nan), E),
        r"`X\[:, u\]` must be finite.*1 of 60 .*row 3: nan\).*Drop or repair",
    ),
    "infinite uncertainty": (
        (with_value(X, (3, 0), np.inf), E),
        r"`X\[:, u\]` must be finite.*1 of 60 .*row 3: inf\).*Drop or repair",
    ),
    "negative uncertainty": (
        (with_value(X, (3, 0), -0.5), E),
        r"`uncertainty` must be strictly positive; 1 of 60 .*row 3: -0\.5\)\. Drop",
    ),
    "only zero uncertainties": (
        (X * [0, 1, 1], E),
        r"`uncertainty` must be strictly positive; 60 of 60 .*row 0: 0\)\. Drop",
    ),
    "text among uncertainties": (
        (with_value(X, (3, 0), "n/a"), E),
        r"`X\[:, u\]` .*row 3 is 'n/a'.*Convert or drop",
    ),
    "dates for uncertainties": (
        (pd.DataFrame({"u": pd.date_range("2024", periods=N), "l": LABEL}), E),
        r"`X\[:, u\]` .*row 0 is Timestamp",
    ),
    "complex table": ((X * 1j, E), "Complex data"),
    "empty table": ((X[:0], E), r"0 sample\(s\) .*Pass a data frame"),
    "empty frame": ((pl.DataFrame(), E), r"0 sample\(s\) and 0 feature.*file empty"),
    "three dimensions": ((X[:, :, None], E), "dim 3, .*Pass a data frame"),
    "a scalar": ((1.0, E), "at least 1 dimension.*Pass a data frame"),
    "nothing": ((None, E), "the uncertainty first: .*Pass a data frame"),
    "rows of unequal length": (([[1.0, 2.0], [3.0]], E), "inhomogeneous .*Pass a data"),
    "two columns of one name": (
        (pd.DataFrame(X, columns=["u", "a", "a"]), E),
        "`X` must have columns of different names .*Rename them",
    ),
    "NaN error": (
        (X, with_value(E, 3, np.nan)),
        r"y \(the errors\) .*1 of 60 .*row 3: nan\).*Drop or repair",
    ),
    "infinite error": (
        (X, with_value(E, 3, np.inf)),
        r"y \(the errors\) .*1 of 60 .*row 3: inf\).*Drop or repair",
    ),
    "null error": (
        (X, pa.chunked_array([pa.array([None], pa.float64()), E[1:]])),
        r"y \(the errors\) .*1 of 60 .*row 0: nan\).*Drop or repair",
    ),
    "text among errors": (
        (X, with_value(E, 7, "n/a")),
        r"`y` .*row 7 is 'n/a'.*Convert or drop",
    ),
    "dates for errors": (
        (X, np.arange(N).astype("M8[D]")),
        "`y` .*found dates or times",
    ),
    "complex errors": ((X, E * 1j), "Complex data.* y .*real"),
    "unequal lengths": (
        (X, E[:-1]),
        "X and y must have the same number of rows; found 60 and 59.*Pass columns",
    ),
    "no errors": ((X, []), "y must have .*found 60 and 0"),
    "errors in two columns": (
        (X, np.column_stack([E, E])),
        r"y should be a 1d array, got an array of shape \(60, 2\) .*Pass one column",
    ),
    "None for errors": ((X, None), "requires y to be passed.*Pass the errors"),
    "ragged errors": (
        (X, [[1.0], [2.0, 3.0]]),
        "`y` .*equal length.*Pad or drop",
    ),
}


@pytest.mark.parametrize("function", OF_TABLES)
@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_refused_with_place_and_remedy(function, case):
    (table, error), message = BAD_TABLES[case]
    with pytest.raises(InvalidInputError, match=message):
        OF_TABLES[function](table, error)


@pytest.mark.parametrize("Scaler", SCALERS, ids=lambda s: s.__name__)
def test_groups_must_match_the_rows(Scaler):
    for groups, message in [
        ([1, 2], "`X` and `groups` .*found 60 and 2"),
        (np.ones((N, 2)), r"`groups` .*found shape \(60, 2\)"),
        ([], "`groups` must have at least 1 row"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            Scaler(**QUICK.get(Scaler, {})).fit(X, E, groups=groups)


# --- options -------------------------------------------------------------------------

NOT_COUNTS = [True, 0, -1, 2.5, "5", [5], np.nan]
NOT_FRACTIONS = [0, 1, 1.5, -0.1, "0.95", True, None, np.nan, np.complex128(0.5)]
NOT_CHOICES = ["x", 3, None, ["bca"], np.array(["bca", "x"])]
NOT_SEEDS = ["x", -1, 1.5]
NOT_COLUMNS = {
    "too short": ([1.0, 2.0, 3.0], "`{}` .*found 60"),
    "NaN": (with_value(X1, 4, np.nan), "`{}` must be finite.*row 4: nan.*Drop or"),
    "inf": (with_value(X1, 4, np.inf), "`{}` must be finite.*row 4: inf.*Drop or"),
    "empty": ([], "`{}` must have at least 1 row"),
    "two-dimensional": (X, r"`{}` .*found shape \(60, 3\)"),
    "scalar": (1.0, r"`{}` .*found shape \(\)"),
    "complex": (X1 * 1j, "`{}` must hold real numbers"),
    "dates": (np.arange(N).astype("M8[D]"), "`{}` .*found dates"),
}

SCORES = ("local_calibration_error", "ence", "uce")


def quick(function, *data, **defaults):
    return lambda **options: function(*data, **{**defaults, **options})


BINNED = {
    name: quick(getattr(ss, name), E, U, n_bins=5)
    for name in (*SCORES, "scorecard", "local_zms")
}
LOCAL = {"local_zms": BINNED["local_zms"]}
VALIDATE = {"validate": quick(ss.validate, E, U, n_bins=5, n_draws=40)}
TAILS = {"tails": quick(ss.tails, E, U, n_draws=4, n_resamples=20)}
CURVE = {"confidence_curve": quick(ss.confidence_curve, E, U, n_draws=4)}
REFERENCE = {"reference_scores": quick(ss.reference_scores, U, n_bins=5, n_draws=4)}
COMPARE = {"compare": quick(ss.compare, [ss.NoScaling()], (X, E), (X, E), n_bins=5)}
SCAN = {
    "scan_bins": quick(
        ss.scan_bins, (X, E), (X, E), n_bins=(2,), score_bins=5, n_draws=4
    )
}
CHOOSE = {"choose_n_bins": quick(ss.choose_n_bins, X, E)}


def cases():
    """Yield functions with one bad option each, and what the error must say."""

    def each(functions, option, values, message):
        for name, function in functions.items():
            for value in values:
                yield pytest.param(
                    function,
                    {option: value},
                    message,
                    id=f"{name}({option}={reprlib.repr(value)})",
                )

    integer = "`{}` .*found "
    counted = [
        (BINNED | VALIDATE | REFERENCE | COMPARE, "n_bins"),
        (LOCAL | VALIDATE | TAILS, "n_resamples"),
        (VALIDATE | REFERENCE | CURVE | TAILS, "n_draws"),
        (CURVE, "n_points"),
        (CHOOSE, "cv"),
    ]
    for functions, option in counted:
        yield from each(functions, option, NOT_COUNTS, integer.format(option))
    # it is called `n_bins` where it is used
    yield from each(SCAN, "score_bins", NOT_COUNTS, "bins` must be (an int|at least)")
    listed = [[0], [2.5], [True], ["5"]]
    yield from each(SCAN | CHOOSE, "n_bins", listed, integer.format("n_bins"))
    yield from each(SCAN | CHOOSE, "n_bins", [[]], "`n_bins` (must hold|needs) a")
    yield from each(
        LOCAL | VALIDATE | CURVE | TAILS,
        "confidence",
        NOT_FRACTIONS,
        "`confidence` .*0 and 1.*found ",
    )
    yield from each(
        LOCAL | VALIDATE | COMPARE | SCAN,
        "method",
        NOT_CHOICES,
        '`method` must be one of "bca", "bootstrap-t", "student", "moments"; found ',
    )
    yield from each(
        REFERENCE,
        "distribution",
        NOT_CHOICES,
        '`distribution` must be one of "normal", "student_t", "empirical", '
        '"normal_inverse_gamma"; found ',
    )
    yield from each(
        REFERENCE, "distribution", ["empirical", "student_t"], "pass `error` as well"
    )
    yield from each(
        CURVE, "statistic", ["x", 3, None], '`statistic` must be one of "rmse", "mae"'
    )
    yield from each(
        LOCAL | VALIDATE | CURVE | REFERENCE | TAILS,
        "rng",
        NOT_SEEDS,
        "`rng` .*found ",
    )
    yield from each(SCAN | CHOOSE, "by", ["x"], "`by` .*found")
    yield from each(SCAN | CHOOSE, "by", [7], r"`by` must be a column of X.*found 7\.")
    yield from each(COMPARE, "features", [["x"]], "must name a column of X; found 'x'")
    for column, message in NOT_COLUMNS.values():
        by = {name: BINNED[name] for name in (*SCORES, "local_zms")}
        tied = BINNED | VALIDATE | REFERENCE
        features = VALIDATE | REFERENCE | {"scorecard": BINNED["scorecard"]}
        yield from each(by, "by", [column], message.format("by"))
        yield from each(tied, "ties", [column], message.format("ties"))
        yield from each(features, "features", [{"x": column}], message.format("x"))
    yield from each(tied, "ties", [["a"] * N], "`ties` .*row 0 is 'a'")
    for table, message in [
        (1.0, r"`features` .*found shape \(\)\. Pass a data"),
        (np.ones((N, 1, 1)), r"must be a table of columns; found shape \(60, 1, 1\)"),
        ("text", "`features` must be a table of columns"),
        (X[:9], "`X1` .*found 60 and 9"),
        (with_value(X, (4, 2), np.nan), "`X3` must be finite.*row 4: nan"),
        ([[1.0], [2.0, 3.0]], "`features` must have rows of equal length"),
        ({"tot": X1}, 'must not have a column named "tot".* Rename it'),
    ]:
        yield from each(features, "features", [table], message)


@pytest.mark.parametrize(("function", "option", "message"), list(cases()))
def test_bad_options_are_refused_by_name(function, option, message):
    with pytest.raises(InvalidInputError, match=message):
        function(**option)


BAD_PARAMETERS = [
    *(
        (ss.BinwiseScaling, {"n_bins": bad}, "`n_bins` must be")
        for bad in NOT_COUNTS[:5]
    ),
    (ss.BinwiseScaling, {"n_bins": ()}, r"a number, or one for each of 1 .*found \(\)"),
    (ss.BinwiseScaling, {"n_bins": (3, 4)}, r"one for each of 1 column.*\(3, 4\)"),
    (ss.BinwiseScaling, {"n_bins": (3, 0), "by": (0, 1)}, "`n_bins` must be at least"),
    (ss.BinwiseScaling, {"by": "mass"}, "`by` .*found 'mass'"),
    (
        ss.BinwiseScaling,
        {"by": 3},
        r"`by` must be a column of X, which has 3 .*found 3",
    ),
    (ss.BinwiseScaling, {"by": -4}, "`by` must be a column of X.*found -4"),
    (
        ss.BinwiseScaling,
        {"by": True},
        "`by` .*found T",
    ),
    (
        ss.BinwiseScaling,
        {"by": None},
        "`by` .*found N",
    ),
    (ss.BinwiseScaling, {"by": 1.0}, "`by` .*found 1"),
    (ss.BinwiseScaling, {"by": ()}, r"`by` must be a column or a pair .*found \(\)"),
    (
        ss.BinwiseScaling,
        {"by": (0, 1, 2)},
        "`by` must be a column or a pair of columns",
    ),
    (ss.BinwiseScaling, {"by": (0, -3)}, "`by` must be two different columns"),
    (
        ss.BinwiseScaling,
        {"loss": "mse"},
        "`loss` must be one of \"nll\", .*found 'mse'",
    ),
    (ss.CategoryScaling, {"by": 0}, "`by` must be a column of labels; found column 0"),
    (
        ss.CategoryScaling,
        {"by": "phase"},
        "`by` must name a column of X; found 'phase'",
    ),
    (ss.CategoryScaling, {"min_size": 0}, "`min_size` must be at least 1; found 0"),
    (ss.CategoryScaling, {"min_size": 2.5}, "`min_size` must be an integer; found 2.5"),
    (ss.RakedScaling, {"n_bins": 0}, "`n_bins` .*found 0"),
    (ss.RakedScaling, {"n_bins": {9: 3}}, "`n_bins` must be a column of X.*found 9"),
    (ss.RakedScaling, {"pairs": 3}, "`pairs` must be a list of pairs .*found 3"),
    (ss.RakedScaling, {"pairs": [0]}, "`pairs` .*found 0"),
    (ss.RakedScaling, {"pairs": [(1, 1)]}, r"`pairs` must hold .*found \(1, 1\)"),
    (ss.RakedScaling, {"pairs": [(1, "x")]}, "`pairs` must name a column.*found 'x'"),
    (ss.RakedScaling, {"shrinkage": -1}, "`shrinkage` must be a number of at least 0"),
    (ss.RakedScaling, {"shrinkage": np.nan}, "`shrinkage` must be a number.*found nan"),
    (ss.RakedScaling, {"categorical": "x"}, "`categorical` must be a list .*found 'x'"),
    (ss.RakedScaling, {"categorical": [9]}, "`categorical` must be a column.*found 9"),
    (ss.BoostedScaling, {"categorical": 1}, "`categorical` must be a list .*found 1"),
    (ss.BoostedScaling, {"n_folds": 1}, "`n_folds` .*found 1"),
    (ss.BoostedScaling, {"learning_rate": 1.5}, "`learning_rate` must lie strictly"),
    (ss.BoostedScaling, {"max_trees": -1}, "`max_trees` .*found -1"),
    (ss.BoostedScaling, {"depth": 0}, "`depth` .*found 0"),
    (ss.SelectedScaling, {"candidates": {}}, r"`candidates` must hold .*found \{\}"),
    (ss.SelectedScaling, {"candidates": 3}, "`candidates` must hold .*found 3. Pass"),
    (ss.SelectedScaling, {"n_folds": True}, "`n_folds` .*found True"),
    (ss.SelectedScaling, {"categorical": ["x"]}, "`categorical` must name a column"),
    (ss.SelectedScaling, {"random_state": -1}, "`random_state` must be at least 0"),
]


@pytest.mark.parametrize(("Scaler", "parameters", "message"), BAD_PARAMETERS)
def test_bad_parameters_are_refused_in_fit_and_stored_untouched(
    Scaler, parameters, message
):
    scaler = Scaler(**parameters)
    for name, value in parameters.items():
        assert scaler.get_params(deep=False)[name] is value
    with pytest.raises(InvalidInputError, match=message):
        scaler.fit(X, E)


# --- import --------------------------------------------------------------------------


def run(program):
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


OPTIONAL = ("matplotlib", "polars", "typer", "rich", "jinja2", "pooch", "cma")


def test_importing_every_public_name_loads_no_optional_package():
    # scikit-learn itself loads Rich, where it is installed
    loaded = run(
        f"""
        import sys
        import sklearn.ensemble, sklearn.model_selection
        before = set(sys.modules)
        from sigmascale import *
        new = set(sys.modules) - before
        print(*[name for name in {OPTIONAL} if name in new])
        """
    )
    assert loaded == ""


def test_importing_the_package_alone_loads_no_library_that_is_slow_to_load():
    loaded = run(
        """
        import sys, sigmascale
        print(*[name for name in ("numpy", "scipy", "sklearn") if name in sys.modules])
        """
    )
    assert loaded == ""


def test_only_the_required_packages_are_needed_to_import_and_to_work():
    # scikit-learn itself loads pandas, where it is installed, and pandas PyArrow
    printed = run(
        f"""
        import sys
        class Refuse:
            def find_spec(self, name, path=None, target=None):
                if name in {(*OPTIONAL, "pandas", "pyarrow")}:
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Refuse())
        import numpy as np
        import sigmascale as ss
        data = ss.datasets.make_molecules(200, seed=0)
        u = ss.BinwiseScaling(5).fit(data.X, data.error).predict(data.X)
        print(round(ss.zms(data.error, u), 6))
        """
    )
    assert printed == "1.0"


SETS = (np.ones((40, 2)), np.arange(40.0))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: ss.reference_scores([1.0], distribution="student_t", df="3"),
            "`df` must be above 2",
        ),
        (
            lambda: ss.confidence_curve([1.0], [1.0], statistic=lambda _: "x"),
            "`statistic` must return a number",
        ),
        (lambda: ss.compare(3, SETS, SETS), "`scalers` must be recalibrators"),
        (
            lambda: ss.compare([ss.NoScaling()], SETS, SETS, features=3),
            "`features` must be a list of columns",
        ),
        (
            lambda: ss.compare([ss.NoScaling()], SETS, SETS, method="x"),
            "`method` must be one of",
        ),
        (lambda: ss.scan_bins(SETS, SETS, n_bins=3), "`n_bins` must be a list"),
        (
            lambda: ss.scan_bins(SETS, SETS, n_bins=[2], score_bins=0),
            "`score_bins` must be at least 1",
        ),
        (lambda: ss.choose_n_bins(*SETS, n_bins=None), "`n_bins` must be a list"),
        (lambda: ss.choose_n_bins(*SETS, rng="x"), "`rng` must be a seed"),
        (lambda: ss.BoostedScaling(depth=60).fit(*SETS), "`depth` must be at most"),
    ],
)
def test_odd_arguments_are_refused_by_name(call, match):
    with pytest.raises(InvalidInputError, match=match):
        call()
