"""Predictions: the one kind of rows, checked once, where they come in.

Everything is tested, fitted to and recalibrated as :class:`Predictions`: columns
with the uncertainty first, errors where they are known, groups and weights where there
are any. Numbers are float64; labels are codes of whole numbers, whose names are kept
once. An error may be a number or a vector of d components with one isotropic
uncertainty. What lies behind this door trusts what it gets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from .._support.checks import (
    LARGEST,
    LARGEST_Z,
    SMALLEST,
    Floats,
    Ints,
    as_array,
    as_frame,
    check_column,
    check_fraction,
    check_numbers,
    check_same_length,
    is_real,
    need,
    refuse_other_order,
    refuse_values,
    rounded,
)
from .._support.columns import (
    Column,
    TypedColumn,
    check_time,
    effective_weights,
    group_codes,
    typed_column,
)
from .._support.labels import Categories, Label
from .._support.notices import rows_at, warn
from .._support.numerals import number
from .._support.origin import Origin, columns_of, make_frame
from .._support.text import listed, quoted, shorten
from .._support.weighting import mean_of
from ..exceptions import InvalidInputError, NotANumberError, ZeroUncertaintyWarning
from .dates import words_of_time
from .forms import (
    N_LEVELS,
    of_distribution,
    of_members,
    quantiles_of_distribution,
    read_atoms,
    read_quantiles,
    upright,
)
from .ordering import canonical_order
from .shapes import Shapes

if TYPE_CHECKING:
    from ..recalibration.distributions import Distributions
    from .combinations import GroupCorrelation

LARGEST_JUDGED = 1e38  # which trees of scikit-learn take
# Questions and scores that are not of a feature.
RESERVED = frozenset(
    {"u", "cal", "con", "ada", "tot", "average", "bias", "joint", "coverage"}
)


class Predictions:
    """Predictions with uncertainties, and errors where true values are known.

    They never change: arrays are copies, and read-only.

    Parameters
    ----------
    y_pred : array-like of shape (n,) or (n, d), optional
        Predictions: numbers, or vectors such as forces; a column of shape (n, 1) is of
        numbers. They may be left out where only errors, or uncertainties, matter.
    y_std : array-like of shape (n,)
        Standard uncertainties, positive. Of a vector it is the root of the mean
        variance of its components.
    y_true : array-like of shape (n,) or (n, d), optional
        True values; the error is ``y_true - y_pred``.
    error : array-like of shape (n,) or (n, d), optional
        Errors, true value minus prediction, in place of `y_true`.
    features : data frame, dict or array of shape (n, n_features), optional
        Input features: numbers, of which some may be missing (NaN), or labels (text,
        categories, booleans). Columns of an array are named X1, X2, ...
    groups : array-like of shape (n,), optional
        Labels of rows that are not independent: repeats of a sample, frames of a
        trajectory, atoms of a structure.
    weights : array-like of shape (n,), optional
        Importance weights of the rows, at least 0. Only their ratios matter; rows of
        weight 0 are left out. How often a row was seen is no weight: repeat it, and
        say so by `groups`.
    time : array-like of shape (n,), optional
        When each row came: numbers, dates, or text such as 2024-05-01T12:00.
    min_std : float, optional
        Uncertainties below it, 0 among them, are lifted to it, with a warning that
        counts them. Without it, uncertainties that are not positive are refused.

    Attributes
    ----------
    y_pred, y_true, error, y_std : array or None
        What was given; the error where it is known.
    features : dict of str to array
        The features by name: numbers as float64, labels as text.
    groups : array of int or None
        The number of each row's group, from 0, without gaps.
    weights : array or None
        Positive weights, whose sum is the effective number of rows, (Σw)² / Σw².
    time : array or None
        Numbers, or dates as datetime64 (in UTC if they had a time zone).
    recalibrated : Distributions or None
        The distributions that a recalibrator has made
        (:meth:`sigmascale.Recalibrator.apply`); None of rows as they were predicted.
    shape : Shapes or None
        What quantiles say of each row beyond a middle and a width. The error is then
        that of a *straightened* true value, which a normal row of this prediction and
        uncertainty would have made: see :meth:`from_quantiles`.
    origin : Origin or None
        The library and the index of the first data frame or series among what was
        given, in which :meth:`to_frame` hands the rows out again.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions([1.0, 2.0], [0.1, 0.2], y_true=[1.1, 1.8])
    >>> p
    Predictions: 2 rows, true values known
    >>> p.z.round(1)
    array([ 1., -1.])
    """

    _OF_COLUMNS: ClassVar[tuple[str, ...]] = ("columns", "names", "categories")
    _BY_ROW: ClassVar[tuple[str, ...]] = (
        "y_pred",
        "y_true",
        "error",
        "groups",
        "weights",
        "time",
        "places",
        "recalibrated",
        "shape",
        "origin",
    )
    _FIELDS: ClassVar[tuple[str, ...]] = (*_OF_COLUMNS, *_BY_ROW, "time_words")

    columns: tuple[Column, ...]  # u, and features as float64 or int codes
    names: tuple[str, ...]  # "u", and those of the features
    categories: tuple[tuple[Label, ...] | None, ...]  # labels that codes stand for
    y_pred: Floats | None
    y_true: Floats | None
    error: Floats | None
    groups: Ints | None
    weights: Floats | None
    time: npt.NDArray[Any] | None
    places: Ints | None  # where rows were in the table, if some were left out
    recalibrated: Distributions | None
    shape: Shapes | None
    origin: Origin | None
    time_words: str | None  # why rows seem to lie in the order of a time not given

    def __init__(
        self,
        y_pred: Any = None,
        y_std: Any = None,
        *,
        y_true: Any = None,
        error: Any = None,
        features: Any = None,
        groups: Any = None,
        weights: Any = None,
        time: Any = None,
        min_std: float | None = None,
    ) -> None:
        # what has to be given, and what makes no sense together
        refuse_other_order(
            y_pred=y_pred,
            y_std=y_std,
            y_true=y_true,
            error=error,
            groups=groups,
            weights=weights,
            time=time,
            features=features,
        )
        if y_std is None:
            msg = (
                "`y_std` must be given: the standard uncertainty of each prediction. "
                "An object that has both goes to Predictions.from_distribution."
            )
            raise InvalidInputError(msg)
        if error is not None and y_true is not None:
            msg = "Pass `y_true`, with `y_pred`, or `error`; not both."
            raise InvalidInputError(msg)
        if y_true is not None and y_pred is None:
            msg = "`y_true` needs `y_pred`: the error is their difference."
            raise InvalidInputError(msg)

        # numbers, or vectors, of one shape
        checked = {}
        for name, values in (("y_pred", y_pred), ("y_true", y_true), ("error", error)):
            if values is not None:
                checked[name] = check_numbers(values, name)
        for name in ("y_pred", "y_true"):  # columns of one number are numbers
            if name in checked and checked[name].shape[1:] == (1,):
                checked[name] = checked[name].ravel()
        u = _check_shapes(y_std, checked)
        if "y_true" in checked:
            with np.errstate(over="ignore"):  # which is refused below
                checked["error"] = checked["y_true"] - checked["y_pred"]
        if min_std is not None:
            u = _lifted(u, min_std)
        _check_sizes(u, checked.get("error"))

        # what else is known of each row
        typed = _typed_features(features, u)
        rows = Predictions._of(
            columns=(u, *(column for column, _ in typed.values())),
            names=("u", *typed),
            categories=(None, *(labels for _, labels in typed.values())),
            groups=None if groups is None else group_codes(groups, u),
            time=None if time is None else check_time(time, u),
            time_words=words_of_time(groups, typed) if time is None else None,
            origin=Origin.of(y_pred, y_std, y_true, error, features, groups, weights),
            **checked,
        )

        # rows of no weight are left out; equal weights are none
        if weights is not None:
            weighted, effective = effective_weights(weights, u)
            if weighted.size < u.size:
                rows = rows._with(places=np.arange(u.size)).take(weighted)
            if effective is not None:
                rows = rows._with(weights=effective)
        self.__dict__.update(vars(rows))

    # -- other ways to make them -------------------------------------------------------

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        y_pred: str | None = None,
        y_std: str | None = None,
        y_true: str | None = None,
        error: str | None = None,
        variance: str | None = None,
        members: str | Sequence[str] = (),
        quantiles: Mapping[str, float] | None = None,
        interval: Sequence[str] = (),
        coverage: float | None = None,
        features: Sequence[str] = (),
        labels: Sequence[str] = (),
        groups: str | None = None,
        weights: str | None = None,
        time: str | None = None,
        min_std: float | None = None,
    ) -> Predictions:
        """Return the predictions of a table; columns with plain names find their part.

        Parameters
        ----------
        frame : data frame of pandas, Polars or PyArrow
            The table.
        y_pred, y_std, y_true, error, variance : str, optional
            The columns of predictions, uncertainties (or variances) and true values, or
            errors. What is not named is guessed from the names of columns; if that
            cannot be told, the message asks. Without true values there are no errors.
        members : list of str, optional
            Instead of an uncertainty, columns of an ensemble's members; "pred_*" stands
            for all that differ by a number.
        quantiles : dict of str to float, optional
            Or columns of quantiles, with their levels: {"q05": 0.05, "q95": 0.95}.
        interval, coverage : pair of str, float, optional
            Or the columns of lower and upper limits, and their nominal coverage.
        features : list of str or "all", default ()
            Columns of input features. "all" takes all columns that have no other part,
            text too if it has at most 30 labels and ten rows a label on average. Other
            text, and a column that only counts rows, is left out, with a warning.
        labels : list of str, default ()
            Columns whose values are labels, numbers and days too. Text always is.
        groups, weights, time : str, optional
            Columns of groups, weights and times.
        min_std : float, optional
            Uncertainties below it are lifted to it, with a warning that counts them.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import polars as pl
        >>> import sigmascale as ss
        >>> table = pl.DataFrame(
        ...     {"y": [1.1, 1.8], "pred": [1.0, 2.0], "std": [0.1, 0.2]}
        ... )
        >>> ss.Predictions.from_frame(table, y_true="y")
        Predictions: 2 rows, true values known
        """
        arguments = dict(locals())  # as they are named above
        del arguments["cls"], arguments["frame"]
        from .schema import Choice, of_frame

        choice = Choice.of_arguments(arguments)
        return of_frame(frame, choice).read(frame)

    @classmethod
    def from_members(
        cls,
        members: Any,
        *,
        y_true: Any = None,
        ddof: int = 1,
        members_axis: int | None = None,
        **others: Any,
    ) -> Self:
        """Return predictions of an ensemble: mean and standard deviation of members.

        Parameters
        ----------
        members : array-like or data frame of shape (n, m) or (n, m, d)
            What each of m members predicts, two at least. The uncertainty of a vector
            is the root of the mean variance of its components.
        y_true : array-like of shape (n,) or (n, d), optional
            True values.
        ddof : int, default 1
            The variance is a sum of squares over m − ddof.
        members_axis : int, optional
            1 says that `members` have a column for each member, 0 that they have a row
            for each. By default it is 1, with a warning where `members` are square,
            as both readings are possible then.
        **others
            As for :class:`Predictions`: features, groups, weights, time, min_std.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import sigmascale as ss
        >>> members = [[1.0, 1.2, 1.4, 0.8] * 3, [2.0, 2.4, 1.6, 2.0] * 3]
        >>> p = ss.Predictions.from_members(members, y_true=[1.0, 2.2])
        >>> p.y_pred, p.y_std.round(2)
        (array([1.1, 2. ]), array([0.23, 0.3 ]))
        """
        table = upright(members, y_true, members_axis)
        rows = cls(*of_members(table, ddof), y_true=y_true, **others)
        return rows if members_axis == 0 else rows._from(members)

    @classmethod
    def from_distribution(
        cls, d: Any, *, y_true: Any = None, shape: bool = True, **others: Any
    ) -> Self:
        """Return the predictions of an object that has quantiles, or mean and spread.

        Distributions and posteriors of PyTorch, GPyTorch, BoTorch, TensorFlow
        Probability, SciPy, skpro and NGBoost are such objects, and the full output of
        TabPFN. Of what is not normal 33 quantiles are taken: see
        :meth:`from_quantiles`.

        Parameters
        ----------
        d : object
            Its `ppf`, `quantile` or `icdf` returns a quantile of each row; else its
            `mean` and its `stddev`, `std`, `standard_deviation`, `variance` or `var`,
            attributes or methods, have one number a row; of these the first is taken
            that there is.
        y_true : array-like of shape (n,), optional
            True values.
        shape : bool, default True
            Whether the shapes of distributions are kept, if their quantiles tell them;
            or nothing but mean and standard deviation.
        **others
            As for :class:`Predictions`: features, groups, weights, time, min_std.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import scipy.stats
        >>> import sigmascale as ss
        >>> d = scipy.stats.norm(loc=[1.0, 2.0], scale=[0.1, 0.2])
        >>> ss.Predictions.from_distribution(d, y_true=[1.1, 1.8]).z.round(1)
        array([ 1., -1.])
        """
        q = quantiles_of_distribution(d) if shape else None
        if q is None:
            return cls(*of_distribution(d), y_true=y_true, **others)
        rows = cls(q.middle, q.width, y_true=y_true, **others)
        return rows._shaped(q.levels, q.values)

    @classmethod
    def from_samples(cls, samples: Any, *, y_true: Any = None, **others: Any) -> Self:
        """Return the predictions of samples: their quantiles.

        Of 33 samples or more, 33 quantiles are taken, and of fewer all. The spread of
        few members of an ensemble tells more than their quantiles: see
        :meth:`from_members`.

        Parameters
        ----------
        samples : array-like or data frame of shape (n, m)
            Draws from the distribution of each row, three at least.
        y_true : array-like of shape (n,), optional
            True values.
        **others
            As for :meth:`from_quantiles`.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import numpy as np
        >>> import sigmascale as ss
        >>> samples = np.random.default_rng(0).gamma(2.0, size=(5, 1000))
        >>> p = ss.Predictions.from_samples(samples)
        >>> p.distributions.interval(0.9).mean(axis=0).round(1)
        array([0.4, 4.8])
        """
        table = check_numbers(samples, "samples", (2,))
        n_samples = table.shape[1]
        need(n_samples > 2, "samples", "have at least 3 columns, one a draw", n_samples)
        n_levels = min(n_samples, N_LEVELS)
        levels = (np.arange(n_levels) + 0.5) / n_levels
        quantiles = np.quantile(table, levels, axis=1, method="hazen").T
        rows = cls.from_quantiles(levels, quantiles, y_true=y_true, **others)
        return rows._from(samples)

    @classmethod
    def from_quantiles(
        cls,
        levels: Any,
        quantiles: Any,
        *,
        y_true: Any = None,
        shape: bool = True,
        **others: Any,
    ) -> Self:
        """Return the predictions of a quantile model: a middle, a width and a shape.

        The prediction is the median, or where there is none what lies between the two
        quantiles next to it. The uncertainty is the width of the outermost symmetric
        pair of quantiles, over that of a standard normal.

        Three quantiles and more have a *shape*: a monotone curve through them, as a
        function of a standard normal number. True values are straightened by it. The
        error of a row is the one that a normal row of the same prediction and
        uncertainty would have made: it differs from ``y_true - y_pred`` where the row
        is skewed, or has tails of its own. :class:`~sigmascale.Recalibrator` learns how
        much of the shape to keep, and its quantiles leave by the curve again. Before,
        scores and intervals are those of the quantiles as they were given. A value that
        several quantiles have, such as no rain, has a probability of its own; the
        error of such a true value is drawn within it, once.

        Parameters
        ----------
        levels : array-like of shape (k,)
            Levels of the quantiles, ascending, between 0 and 1, such as 0.05, 0.5 and
            0.95; there is a pair p, 1 − p.
        quantiles : array-like or data frame of shape (n, k)
            The quantiles of each row. Where they cross they are sorted, with a warning
            that counts these rows; where most descend they are refused.
        y_true : array-like of shape (n,), optional
            True values.
        shape : bool, default True
            Whether the shapes of rows are kept, or nothing but a middle and a width.
        **others
            As for :class:`Predictions`: features, groups, weights, time, min_std.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import sigmascale as ss
        >>> levels = [0.16, 0.5, 0.84]
        >>> p = ss.Predictions.from_quantiles(levels, [[1.0, 2.0, 4.0]], y_true=[4.0])
        >>> p.y_pred, p.y_std.round(2), p.z.round(2)
        (array([2.]), array([1.51]), array([0.99]))
        >>> p.distributions.quantile(levels).round(2)
        array([[1., 2., 4.]])
        """
        q = read_quantiles(levels, quantiles)
        rows = cls(q.middle, q.width, y_true=y_true, **others)._from(quantiles)
        has_shape = shape and q.levels.size > 2
        return rows._shaped(q.levels, q.values) if has_shape else rows

    @classmethod
    def from_interval(
        cls, low: Any, high: Any, *, coverage: float, y_true: Any = None, **others: Any
    ) -> Self:
        """Return the predictions of intervals: their middle and width.

        Parameters
        ----------
        low, high : array-like of shape (n,)
            Limits.
        coverage : float
            The nominal coverage of the intervals, such as 0.9.
        y_true : array-like of shape (n,), optional
            True values.
        **others
            As for :class:`Predictions`: features, groups, weights, time, min_std.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import sigmascale as ss
        >>> p = ss.Predictions.from_interval([1.0], [3.0], coverage=0.95)
        >>> p.y_pred, p.y_std.round(2)
        (array([2.]), array([0.51]))
        """
        bottom = check_column(low, "low")
        top = check_column(high, "high")
        check_same_length("low", bottom, "high", top)
        share = check_fraction(coverage, "coverage")
        levels = [(1 - share) / 2, (1 + share) / 2]
        limits = np.column_stack([bottom, top])
        return cls.from_quantiles(levels, limits, y_true=y_true, **others)._from(low)

    @classmethod
    def from_atoms(
        cls,
        structures: Any,
        *,
        reference: str | None = None,
        prediction: str | None = None,
        members: str | Sequence[str] | None = None,
        uncertainty: str | None = None,
        energies: bool = False,
        norm: bool | None = None,
        **others: Any,
    ) -> Self:
        """Return the predictions of an interatomic potential: forces, or energies.

        Forces have one row an atom, its species as a feature and its structure as a
        group. Energies have one row a structure; they are taken per atom, and the
        number of atoms is a feature.

        Parameters
        ----------
        structures : list of ase.Atoms, or path
            Structures, or a file that ASE reads, such as extended XYZ.
        reference : str, optional
            The name of the true forces, or energy, in `arrays`, `info` or the results
            of the calculator of a structure, such as "REF_forces".
        prediction : str, optional
            The name of what is predicted; by default the mean of the members.
        members : str or list of str, optional
            The name of an array of all members, such as MACE's "forces_comm", or one
            name a member.
        uncertainty : str, optional
            The name of the uncertainties, instead of the spread of members: one an
            atom, or one a structure for its energy.
        energies : bool, default False
            Take energies rather than forces.
        norm : bool, optional
            Whether the one uncertainty of an atom's force is the norm of those of its
            components, as GPUMD writes it, or their root mean square, which is √3 times
            smaller. By default it is read as the latter, with a warning that says so.
        **others
            As for :class:`Predictions`: weights, time, min_std.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import numpy as np
        >>> from ase import Atoms
        >>> import sigmascale as ss
        >>> water = Atoms("H2O", np.eye(3))
        >>> water.arrays["REF_forces"] = np.zeros((3, 3))
        >>> rng = np.random.default_rng(0)
        >>> water.info["forces_comm"] = rng.normal(size=(12, 3, 3))
        >>> names = {"reference": "REF_forces", "members": "forces_comm"}
        >>> ss.Predictions.from_atoms([water] * 2, **names)
        Predictions: 6 rows of 3 components, true values known; 2 groups; features:
        species
        """
        arguments = read_atoms(
            structures,
            reference=reference,
            prediction=prediction,
            members=members,
            uncertainty=uncertainty,
            energies=energies,
            norm=norm,
        )
        return cls(**arguments, **others)

    # -- rows of rows ------------------------------------------------------------------

    @classmethod
    def _of(cls, **fields: Any) -> Self:
        """Return the predictions of fields that are known to be right."""
        frozen: dict[str, Any] = dict.fromkeys(cls._FIELDS)
        for name, value in fields.items():
            is_array = isinstance(value, np.ndarray)
            frozen[name] = _read_only(value) if is_array else value
        frozen["columns"] = tuple(_read_only(column) for column in fields["columns"])
        rows = cls.__new__(cls)
        rows.__dict__.update(frozen)
        return rows

    def _from(self, frame: Any) -> Self:
        """Return the same rows, with the library and the index of a data frame."""
        origin = Origin.of(frame)
        if origin is None:
            return self
        return self._with(origin=origin if self.places is None else origin[self.places])

    def with_y_std(self, y_std: Any) -> Self:
        """Return the same rows with other uncertainties, as if these were predicted.

        Parameters
        ----------
        y_std : array-like of shape (n,)
            Standard uncertainties, positive.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import sigmascale as ss
        >>> p = ss.Predictions([1.0, 2.0], [0.1, 0.2], y_true=[1.1, 1.8])
        >>> p.with_y_std(2 * p.y_std).z.round(2)
        array([ 0.5, -0.5])
        """
        u = _check_shapes(y_std, {"the predictions": self.y_std})
        _check_sizes(u, self.error)
        return self._with(y_std=u, recalibrated=None)

    def _with(self, *, y_std: Floats | None = None, **fields: Any) -> Self:
        """Return the same with some of the fields replaced; errors follow `y_pred`."""
        unchanged = {name: self.__dict__[name] for name in self._FIELDS}
        if y_std is not None:
            fields["columns"] = (y_std, *self.columns[1:])
        follows = "y_pred" in fields and "error" not in fields
        if follows and self.error is not None:
            if self.y_true is not None:
                fields["error"] = self.y_true - fields["y_pred"]
            elif self.y_pred is not None:
                fields["error"] = self.error + (self.y_pred - fields["y_pred"])
        return self._of(**unchanged | fields)

    def _shaped(self, levels: Floats, quantiles: Floats) -> Self:
        """Return rows with the shapes of quantiles, and true values straightened.

        Where a true value is on an atom, a value that several quantiles have, its error
        is drawn within the probability of it. Draws follow the canonical order of the
        rows on atoms, and depend neither on how rows came nor on their unit.
        """
        if self.places is not None:  # some were left out
            quantiles = quantiles[self.places]
        shape = Shapes.of(levels, quantiles, self.y_std)
        if self.error is None:
            return self._with(y_pred=shape.middle, shape=shape)

        y = self.target
        error = (shape.errors(y, "left") + shape.errors(y)) / 2
        shaped = self._with(y_pred=shape.middle, y_true=y, error=error, shape=shape)
        on_atom = np.flatnonzero(shape.on_atom(y))
        if on_atom.size:
            order = on_atom[canonical_order(shaped.take(on_atom))]
            shares = np.random.default_rng(0).random(order.size)
            error[order] = shape[order].drawn(y[order], shares)
        return shaped._with(error=error)

    def _with_shape_kept(self, share: float) -> Self:
        """Return rows that keep a share of their shapes; true values follow."""
        if self.shape is None or share == 1:
            return self
        if not share:
            error = None if self.error is None else self.residual
            return self._with(shape=None, error=error)
        shape = self.shape.blended(share)
        error = None if self.error is None else shape.errors(self.target)
        return self._with(y_pred=shape.middle, error=error, shape=shape)

    def _straightened(self, share: float) -> Self:
        """Return rows as errors and uncertainties alone, by a share of their shapes."""
        errors = self._with_shape_kept(share).errors
        return self._with(y_pred=None, y_true=None, error=errors, shape=None)

    def _moved(self, by: Floats) -> Self:
        """Return rows whose errors are smaller by a number of each, as if biased."""
        if self.shape is not None:
            shape = self.shape.moved(by)
            error = None if self.error is None else self.error - by
            return self._with(y_pred=shape.middle, error=error, shape=shape)
        if self.y_pred is not None:
            return self._with(y_pred=self.y_pred + by)
        return self if self.error is None else self._with(error=self.error - by)

    def take(self, which: npt.NDArray[Any] | Sequence[int] | slice) -> Self:
        """Return some of the rows.

        Parameters
        ----------
        which : array of int or bool, or slice
            Their numbers, in any order; or whether each is taken.

        Examples
        --------
        >>> import sigmascale as ss
        >>> ss.Predictions([1.0, 2.0, 3.0], [0.1, 0.2, 0.3]).take([2, 0]).y_pred
        array([3., 1.])
        """
        which = which if isinstance(which, slice) else np.asarray(which)
        taken = {}
        for name in self._BY_ROW:
            values = self.__dict__[name]
            if values is not None:
                taken[name] = values[which]
        if self.groups is not None:  # without gaps
            present = np.bincount(taken["groups"]) > 0
            taken["groups"] = (np.cumsum(present) - 1)[taken["groups"]]
        columns = tuple(column[which] for column in self.columns)
        return self._with(columns=columns, **taken)

    def with_features(self, keys: Sequence[int | str]) -> Self:
        """Return the same rows with some of their features."""
        positions = [0, *(self.position(key, "features") for key in keys)]
        return self._with(
            columns=tuple(self.columns[i] for i in positions),
            names=tuple(self.names[i] for i in positions),
            categories=tuple(self.categories[i] for i in positions),
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore what was copied or sent elsewhere, as read-only as it was."""
        fields = {name: state[name] for name in self._FIELDS}
        self.__dict__.update(vars(self._of(**fields)))

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse changes: what was tested must stay what it was."""
        msg = f"Predictions never change; `{name}` cannot be set. Make new ones."
        raise AttributeError(msg)

    # -- what follows from the fields --------------------------------------------------

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n_rows

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.columns[0])

    @property
    def y_std(self) -> Floats:
        """The standard uncertainties."""
        return self.columns[0]

    @property
    def components(self) -> int | None:
        """The number of components of vectors; None of numbers."""
        values = self.y_pred if self.error is None else self.error
        return None if values is None or values.ndim == 1 else values.shape[1]

    @property
    def is_vector(self) -> bool:
        """Whether errors, or predictions, are vectors rather than numbers."""
        return self.components is not None

    @property
    def dim(self) -> int:
        """The number of components: 1, or d of vectors."""
        return self.components or 1

    @property
    def features(self) -> dict[str, npt.NDArray[Any]]:
        """The features by name: numbers, or labels as text and None."""
        numbers = dict(zip(self.names[1:], self.columns[1:], strict=True))
        return numbers | self._labels

    @cached_property
    def _labels(self) -> dict[str, npt.NDArray[Any]]:
        """The features that are labels, as text and None."""
        labelled = [name for name in self.names if self.is_labelled(name)]
        return {name: _read_only(self.labels(name).values()) for name in labelled}

    @property
    def distributions(self) -> Distributions:
        """The predictive distributions: those that a recalibrator has made.

        Of rows as they were predicted, they are normal, or those of the quantiles that
        were given.
        """
        if self.recalibrated is not None:
            return self.recalibrated
        # rooms below know distributions: this one asks for them by name
        below = import_module("sigmascale.recalibration.distributions")
        normal: Distributions = below.Distributions.normal(self)
        return normal

    @property
    def errors(self) -> Floats:
        """The errors, which must be known."""
        if self.error is None:
            msg = "Errors must be known: pass `y_true` or `error` to `Predictions`."
            raise InvalidInputError(msg, "no-errors")
        return self.error

    @property
    def signed_error(self) -> Floats:
        """The errors; of vectors, which have no sign, the root mean square."""
        if self.is_vector:
            return _read_only(np.sqrt(self.squared_error))
        return self.errors

    @cached_property
    def squared_error(self) -> Floats:
        """The squares of the errors; of vectors, the mean over their components.

        Vectors that a rotation, or a symmetry, makes equally long have the same one.
        """
        squares: Floats = self.errors**2
        if self.dim == 1:
            return _read_only(squares.ravel())
        return _read_only(rounded(squares.mean(axis=1)))

    @cached_property
    def z(self) -> Floats:
        """The z-scores, error over uncertainty; vectors have none."""
        if self.is_vector:
            raise InvalidInputError(_NO_SIGN, "vectors")
        return _read_only(self.errors / self.y_std)

    @cached_property
    def z2(self) -> Floats:
        """The squares of the z-scores; of vectors ‖E‖² / (d u²). Their mean is 1."""
        if self.is_vector:
            return _read_only(self.squared_error / self.y_std**2)
        return _read_only(self.z**2)

    @cached_property
    def abs_z(self) -> Floats:
        """The sizes of the z-scores, ‖E‖ / (u √d)."""
        return _read_only(np.sqrt(self.z2) if self.is_vector else np.abs(self.z))

    @property
    def target(self) -> Floats:
        """What a distribution is of: true values, or errors without predictions."""
        if self.y_true is not None:
            return self.y_true
        return self.errors if self.y_pred is None else self.y_pred + self.errors

    @property
    def residual(self) -> Floats:
        """True value minus prediction, in the unit of y: of shaped rows no error."""
        errors = self.errors
        if self.shape is None or self.y_pred is None:
            return errors
        return _read_only(self.target - self.y_pred)

    @property
    def n_effective(self) -> int | float:
        """The number of rows; of weighted ones the effective number, (Σw)² / Σw²."""
        return self.n_rows if self.weights is None else float(self.weights.sum())

    def mean(self, values: npt.NDArray[Any]) -> float:
        """Return the mean of a value of each row, weighted if rows are."""
        return mean_of(values, self.weights)

    # -- as a data frame ---------------------------------------------------------------

    def to_frame(self, coverage: float | None = None) -> Any:
        """Return the rows as a data frame of the library that they came from.

        Parameters
        ----------
        coverage : float, optional
            The coverage of intervals, which become columns: "low" and "high"; of
            vectors "radius".

        Returns
        -------
        data frame
            Of pandas with its index, Polars or PyArrow; of rows that came in arrays, of
            pandas, or of Polars where that is missing. Its columns are "y_pred",
            "y_std" and "y_true" (or "error"), as far as they are known; the features,
            labels as text; "groups" as numbers, "weights" and "time". Those of vectors
            end in the number of the component, "y_pred_1"; a feature that is called
            like one of them in an underscore.

        Examples
        --------
        >>> import pandas as pd
        >>> import sigmascale as ss
        >>> table = pd.DataFrame({"pred": [1.0, 2.0], "std": [0.1, 0.2]}, ["a", "b"])
        >>> ss.Predictions.from_frame(table).to_frame(coverage=0.9).round(2)
           y_pred  y_std   low  high
        a     1.0    0.1  0.84  1.16
        b     2.0    0.2  1.67  2.33
        """
        columns = columns_of("y_pred", self.y_pred) | {"y_std": self.y_std}
        if self.y_true is not None:
            columns |= columns_of("y_true", self.y_true)
        else:
            columns |= columns_of("error", self.error)
        if coverage is not None:
            columns |= self.distributions._limits(coverage)
        for name in ("groups", "weights", "time"):
            columns |= columns_of(name, getattr(self, name))
        for name, column in self.features.items():
            while name in columns:
                name += "_"
            columns[name] = column
        return make_frame(columns, self.origin, by_row=True)

    # -- sums and differences of rows --------------------------------------------------

    def combined(
        self,
        C: Any = None,
        *,
        by: str | None = None,
        mean: bool = False,
        rho: float | Predictions | GroupCorrelation | None = None,
        y_true: Any = None,
    ) -> Predictions:
        """Return sums, means or differences of rows, as Predictions.

        Their uncertainty takes into account that errors of rows of one group are
        correlated: u² = (1 − ρ) Σ (c u)² + ρ Σ (Σ c u)², the outer sum being over
        groups. Biases add up, and so do predictions and errors. Shapes and bounds are
        of single rows: a sum has a normal distribution, to which that of some ten rows
        is close.

        Parameters
        ----------
        C : matrix of shape (m, n), sparse or dense, or data frame, optional
            The coefficients of m combinations of these n rows; or a frame with three
            columns: combination, number of the row (from 0), coefficient.
        by : str, optional
            In place of `C`: one sum for each label of this feature, or for each of the
            "groups", in order.
        mean : bool, default False
            With `by`, means in place of sums.
        rho : float, Predictions or GroupCorrelation, optional
            The correlation ρ of z-scores within groups: 0 adds in quadrature, 1 adds
            uncertainties up. ``r.group_correlation_`` is that of a recalibrator that
            was fitted with groups; of Predictions with groups and known errors it is
            learned, and by default of these rows themselves.
        y_true : array-like of shape (m,), optional
            The true values of the combinations, where those of rows are not known.

        Returns
        -------
        Predictions
            One row a combination. Those that share rows are of one group.

        Examples
        --------
        >>> import sigmascale as ss
        >>> p = ss.Predictions([1.0, 2.0, 4.0], [0.3, 0.4, 0.5])
        >>> p.combined([[1, 1, 0], [0, -1, 1]], rho=0).y_std.round(2)
        array([0.5 , 0.64])
        """
        from .combinations import as_matrix, combined, matrix_by

        if (C is None) == (by is None):
            msg = "Pass `C`, coefficients of combinations, or `by`; one of them."
            raise InvalidInputError(msg)
        if by is None:
            matrix, _ = as_matrix(C, self.n_rows)
        else:
            matrix, _ = matrix_by(self, by, mean)
        totals = Predictions(**combined(self, matrix, rho, y_true))
        origin = None if self.origin is None else Origin(self.origin.library)
        return totals._with(origin=origin)

    # -- columns by name or number -----------------------------------------------------

    def position(self, key: Any, argument: str = "by") -> int:
        """Return the position of the column that `key` names or counts; u is 0."""
        if isinstance(key, str) and key in self.names:
            return self.names.index(key)
        is_whole = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
        if is_whole and -len(self.names) <= key < len(self.names):
            return int(key) % len(self.names)
        msg = (
            f"`{argument}` must name a column of the predictions; found {quoted(key)}. "
            f"They have: {listed(self.names)} (0 to {len(self.names) - 1})."
        )
        raise InvalidInputError(msg, "no-column", columns=list(self.names))

    def is_labelled(self, key: int | str) -> bool:
        """Return whether a column holds labels rather than numbers."""
        return self.categories[self.position(key)] is not None

    def labels(self, key: int | str) -> Categories:
        """Return the labels of a column; numbers are taken as labels, too."""
        position = self.position(key)
        column = self.columns[position]
        labels = self.categories[position]
        return Categories.of(column) if labels is None else Categories(column, labels)

    def numbers(self, key: int | str) -> Floats:
        """Return a column as numbers, none of which is missing."""
        position = self.position(key)
        name = self.names[position]
        labels = self.categories[position]
        if labels is not None:
            msg = (
                f"`{shorten(name)}` must hold numbers; it holds labels, such as "
                f"{quoted(labels[0])}. Convert it, or leave it out."
            )
            raise NotANumberError(msg, "not-a-number", name=name)
        column: Floats = self.columns[position]
        if np.isnan(column.max()):
            with rows_at(self.places):
                check_column(column, name)
        return column

    # -- in words ----------------------------------------------------------------------

    def __repr__(self) -> str:
        """Return what there is, in words."""
        words = f"{self.n_rows} row{'s' if self.n_rows > 1 else ''}"
        if self.is_vector:
            words += f" of {self.dim} components"
        if self.error is not None:
            words += f", {'errors' if self.y_true is None else 'true values'} known"
        if self.groups is not None:
            words += f"; {int(self.groups.max()) + 1} groups"
        if self.shape is not None:
            words += f"; shapes of {self.shape.z.size} quantiles"
        if self.weights is not None:
            words += f"; weighted, as many as {number(self.n_effective, 4)} in effect"
        if len(self.names) > 1:
            words += f"; features: {listed(self.names[1:])}"
        return f"Predictions: {words}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"


_NO_SIGN = (
    "Vectors have no sign: this needs errors that are numbers. Of vectors, take `z2` "
    "or `abs_z`, or one component with its own uncertainty."
)


def check_predictions(
    p: Any, *, errors: bool = True, complete: bool = False, vectors: bool = True
) -> Predictions:
    """Return predictions, which every public function takes, if they will do.

    Parameters
    ----------
    p : Predictions
        What a caller has passed.
    errors : bool, default True
        Errors must be known.
    complete : bool, default False
        No feature may be missing in any row, nor too large for trees.
    vectors : bool, default True
        Vectors are welcome; if not, the message says that they have no sign.

    Returns
    -------
    Predictions
    """
    if not isinstance(p, Predictions):
        msg = (
            f"Pass Predictions; found {type(p).__name__}. Make them with "
            "ss.Predictions(y_pred, y_std, y_true=y_true, features=...), or "
            "ss.Predictions.from_frame(table)."
        )
        raise InvalidInputError(msg, "no-predictions")
    if errors:
        _ = p.errors
    if not vectors and p.is_vector:
        raise InvalidInputError(_NO_SIGN, "vectors")
    if complete:
        with rows_at(p.places):
            for name, column in zip(p.names[1:], p.columns[1:], strict=True):
                if column.dtype.kind == "f":
                    must = f"known everywhere, and at most {LARGEST_JUDGED:g} in size"
                    remedy = "Drop these rows, or leave this feature out."
                    is_bad = ~(np.abs(column) <= LARGEST_JUDGED)
                    refuse_values(is_bad, column, name, must, remedy, "missing-values")
    return p


# -- checks of what is given, one for each argument ------------------------------------


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array that cannot be written to."""
    array = array.view()
    array.flags.writeable = False
    return array


