"""`Recalibrator(shift="auto")`: the same, and predictions are shifted if that helps."""

from benchmarks.arena.methods import ours

NAME = "sigmascale, shifted"
PACKAGE = "sigmascale"
FEATURES = True


def fit(train):
    return ours.fit(train, shift="auto")


predict = ours.predict
