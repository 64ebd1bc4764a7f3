"""The snippets of "Coming from ...", each with its package, to a result and intervals.

Light packages are taken if they are installed. Those that are too heavy for tests
(PyTorch, GPyTorch, BoTorch, TensorFlow Probability, chemprop, Nixtla, skforecast, MACE,
GPUMD) are stood in for by objects and files that look like theirs.
"""

import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.datasets import load_diabetes

import sigmascale as ss
from sigmascale.exceptions import (
    ColumnError,
    ConstantUncertaintyWarning,
    CrossingQuantilesWarning,
    FewMembersWarning,
    InvalidInputError,
    NormOrRootMeanSquareWarning,
    SquareMembersWarning,
    VarianceNotUncertaintyWarning,
)

PAGE = (Path(__file__).parents[2] / "docs" / "coming_from.md").read_text("utf-8")
LEVELS = (0.05, 0.5, 0.95)
X_ALL, Y_ALL = load_diabetes(return_X_y=True, scaled=False)
SHUFFLED = np.random.default_rng(0).permutation(len(Y_ALL))
LEARN, JUDGE = SHUFFLED[:220], SHUFFLED[220:]
X_LEARN, Y_LEARN = X_ALL[LEARN], Y_ALL[LEARN]
X, Y = X_ALL[JUDGE], Y_ALL[JUDGE]
MEAN = np.full(len(Y), Y_LEARN.mean())
STD = np.random.default_rng(1).uniform(50, 100, len(Y))


def snippet(title):
    """Return the code of a section of the page."""
    section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    code = re.search(r"```python\n(.*?)```", section[1], re.S)[1]
    assert len(code.splitlines()) <= 4
    return code


# -- what the packages hand back -------------------------------------------------------


def scikit_learn():
    from sklearn.linear_model import BayesianRidge

    return {"gp": BayesianRidge().fit(X_LEARN, Y_LEARN)}


def forests():
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(30, min_samples_leaf=3, random_state=0)
    return {"forest": forest.fit(X_LEARN, Y_LEARN)}


def lightgbm():
    made = pytest.importorskip("lightgbm").LGBMRegressor
    how = {"objective": "quantile", "n_estimators": 30, "verbose": -1, "n_jobs": 1}
    return {"models": [made(alpha=p, **how).fit(X_LEARN, Y_LEARN) for p in LEVELS]}


def xgboost():
    made = pytest.importorskip("xgboost").XGBRegressor
    how = {"objective": "reg:quantileerror", "quantile_alpha": list(LEVELS)}
    model = made(n_estimators=30, max_depth=3, n_jobs=1, **how)  # of few rows
    return {"booster": model.fit(X_LEARN, Y_LEARN)}


def catboost():
    made = pytest.importorskip("catboost").CatBoostRegressor
    how = {"loss_function": "RMSEWithUncertainty", "verbose": False}
    how |= {"allow_writing_files": False, "thread_count": 1, "iterations": 100}
    return {"model": made(**how).fit(X_LEARN, Y_LEARN)}


def ngboost():
    made = pytest.importorskip("ngboost").NGBRegressor
    return {"ngb": made(n_estimators=60, verbose=False).fit(X_LEARN, Y_LEARN)}


def tabpfn():
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(50, min_samples_leaf=3, random_state=0)
    forest.fit(X_LEARN, Y_LEARN)

    class Criterion:  # what tells quantiles of logits, here of sorted members
        def icdf(self, logits, left_prob):
            return np.quantile(logits, left_prob, axis=1)

    class Regressor:
        def predict(self, X, output_type):
            assert output_type == "full"
            members = np.array([tree.predict(X) for tree in forest.estimators_])
            return {"criterion": Criterion(), "logits": members.T, "mean": 0}

    return {"model": Regressor()}


def quantile_forest():
    made = pytest.importorskip("quantile_forest").RandomForestQuantileRegressor
    return {"model": made(30, random_state=0).fit(X_LEARN, Y_LEARN)}


def least_squares():
    api = pytest.importorskip("statsmodels.api")
    fitted = api.OLS(Y_LEARN, api.add_constant(X_LEARN)).fit()
    return {"fitted": fitted, "X": api.add_constant(X)}


def series():
    arima = pytest.importorskip("statsmodels.tsa.arima.model").ARIMA
    rng = np.random.default_rng(0)
    walk = np.zeros(500)
    for i in range(1, 500):
        walk[i] = 0.6 * walk[i - 1] + rng.normal()
    months = pd.period_range("1980-01", periods=500, freq="M")
    y = pd.Series(walk, index=months)
    return {"fitted": arima(y[:300], order=(1, 0, 0)).fit(), "y": y[300:]}


