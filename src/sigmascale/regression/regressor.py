"""A regressor whose uncertainties are recalibrated."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import (
    BaseEstimator,
    MetaEstimatorMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge
from sklearn.utils import Bunch, Tags, get_tags, indexable
from sklearn.utils._set_output import _get_container_adapter
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.validation import (
    _check_feature_names_in,
    _num_samples,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from .._support.checks import (
    Floats,
    check_count,
    refuse_other_order,
)
from .._support.weights import check_weights
from ..exceptions import InvalidInputError
from ..maps.distributions import Distributions
from ..predictions import (
    check_labels,
    check_target,
    group_codes,
    learned_rows,
    lifted,
)
from ..recalibrator import Recalibrator
from .sources import (
    Features,
    Uncertainty,
    check_source,
    conditioning_table,
    predict_with_std,
    some_rows,
)
from .unseen import calibrate, make_splits, out_of_fold

LEAST = 0.01  # of the median positive uncertainty: no less is believed


class RecalibratedRegressor(
    RegressorMixin, TransformerMixin, MetaEstimatorMixin, BaseEstimator
):
    """Recalibrate the uncertainties of any regressor that has some.

    The counterpart of scikit-learn's ``CalibratedClassifierCV``. Clones of the
    regressor are fitted on all folds but one; their errors and uncertainties for the
    rows they have not seen calibrate the recalibrator; the regressor itself is then
    fitted on all rows. Predictions are those of the regressor alone. An already fitted
    one, wrapped in a ``sklearn.frozen.FrozenEstimator``, stays as it is: all rows given
    to `fit` calibrate, and must be others than those that it was trained on.

    Parameters
    ----------
    regressor : estimator, optional
        The regressor, which may be a pipeline; by default ``BayesianRidge()``.
    recalibrator : Recalibrator, optional
        By default ``Recalibrator()``. Its shift, if it learns one, moves the centre of
        distributions and intervals, and not the predictions.
    cv : int, splitter or iterable of (train, test), default 5
        The folds. A number means shuffled folds, of whole groups where `fit` gets
        `groups`. Splits that leave rows out, or test them repeatedly, are allowed: the
        rows tested are those that calibrate, as with ``TimeSeriesSplit``.
    uncertainty : "auto" or callable, default "auto"
        Where raw uncertainties come from. "auto" takes the standard deviation of
        ``predict(X, return_std=True)`` where there is one (Gaussian processes, Bayesian
        ridge), and else the spread of what the members of a random forest, extra trees,
        bagging or voting predict; in a pipeline or a search, those of its last step. A
        callable gets the fitted regressor and X, and returns one value for each row.
    features : list of int or str, or callable, optional
        The columns of X that the recalibrator may use besides the uncertainty, or a
        function of X that returns a table of them: with these, uncertainties can become
        right for every kind of input (*adaptive*). By default there are none, because
        columns cost time and rows to learn from, and models may have thousands: all ten
        of the diabetes data lower the NLL of a Gaussian process or Bayesian ridge by
        less than 0.01, and choosing a recalibrator takes eight times as long.
    conformal_size : float, optional
        The share of rows that only set the width of `predict_interval`, and that the
        recalibrator does not see. By default none are set aside: intervals are those of
        the distribution.
    n_jobs : int, optional
        Number of folds that are fitted at a time.
    random_state : int, default 0
        Seed of the folds and of the rows set aside.

    Attributes
    ----------
    regressor_ : estimator
        The regressor, fitted on all rows.
    recalibrator_ : Recalibrator
        The fitted one, which :func:`sigmascale.save` can keep.
    minimum_ : float
        A hundredth of the median positive uncertainty of the rows that calibrate. What
        is less is lifted to it, in `fit` and in prediction, with a warning that says
        how many rows: members of a forest may all agree, and quantiles may cross.
    calibration_rows_ : array of int
        The rows that calibrated, in the order of the next two.
    calibration_error_ : array
        Their out-of-fold errors.
    calibration_table_ : array or data frame
        Their conditioning table: out-of-fold uncertainties, then features.

    Notes
    -----
    *Intervals.* With a frozen regressor and `conformal_size`, intervals have the exact
    guarantee of split conformal prediction: they cover a new row from the same source
    with at least the probability asked for. Otherwise it holds approximately: the
    regressor that predicts has seen more rows than those whose errors set the width,
    which makes intervals rather too wide.

    *Weights.* The recalibrator weighs rows by `sample_weight`, and so does a regressor
    whose `fit` takes it; with metadata routing, one that requests it. Further
    arguments of `fit` reach the regressor alone.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import sigmascale as ss
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(50, min_samples_leaf=5, random_state=0)
    >>> model = ss.RecalibratedRegressor(forest).fit(X[:300], y[:300])
    >>> ss.zms(model.calibration_error_, model.calibration_table_)  # of the forest
    2.2
    >>> prediction, std = model.predict(X[300:], return_std=True)
    >>> ss.zms(y[300:] - prediction, std)
    1.0
    >>> ss.picp(y[300:], model.predict_interval(X[300:], coverage=0.9))
    0.9
    """

    # groups keep together what belongs together, here as in every splitter of groups
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(
        self,
        regressor: Any = None,
        recalibrator: Recalibrator | None = None,
        *,
        cv: Any = 5,
        uncertainty: Uncertainty = "auto",
        features: Features = None,
        conformal_size: float | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.regressor = regressor
        self.recalibrator = recalibrator
        self.cv = cv
        self.uncertainty = uncertainty
        self.features = features
        self.conformal_size = conformal_size
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        by_category: Any = None,
        sample_weight: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the regressor, and calibrate the recalibrator with what it got wrong.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            What the regressor takes.
        y : array-like of shape (n,)
            Target values.
        groups : array-like of shape (n,), optional
            Rows of one group stay together in all cross-validation.
        by_category : array-like of shape (n,), optional
            Labels: the coverage of `predict_interval` then holds in every category.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, at least 0, for the recalibrator and for a regressor
            that takes them. Rows of weight 0 calibrate nothing.
        **fit_params
            Passed to the regressor's `fit`; values of n rows are split as X is.

        Returns
        -------
        self
        """
        seed = check_count(self.random_state, "random_state", least=0)
        refuse_other_order(
            X=X,
            y=y,
            groups=groups,
            by_category=by_category,
            sample_weight=sample_weight,
        )
        validate_data(self, X, skip_check_array=True, reset=True)
        (X,) = indexable(X)
        target = check_target(y, _num_samples(X), type(self).__name__, what="targets")
        regressor, recalibrator = self._regressor(), self._recalibrator()
        check_source(regressor, self.uncertainty)
        kept_together = group_codes(groups, target, "X")
        labels = None
        if by_category is not None:
            labels = check_labels(by_category, target, "by_category")
        weights = self._weights(sample_weight, target)
        routed = self._route(groups, sample_weight, fit_params)

        if isinstance(regressor, FrozenEstimator):
            rows = np.arange(target.size)
            prediction, u = predict_with_std(regressor, X, self.uncertainty)
            error = target - prediction
        else:
            splits = make_splits(
                self.cv, X, target, kept_together, routed.splitter.split, seed
            )
            rows, error, u = out_of_fold(
                regressor,
                X,
                target,
                splits,
                routed.regressor.fit,
                self.uncertainty,
                self.n_jobs,
            )
        if not (u > 0).any():
            msg = (
                f"{type(regressor).__name__} must have a positive uncertainty; none "
                f"of {u.size} is. Do all members of an ensemble agree?"
            )
            raise InvalidInputError(msg)
        self.minimum_ = LEAST * float(np.median(u[u > 0]))
        u = lifted(u, self.minimum_)
        if weights is not None:  # rows without a weight calibrate nothing
            kept = weights[rows] > 0
            rows, error, u = rows[kept], error[kept], u[kept]
        together = None if kept_together is None else kept_together[rows]
        if together is None and np.unique(rows).size < rows.size:
            together = rows  # some of which were tested repeatedly
        table = self._table(some_rows(X, rows), u)
        self.calibration_rows_ = rows
        self.calibration_error_ = error
        self.calibration_table_ = table
        of_rows = None if weights is None else weights[rows]
        name = type(self).__name__
        predictions = learned_rows(table, error, together, of_rows, name)
        self.recalibrator_ = calibrate(
            recalibrator,
            predictions,
            None if labels is None else labels[rows],
            conformal_size=self.conformal_size,
            seed=seed,
        )
        self.regressor_ = (
            regressor
            if isinstance(regressor, FrozenEstimator)
            else clone(regressor).fit(X, target, **routed.regressor.fit)
        )
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return predictions and, if asked for, recalibrated uncertainties.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.
        return_std : bool, default False
            Whether to return the uncertainties, too.

        Returns
        -------
        prediction : array of shape (n,)
        std : array of shape (n,), if `return_std`
        """
        if not return_std:
            self._check_columns(X)
            return self.regressor_.predict(X)
        prediction, table = self._predict_raw(X)
        return prediction, self.recalibrator_.predict(table)

    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        asymmetric: bool = False,
        by_category: Any = None,
    ) -> Any:
        """Return limits between which the truth lies with the probability asked for.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.
        coverage : float, default 0.9
            Probability that the truth lies within its limits.
        asymmetric : bool, default False
            Whether the two limits are quantiles of their own, for skewed errors.
        by_category : array-like of shape (n,), optional
            Labels, if `fit` was given some.

        Returns
        -------
        array or data frame of shape (n, 2)
            Limits "low" and "high"; a data frame if `set_output` asks for one.
        """
        prediction, table = self._predict_raw(X)
        limits = prediction[:, None] + self.recalibrator_.predict_interval(
            table, coverage, asymmetric=asymmetric, by_category=by_category
        )
        adapter = _get_container_adapter("transform", self)
        if adapter is None:
            return limits
        return adapter.create_container(limits, X, columns=["low", "high"])

    def predict_distribution(self, X: Any) -> Distributions:
        """Return the recalibrated predictive distributions of the truth.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.

        Returns
        -------
        Distributions
        """
        prediction, table = self._predict_raw(X)
        of_error = self.recalibrator_.predict_distribution(table)
        location = prediction + of_error.location
        return Distributions.of(location, of_error.scale, of_error.law)

    def transform(self, X: Any) -> Floats:
        """Return predictions and recalibrated uncertainties as one table.

        It has the columns "prediction" and "uncertainty", and is a data frame where
        `set_output` or ``sklearn.set_config(transform_output=...)`` asks for one.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.

        Returns
        -------
        array or data frame of shape (n, 2)
        """
        return np.column_stack(self.predict(X, return_std=True))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Compared with the names seen in `fit`, and of no other use.

        Returns
        -------
        array of str
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        return np.array(["prediction", "uncertainty"], dtype=object)

    def get_metadata_routing(self) -> MetadataRouter:
        """Say to scikit-learn which metadata go to the regressor and the splitter.

        Returns
        -------
        MetadataRouter
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                regressor=self._regressor(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Tags:
        """Say to scikit-learn that input is what the regressor takes."""
        tags = super().__sklearn_tags__()
        of_regressor = get_tags(self._regressor())
        tags.input_tags.sparse = of_regressor.input_tags.sparse
        tags.input_tags.allow_nan = of_regressor.input_tags.allow_nan
        return tags

    def _regressor(self) -> Any:
        if self.regressor is not None:
            return self.regressor
        regressor = BayesianRidge()
        if _is_routing():
            regressor.set_fit_request(sample_weight=True)
        return regressor

    def _recalibrator(self) -> Recalibrator:
        if self.recalibrator is None:
            return Recalibrator()
        given: Any = self.recalibrator
        if not isinstance(given, Recalibrator):
            msg = (
                "`recalibrator` must be a Recalibrator, such as "
                f"Recalibrator(TemperatureScaling()); found {given!r}."
            )
            raise InvalidInputError(msg)
        found: Recalibrator = clone(given)
        return found

    @staticmethod
    def _weights(sample_weight: Any, target: Floats) -> Floats | None:
        """Return the weight of each row, 0 of some, or None if all are alike."""
        kept, weights = check_weights(sample_weight, target, "X")
        if kept is None:
            return weights
        of_all = np.zeros(target.size)
        of_all[kept] = 1.0 if weights is None else weights
        return of_all

    def _route(
        self, groups: Any, sample_weight: Any, fit_params: dict[str, Any]
    ) -> Bunch:
        """Return what the regressor and the splitter get of the arguments of `fit`."""
        if _is_routing():
            return process_routing(
                self, "fit", groups=groups, sample_weight=sample_weight, **fit_params
            )
        if sample_weight is not None and has_fit_parameter(
            self._regressor(), "sample_weight"
        ):
            fit_params = {**fit_params, "sample_weight": sample_weight}
        return Bunch(regressor=Bunch(fit=fit_params), splitter=Bunch(split={}))

    def _check_columns(self, X: Any) -> None:
        """Compare the number and names of columns with those seen in `fit`."""
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 1 and hasattr(self, "n_features_in_"):
            msg = (
                f"X must be a table of {self.n_features_in_} columns; found shape "
                f"{X.shape}. Reshape your data: one row is X.reshape(1, -1)."
            )
            raise InvalidInputError(msg)
        validate_data(self, X, skip_check_array=True, reset=False)

    def _predict_raw(self, X: Any) -> tuple[Floats, Any]:
        """Return the prediction and the conditioning table."""
        self._check_columns(X)
        prediction, u = predict_with_std(self.regressor_, X, self.uncertainty)
        return prediction, self._table(X, lifted(u, self.minimum_))

    def _table(self, X: Any, u: Floats) -> Any:
        names = list(getattr(self, "feature_names_in_", ()))
        n_columns = getattr(self, "n_features_in_", 0)
        return conditioning_table(u, X, self.features, names, n_columns)


def _is_routing() -> bool:
    return bool(get_config()["enable_metadata_routing"])
