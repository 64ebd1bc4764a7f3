"""A user's script with mistakes, each in a line that says so."""

import numpy as np

import sigmascale as ss

p = ss.Predictions(np.zeros(3), np.ones(3), y_true=np.ones(3), feature={})  # wrong
v = ss.validate(p, tollerance=1.25)  # wrong
print(v.verdict)  # wrong
r = ss.Recalibrator(ss.LinearScaling(), holdout=0.2).fit(p)  # wrong
r.aply(p)  # wrong
q = r.apply(p)
q.distributions.intervall(0.9)  # wrong
q.distributions.interval(coverge=0.9)  # wrong
ss.load("r.json").update(p)  # wrong
ss.plots.pitt(q)  # wrong
ss.scores.crpss(q)  # wrong
text: str = ss.scores.crps(q)  # wrong
model = ss.RecalibratedRegressor(ensembel=True)  # wrong
y_pred, std = model.predict(p)
model.predict(p, return_std=True).mean()  # wrong
ss.frames.aply(r, p)  # wrong
print(ss.scorers.crps)  # wrong
print(ss.Boosted)  # wrong