def _check_shapes(y_std: Any, others: Mapping[str, Floats]) -> Floats:
    """Return uncertainties, if there is one for each row of the others."""
    # one uncertainty a row
    values = as_array(y_std, "y_std", None)
    if values.shape[1:] == (1,):
        values = values.ravel()
    shape = values.shape
    if len(shape) > 1:
        remedy = (
            "the root of the mean variance of the components: np.sqrt((y_std**2)."
            "mean(axis=1)), or np.sqrt(np.trace(cov, axis1=1, axis2=2) / d)."
        )
        are_numbers = all(other.ndim == 1 for other in others.values())
        if shape == (shape[0], shape[0]) and are_numbers:
            remedy = "np.sqrt(np.diag(cov)), the roots of the variances."
        msg = (
            f"`y_std` must be one number a row, for vectors too; found shape {shape}. "
            f"Pass {remedy}"
        )
        raise InvalidInputError(msg, "y-std-shape", shape=list(shape))
    u = check_column(values, "y_std")

    # and all others of its length, and of one shape
    for name, other in others.items():
        check_same_length("y_std", u, name, other)
    if len({other.shape[1:] for other in others.values()}) > 1:
        shapes = " and ".join(
            f"`{name}` {other.shape}" for name, other in others.items()
        )
        msg = (
            f"Predictions and true values must have the same shape; found {shapes}. "
            "Pass numbers as (n,), with .ravel() where needed, and vectors as (n, d)."
        )
        raise InvalidInputError(msg, "shapes")
    return u


