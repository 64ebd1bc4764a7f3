"""Data to try things on: real sets, synthetic molecules, and QM9."""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .._support.checks import Floats, check_choice, check_count
from .._support.extras import needed_for
from .._support.render import html_lines
from ..exceptions import InvalidInputError
from .predictions import Predictions

Model = Literal["forest", "gp"]

QM9_URL = "https://raw.githubusercontent.com/ppernot/2023_BVS/v1.2/Data/BUS2022/"
"""Where the QM9 files are published (archived as doi:10.5281/zenodo.10018460)."""

# member of `QM9` -> file name and sha256
_QM9_FILES = {
    "calibration": (
        "qm9_qm9_E_uncalibrated_validation.csv",
        "680d4a56f27af6cdf5aa314dd7325511439afc845989454b26156ceee5f0b8cd",
    ),
    "test": (
        "qm9_qm9_E_uncalibrated_test.csv",
        "e0506cea9dbc7bb40bb3f2c3d0e51f0dc06f7b7c4820e49a2a0c6dc34dc3a2c3",
    ),
    "isotonic_test": (
        "qm9_qm9_E_calibrated_isotonic_test.csv",
        "c050e501b2c03ab5b42d3c4ea148f6accbe7224efc8c6ac18228ae5e910897e0",
    ),
}


