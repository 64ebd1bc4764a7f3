"""`Recalibrator()`: a boosted scale, and the law of the z-scores of unseen rows."""

import sigmascale as ss
from benchmarks.arena.parts import LEVELS

NAME = "sigmascale"
PACKAGE = "sigmascale"
FEATURES = True


def fit(train, **options):
    return ss.Recalibrator(**options).fit(train.frame, train.error, groups=train.groups)


def predict(state, new):
    found = state.predict_distribution(new.frame)
    return {
        "std": state.predict(new.frame),
        "mean": found.location,
        "quantiles": found.quantile(LEVELS),
    }