def intervals(low, high, share):
    """Return a frame with the limits of intervals around predictions."""
    z = scipy.stats.norm.ppf((1 + share) / 2)
    return {"table": pd.DataFrame({"y": Y, low: MEAN - z * STD, high: MEAN + z * STD})}


def nixtla():
    made = intervals("AutoARIMA-lo-95", "AutoARIMA-hi-95", 0.95)["table"]
    return {"table": made.assign(unique_id="a", ds=np.arange(len(Y)), AutoARIMA=MEAN)}


def skforecast():
    made = intervals("lower_bound", "upper_bound", 0.9)["table"]
    return {"table": made.assign(pred=MEAN)}


def skpro():
    residual = pytest.importorskip("skpro.regression.residual").ResidualDouble
    from sklearn.linear_model import LinearRegression

    columns = [f"x{i}" for i in range(X.shape[1])]
    learn, judge = (pd.DataFrame(x, columns=columns) for x in (X_LEARN, X))
    model = residual(LinearRegression()).fit(learn, pd.DataFrame({"y": Y_LEARN}))
    return {"model": model, "X": judge, "y": Y}


def mapie():
    made = pytest.importorskip("mapie.regression").SplitConformalRegressor
    from sklearn.linear_model import Ridge

    model = made(Ridge().fit(X_LEARN[:120], Y_LEARN[:120]), 0.9, prefit=True)
    return {"mapie": model.conformalize(X_LEARN[120:], Y_LEARN[120:])}


def crepes():
    made = pytest.importorskip("crepes").WrapRegressor
    from sklearn.ensemble import RandomForestRegressor

    wrapped = made(RandomForestRegressor(30, min_samples_leaf=3, random_state=0))
    wrapped.fit(X_LEARN[:120], Y_LEARN[:120])
    wrapped.calibrate(X_LEARN[120:], Y_LEARN[120:])
    return {"wrapped": wrapped}


def chemprop_files():
    smiles = [f"{'C' * (1 + i % 9)}O" for i in range(len(Y))]
    table = {"smiles": smiles, "Tb": MEAN, "Tb_unc": STD**2}
    pd.DataFrame(table).to_csv("predictions.csv", index=False)
    pd.DataFrame({"smiles": smiles, "Tb": Y}).to_csv("test.csv", index=False)
    members = {f"Tb_model_{i}": column for i, column in enumerate(ensemble().T)}
    truth = pd.DataFrame({"smiles": smiles, "Tb": Y, **members})
    truth.to_csv("predictions_individual.csv", index=False)
    return {}


def ensemble(n_members=12):
    noise = np.random.default_rng(2).normal(size=(len(Y), n_members))
    return MEAN[:, None] + STD[:, None] * noise


class Tensor:
    """A tensor that NumPy can only read without gradients, and on the CPU."""

    def __init__(self, values, there=True):
        self.values, self.there = values, there

    def detach(self):
        return Tensor(self.values, there=False)

    def cpu(self):
        return self.values

    def __array__(self, *_, **__):
        assert not self.there, "Can't call numpy() on Tensor that requires grad."
        return np.asarray(self.values)


def posterior():
    """Return what a Gaussian process of BoTorch does: tensors of shape (n, 1)."""
    shaped = {"mean": Tensor(MEAN[:, None]), "variance": Tensor(STD[:, None] ** 2)}
    return SimpleNamespace(**shaped)


def pytorch():
    columns = ensemble().T
    return {"networks": [lambda X, c=column: Tensor(c) for column in columns]}


def gpytorch():
    said = SimpleNamespace(mean=Tensor(MEAN), variance=Tensor(STD**2), stddev=None)
    said.stddev = Tensor(STD)
    return {"likelihood": lambda f: said, "model": lambda X: None}


def botorch():
    model = SimpleNamespace(posterior=lambda X, observation_noise: posterior())
    return {"model": model}


def distributions():
    """Return a network whose distribution has methods, as those of TensorFlow."""
    said = SimpleNamespace(mean=lambda: MEAN, stddev=lambda: STD)
    return {"network": lambda X: said}


def scipy_stats():
    return {"scipy": scipy, "mean": MEAN, "std": STD}


