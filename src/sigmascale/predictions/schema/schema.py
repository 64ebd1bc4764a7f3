"""What was found: the columns that are used, kept beside a recalibrator, and read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import narwhals as nw
import numpy as np

from ..._support.checks import as_array, as_frame, check_column, refuse_values
from ..._support.labels import Categories
from ..._support.text import listed, shorten
from ...exceptions import DamagedFileError, InvalidInputError
from ..forms import of_members, read_quantiles
from ..predictions import Predictions
from ..roles import ARGUMENTS, OF_ROWS

# How columns were found, which no file needs.
_NOT_KEPT = ("left_out", "texts_left_out", "guessed")
MOST_LABELS = 30  # of text that is a feature where all are taken
ROWS_A_LABEL = 10  # on average, which such text must have
_LISTS = ("levels", "numbers", "labels", "error", "made_of")
_NO_NAMES = ("levels", "is_variance", "min_std")


@dataclass(frozen=True)
class Schema:
    """The columns of a table that are used, by the role that they play.

    Attributes
    ----------
    uncertainty : str
        The column of uncertainties, or of variances; or what is made of others.
    is_variance : bool
        Whether these are variances.
    numbers, labels : tuple of str
        The features: columns of numbers, and columns of labels.
    error : tuple of str
        The column of errors, or those of reference and prediction; none if errors are
        not known.
    prediction : str or None
        The column of predictions, if there is one.
    groups, weight, time : str or None
        The columns of groups, weights and times.
    made_of, levels : tuple of str, tuple of float
        Members of an ensemble, or quantiles and their levels, that prediction and
        uncertainty are made of.
    min_std : float or None
        What uncertainties below it are lifted to.
    left_out : tuple of str
        Columns that are no features by their names, or only count rows.
    texts_left_out : tuple of str
        Columns of text that have too many labels for a feature, or one.
    guessed : tuple of str
        Columns that nobody has named.
    """

    uncertainty: str
    is_variance: bool = False
    numbers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    prediction: str | None = None
    groups: str | None = None
    weight: str | None = None
    time: str | None = None
    made_of: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    min_std: float | None = None
    left_out: tuple[str, ...] = ()
    texts_left_out: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()

    # -- what follows ------------------------------------------------------------------

    @property
    def features(self) -> tuple[str, ...]:
        """All features, as they follow the uncertainty."""
        return (*self.numbers, *self.labels)

    @property
    def of_rows(self) -> dict[str, str]:
        """The columns of groups, weights and times that there are, by their role."""
        named = {role: getattr(self, role) for role in OF_ROWS}
        return {role: name for role, name in named.items() if name}

    @property
    def made(self) -> tuple[str, str]:
        """What a prediction and an uncertainty that are made of others are called."""
        if self.levels:
            return "quantiles_middle", "quantiles_std"
        return "members_mean", "members_std"

    @property
    def has_shape(self) -> bool:
        """Whether quantiles say more than a prediction and an uncertainty."""
        return len(self.levels) > 2 and self.prediction == self.made[0]

    def made_values(self, table: Any) -> tuple[Any, Any]:
        """Return the prediction and the uncertainty of rows of `made_of`."""
        if self.levels:
            return read_quantiles(self.levels, table)[2:]
        return of_members(table)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that a table must have, each once."""
        used = [*self.made_of, self.uncertainty, *self.features, *self.error]
        used += [self.prediction] if self.prediction else []
        used += self.of_rows.values()
        made = self.made if self.made_of else ()
        return tuple(name for name in dict.fromkeys(used) if name not in made)

    # -- rows --------------------------------------------------------------------------

    def read(self, frame: Any) -> Predictions:
        """Return the predictions of a data frame in memory."""
        table = as_table(frame)

        def column(name: str | None) -> Any:
            return None if name is None else table[name].to_native()

        y_pred, y_std, made_of = self._predicted(column)
        features = {name: column(name) for name in self.numbers}
        for name in self.labels:
            features[name] = Categories.of(as_array(column(name), name))
        known = column(self.error[0]) if self.error else None
        is_truth = len(self.error) == 2
        rows = Predictions(
            y_pred,
            y_std,
            y_true=known if is_truth else None,
            error=None if is_truth else known,
            features=features,
            min_std=self.min_std,
            **{ARGUMENTS[role]: column(name) for role, name in self.of_rows.items()},
        )._from(frame)
        if not self.has_shape:
            return rows
        return rows._shaped(np.array(self.levels), np.sort(made_of, axis=1))

    def _predicted(self, column: Callable[[str | None], Any]) -> tuple[Any, Any, Any]:
        """Return predictions and uncertainties, and what they are made of."""
        # of members or quantiles; the prediction may be a column all the same
        if self.made_of:
            columns = [check_column(column(name), name) for name in self.made_of]
            made_of = np.column_stack(columns)
            middle, y_std = self.made_values(made_of)
            is_made = self.prediction == self.made[0]
            return (middle if is_made else column(self.prediction)), y_std, made_of

        y_pred = column(self.prediction)
        if not self.is_variance:
            return y_pred, column(self.uncertainty), None

        # the roots of variances
        name = self.uncertainty
        variance = check_column(column(name), name)
        must = "at least 0, as variances are"
        remedy = "Drop or repair these rows."
        refuse_values(variance < 0, variance, name, must, remedy, "negative")
        return y_pred, np.sqrt(variance), None

    def as_choice(self) -> dict[str, Any]:
        """Return the roles that name these columns, as a choice or a command has them.

        >>> Schema("s2", True, ("mass",), error=("E",)).as_choice()
        {'features': ('mass',), 'error': 'E', 'variance': 's2'}
        """
        chosen: dict[str, Any] = {"features": self.numbers, "labels": self.labels}
        chosen |= self.of_rows | {"min_std": self.min_std}

        # errors are a column, or the difference of two
        if len(self.error) == 1:
            (chosen["error"],) = self.error
        elif self.error:
            chosen["reference"], chosen["prediction"] = self.error
        if self.made_of and chosen.get("prediction") == self.made[0]:
            chosen["prediction"] = None  # it follows from these columns

        if self.levels:
            pairs = zip(self.made_of, self.levels, strict=True)
            chosen["quantile_columns"] = tuple(f"{name}={p:g}" for name, p in pairs)
        elif self.made_of:
            chosen["members"] = self.made_of
        else:
            kind = "variance" if self.is_variance else "uncertainty"
            chosen[kind] = self.uncertainty
        return {
            role: value for role, value in chosen.items() if value not in (None, ())
        }

    # -- kept in files -----------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return what a file keeps, as JSON knows it."""
        kept = {}
        for name in _kept_names():
            value = getattr(self, name)
            kept[name] = list(value) if isinstance(value, tuple) else value
        return kept

    @classmethod
    def from_dict(cls, kept: Any) -> Schema:
        """Return the schema that :meth:`to_dict` wrote; refuse anything else."""
        if not _is_right(kept):
            msg = "the names of columns in the recalibrator's file are damaged."
            raise DamagedFileError(msg, "schema")
        return cls(**kept | {name: tuple(kept[name]) for name in _LISTS})

    # -- in words ----------------------------------------------------------------------

    def in_words(self) -> dict[str, str]:
        """Return what is taken from a table, by role, but for the features.

        >>> Schema("s2", True, ("mass",), error=("R", "V")).in_words()
        {'error': 'R − V', 'uncertainty': 'sqrt(s2)'}
        """
        words = {}
        if self.error:
            words["error"] = " − ".join(map(shorten, self.error))
        name = shorten(self.uncertainty)
        if self.made_of:
            kind = "quantiles" if self.levels else "members"
            name = f"{name} (of {len(self.made_of)} {kind}: {listed(self.made_of)})"
        words["uncertainty"] = f"sqrt({name})" if self.is_variance else name
        return words | {role: shorten(name) for role, name in self.of_rows.items()}

    def __str__(self) -> str:
        """Return what is taken from a table, in words."""
        words = [f"{role} {name}" for role, name in self.in_words().items()]
        features = ", ".join(map(shorten, self.features)) or "none"
        return f"{'; '.join(words)}; features: {features}"


