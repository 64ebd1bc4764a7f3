"""A user's script: a regressor, a loop that asks for its largest std, and a search."""

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV

import sigmascale as ss

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = X[:, 0] + rng.normal(size=200)

model = ss.RecalibratedRegressor(RandomForestRegressor(20), cv=3, features=[1])
y_pred, std = model.fit(X, y).predict(X, return_std=True)
worst: int = int(std.argmax())
rmse: float = float(np.sqrt(((model.predict(X) - y) ** 2).mean()))
low, high = model.predict_interval(X, coverage=0.9).T
q: ss.Distributions = model.predict_distribution(X)
crps: float = model.predict_distribution(X).crps(y).mean()
rows: ss.Predictions = model.to_predictions(X, y)
ss.validate(model.predictions_).card("card.html")

search = GridSearchCV(
    model, {"features": [[0], [1]]}, scoring=ss.scorers.neg_crps, cv=2
)
search.fit(X, y)
score: float = ss.scorers.neg_rms_z_error(model, X, y)