U_0 = 0.02  # around which uncertainties of synthetic molecules are drawn


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Predictions of real rows that the model was not trained on, in two parts.

    ``calibration, test = load_melting()`` unpacks the two.

    Attributes
    ----------
    calibration : Predictions
        Rows to fit a recalibrator to.
    test : Predictions
        Rows to test it on.
    table : dict of str to array
        The columns of both: "part" ("calibration" or "test"), y_true, y_pred, y_std,
        features, and what else the model predicts: the members of an ensemble, or
        quantiles at 5, 25, 50, 75 and 95 % (q05 to q95) by gradient boosting. Ready for
        any data-frame constructor.
    """

    calibration: Predictions
    test: Predictions
    table: dict[str, NDArray[Any]]

    def __iter__(self) -> Iterator[Predictions]:
        return iter((self.calibration, self.test))

    def __repr__(self) -> str:
        return (
            f"Split: {len(self.calibration)} + {len(self.test)} rows; table: "
            f"{', '.join(self.table)}\n"
            f"calibration: {self.calibration}\n"
            f"test: {self.test}"
        )

    def _repr_html_(self) -> str:
        return html_lines(repr(self))


def load_melting() -> Split:
    """Load predictions of the melting points of 6,000 organic compounds: a real set.

    Five neural networks, each trained on a bootstrap sample of 5,212 other compounds
    with 208 molecular descriptors, predict the melting point in kelvin. The prediction
    is their mean, the uncertainty their standard deviation. It is too small by a factor
    of 2, and by up to 4 where it is smallest.

    Returns
    -------
    Split
        3,000 and 3,000 compounds, drawn at random, with their molar mass (g/mol), polar
        surface area (Å²), logarithm of the octanol-water partition coefficient, numbers
        of hydrogen-bond donors, rotatable bonds and aromatic rings, and the share of
        heavy atoms other than carbon. The table has the five members, too.

    References
    ----------
    J.-C. Bradley, A. Lang and A. Williams, Jean-Claude Bradley Open Melting Point
    Dataset (2014), doi:10.6084/m9.figshare.1031637, published under CC0. The medians
    here are those that the package chemicals ships; descriptors are RDKit's; the
    ensemble is ours (``benchmarks/make_datasets.py``).

    Examples
    --------
    >>> import sigmascale as ss
    >>> calibration, test = ss.datasets.load_melting()
    >>> test
    Predictions: 3000 rows, true values known; features: mass, polar_area, ...
    >>> round(float(test.z2.mean() ** 0.5), 1)
    2.3
    """
    table = _columns("melting", text=["part"])
    members = np.stack([v for k, v in table.items() if k.startswith("member_")])
    part, y_true, *others = table
    table = {
        part: table[part],
        y_true: table[y_true],
        "y_pred": members.mean(axis=0),
        "y_std": members.std(axis=0, ddof=1),
        **{name: table[name] for name in others},
    }
    features = [name for name in others if not name.startswith("member_")]
    return _split(table, features)


def load_diabetes(model: Model = "forest") -> Split:
    """Load predictions of the progress of diabetes in a year: a small real set.

    Predicted is a measure of the progress of the disease of 442 patients, by ten models
    each, of which each was trained on the other nine tenths of the patients.
    The uncertainties of the forest are too small.

    Parameters
    ----------
    model : {"forest", "gp"}, default "forest"
        A random forest, whose uncertainty is the standard deviation of its trees, or a
        Gaussian process.

    Returns
    -------
    Split
        Two halves of the patients, with age, body mass index, blood pressure and sex.

    References
    ----------
    B. Efron et al., Ann. Stat. 32, 407 (2004), doi:10.1214/009053604000000067. The
    study is part of scikit-learn (``sklearn.datasets.load_diabetes``); models and
    predictions are ours (``benchmarks/make_datasets.py``).

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.load_diabetes()
    >>> data.test
    Predictions: 221 rows, true values known; features: age, bmi, blood_pressure, sex
    >>> round(float(data.test.z2.mean()), 1)
    1.4
    """
    return _load("diabetes", model, ("age", "bmi", "blood_pressure"), ("sex",))


def load_health(model: Model = "forest") -> Split:
    """Load predictions of a person's medical expenses in a year: a real set.

    Predicted is the logarithm of the expenses (in dollars, where there were any) of
    persons in the RAND Health Insurance Experiment, 1974 to 1982, by models that have
    seen none of the years of these persons. The years of a person resemble each other:
    they are groups. The uncertainties of the forest are too small by some 27 %,
    most where they are smallest.

    Parameters
    ----------
    model : {"forest", "gp"}, default "forest"
        A random forest, whose uncertainty is the standard deviation of its trees, or a
        Gaussian process.

    Returns
    -------
    Split
        1,998 and 2,003 rows, whole persons each, with age, the share of costs that the
        person pays (coinsurance, in %), an index of chronic diseases, and health as the
        person has rated it.

    References
    ----------
    J. P. Newhouse et al., N. Engl. J. Med. 305, 1501 (1981),
    doi:10.1056/NEJM198112173052504; A. C. Cameron and P. K. Trivedi, Microeconometrics
    (2005). The data are in the public domain and part of statsmodels 0.15
    (``datasets/randhie``); persons are renumbered here; models and predictions are ours
    (``benchmarks/make_datasets.py``).

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.load_health("gp")
    >>> data.test
    Predictions: 2003 rows, true values known; 703 groups; features: age, ...
    >>> round(float(data.test.z2.mean()), 1)
    1.2
    """
    features = ("age", "coinsurance", "diseases")
    return _load("health", model, features, ("health",), "person")


def _load(
    name: str,
    model: Model,
    features: Sequence[str],
    labels: Sequence[str],
    groups: str | None = None,
) -> Split:
    """Return a set that comes with the package, with the predictions of one model.

    Its file has columns "part" (calibration or test), "y_true", features, labels,
    groups, "q05" to "q95", and for each model those of its predictions, such as
    "forest_pred" and "forest_std".
    """
    chosen = check_choice(model, "model", get_args(Model))
    columns = _columns(name, text=["part", *labels])

    # the columns of the model, without its name, and of no other
    table = {
        "part": columns["part"],
        "y_true": columns["y_true"],
        "y_pred": columns[f"{chosen}_pred"],
        "y_std": columns[f"{chosen}_std"],
    }
    for column, values in columns.items():
        is_quantile = column.startswith("q")
        if is_quantile or column in features or column in labels:
            table[column] = values
    if groups is not None:
        table[groups] = columns[groups].astype(np.int64)
    return _split(table, [*features, *labels], groups)


def _columns(name: str, *, text: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the columns of a file that comes with the package, some of them text."""
    packed = resources.files("sigmascale.predictions") / "data" / f"{name}.csv.gz"
    lines = gzip.decompress(packed.read_bytes()).decode().splitlines()
    header, *rows = csv.reader(lines)
    return {
        column: np.array(cells, dtype=None if column in text else np.float64)
        for column, cells in zip(header, zip(*rows, strict=True), strict=True)
    }


def _split(
    table: dict[str, NDArray[Any]], features: Sequence[str], groups: str | None = None
) -> Split:
    """Return the two parts of a table."""

    def rows_of(part: str) -> Predictions:
        is_in_part = table["part"] == part
        rows = {column: values[is_in_part] for column, values in table.items()}
        return Predictions(
            rows["y_pred"],
            rows["y_std"],
            y_true=rows["y_true"],
            features={column: rows[column] for column in features},
            groups=None if groups is None else rows[groups],
        )

    return Split(rows_of("calibration"), rows_of("test"), table)