def _kept_names() -> list[str]:
    """Return the fields that a file keeps."""
    names = [field.name for field in fields(Schema)]
    return [name for name in names if name not in _NOT_KEPT]


def _is_right(kept: Any) -> bool:
    """Return whether what a file holds has all fields, and each its type."""
    if not isinstance(kept, dict) or kept.keys() != set(_kept_names()):
        return False
    if not all(isinstance(kept[name], list | tuple) for name in _LISTS):
        return False

    # all but levels, and what is no column, are names of columns, one or a list
    columns = []
    for name, value in kept.items():
        if name in _LISTS and name not in _NO_NAMES:
            columns += value
        elif name not in _NO_NAMES:
            columns.append(value)
    are_names = all(isinstance(column, str | None) for column in columns)
    return are_names and isinstance(kept["is_variance"], bool)


# -- data frames in memory -------------------------------------------------------------


def as_table(frame: Any) -> nw.DataFrame[Any]:
    """Return a data frame of any library."""
    table = as_frame(frame, "frame")
    if table is None:
        msg = (
            "`frame` must be a data frame of pandas, Polars or PyArrow; found "
            f"{type(frame).__name__}."
        )
        raise InvalidInputError(msg)
    names: list[Any] = table.columns  # pandas has tuples and numbers, too
    for name in names:
        if not isinstance(name, str):
            msg = (
                f"`frame` must have columns with names of text; found {name!r}. Rename "
                "them, for example: frame.columns = "
                '["_".join(map(str, np.atleast_1d(name))) for name in frame.columns].'
            )
            raise InvalidInputError(msg, "names-of-text")
    return table


def are_labels(n_labels: int, n_rows: int) -> bool:
    """Return whether text with so many labels is a feature where all are taken.

    >>> are_labels(30, 300), are_labels(31, 10_000), are_labels(1, 300)
    (True, False, False)
    """
    return 1 < n_labels <= MOST_LABELS and n_rows >= ROWS_A_LABEL * n_labels


def counts(column: Any) -> bool:
    """Return whether whole numbers are 0, 1, 2, ... or 1, 2, 3, ... and no more."""
    if len(column) < 3 or column.is_null().any():
        return False
    return column[0] in (0, 1) and bool((np.diff(column.to_numpy()) == 1).all())
