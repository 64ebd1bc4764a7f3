"""Draw the picture of the README, and compute its numbers: python docs/images/hero.py.

It needs MAPIE and uncertainty-toolbox, which are used as their documentation shows, and
writes hero.svg and hero.csv beside this file.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
from mapie.conformity_scores import ResidualNormalisedScore
from mapie.regression import SplitConformalRegressor
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin
from uncertainty_toolbox.recalibration import optimize_recalibration_ratio

import sigmascale as ss
from sigmascale.plots import BLUE, GREEN, GREY, ORANGE, VERMILION

LOOKS = {
    "sigmascale": (BLUE, "s", "-"),
    "MAPIE, default": (GREEN, "v", ":"),
    "MAPIE, normalised by u": (GREEN, "D", "-"),
    "uncertainty-toolbox, ratio": (ORANGE, "^", "-"),
    "as predicted": (VERMILION, "o", "--"),
}


class Column(RegressorMixin, BaseEstimator):
    """A fitted model that returns one of the columns it is given."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y):
        """Learn nothing."""
        self.fitted_ = True
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        """Return the column."""
        return np.asarray(X)[:, self.column]


def mapie(known, new, score=None):
    """Return the 90 % intervals of split conformal prediction."""
    X, X_new = (np.column_stack([p.y_pred, p.y_std]) for p in (known, new))
    options = {}
    if score == "u":
        u = Column(1).fit(X, known.y_true)
        options["conformity_score"] = ResidualNormalisedScore(u, prefit=True, sym=True)
    model = Column(0).fit(X, known.y_true)
    conformal = SplitConformalRegressor(
        model, confidence_level=0.9, prefit=True, **options
    )
    limits = conformal.conformalize(X, known.y_true).predict_interval(X_new)[1]
    return limits[:, 0, 0], limits[:, 1, 0]


def intervals(known, new, after):
    """Return the 90 % intervals of test rows, by method."""
    half = norm.ppf(0.95) * new.y_std
    ratio = optimize_recalibration_ratio(
        known.y_pred, known.y_std, known.y_true, criterion="miscal"
    )
    return {
        "sigmascale": after.distributions.interval(0.9).T,
        "MAPIE, default": mapie(known, new),
        "MAPIE, normalised by u": mapie(known, new, "u"),
        "uncertainty-toolbox, ratio": (
            new.y_pred - ratio * half,
            new.y_pred + ratio * half,
        ),
        "as predicted": (new.y_pred - half, new.y_pred + half),
    }


def compare(new, limits):
    """Return coverage, coverage in fifths of u and interval score, by method."""
    fifth = np.digitize(new.y_std, np.quantile(new.y_std, [0.2, 0.4, 0.6, 0.8]))
    y = new.y_true
    rows = {}
    for name, (low, high) in limits.items():
        is_inside = (low <= y) & (y <= high)
        missed_by = np.maximum(low - y, 0) + np.maximum(y - high, 0)
        rows[name] = {
            "coverage": is_inside.mean(),
            "fifths": [is_inside[fifth == k].mean() for k in range(5)],
            "interval_score": np.mean(high - low + 2 / 0.1 * missed_by),
        }
    return rows


def draw(before, after, rows):
    """Return the picture as SVG, which has colours for light and dark."""
    with ss.plots.drawing() as new_figure:
        figure = new_figure((10.4, 3.6))
        by_u, by_mass, coverage = figure.subplots(1, 3, width_ratios=[1, 1, 1.2])
        panels = {"u": "predicted uncertainty u (K)", "mass": "molar mass (g/mol)"}
        for ax, (by, label) in zip((by_u, by_mass), panels.items(), strict=True):
            ax.axhspan(0.8, 1.25, color=GREEN, alpha=0.12, lw=0)
            ax.axhline(1, color=GREY, lw=1)
            looks = ((before, VERMILION, "o", "before"), (after, BLUE, "s", "after"))
            for p, colour, mark, name in looks:
                # after recalibration, bins are those of before
                x = before.y_std if by == "u" else before.features["mass"]
                binned = ss.Predictions(y_std=p.y_std, error=p.error, features={"x": x})
                local = ss.scores.local_statistics(binned, by="x", n_bins=10)
                centre, low, high = np.sqrt([local.value, local.low, local.high])
                reach = [centre - low, high - centre]
                ax.errorbar(
                    local.x,
                    centre,
                    reach,
                    color=colour,
                    marker=mark,
                    ms=4.5,
                    label=name,
                )
            ax.set(yscale="log", ylim=(0.6, 6), xlabel=label)
            ticks = [0.8, 1, 1.25, 2, 3, 4, 5]
            ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.minorticks_off()
        by_u.set_title("By predicted uncertainty", loc="left")
        by_u.set_ylabel("RMS z, z = error / u (1 is ideal)")
        by_u.legend(frameon=False, loc="upper right")
        by_mass.set_title("By molar mass", loc="left")
        by_mass.text(
            1,
            0.04,
            "accepted: 0.80 to 1.25",
            ha="right",
            color=GREY,
            transform=by_mass.transAxes,
        )
        coverage.axhline(90, color=GREY, lw=1)
        for name, (colour, mark, line) in LOOKS.items():
            percent = 100 * np.array(rows[name]["fifths"])
            width = 2.2 if name == "sigmascale" else 1.3
            coverage.plot(
                range(5),
                percent,
                line,
                color=colour,
                marker=mark,
                ms=4.5,
                lw=width,
                label=name,
                zorder=3 if name == "sigmascale" else 2,
            )
        coverage.set_xticks(range(5), ["smallest", "", "middle", "", "largest"])
        coverage.set(xlabel="fifth of the test rows by u", ylim=(38, 101))
        coverage.set_ylabel("true values inside (%)")
        coverage.set_title("Coverage of 90 % intervals", loc="left")
        coverage.legend(frameon=False, loc="lower right", fontsize=8)
        for ax in figure.axes:
            ax.spines[["top", "right"]].set_visible(False)
        return ss.plots.svg(
            figure,
            key="hero",
            title="RMS z by u and by molar mass, before and after recalibration, and "
            "coverage of 90 % intervals by fifth of u for five methods",
            alone=True,
        )


def main() -> None:
    """Write picture and table, and print results."""
    warnings.simplefilter("ignore")
    known, new = ss.datasets.load_melting()
    after = ss.Recalibrator().fit(known).apply(new)
    print(ss.validate(new), ss.validate(after, before=new), sep="\n\n")
    rows = compare(new, intervals(known, new, after))
    path = Path(__file__)
    path.with_suffix(".svg").write_text(draw(new, after, rows), encoding="utf-8")
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        fifths = [f"fifth_{k}" for k in range(1, 6)]
        lines.writerow(["method", "coverage", *fifths, "interval_score"])
        for name, row in rows.items():
            shares = [row["coverage"], *row["fifths"]]
            cells = [*(f"{x:.4f}" for x in shares), f"{row['interval_score']:.1f}"]
            lines.writerow([name, *cells])
            print(name, *cells)


if __name__ == "__main__":
    main()
