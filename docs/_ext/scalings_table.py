"""The tables on the page of recalibration: of scalings, and of few rows."""

import warnings

import numpy as np

import sigmascale as ss

SIZES = (50, 200, 1000, 4000)
METHODS = {
    "as predicted": None,
    "`TemperatureScaling()`": ss.TemperatureScaling(),
    "`LinearScaling()`": ss.LinearScaling(),
    "`IsotonicScaling()`": ss.IsotonicScaling(),
    "`BinwiseScaling(40)`": ss.BinwiseScaling(40),
    '`BinwiseScaling(by="mass")`': ss.BinwiseScaling(by="mass"),
    "`RakedScaling()`": ss.RakedScaling(),
    "`BoostedScaling()`": ss.BoostedScaling(),
}


def distances():
    """Return by how much recalibrated u differ from the true ones, by rows."""
    unseen = ss.datasets.make_molecules(5000, seed=1000)
    lines = ["| scaling | " + " | ".join(f"{n} rows" for n in SIZES) + " |"]
    lines.append("| --- |" + " ---: |" * len(SIZES))
    for name, scaling in METHODS.items():
        cells = []
        for n in SIZES:
            u = unseen.predictions.y_std
            if scaling is not None:
                known = ss.datasets.make_molecules(n, seed=0).predictions
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    r = ss.Recalibrator(scaling, distribution="normal").fit(known)
                u = r.predict(unseen.predictions)
            distance = np.expm1(np.sqrt(np.mean(np.log(u / unseen.true_std) ** 2)))
            cells.append(f"{100 * distance:.0f} %")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def few_rows():
    """Return by how much recalibration changes the CRPS, by rows and RMS z."""

    def made(n, seed, rms_z):
        rng = np.random.default_rng(seed)
        u = rng.lognormal(0, 0.4, n)
        error = rms_z * u * rng.normal(size=n)
        return ss.Predictions(error=error, y_std=u, features=rng.normal(size=(n, 3)))

    lines = ["| RMS z before | 60 rows | 250 rows |", "| ---: | ---: | ---: |"]
    for rms_z in (1.0, 1.25):
        cells = []
        for n in (60, 250):
            changes = []
            for seed in range(12):
                p, new = made(n, seed, rms_z), made(4000, 100 + seed, rms_z)
                after = ss.Recalibrator().fit(p).apply(new)
                changes.append(100 * (ss.scores.crps(after) / ss.scores.crps(new) - 1))
            error = np.std(changes, ddof=1) / np.sqrt(len(changes))
            cells.append(f"{np.mean(changes):+.2f} ± {error:.2f} %".replace("-", "−"))
        lines.append(f"| {rms_z:.2f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
