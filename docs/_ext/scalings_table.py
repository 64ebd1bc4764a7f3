"""The table of scalings on the page of recalibration."""

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