def structures(path, uncertain):
    """Write extended XYZ files with true forces and what is uncertain of them."""
    ase = pytest.importorskip("ase")
    from ase.calculators.singlepoint import SinglePointCalculator
    from ase.io import write

    rng = np.random.default_rng(0)
    frames = []
    for _ in range(30):
        atoms = ase.Atoms("CH4", rng.normal(size=(5, 3)))
        u = rng.uniform(0.1, 0.3, 5)
        forces = rng.normal(size=(5, 3))
        truth = forces + u[:, None] * rng.normal(size=(5, 3))
        atoms.arrays["REF_forces"] = truth
        if uncertain == "sigma":
            atoms.arrays["sigma"] = np.sqrt(3) * u
            atoms.calc = SinglePointCalculator(atoms, forces=forces)
        else:
            noise = rng.normal(size=(12, 5, 3))
            atoms.info["forces_comm"] = forces + u[:, None] * noise
        frames.append(atoms)
    write(path, frames)
    return {}


class Method:
    """Stand in for a method of netcal, which returns a standard deviation."""

    def fit(self, X, y):
        self.factor = np.sqrt(np.mean(((y - X[0]) / X[1]) ** 2))
        return self

    def transform(self, X):
        return self.factor * X[1]


def netcal():
    fitted = {"mean_fit": MEAN, "std_fit": STD, "y_fit": Y}
    return {"method": Method(), **fitted, "mean": MEAN, "std": STD}


CLIENTS = {
    "uncertainty-toolbox": lambda: {"y_pred": MEAN, "y_std": STD},
    "netcal": netcal,
    "scikit-learn": scikit_learn,
    "Forests": forests,
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "CatBoost": catboost,
    "NGBoost": ngboost,
    "TabPFN": tabpfn,
    "quantile-forest": quantile_forest,
    "statsmodels: regression": least_squares,
    "statsmodels: time series": series,
    "statsforecast and other packages of Nixtla": nixtla,
    "skforecast": skforecast,
    "skpro": skpro,
    "MAPIE": mapie,
    "crepes": crepes,
    "chemprop": chemprop_files,
    "chemprop: ensembles": chemprop_files,
    "PyTorch": pytorch,
    "GPyTorch": gpytorch,
    "BoTorch": botorch,
    "torch.distributions, TensorFlow Probability": distributions,
    "SciPy": scipy_stats,
    "MACE": lambda: structures("mace.xyz", "forces_comm"),
    "GPUMD, and others that write a norm": lambda: structures("active.xyz", "sigma"),
    "Tables with members, limits or quantiles": lambda: {
        "table": pd.DataFrame(ensemble()).add_prefix("pred_").assign(y=Y, pred_mean=0)
    },
}


def made(title):
    """Return the predictions that a snippet makes of what a package hands back."""
    names = {"ss": ss, "np": np, "pd": pd, "X": X, "y": Y}
    with warnings.catch_warnings():
        # the packages' own warnings, but none of ours
        warnings.simplefilter("ignore")
        names |= CLIENTS[title]()
        warnings.filterwarnings("error", category=ss.exceptions.LikelySlipWarning)
        exec(snippet(title), names)
    return names["p"]


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_every_section_of_the_page_is_run():
    titles = re.findall(r"^## (.*)$", PAGE, re.M)
    assert titles == [*CLIENTS]


@pytest.mark.parametrize("title", CLIENTS)
def test_a_client_comes_to_a_result_and_intervals(title):
    p = made(title)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=ss.exceptions.LikelySlipWarning)
        warnings.filterwarnings("ignore", category=ConstantUncertaintyWarning)
        v = ss.validate(p, rng=0)
        q = ss.Recalibrator(ss.TemperatureScaling()).fit(p).apply(p)
    assert v.headline
    # as these packages are, u is right within a factor of three
    assert 1 / 3 < np.sqrt(p.mean(p.z2)) < 3
    if not p.is_vector:
        low, high = q.distributions.interval(0.9).T
        assert 0.8 < np.mean((low <= q.y_true) & (q.y_true <= high)) <= 1


def test_names_of_uncertainty_toolbox_have_the_values_that_the_page_says():
    uct = pytest.importorskip("uncertainty_toolbox")
    p = ss.Predictions(MEAN, STD, y_true=Y)
    area = uct.metrics_calibration.miscalibration_area(MEAN, STD, Y)
    assert ss.scores.miscalibration_area(p) == pytest.approx(area, abs=0.01)
    ratio = uct.recalibration.optimize_recalibration_ratio(MEAN, STD, Y)
    factor = ss.Recalibrator(ss.TemperatureScaling()).fit(p).predict(p) / p.y_std
    assert factor == pytest.approx(ratio, rel=0.1)
    for ours, theirs in (
        (ss.scores.crps(p), uct.metrics_scoring_rule.crps_gaussian),
        (ss.scores.nll(p), uct.metrics_scoring_rule.nll_gaussian),
    ):
        assert ours == pytest.approx(theirs(MEAN, STD, Y), rel=1e-3)


