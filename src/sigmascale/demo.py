"""The main job on built-in data: recalibrate, compare, and show the evidence."""

from __future__ import annotations

import argparse
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ._checks import Floats
from ._files import whole_file
from .comparison import compare
from .confidence import confidence_curve
from .datasets import SyntheticMolecules, make_molecules
from .exceptions import UnseenGroupWarning
from .local import local_zms_by_variable
from .plots import plot_confidence_curve, plot_local_zms, plot_z_histogram
from .scaling import (
    BinwiseScaling,
    BoostedScaling,
    GroupScaling,
    IsotonicScaling,
    LinearScaling,
    RakedScaling,
    TemperatureScaling,
)
from .validation import validate

METHODS = {
    "one factor": TemperatureScaling(),
    "linear": LinearScaling(),
    "isotonic": IsotonicScaling(),
    "bins of u": BinwiseScaling(40),
    "bins of mass": BinwiseScaling(40, by="mass"),
    "cells u, mass": BinwiseScaling(10, by=("u", "mass")),
    "groups OxNy": GroupScaling(by="group"),
    "raked": RakedScaling(),
    "boosted": BoostedScaling(),
}
SHOWN = "boosted"


def split(data: SyntheticMolecules) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return the two halves of a set, each as conditioning table and errors."""
    import polars as pl

    table = pl.DataFrame(
        {
            "u": data.uncertainty,
            "mass": data.mass,
            "hetero": data.heteroatom_fraction,
            "group": data.group,
        }
    )
    half = len(data) // 2
    return (table[:half], data.error[:half]), (table[half:], data.error[half:])


def write_plots(test: tuple[Any, Any], scaled: Floats, out: Path) -> list[Path]:
    """Write the pictures of the test set before and after; return their paths."""
    from matplotlib.figure import Figure

    X, error = test
    features = {"mass": X["mass"], "heteroatom fraction": X["hetero"]}
    raw = X["u"].to_numpy()
    pictures: dict[str, Figure] = {}

    figure = Figure(figsize=(12, 6.5), layout="constrained")
    rows = figure.subplots(2, 3)
    stages = ((raw, "before"), (scaled, f"after: {SHOWN}"))
    for axes, (u, what) in zip(rows, stages, strict=True):
        local = local_zms_by_variable(error, u, features, n_bins=50, ties=raw)
        for ax, result in zip(axes, local.values(), strict=True):
            plot_local_zms(result, ax=ax)
        axes[0].set_ylabel(f"{what}\n" + axes[0].get_ylabel())
    lows, highs = zip(*(ax.get_ylim() for ax in rows.flat), strict=True)
    for ax in rows.flat:
        ax.set_ylim(min(lows), max(highs))
    pictures["local_zms.png"] = figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    plot_confidence_curve(confidence_curve(error, scaled), ax=figure.subplots())
    pictures["confidence_curve.png"] = figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    for ax, (u, what) in zip(figure.subplots(1, 2), stages, strict=True):
        plot_z_histogram(error, u, ax=ax)
        ax.set_title(what)
    pictures["z_scores.png"] = figure

    for name, picture in pictures.items():
        with whole_file(out / name) as part:
            picture.savefig(part, dpi=120)
    return [out / name for name in pictures]


def distance_from_truth(data: SyntheticMolecules, cal: Any, test: Any) -> str:
    """Return how far each method's uncertainties are from the true sigma."""
    truth = data.true_sigma[len(data) // 2 :]
    results = {"none": test[0]["u"].to_numpy()}
    results |= {name: m.fit(*cal).predict(test[0]) for name, m in METHODS.items()}
    return "\n".join(
        f"  {name:<14} {np.expm1(np.sqrt(np.mean(np.log(u / truth) ** 2))):4.0%}"
        for name, u in results.items()
    )


def main(argv: list[str] | None = None) -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(
        prog="python -m sigmascale.demo",
        description="Recalibrate synthetic molecules and compare the methods.",
        epilog="example: python -m sigmascale.demo --out demo-output --rows 20000",
    )
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    parser.add_argument("--rows", type=int, default=20_000, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args(argv)
    if options.rows < 1000:
        parser.error("--rows must be at least 1000: 100 bins of 5 rows in each half")
    if options.seed < 0:
        parser.error("--seed must be at least 0")

    with warnings.catch_warnings():
        # a few compositions of the second half do not occur in the first
        warnings.simplefilter("ignore", UnseenGroupWarning)
        tell(make_molecules(options.rows, seed=options.seed), options)


def tell(data: SyntheticMolecules, options: argparse.Namespace) -> None:
    """Print the comparison and write the pictures."""
    cal, test = split(data)
    print(
        f"{len(data)} synthetic molecules (seed {options.seed}). Their uncertainties "
        "are too large on\naverage, wrong at both ends and blind to composition. "
        "Fitted on one half,\nscored on the other.\n"
    )
    table = compare(METHODS, cal, test, features=("mass", "hetero"))
    print(table)
    print(
        "\nNLL and S: lower is better. S_u is consistency, S_mass and S_hetero are\n"
        "adaptivity. Valid: percentage of 100 bins of u, of mass and of hetero whose\n"
        "<Z²> agrees with 1; 95 is ideal.\n"
    )
    print("How far the uncertainty typically is from the truth, known for these data:")
    print(distance_from_truth(data, cal, test))
    X, error = test
    features = {"mass": X["mass"], "hetero": X["hetero"]}
    scaled = METHODS[SHOWN].fit(*cal).predict(X)
    for what, u in (("Before", X["u"].to_numpy()), (f"After {SHOWN}", scaled)):
        words = validate(error, u, features, ties=X["u"]).summary
        print("\n" + textwrap.fill(f"{what}: {words}", 78))
    print(f'\nPictures of the test set, before and after "{SHOWN}":')
    for path in write_plots(test, scaled, options.out):
        print(f"  {path}")


if __name__ == "__main__":
    main()