@dataclass(frozen=True, eq=False, repr=False)
class Molecules:
    """Predictions for molecules, one entry per row, and what else is known of them.

    Attributes
    ----------
    predictions : Predictions
        Errors, uncertainties and the features mass (in g/mol) and heteroatom_fraction,
        the share of atoms that are neither C nor H.
    formula : ndarray of str, shape (n,)
        Molecular formula.
    group : ndarray of str, shape (n,)
        Oxygen and nitrogen counts, such as ``'O1N2'``.
    true_std : ndarray of float, shape (n,), or None
        Of synthetic molecules, the standard deviation of the distribution that each
        error was drawn from: what a perfect recalibration would turn u into.
    """

    predictions: Predictions
    formula: NDArray[np.str_]
    group: NDArray[np.str_]
    true_std: Floats | None = None

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name, ready for any data-frame constructor."""
        p = self.predictions
        columns = {
            "formula": self.formula,
            "y_true": p.y_true,
            "y_pred": p.y_pred,
            "error": p.errors,
            "uncertainty": p.y_std,
            **p.features,
            "group": self.group,
            "true_std": self.true_std,
        }
        return {name: values for name, values in columns.items() if values is not None}

    def __len__(self) -> int:
        return len(self.predictions)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} rows: {', '.join(self.to_dict())})"


@dataclass(frozen=True, eq=False)
class QM9:
    """The QM9 atomization energies of `fetch_qm9`, in eV.

    Attributes
    ----------
    calibration : Molecules
        10,000 rows to fit a recalibrator to.
    test : Molecules
        13,885 rows to test it on.
    isotonic_test : Molecules
        The test rows with the uncertainties that the data's authors recalibrated by
        isotonic regression.
    """

    calibration: Molecules
    test: Molecules
    isotonic_test: Molecules


def make_molecules(n: int = 5000, *, seed: int = 0) -> Molecules:
    r"""Draw synthetic molecules whose uncertainties are wrong in a known way.

    The molecules have up to nine atoms of C, N, O and F, filled up with H, so that
    their masses m and hetero-atom fractions x repeat as in QM9. With
    :math:`u_0 = 0.02`,

    .. math::

        \sigma = \frac{u}{2} \left(\frac{u}{u_0}\right)^{-0.4}
        \exp\left(0.3 \tanh\frac{m - 118}{10} + 0.3 \tanh\frac{x - 0.12}{0.08}\right),

    where u is log-normal around :math:`u_0`. The uncertainties are thus too large
    overall (by 1.7), too variable, and blind to composition: a single scale factor
    corrects the first, a function of u the second, and only one of u, m and x all.
    Errors are Student-t with 6 degrees of freedom, scaled to variance σ².

    Parameters
    ----------
    n : int, default=5000
        Number of rows.
    seed : int, default=0
        Every number follows from `n` and `seed`. Sets of different seeds are
        independent draws from the same distribution.

    Returns
    -------
    Molecules
        Predictions of `n` rows, with formulas and the `true_std` of each.

    Examples
    --------
    >>> from sigmascale.predictions.datasets import make_molecules
    >>> round(float(make_molecules(5000, seed=0).predictions.z2.mean()), 2)
    0.36
    """
    n = check_count(n, "n")
    rng = np.random.default_rng(check_count(seed, "seed", least=0))

    # molecules; what depends on a formula is worked out once for each
    all_atoms = _draw_atoms(n, rng)
    distinct, molecule = np.unique(all_atoms, axis=0, return_inverse=True)
    molecule = molecule.reshape(-1)  # some versions of NumPy make it a column
    formulas = np.array([_write_formula(atoms) for atoms in distinct.tolist()])
    of_formulas, groups = _described(formulas)
    features = {name: values[molecule] for name, values in of_formulas.items()}

    # uncertainties, and the standard deviation σ of the errors, as in the formula above
    u = U_0 * np.exp(0.5 * rng.standard_normal(n))
    ln_factor = (
        -0.4 * np.log(u / U_0)
        + 0.3 * np.tanh((features["mass"] - 118) / 10)
        + 0.3 * np.tanh((features["heteroatom_fraction"] - 0.12) / 0.08)
    )
    true_std = u / 2 * np.exp(ln_factor)
    unit_t = rng.standard_t(6, n) * np.sqrt(4 / 6)  # t(6) has variance 6 / 4

    p = Predictions(y_std=u, error=true_std * unit_t, features=features)
    return Molecules(p, formulas[molecule], groups[molecule], true_std)


def _draw_atoms(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the numbers of C, H, F, N, O atoms (the order of a formula) per row."""
    # heavy atoms, at least one of which is carbon
    heavy = rng.choice([5, 6, 7, 8, 9], size=n, p=[0.02, 0.04, 0.1, 0.24, 0.6])
    fluorine = rng.binomial(1, 0.03, size=n)
    further = heavy - 1 - fluorine
    carbon, nitrogen, oxygen = rng.multinomial(further, [0.72, 0.13, 0.15]).T
    carbon += 1

    # hydrogen, of which a ring or a multiple bond costs two atoms
    saturated = 2 * carbon + 2 + nitrogen - fluorine
    hydrogen = saturated - 2 * rng.binomial(np.minimum(saturated // 2, 5), 0.5)
    counts = [carbon, hydrogen, fluorine, nitrogen, oxygen]
    return np.column_stack(counts).astype(np.int64)


def _write_formula(atoms: list[int]) -> str:
    """Return the formula of so many atoms of C, H, F, N and O.

    >>> _write_formula([2, 6, 0, 0, 1])
    'C2H6O'
    """
    formula = ""
    for symbol, count in zip("CHFNO", atoms, strict=True):
        if count:
            formula += symbol if count == 1 else f"{symbol}{count}"
    return formula


_MASSES = {"H": 1.00794, "C": 12.011, "N": 14.0067, "O": 15.9994, "F": 18.9984}


def _described(
    formulas: Iterable[str],
) -> tuple[dict[str, Floats], NDArray[np.str_]]:
    """Return the features of formulas of C, H, N, O and F, and their groups.

    >>> _described(["C2H6O"])
    ({'mass': array([46.069]), 'heteroatom_fraction': array([0.111])}, \
array(['O1N0'], dtype='<U4'))
    """
    masses = []
    shares = []
    groups = []
    for formula in formulas:
        pairs = re.findall(r"([A-Z][a-z]?)(\d*)", formula)
        atoms = {symbol: int(count or 1) for symbol, count in pairs}
        masses.append(math.fsum(n * _MASSES[symbol] for symbol, n in atoms.items()))
        n_heteroatoms = sum(n for symbol, n in atoms.items() if symbol not in "CH")
        shares.append(n_heteroatoms / sum(atoms.values()))
        groups.append(f"O{atoms.get('O', 0)}N{atoms.get('N', 0)}")
    features = {"mass": np.array(masses), "heteroatom_fraction": np.array(shares)}
    return features, np.array(groups)


def fetch_qm9(folder: str | os.PathLike[str] | None = None) -> QM9:
    """Fetch errors and uncertainties of a neural-network ensemble on QM9.

    The three files (4.5 MB) are downloaded once and kept in the user's cache folder;
    their sha256 sums are checked each time.

    Parameters
    ----------
    folder : path-like, optional
        Read the three files from this folder and download nothing. By default it is
        what the environment variable ``SIGMASCALE_QM9`` names, if that is set.

    Returns
    -------
    QM9
        Calibration set, test set, and the test set recalibrated by isotonic
        regression; rows in the order of the files.

    References
    ----------
    P. Pernot (2023), doi:10.5281/zenodo.10018460; predictions by Busk et al. (2022),
    doi:10.1088/2632-2153/ac3eb3.

    Examples
    --------
    >>> from sigmascale.predictions.datasets import fetch_qm9
    >>> fetch_qm9().calibration  # doctest: +SKIP
    Molecules(10000 rows: formula, y_true, y_pred, error, uncertainty, mass, ...)
    """
    folder = folder or os.environ.get("SIGMASCALE_QM9") or _download()
    sets = {}
    for member, (name, sha256) in _QM9_FILES.items():
        sets[member] = _read(Path(folder).expanduser() / name, sha256)
    return QM9(**sets)


def _download() -> Path:
    """Return the folder with the files, which are fetched if they are not there."""
    folder = f", or pass `folder` with the files of {QM9_URL} in it"
    with needed_for("downloading", folder):
        pooch = importlib.import_module("pooch")
    home = Path(pooch.os_cache("sigmascale"), "qm9")
    registry = {name: f"sha256:{sha256}" for name, sha256 in _QM9_FILES.values()}
    files = pooch.create(path=home, base_url=QM9_URL, registry=registry)
    for name in registry:
        files.fetch(name)
    return home


def _read(path: Path, sha256: str) -> Molecules:
    """Return the rows of a file of QM9, if it is the published one."""
    # the published file
    if not path.is_file():
        msg = f"`folder` must contain {path.name}; there is none in {path.parent}."
        raise InvalidInputError(msg)
    sha256_of_file = hashlib.sha256(path.read_bytes()).hexdigest()
    if sha256_of_file != sha256:
        msg = (
            f"{path} is damaged or another version: its sha256 is {sha256_of_file}, "
            f"that of the published file {sha256}. Delete it and fetch it again."
        )
        raise InvalidInputError(msg)

    # its columns
    with path.open(newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file))

    def numbers(name: str) -> Floats:
        return np.array([float(record[name]) for record in records])

    formulas = np.array([record["formula"] for record in records])
    features, groups = _described(formulas)
    p = Predictions(
        numbers("prediction"),
        np.sqrt(numbers("uncertainty_total")),  # which is a variance
        y_true=numbers("E_"),
        features=features,
    )
    return Molecules(p, formulas, groups)
