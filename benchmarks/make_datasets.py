"""Make the real sets that sigmascale ships: ``load_diabetes`` and ``load_health``.

Usage: ``pip install statsmodels && python benchmarks/make_datasets.py``. It reads the
diabetes study from scikit-learn and the RAND Health Insurance Experiment from
statsmodels, fits a forest, a Gaussian process and quantile models, and writes what
these say of rows that they have not seen to ``src/sigmascale/predictions/data``. The
files in the repository were made with scikit-learn 1.9.1 and statsmodels 0.15.0; other
versions may change the last digits.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import io
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_OF_A_PROCESS = 1500  # rows that the Gaussian process learns from
UNSEEN = 4000  # rows of the health insurance experiment that are shipped
HEALTH = ("hlthg", "hlthf", "hlthp")  # beside excellent
INPUTS = (
    *("xage", "female", "logc", "idp", "lpi", "fmde", "physlm", "disea", *HEALTH),
    *("linc", "educdec", "lfam", "mhi", "site", "year", "child", "fchild"),
)


def predict(X, y, new, *, leaf):
    """Fit three models to rows, and return what they say of new ones by column."""
    forest = RandomForestRegressor(200, min_samples_leaf=leaf, random_state=0).fit(X, y)
    trees = np.array([tree.predict(new) for tree in forest.estimators_])
    kernel = ConstantKernel() * RBF(np.full(X.shape[1], 5.0)) + WhiteKernel()
    process = make_pipeline(
        StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True)
    )
    mean, std = process.fit(X[:MOST_OF_A_PROCESS], y[:MOST_OF_A_PROCESS]).predict(
        new, return_std=True
    )
    quantiles = [
        HistGradientBoostingRegressor(
            loss="quantile",
            quantile=level,
            max_iter=100,
            learning_rate=0.05,
            min_samples_leaf=4 * leaf,
            random_state=0,
        )
        .fit(X, y)
        .predict(new)
        for level in LEVELS
    ]
    found = {
        "forest_pred": trees.mean(axis=0),
        "forest_std": trees.std(axis=0, ddof=1),
        "gp_pred": mean,
        "gp_std": std,
    }
    # quantiles that cross are put in order
    ordered = np.sort(quantiles, axis=0)
    names = [f"q{round(100 * level):02d}" for level in LEVELS]
    return found | dict(zip(names, ordered, strict=True))


def diabetes():
    """Return the columns of the diabetes study, each row predicted by other rows."""
    data = load_diabetes(scaled=False)
    X, y = data.data, data.target
    shuffle = np.random.default_rng(0).permutation(y.size)
    X, y = X[shuffle], y[shuffle]
    table = {}
    for seen, unseen in KFold(10).split(X):
        for name, values in predict(X[seen], y[seen], X[unseen], leaf=3).items():
            table.setdefault(name, np.empty(y.size))[unseen] = values
    features = {"age": X[:, 0], "bmi": X[:, 2], "blood_pressure": X[:, 3]}
    features["sex"] = X[:, 1].astype(int)
    part = np.where(np.arange(y.size) < y.size // 2, "calibration", "test")
    return {"part": part, "y_true": y, **table, **features}


def health():
    """Return the columns of the health insurance experiment, of unseen persons."""
    (package,) = importlib.util.find_spec("statsmodels").submodule_search_locations
    path = Path(package, "datasets", "randhie", "src", "randhie.csv")
    with path.open(newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["lnmeddol"] and all(row[name] for name in INPUTS)
        ]
    person = np.array([row["zper"] for row in rows])
    names = np.random.default_rng(1).permutation(np.unique(person))
    number = {name: i for i, name in enumerate(names.tolist())}
    codes = np.array([number[name] for name in person.tolist()])
    order = np.argsort(codes, kind="stable")  # persons in random order, their years not
    rows, codes = [rows[i] for i in order], codes[order]
    X = np.array([[float(row[name]) for name in INPUTS] for row in rows])
    y = np.array([float(row["lnmeddol"]) for row in rows])
    # whole persons: the last rows are unseen, the second half of these to test
    ends = np.flatnonzero(np.diff(codes, append=-1)) + 1
    first = int(ends[ends <= y.size - UNSEEN][-1])
    middle = int(ends[ends <= y.size - UNSEEN // 2][-1])
    unseen = slice(first, None)
    labels = np.array(["excellent", "good", "fair", "poor"])
    of_health = X[:, [INPUTS.index(name) for name in HEALTH]] @ [1, 2, 3]
    part = np.where(np.arange(y.size) < middle, "calibration", "test")
    table = predict(X[:first], y[:first], X[unseen], leaf=5)
    return {
        "part": part[unseen],
        "y_true": y[unseen],
        **table,
        "age": X[unseen, 0],
        "coinsurance": np.array([int(row["coins"]) for row in rows[first:]]),
        "diseases": X[unseen, INPUTS.index("disea")],
        "health": labels[of_health.astype(int)][unseen],
        "person": codes[unseen] - codes[first],
    }


def write(path, table):
    """Write columns as compressed CSV, the same bytes each time."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(table)
    columns = [
        [f"{v:.4g}" for v in column] if column.dtype.kind == "f" else column.tolist()
        for column in table.values()
    ]
    lines.writerows(zip(*columns, strict=True))
    path.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))
    print(f"{path}: {len(columns[0])} rows, {path.stat().st_size / 1000:.0f} kB")


def main():
    """Write both sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data = Path(__file__).parents[1] / "src/sigmascale/predictions/data"
    parser.add_argument("--out", type=Path, default=data)
    out = parser.parse_args().out
    out.mkdir(exist_ok=True)
    write(out / "diabetes.csv.gz", diabetes())
    write(out / "health.csv.gz", health())


if __name__ == "__main__":
    main()