def _check_sizes(u: Floats, error: Floats | None) -> None:
    """Refuse uncertainties that are not positive, and sizes that cannot be squared."""
    if u.min() < SMALLEST or u.max() > LARGEST:
        remedy = (
            "Drop these rows, or lift them with Predictions(..., min_std=...). If the "
            "column is a variance or a logarithm, transform it first."
        )
        refuse_values(u <= 0, u, "y_std", "positive", remedy, "not-positive")
        must = f"between {SMALLEST:g} and {LARGEST:g}"
        is_beyond = (u < SMALLEST) | (u > LARGEST)
        refuse_values(is_beyond, u, "y_std", must, "Choose another unit.", "size")
    if error is not None:
        size = np.abs(error)
        if error.ndim == 2:  # of the largest component
            size = size.max(axis=1)
        is_beyond = ~(size <= np.minimum(LARGEST, LARGEST_Z * u))
        must = f"at most {LARGEST:g} in size, and {LARGEST_Z:g} times its uncertainty"
        remedy = "Are both in the same unit?"
        refuse_values(is_beyond, error, "error", must, remedy, "size")


def _lifted(u: Floats, min_std: Any) -> Floats:
    """Return uncertainties that are at least `min_std`, and say how many were not."""
    is_positive = is_real(min_std) and 0 < min_std < np.inf
    need(is_positive, "min_std", "be a positive number", min_std)
    warn_of_lifted(int(np.count_nonzero(u < min_std)), u.size, min_std, stacklevel=3)
    return np.maximum(u, float(min_std))


