"""A user's script: rows, checks of them, a recalibrator, and what it makes of them."""

from pathlib import Path

import numpy as np
import polars as pl

import sigmascale as ss
from sigmascale.testing import assert_calibrated

rng = np.random.default_rng(0)
y_std = rng.uniform(1, 2, 600)
y_true = rng.normal(0, y_std)
p = ss.Predictions(np.zeros(600), y_std, y_true=y_true, features={"x": y_std})

v = ss.validate(p, tolerance=1.25)
print(v.result == "pass", v.describe("paper"), v.summary().to_dict())
bound: float = v.bound
for name, check in v.checks.items():
    if check.subgroup is not None:
        print(name.upper(), check.subgroup.estimate + 1.0)

r = ss.Recalibrator(ss.LinearScaling(), hold_out=0.2).fit(p)
r.save(Path("r.json"))
again: ss.Recalibrator = ss.load("r.json")
q: ss.Predictions = again.apply(p)
low, high = q.distributions.interval(0.9).T
print((high - low).mean(), q.distributions.sf(1.0).max())
ss.Monitor(r).update(p).save("monitor.json")
monitor: ss.Monitor = ss.load("monitor.json", kind=ss.Monitor)
limits = ss.Follower(r, coverage=0.9).update(p).interval(p)
print(monitor.state, limits.shape)

score: float = ss.scores.crps(q)
ss.plots.pit(q).set_title("after")
ss.report.write_report("report.html", v)
sample: ss.Predictions = ss.frames.sample(pl.LazyFrame({"u": y_std}), y_std="u")
assert_calibrated(ss.datasets.make_molecules(300).predictions, tolerance=10)
try:
    ss.Predictions(y_true, -y_std)
except ss.exceptions.InvalidInputError as problem:
    code: str = problem.code