# -- what used to be read wrongly without a word ---------------------------------------


def hinted(y_pred, u, y_true=Y):
    """Return whether validate says that uncertainties look like variances."""
    p = ss.Predictions(y_pred, u, y_true=y_true)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ss.validate(p, rng=0)
    return VarianceNotUncertaintyWarning in [each.category for each in told]


def test_variances_of_catboost_ngboost_skpro_and_gaussian_processes_are_hinted():
    mean, variance = catboost()["model"].predict(X).T
    assert hinted(mean, variance)
    d = ngboost()["ngb"].pred_dist(X)
    assert hinted(d.loc, d.var)
    client = skpro()
    mean = client["model"].predict(client["X"])
    assert hinted(mean, client["model"].predict_var(client["X"]))
    assert hinted(MEAN, posterior().variance)


def test_distributions_and_covariances_in_place_of_numbers_are_told_where_to_go():
    d = scipy.stats.norm(MEAN, STD)
    with pytest.raises(InvalidInputError, match=r"Predictions\.from_distribution"):
        ss.Predictions(d, y_true=Y)
    with pytest.raises(InvalidInputError, match=r"np\.sqrt\(np\.diag\(cov\)\)"):
        ss.Predictions(MEAN, np.diag(STD**2), y_true=Y)


def test_names_of_statsmodels_tell_the_right_columns():
    fitted = least_squares()
    table = fitted["fitted"].get_prediction(fitted["X"]).summary_frame().assign(y=Y)
    with pytest.raises(
        ColumnError, match=r'interval=\["obs_ci_lower", "obs_ci_upper"\]'
    ):
        ss.Predictions.from_frame(table)
    client = series()
    y, forecast = client["y"], client["fitted"].get_forecast(200)
    frame = forecast.summary_frame().assign(y=y)
    p = ss.Predictions.from_frame(frame)
    np.testing.assert_allclose(p.y_std, forecast.se_mean)


def test_files_of_chemprop_are_told_by_their_columns():
    chemprop_files()
    with pytest.raises(ColumnError, match="is a variance"):
        ss.Predictions.from_frame(pd.read_csv("predictions.csv"))
    joined = pd.read_csv("predictions.csv").assign(Tb_true=Y)
    with pytest.raises(ColumnError, match=r'variance="Tb_unc"'):
        ss.Predictions.from_frame(joined)
    with pytest.raises(ColumnError, match=r"members=\[\"Tb_model_\*\"\]"):
        ss.Predictions.from_frame(pd.read_csv("predictions_individual.csv"))


def test_frames_of_forecasts_are_offered_as_intervals():
    with pytest.raises(ColumnError, match=r'"AutoARIMA-hi-95"\], coverage=0.95'):
        ss.Predictions.from_frame(nixtla()["table"])
    with pytest.raises(ColumnError, match=r'\["lower_bound", "upper_bound"\]'):
        ss.Predictions.from_frame(skforecast()["table"])


def test_members_in_rows_are_refused_and_square_ones_are_asked_about():
    members = ensemble(len(Y))
    with pytest.warns(SquareMembersWarning, match="transposed"):
        ss.Predictions.from_members(members.T, y_true=Y)
    with pytest.raises(InvalidInputError, match="Transpose"):
        ss.Predictions.from_members(ensemble().T, y_true=Y)
    with pytest.warns(FewMembersWarning):
        ss.Predictions.from_members(ensemble(4), y_true=Y)


def test_crossing_quantiles_of_boosters_are_sorted_and_norms_are_asked_about():
    quantiles = np.sort(ensemble(3), axis=1)
    quantiles[:4] = quantiles[:4, ::-1]
    with pytest.warns(CrossingQuantilesWarning, match=f"4 of {len(Y)} rows"):
        ss.Predictions.from_quantiles(LEVELS, quantiles, y_true=Y)
    structures("active.xyz", "sigma")
    names = {"reference": "REF_forces", "prediction": "forces", "uncertainty": "sigma"}
    with pytest.warns(NormOrRootMeanSquareWarning, match="norm=True"):
        ss.Predictions.from_atoms("active.xyz", **names)
