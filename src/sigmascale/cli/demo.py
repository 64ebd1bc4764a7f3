"""``sigmascale demo``: the main job on built-in data, with all its evidence."""

from __future__ import annotations

import sys
import warnings
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._support.files import whole_file
from .._support.progress import track, working
from ..exceptions import UnseenCategoryWarning
from .app import app, say, show_json, show_words
from .files import write_table
from .options import AsJson, Seed, example, gather

if TYPE_CHECKING:
    import polars as pl

    from .._support.checks import Floats
    from ..datasets import SyntheticMolecules
    from ..judging.validation import Validation

SHOWN = "boosted"


def all_methods() -> dict[str, Any]:
    """Return the recalibrators that are compared."""
    from .. import scaling as ss

    return {
        "one factor": ss.TemperatureScaling(),
        "linear": ss.LinearScaling(),
        "isotonic": ss.IsotonicScaling(),
        "bins of u": ss.BinwiseScaling(40),
        "bins of mass": ss.BinwiseScaling(40, by="mass"),
        "cells u, mass": ss.BinwiseScaling(10, by=("u", "mass")),
        "groups OxNy": ss.CategoryScaling(by="OxNy"),
        "raked": ss.RakedScaling(),
        "boosted": ss.BoostedScaling(),
    }


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

    from ..plots import plot_local_zms, share_zms_range

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
    import numpy as np

    return "\n".join(
        f"  {name:<14} {np.expm1(np.sqrt(np.mean(np.log(u / truth) ** 2))):4.0%}"
        for name, u in results.items()
    )


@app.command(epilog=example("sigmascale demo"))
@gather()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder to write to.", metavar="FOLDER")
    ] = Path("demo-output"),
    rows: Annotated[
        int, typer.Option(help="Molecules to make up.", min=1000, metavar="N")
    ] = 20_000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Tell the whole story on built-in data, with a table and a report."""
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        told = run(out, rows=rows, seed=seed)
    if as_json:
        show_json(told)


def run(out: Path, *, rows: int = 20_000, seed: int = 0) -> dict[str, Any]:
    """Tell the whole story; write the data, a picture and the report to `out`.

    Return what is told to machines.
    """
    from sklearn.frozen import FrozenEstimator

    from ..comparison import compare
    from ..datasets import make_molecules
    from ..judging.verdicts import validate
    from ..report import write_report

    out.mkdir(parents=True, exist_ok=True)  # or fail now, not at the end
    data = make_molecules(rows, seed=seed)
    calibration, test = halves(data)
    methods = all_methods()
    write_table(calibration, str(out / "calibration.csv"))
    write_table(test, str(out / "test.csv"))
    show_words(
        f"{rows} synthetic molecules (seed {seed}). Their uncertainties are too large "
        "on average, wrong at both ends and blind to composition. Fitted on one half, "
        "scored on the other."
    )
    say()
    with warnings.catch_warnings():
        # a few compositions of the second half do not occur in the first
        warnings.simplefilter("ignore", UnseenCategoryWarning)
        fitted = {
            name: method.fit(*pair(calibration))
            for name, method in track(methods.items(), "fitting", len(methods))
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
    say()
    show_words(
        "NLL and S: lower is better. S_u is consistency, S_mass and S_hetero are "
        f"adaptivity. Valid: percentage of {n_bins} bins of u, of mass and of hetero "
        "whose <Z²> agrees with 1; 95 is ideal."
    )
    say("\nHow far the uncertainty typically is from the truth, which is known here:")
    u = test["u"].to_numpy()
    say(distances(data.true_sigma[rows // 2 :], {"none": u, **results}))
    error, features = test["E"], test.select("mass", "hetero")
    before, after = "Before", f"After {SHOWN}"
    stages = {
        what: validate(error, each, features, ties=u)
        for what, each in ((before, u), (after, results[SHOWN]))
    }
    for what, found in stages.items():
        say()
        show_words(f"{what}: {found.summary}")
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
    names = ("calibration.csv", "test.csv", "local_zms.png", "report.html")
    files = [str(out / name) for name in names]
    for file in files:
        say(f"  {file}")
    return {
        "files": files,
        "comparison": table.to_dict(),
        "before": stages[before].to_dict(),
        "after": stages[after].to_dict(),
    }
