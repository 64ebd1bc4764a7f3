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


@pytest.mark.parametrize(
    "names", [[0, 1, 7], [0.5, 1.5, 7.5], [("u", ""), ("a", 1), ("b", 2)]]
)
@pytest.mark.parametrize("again", [lambda s: s, lambda s: loads(dumps(s))])
def test_columns_whose_names_are_no_text_are_refused_in_another_order(again, names):
    X = pd.DataFrame({0: U, 1: RNG.normal(size=60), 7: RNG.normal(size=60)})
    X.columns = names
    scaler = again(ss.RakedScaling(2).fit(X, E))
    expected = scaler.predict(X)
    assert (scaler.predict(X.to_numpy()) == expected).all()
    assert (scaler.predict(X.set_axis([0, 1, 2], axis=1)) == expected).all()
    for order in ([0, 2, 1], [1, 0, 2]):
        with pytest.raises(
            InvalidInputError, match=r"must have .* in the order of fit"
        ):
            scaler.predict(X.iloc[:, order])


def test_columns_of_which_some_names_are_no_text_are_refused():
    X = pd.DataFrame({"u": U, 1: U})
    with pytest.raises(
        InvalidInputError, match=r"names .* all text, or none; 1 is not"
    ):
        ss.BoostedScaling().fit(X, E)
