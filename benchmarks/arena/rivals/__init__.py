"""One file a rival: `fit(train)` and `predict_quantiles(state, new, levels)`.

`LEAGUE` is "kept" if the centre of a prediction stays where it is for every row, up to
one constant times the scale, and "corrected" if features may move it. A file may have
`log_density(state, new, error)`, too.
"""
