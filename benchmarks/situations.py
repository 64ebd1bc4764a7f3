"""Print what is said in ten situations: python benchmarks/situations.py [NAME ...].

They are a calibrated u, faults of each kind, few rows, heavy tails, a useless u,
repeats, outliers, and a recalibration that helps, makes no difference or harms. `SEED`
draws other sets of the same kind. Look at what is printed: at most 80 columns, a result
that follows from the limits and the accepted range, and one number for one fault.
"""

import os
import sys
import warnings

import numpy as np

import sigmascale as ss

SEED = int(os.environ.get("SEED", "20"))


def calibrated(rng):
    """Return 10,000 rows whose u is 3 % too large."""
    return simulated(rng, 10_000, 1 / 1.03, mass=rng.normal(size=10_000))


def overconfident(rng):
    """Return repeated measurements whose u is too small everywhere."""
    del rng
    return ss.datasets.load_health().test


def feature(rng):
    """Return rows whose u is too small for one label of 12 %."""
    n = 4000
    phase = rng.choice(["molecular", "ionic", "polymer"], n, p=[0.7, 0.12, 0.18])
    factor = np.where(phase == "ionic", 1.9, 1.0)
    features = {"phase": phase, "temperature": rng.uniform(250, 600, n)}
    return simulated(rng, n, factor, **features, mass=rng.lognormal(5, 0.4, n))


def bias(rng):
    """Return rows whose predictions are too low in a range of one feature."""
    n = 3000
    carat = rng.lognormal(-0.5, 0.5, n)
    shift = 0.7 * ((carat > 0.5) & (carat < 0.56))
    return simulated(rng, n, 1.0, shift=shift, carat=carat, depth=rng.normal(61, 1, n))


def few_rows(rng):
    """Return 250 rows with eight features, whose u is somewhat too large."""
    names = ("cement", "slag", "fly_ash", "water", "superplasticizer_of_the_mix")
    features = {name: rng.gamma(2, 80, 250) for name in names}
    features |= {name: rng.normal(800, 80, 250) for name in ("coarse", "fine")}
    age = rng.choice([3, 7, 14, 28, 90], 250)
    return simulated(rng, 250, 0.85, **features, age=age)


def heavy_tails(rng):
    """Return errors like Student's t with 3 degrees of freedom, whose u is right."""
    z = rng.standard_t(3, 2000) / np.sqrt(3)
    return simulated(rng, 2000, 1.0, z=z, mass=rng.normal(size=2000))


def useless(rng):
    """Return a random u that has nothing to do with the errors."""
    n = 3000
    u = 0.5 * rng.lognormal(0, 0.15, n)
    features = {"mass": rng.normal(size=n)}
    return ss.Predictions(y_std=u, error=0.5 * rng.normal(size=n), features=features)


def repeats(rng):
    """Return 25 repeats each of 60 samples, without groups."""
    sample = np.repeat(np.arange(60), 25)
    u = rng.gamma(9, 0.1, 60)[sample]
    z = 0.8 * rng.normal(size=60)[sample] + 0.6 * rng.normal(size=1500)
    features = {"mass": rng.normal(size=60)[sample]}
    return ss.Predictions(y_std=u, error=u * z, features=features)


def outliers(rng):
    """Return a right u with three enormous errors."""
    z = rng.normal(size=1500)
    z[rng.choice(1500, 3, replace=False)] = [31, -27, 22]
    return simulated(rng, 1500, 1.0, z=z, mass=rng.normal(size=1500))


def simulated(rng, n, factor, *, shift=0.0, z=None, **features):
    """Return rows whose RMS z is `factor`, and whose mean z is `shift`."""
    u = rng.gamma(4, 0.1, n)
    z = rng.normal(size=n) if z is None else z
    return ss.Predictions(y_std=u, error=u * (factor * z + shift), features=features)


def recalibrated(rng):
    """Yield the same rows before and after: helped, no difference, harm."""
    data = ss.datasets.load_health()
    yield data.test, ss.Recalibrator().fit(data.calibration).apply(data.test)
    for n, factor in ((3000, 1.0), (60, 1.0)):
        test = simulated(rng, 5000, factor, mass=rng.normal(size=5000))
        fitted = simulated(rng, n, factor, mass=rng.normal(size=n))
        scaling = ss.TemperatureScaling() if n == 3000 else ss.BoostedScaling()
        yield test, ss.Recalibrator(scaling).fit(fitted).apply(test)


SITUATIONS = [
    calibrated,
    overconfident,
    feature,
    bias,
    few_rows,
    heavy_tails,
    useless,
    repeats,
    outliers,
]


def main(names):
    """Print them."""
    warnings.simplefilter("ignore")
    for number, situation in enumerate([*SITUATIONS, recalibrated], 1):
        if names and situation.__name__ not in names:
            continue
        rng = np.random.default_rng([SEED, number])
        made = situation(rng)
        if isinstance(made, ss.Predictions):
            made = [(None, made)]
        for before, rows in made:
            print(f"{'=' * 20} {number} {situation.__name__}")
            print(ss.validate(rows, before=before), end="\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])
