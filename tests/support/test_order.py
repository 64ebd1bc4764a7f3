"""Rows and columns in another order, which nothing but their names can tell."""

import numpy as np
import pandas as pd
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.persistence import dumps, loads

RNG = np.random.default_rng(0)
U = pd.Series(RNG.uniform(1, 2, 60), index=[f"row {i}" for i in range(60)])
E = pd.Series(RNG.normal(size=60), index=U.index)
OTHER = E.sample(frac=1, random_state=0)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: ss.zms(OTHER, U), "`error` and `uncertainty`"),
        (lambda: ss.scorecard(OTHER, U, n_bins=3), "`error` and `uncertainty`"),
        (lambda: ss.validate(OTHER, U), "`error` and `uncertainty`"),
        (lambda: ss.validate(E, U, {"x": U}, groups=OTHER), "`error` and `groups`"),
        (lambda: ss.TemperatureScaling().fit(U, OTHER), "`X` and `y`"),
        (lambda: ss.TemperatureScaling().fit(pd.DataFrame({"u": U}), OTHER), "`y`"),
        (lambda: ss.TemperatureScaling().fit(U, E).score(U, OTHER), "`X` and `y`"),
        (
            lambda: (
                ss.Recalibrator(ss.TemperatureScaling(), law="normal")
                .fit(U, E)
                .conformalize(U, OTHER)
            ),
            "`X` and `error`",
        ),
        (
            lambda: ss.RecalibratedRegressor().fit(pd.DataFrame({"x": U}), OTHER),
            "`X` and `y`",
        ),
    ],
)
def test_the_same_index_in_another_order_is_refused(call, match):
    with pytest.raises(InvalidInputError, match=f"{match}.* same index in another ord"):
        call()


def test_another_index_is_no_reason_to_refuse():
    plain = ss.zms(E.to_numpy(), U.to_numpy())
    assert ss.zms(E.reset_index(drop=True), U) == plain
    assert ss.zms(E.to_numpy(), U) == plain
    assert ss.zms(E.loc[U.index], U) == plain


@pytest.mark.parametrize("again", [lambda s: s, lambda s: loads(dumps(s))])
def test_columns_named_by_numbers_in_another_order_are_refused(again):
    X = pd.DataFrame({0: U, 1: RNG.normal(size=60), 7: RNG.normal(size=60)})
    scaler = again(ss.RakedScaling(2).fit(X, E))
    expected = scaler.predict(X)
    assert (scaler.predict(X.to_numpy()) == expected).all()
    assert (scaler.predict(X.set_axis([0, 1, 2], axis=1)) == expected).all()
    with pytest.raises(InvalidInputError, match=r"order of fit, 0, 1, 7; .*X\[\[0, 1"):
        scaler.predict(X[[0, 7, 1]])
    with pytest.raises(InvalidInputError, match="order of fit"):
        scaler.predict(X[[1, 0, 7]])
