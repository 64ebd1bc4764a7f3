"""Members, quantiles, intervals and variances in files; uncertainties of 0; gaps."""

import json

import numpy as np
import polars as pl
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.cli.app import result_of
from sigmascale.exceptions import InvalidInputError

N = 300
RNG = np.random.default_rng(0)
MEAN, STD = RNG.normal(size=N), RNG.uniform(0.5, 2, N)
TRUTH = MEAN + 1.5 * STD * RNG.normal(size=N)
LEVELS = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
APART = stats.zscore(RNG.normal(size=40), ddof=1)  # members of exactly that spread
HALF = stats.norm.ppf(0.95) * STD
TABLE = pl.DataFrame(
    {"y": TRUTH, "mean": MEAN, "std": STD, "s2": STD**2, "x": RNG.normal(size=N)}
    | {f"m_{k}": MEAN + STD * z for k, z in enumerate(APART)}
    | {name: MEAN + STD * stats.norm.ppf(p) for name, p in LEVELS.items()}
    | {"low": MEAN - HALF, "high": MEAN + HALF}
)
FORMS = {
    "members": ("--members", "m_*"),
    "pattern": ("--quantile-columns", "q*"),
    "levels": ("--quantile-columns", "q05=0.05,q50=0.5,q95=0.95"),
    "interval": ("--interval", "low,high", "--interval-coverage", "0.9"),
    "variance": ("--prediction", "mean", "--variance", "s2"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table that says the same in five forms."""
    folder = tmp_path_factory.mktemp("forms")
    TABLE.write_parquet(folder / "t.parquet")
    return folder


@pytest.fixture(scope="module")
def expected():
    """What Python makes of predictions and standard deviations."""
    p = ss.Predictions(MEAN, STD, y_true=TRUTH)
    scaler = ss.Recalibrator(ss.BinwiseScaling(5)).fit(p)
    return ss.validate(p, rng=0).answer, scaler.apply(p).distributions


@pytest.mark.parametrize("engine", ["memory", "polars"])
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_get_the_same_verdict_and_recalibration(
    folder, expected, form, engine
):
    file, saved, new = (
        str(folder / name) for name in ("t.parquet", "r.json", "new.parquet")
    )
    reading = ("--engine", engine)
    said = ("--reference", "y", *FORMS[form], *reading)
    _, told = result_of(["check", file, *said])
    assert told["answer"] == expected[0] == "no"
    binned = ("--method", "binwise", "--bins", "5")
    result_of(["fit", file, *said, *binned, "-o", saved])
    # the recalibrator remembers what to make of which columns
    _, told = result_of(
        ["apply", saved, file, "-o", new, *reading, "--quantiles", "0.1,0.9"]
    )
    assert told["distribution_of"] == "value"
    u, *quantiles = (pl.read_parquet(new)[name] for name in _names(told))
    u = np.sqrt(u) if form == "variance" else u
    np.testing.assert_allclose(u, expected[1].scale, rtol=1e-9)
    np.testing.assert_allclose(
        np.column_stack(quantiles), expected[1].quantile([0.1, 0.9]), rtol=1e-7
    )
    assert pl.read_parquet(new).columns == [*TABLE.columns, *_names(told)]


def _names(told):
    return [told["column"], *told["distribution"]]


def test_other_columns_can_be_named_when_recalibrating(folder):
    file, saved, new = (str(folder / name) for name in ("t.parquet", "o.json", "o.csv"))
    plain = ("--reference", "y", "--prediction", "mean", "--uncertainty", "std")
    result_of(["fit", file, *plain, "--method", "temperature", "-o", saved])
    result_of(["apply", saved, file, "-o", new, "--name", "new", *FORMS["members"]])
    factor = ss.load(saved).scaling_.factor_
    np.testing.assert_allclose(pl.read_csv(new)["new"], factor * STD, rtol=1e-9)


def test_members_are_no_features_and_their_mean_can_be_one(folder, sigmascale):
    file, saved = folder / "t.parquet", folder / "f.json"
    unfit = [name for name in TABLE.columns if name[0] in "qlhs" or name == "mean"]
    exclude = [part for name in unfit for part in ("--exclude", name)]
    said = ("--reference", "y", "--members", "m_*", "--all-features", *exclude)
    said += ("--method", "linear", "--feature", "members_mean")
    done = sigmascale("fit", file, *said, "-o", saved)
    assert done.code == 0, done.err
    assert done.says(r"members_std \(of 40 members: m_0 to m_39")
    assert ss.load(saved).feature_names_in_.tolist()[1:] == ["members_mean", "x"]
    done = sigmascale("fit", file, *said, "--feature", "m_1", "-o", saved)
    assert done.says("'m_1' has another part already")


# --- what is said of forms that cannot be used ----------------------------------------

SMALL = TABLE.head(30).select(
    "y", "mean", "std", *(f"m_{k}" for k in range(12)), *LEVELS, "low", "high"
)
QUANTILES = ("--quantile-columns",)
BAD = {
    "no such member": (("--members", "k_*"), {}, "'k_.' matches no column"),
    "one member": (("--members", "m_1"), {}, "`members` .*at least 2 columns"),
    "two stars": (("--members", "*m*"), {}, "one star"),
    "twice": (("--members", "m_1,m_1"), {}, "given twice"),
    "text": (("--members", "m_*"), {"m_1": "high"}, "'m_1', row 4 .*not a number"),
    "a missing member": (("--members", "m_*"), {"m_1": None}, "'m_1' 1.*--drop-miss"),
    "equal members": (
        ("--members", "m_*"),
        {f"m_{k}": 0.1 for k in range(12)},
        "row 4 .*0.0 is no positive number.*--where.*--minimum",
    ),
    "crossing": (
        FORMS["pattern"],
        {"q05": 9.0},
        "'quantiles_std', row 4 .*is negative.*--minimum",
    ),
    "unsorted": ((*QUANTILES, "q95=0.95,q05=0.05"), {}, "`levels` must ascend"),
    "repeated": ((*QUANTILES, "q05=0.05,q50=0.05"), {}, "`levels` must ascend"),
    "outside": ((*QUANTILES, "q05=0,q95=1"), {}, "between 0 and 1; found 0, 1"),
    "no pair": ((*QUANTILES, "q05=0.05,q95=0.9"), {}, "symmetric pair"),
    "no level": ((*QUANTILES, "q05,q95"), {}, "columns and levels"),
    "no number": ((*QUANTILES, "q05=low,q95=0.95"), {}, "'low' is no level"),
    "no level in the name": ((*QUANTILES, "m*"), {}, "'ean' is no level"),
    "one limit": (
        ("--interval", "low", "--interval-coverage", "0.9"),
        {},
        "two columns",
    ),
    "no coverage": (("--interval", "low,high"), {}, "--interval-coverage go together"),
    "percent": (
        ("--interval", "low,high", "--interval-coverage", "90"),
        {},
        "`coverage` must lie strictly between 0 and 1; found 90",
    ),
    "limits swapped": (
        ("--interval", "high,low", "--interval-coverage", "0.9"),
        {},
        "30 of|So are 29 more",
    ),
    "two forms": (("--members", "m_*", "--uncertainty", "std"), {}, "but not both"),
    "several targets": (("--members", "m_*", "--error", "E*"), {}, "one target"),
    "a taken name": (("--members", "m_*"), {"members_std": 1.0}, "Rename"),
    "minimum": (
        ("--uncertainty", "std", "--prediction", "mean", "--minimum", "0"),
        {},
        "`minimum` must be a positive number; found 0",
    ),
}


def changed(cells, row=3):
    """Return the small table with other values in one row."""
    table = SMALL.with_columns(
        pl.lit(1.0).alias(name) for name in cells if name not in SMALL.columns
    )
    for name, value in cells.items():
        column = table[name].cast(pl.String).to_list()
        column[row] = None if value is None else str(value)
        table = table.with_columns(pl.Series(name, column))
    return table


@pytest.mark.parametrize("case", BAD)
def test_bad_forms_are_refused_with_a_remedy(tmp_path, case):
    said, cells, match = BAD[case]
    file = tmp_path / "t.csv"
    changed(cells).write_csv(file)
    if "E*" not in said:
        said = ("--reference", "y", *said)
    with pytest.raises(InvalidInputError, match=match):
        result_of(["check", str(file), *said])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_mutated_input_ends_in_a_traceback(tmp_path):
    rng = np.random.default_rng(0)
    file, out = tmp_path / "t.csv", str(tmp_path / "r.json")
    values = [None, "", "nan", "inf", "-1", "0", "1e-200", "1e200", "x", "0,5", "é"]
    odd = ["m_*", "q*", "low,high", "*", "", ",", "=", "q05=", "q05=2,q95=0.95", "y"]
    odd += ["m_0,m_1", "q05=0.05,q95=0.95", "m_0,m_0", "low", "high,low", "0.5", "-1"]
    options = ["--members", "--quantile-columns", "--interval", "--minimum"]
    options += ["--interval-coverage", "--variance", "--uncertainty", "--prediction"]
    refused = 0
    for _ in range(150):
        names = rng.choice(SMALL.columns, rng.integers(0, 4), replace=False)
        cells = {str(name): rng.choice(values) for name in names}
        table = changed(cells, int(rng.integers(30)))
        table.select(rng.permutation(table.columns)[rng.integers(4) :]).write_csv(file)
        said = list(FORMS[str(rng.choice([*FORMS]))])
        if rng.random() < 0.7:
            said[rng.integers(len(said))] = str(rng.choice(odd + options))
        if rng.random() < 0.5:
            said += [str(rng.choice(options)), str(rng.choice(odd))]
        how = ["--method", "temperature", "--law", "normal", "-o", out]
        try:
            result_of(["fit", str(file), "--reference", "y", *said, *how])
        except (InvalidInputError, OSError):
            refused += 1
    assert 60 < refused < 140  # some of them are right


# --- uncertainties of 0 ---------------------------------------------------------------

ZEROS = pl.DataFrame({"E": TRUTH - MEAN, "u": STD}).with_columns(
    u=pl.when(pl.int_range(N) % 50 == 7).then(0.0).otherwise("u")
)


@pytest.mark.parametrize("engine", ["memory", "polars"])
def test_zeros_are_refused_left_out_or_lifted(tmp_path, sigmascale, engine):
    file, saved = tmp_path / "t.parquet", tmp_path / "r.json"
    ZEROS.write_parquet(file)
    how = ("--engine", engine, "--method", "temperature")
    fit = ("fit", file, *how, "-o", saved)
    for command in (fit, ("check", file, *how[:2])):
        done = sigmascale(*command)
        assert done.code == 2
        assert done.says("--where.*--minimum|6 not positive.*minimum")
        assert done.says("5 more|6 not positive")
    assert sigmascale(*fit, "--where", "u > 0").code == 0
    done = sigmascale(*fit, "--minimum", 0.1)
    assert done.code == 0, done.err
    assert "6 of 300 uncertainties were below 0.1, and were lifted" in done.err
    u = np.maximum(ZEROS["u"], 0.1)
    factor = ss.TemperatureScaling().fit(u, ZEROS["E"]).factor_
    done = sigmascale(
        "apply", saved, file, "-o", tmp_path / "n.parquet", "--engine", engine
    )
    found = pl.read_parquet(tmp_path / "n.parquet")
    np.testing.assert_allclose(found["u_recalibrated"], factor * u)
    np.testing.assert_array_equal(found["u"], ZEROS["u"])


def test_what_cannot_be_squared_is_refused(tmp_path, sigmascale):
    for value in ("1e-200", "1e200"):
        table = ZEROS.with_columns(pl.col("u").replace(0.0, float(value)))
        table.write_csv(tmp_path / "t.csv")
        for command in ("check", "fit"):
            out = ("-o", tmp_path / "r.json") if command == "fit" else ()
            done = sigmascale(command, tmp_path / "t.csv", *out)
            assert done.code == 2
            assert done.says("6 of 300 values are not .*Choose another unit")


# --- features with gaps ---------------------------------------------------------------


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """A table whose errors are larger where a feature is missing, and its file."""
    rng = np.random.default_rng(1)
    x = np.where(rng.random(1000) < 0.3, np.nan, rng.normal(size=1000))
    u = rng.uniform(1, 2, 1000)
    error = rng.normal(scale=np.where(np.isnan(x), 4, 1) * u)
    table = pl.DataFrame({"E": error, "u": u, "x": x}).fill_nan(None)
    file = tmp_path_factory.mktemp("gaps") / "t.csv"
    table.write_csv(file)
    return table, file


def test_boosted_scaling_learns_from_missing_features_as_in_python(gaps, sigmascale):
    table, file = gaps
    saved, new = file.with_name("b.json"), file.with_name("new.csv")
    n = table["x"].null_count()
    done = sigmascale("fit", file, "--feature", "x", "-o", saved)
    assert done.code == 0, done.err
    assert done.says(f"x is missing in {n} rows, which are kept")
    done = sigmascale("fit", file, "--feature", "x", "-o", saved, "--json")
    assert json.loads(done.out)["data"]["missing"] == {"x": n}
    lazy, other = file.with_suffix(".parquet"), file.with_name("lazy.json")
    table.write_parquet(lazy)
    quick = ("--engine", "polars", "--method", "temperature", "-o", other)
    done = sigmascale("fit", lazy, "--feature", "x", *quick)
    assert done.says(f"x is missing in {n} rows, which are kept")
    scaler = ss.Recalibrator().fit(table.select("u", "x"), table["E"])
    expected = scaler.predict(table.select("u", "x"))
    assert sigmascale("apply", saved, file, "-o", new).code == 0
    found = pl.read_csv(new)["u_recalibrated"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    missing = table["x"].is_null().to_numpy()
    ratio = found.to_numpy() / table["u"].to_numpy()
    assert np.median(ratio[missing]) > 3 * np.median(ratio[~missing])


def test_a_method_that_needs_all_features_says_so(gaps, sigmascale):
    _, file = gaps
    options = ("--method", "binwise", "--by", "x", "-o", file.with_name("c.json"))
    done = sigmascale("fit", file, *options)
    assert done.code == 2
    assert done.says("'x' .*cannot learn.*--drop-missing.*--method boosted")
    assert sigmascale("fit", file, *options, "--drop-missing").code == 0
    done = sigmascale("apply", file.with_name("c.json"), file, "-o", "-")
    assert done.code == 2
    assert done.says("'x' .*recalibrate.*--drop-missing")
    done = sigmascale("check", file, "--feature", "x")
    assert done.says(r"'x' \d+.*--drop-missing")
