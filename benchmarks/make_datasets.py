"""Make the real sets that sigmascale ships: melting points, diabetes and health.

Usage: ``pip install chemicals rdkit statsmodels && python benchmarks/make_datasets.py``
(with names of sets for some of them). It reads melting points from chemicals, the
diabetes study from scikit-learn and the RAND Health Insurance Experiment from
statsmodels, fits models, and writes their predictions of held-out rows to
``src/sigmascale/predictions/data``. The files in the repository were made with
scikit-learn 1.9.1, statsmodels 0.15.0, chemicals 1.5.2 and RDKit 2026.9.1; other
versions may change the last digits.

Melting points are those of J.-C. Bradley, A. Lang and A. Williams, Jean-Claude Bradley
Open Melting Point Dataset (2014), doi:10.6084/m9.figshare.1031637, published under CC0,
as chemicals (MIT license) ships them: one median a compound. Structures are PubChem's.
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
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_OF_A_PROCESS = 1500  # rows that the Gaussian process learns from
UNSEEN = 4000  # rows of the health insurance experiment that are shipped
MOLECULES = 3000  # in each part of the melting points
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


def molecules():
    """Return SMILES and melting points (K) of compounds that chemicals lists."""
    (package,) = importlib.util.find_spec("chemicals").submodule_search_locations
    points = Path(package, "Phase Change", "OpenNotebook Melting Points.tsv")
    with points.open(newline="") as file:
        melting = {
            row["CAS"]: float(row["Tm"]) for row in csv.DictReader(file, delimiter="\t")
        }
    smiles = {}
    for size in ("small", "large"):
        names = Path(package, "Identifiers", f"chemical identifiers pubchem {size}.tsv")
        with names.open(encoding="utf8") as file:
            for line in file:
                cells = line.split("\t")
                if cells[1] in melting:
                    smiles[cells[1]] = cells[4]
    return list(smiles.values()), np.array([melting[number] for number in smiles])


def melting():
    """Return the columns of the melting points, predicted by five neural networks."""
    from rdkit import Chem, RDLogger
    from rdkit.Chem import Descriptors
    from rdkit.ML.Descriptors.MoleculeDescriptors import MolecularDescriptorCalculator

    # one organic molecule a row, of 4 to 60 heavy atoms, with all its descriptors
    RDLogger.DisableLog("rdApp.*")
    names = [n for n, _ in Descriptors._descList if not n.startswith(("BCUT", "Ipc"))]
    calculator = MolecularDescriptorCalculator(names)
    rows = []
    for text, point in zip(*molecules(), strict=True):
        molecule = None if "." in text else Chem.MolFromSmiles(text)
        if molecule is None or not 4 <= molecule.GetNumHeavyAtoms() <= 60:
            continue
        carbon = sum(atom.GetSymbol() == "C" for atom in molecule.GetAtoms())
        if carbon:
            heteroatoms = 1 - carbon / molecule.GetNumHeavyAtoms()
            rows.append([point, heteroatoms, *calculator.CalcDescriptors(molecule)])
    table = np.array(rows)
    table = table[np.isfinite(table).all(axis=1)]
    y, heteroatoms, X = table[:, 0], table[:, 1], table[:, 2:]

    # whoever is in neither part trains five networks, each on a bootstrap sample
    order = np.random.default_rng(0).permutation(y.size)
    training, unseen = order[: -2 * MOLECULES], order[-2 * MOLECULES :]
    inputs = np.clip(StandardScaler().fit_transform(X), -6, 6)
    mean, std = y.mean(), y.std()
    columns = {
        "part": np.repeat(["calibration", "test"], MOLECULES),
        "y_true": y[unseen],
    }
    for k in range(5):
        drawn = np.random.default_rng(k).choice(training, training.size)
        network = MLPRegressor(
            hidden_layer_sizes=(64, 64),
            learning_rate_init=2e-3,
            max_iter=40,
            early_stopping=True,
            random_state=k,
        ).fit(inputs[drawn], (y[drawn] - mean) / std)
        columns[f"member_{k}"] = network.predict(inputs[unseen]) * std + mean
    described = {
        "mass": "MolWt",
        "polar_area": "TPSA",
        "log_p": "MolLogP",
        "h_donors": "NumHDonors",
        "rotatable_bonds": "NumRotatableBonds",
        "aromatic_rings": "NumAromaticRings",
    }
    for name, descriptor in described.items():
        columns[name] = X[unseen, names.index(descriptor)]
    return {**columns, "heteroatoms": heteroatoms[unseen]}


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
    """Write the sets that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sets = {"diabetes": diabetes, "health": health, "melting": melting}
    data = Path(__file__).parents[1] / "src" / "sigmascale" / "predictions" / "data"
    parser.add_argument("names", nargs="*", default=list(sets), metavar="name")
    parser.add_argument("--out", type=Path, default=data)
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    for name in options.names:
        write(options.out / f"{name}.csv.gz", sets[name]())


if __name__ == "__main__":
    main()