def warn_of_lifted(
    n_low: int, n_rows: int, min_std: float, stacklevel: int = 2
) -> None:
    """Warn of uncertainties that were below a minimum, if there are any."""
    if n_low:
        warn(
            f"{n_low} of {n_rows} uncertainties were below {min_std:g}, and were "
            "lifted to it.",
            ZeroUncertaintyWarning,
            stacklevel=stacklevel + 1,
        )


def _typed_features(features: Any, u: Floats) -> dict[str, TypedColumn]:
    """Return features as numbers, or codes of labels, by name."""
    typed = {}
    for name, values in _named_columns(features):
        is_new = name not in typed  # 1 and "1" are the same
        need(is_new, "features", "have columns of different names", name)
        column, labels = typed_column(values, name)
        check_same_length("y_std", u, name, column)
        typed[name] = column, labels
    reserved = RESERVED.intersection(typed)
    if reserved:
        msg = (
            f'`features` must not have a column named "{min(reserved)}", which scores '
            "and checks have for something else. Rename it."
        )
        raise InvalidInputError(msg, "reserved", columns=sorted(reserved))
    return typed


def _named_columns(features: Any) -> list[tuple[str, Any]]:
    """Return columns and their names, of a mapping, a data frame or an array."""
    if features is None:
        return []
    if isinstance(features, Mapping):
        return [(str(name), values) for name, values in features.items()]
    frame = as_frame(features, "features")
    if frame is not None:
        return [
            (str(series.name), series.to_native()) for series in frame.iter_columns()
        ]
    table = as_array(features, "features", (1, 2))
    columns = [table] if table.ndim == 1 else table.T
    return [(f"X{i + 1}", column) for i, column in enumerate(columns)]
