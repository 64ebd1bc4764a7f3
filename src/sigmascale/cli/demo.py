"""The main job on built-in data: recalibrate, compare, and show the evidence."""

from __future__ import annotations

import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.frozen import FrozenEstimator

from .._support.checks import Floats
from .._support.files import whole_file
from .._support.progress import track, working
from ..comparison import compare
from ..datasets import SyntheticMolecules, make_molecules
from ..exceptions import UnseenCategoryWarning
from ..judging.validation import Validation
from ..judging.verdicts import validate
from ..plots import plot_local_zms, share_zms_range
from ..report import write_report
from ..scaling import (
    BinwiseScaling,
    BoostedScaling,
    CategoryScaling,
    IsotonicScaling,
    LinearScaling,
    RakedScaling,
    TemperatureScaling,
)
from .printing import say
from .tables.files import write_table

if TYPE_CHECKING:
    import polars as pl

METHODS = {
    "one factor": TemperatureScaling(),
    "linear": LinearScaling(),
    "isotonic": IsotonicScaling(),
    "bins of u": BinwiseScaling(40),
    "bins of mass": BinwiseScaling(40, by="mass"),
    "cells u, mass": BinwiseScaling(10, by=("u", "mass")),
    "categories OxNy": CategoryScaling(by="OxNy"),
    "raked": RakedScaling(),
    "boosted": BoostedScaling(),
}
SHOWN = "boosted"


def halves(data: SyntheticMolecules) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the two halves of a set as tables."""
    import polars as pl

    table = pl.DataFrame(
        {
            "formula": data.formula,
            "E": data.error,
            "u": data.uncertainty,
            "mass": data.mass,
            "hetero": data.heteroatom_fraction,
            "OxNy": data.group,
        }
    )
    half = len(data) // 2
    return table[:half], table[half:]


def pair(table: pl.DataFrame) -> tuple[pl.DataFrame, Floats]:
    """Return the conditioning table and the errors of a half."""
    return table.select("u", "mass", "hetero", "OxNy"), table["E"].to_numpy()


def write_picture(stages: dict[str, Validation], path: Path) -> None:
    """Draw the local calibration of the test set before and after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.5), layout="constrained")
    rows = figure.subplots(2, 3)
    for axes, (what, found) in zip(rows, stages.items(), strict=True):
        for ax, result in zip(axes, found.local.values(), strict=True):
            plot_local_zms(result, ax=ax)
        axes[0].set_ylabel(f"{what}\n" + axes[0].get_ylabel())
    share_zms_range(rows.flat)
    with whole_file(path) as part:
        figure.savefig(part, dpi=120)


def distances(truth: Floats, results: dict[str, Floats]) -> str:
    """Return how far each method's uncertainties are from the true sigma."""
    return "\n".join(
        f"  {name:<14} {np.expm1(np.sqrt(np.mean(np.log(u / truth) ** 2))):4.0%}"
        for name, u in results.items()
    )


def run(out: Path, *, rows: int = 20_000, seed: int = 0) -> None:
    """Tell the whole story; write the data, a picture and the report to `out`."""
    out.mkdir(parents=True, exist_ok=True)  # or fail now, not at the end
    data = make_molecules(rows, seed=seed)
    calibration, test = halves(data)
    write_table(calibration, str(out / "calibration.csv"))
    write_table(test, str(out / "test.csv"))
    say(
        f"{rows} synthetic molecules (seed {seed}). Their uncertainties are too large "
        "on\naverage, wrong at both ends and blind to composition. Fitted on one half,"
        "\nscored on the other.\n"
    )
    with warnings.catch_warnings():
        # a few compositions of the second half do not occur in the first
        warnings.simplefilter("ignore", UnseenCategoryWarning)
        fitted = {
            name: method.fit(*pair(calibration))
            for name, method in track(METHODS.items(), "fitting", len(METHODS))
        }
        results = {name: each.predict(pair(test)[0]) for name, each in fitted.items()}
        table = compare(
            {name: FrozenEstimator(each) for name, each in fitted.items()},
            pair(calibration),
            pair(test),
            features=("mass", "hetero"),
        )
    say(table)
    n_bins = table["none"].test.n_bins
    say(
        "\nNLL and S: lower is better. S_u is consistency, S_mass and S_hetero are\n"
        f"adaptivity. Valid: percentage of {n_bins} bins of u, of mass and of "
        "hetero whose\n<Z²> agrees with 1; 95 is ideal.\n\n"
        "How far the uncertainty typically is from the truth, which is known here:"
    )
    u = test["u"].to_numpy()
    say(distances(data.true_sigma[rows // 2 :], {"none": u, **results}))
    error, features = test["E"], test.select("mass", "hetero")
    before, after = "Before", f"After {SHOWN}"
    stages = {
        what: validate(error, each, features, ties=u)
        for what, each in ((before, u), (after, results[SHOWN]))
    }
    for what, found in stages.items():
        say("\n" + textwrap.fill(f"{what}: {found.summary}", 78))
    with working("drawing pictures"):
        write_picture(stages, out / "local_zms.png")
        write_report(
            out / "report.html",
            stages[before],
            recalibrated=stages[after],
            scaler=fitted[SHOWN],
            calibration=pair(calibration),
            comparison=table,
            title="Synthetic molecules, recalibrated",
        )
    say("\nWritten: the two halves, the picture of both stages, and the report:")
    for name in ("calibration.csv", "test.csv", "local_zms.png", "report.html"):
        say(f"  {out / name}")
