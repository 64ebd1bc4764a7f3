"""Which columns of a table play which part: named by the user, or by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.checks import Floats
from ...chemistry import describe_formulas
from ...exceptions import DamagedFileError, InvalidInputError
from .files import listed

if TYPE_CHECKING:
    import polars as pl

# Names that leave no doubt, in small letters.
OBVIOUS = {
    "error": ("e", "error", "errors", "err"),
    "reference": ("r", "reference", "ref", "y_true", "truth"),
    "prediction": ("v", "prediction", "predicted", "pred", "y_pred"),
    "uncertainty": ("u", "uncertainty", "sigma", "std", "y_std"),
    "variance": ("variance", "var"),
}
MISSING = ("", "na", "nan", "n/a", "null", "none", "-")
FROM_FORMULA = ("mass", "heteroatom_fraction", "OxNy")
RECALIBRATED = "_recalibrated"  # what `apply` adds to the name of the uncertainty
LEAST_ROWS = 5  # fewer cannot show anything


@dataclass(frozen=True)
class Choice:
    """What a user says of the columns; None stands for what is not said."""

    error: str | None = None
    reference: str | None = None
    prediction: str | None = None
    uncertainty: str | None = None
    variance: str | None = None
    features: Sequence[str] = ()
    all_features: bool = False
    formula: str | None = None
    groups: Sequence[str] = ()

    @property
    def error_names(self) -> tuple[str | None, ...]:
        """What is said of the errors."""
        return self.error, self.reference, self.prediction


@dataclass(frozen=True)
class Columns:
    """The columns that a recalibrator needs of every table it is applied to.

    Attributes
    ----------
    uncertainty : str
        The column of uncertainties, or of variances.
    is_variance : bool
        Whether these are variances.
    numbers, labels : tuple of str
        The features: columns of numbers, and columns of labels.
    formula : str or None
        A column of chemical formulas, from which further features are derived.
    """

    uncertainty: str
    is_variance: bool = False
    numbers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    formula: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as JSON knows them."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, found: Any) -> Columns:
        """Return the columns that :meth:`to_dict` wrote; refuse anything else."""

        def texts(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(v, str) for v in value)

        if found is None:
            msg = (
                "the recalibrator does not know the columns of files: it was not made "
                "by `sigmascale fit`."
            )
            raise InvalidInputError(msg)
        if (
            not isinstance(found, dict)
            or set(found) != {field.name for field in fields(cls)}
            or not isinstance(found["uncertainty"], str)
            or not isinstance(found["is_variance"], bool)
            or not texts(found["numbers"])
            or not texts(found["labels"])
            or not isinstance(found["formula"], str | None)
        ):
            msg = "the names of columns in the recalibrator's file are damaged."
            raise DamagedFileError(msg)
        tuples = {name: tuple(found[name]) for name in ("numbers", "labels")}
        return cls(**found | tuples)

    def words(self, error: Sequence[str]) -> str:
        """Return what is taken from a table, the errors too, in words.

        >>> Columns("s2", is_variance=True, numbers=("mass",)).words(("R", "V"))
        'error R - V; uncertainty sqrt(s2); features: mass'
        """
        u = self.uncertainty
        return (
            f"error {' - '.join(error)}; "
            f"uncertainty {f'sqrt({u})' if self.is_variance else u}; "
            f"features: {', '.join(self.features) or 'none'}"
        )

    @property
    def features(self) -> list[str]:
        """All features by name, as they follow the uncertainty in X."""
        derived = FROM_FORMULA if self.formula is not None else ()
        return [*self.numbers, *self.labels, *derived]


@dataclass(frozen=True)
class Rows:
    """Checked rows of a table.

    Attributes
    ----------
    frame : DataFrame
        The rows with all their columns, as they were read.
    X : DataFrame
        The conditioning table: uncertainty first, then the features.
    error : array or None
        Errors, where the table has them.
    dropped : int
        Rows left out because a value is missing.
    """

    frame: pl.DataFrame
    X: pl.DataFrame
    error: Floats | None
    dropped: int


def find_error(choice: Choice, names: list[str]) -> tuple[str, ...]:
    """Return the column of errors, or those of the reference and the prediction."""
    parts = (choice.reference, choice.prediction)
    if choice.error is not None and any(parts):
        msg = (
            "Pass --error, or --reference and --prediction, but not both: the error "
            "is reference minus prediction."
        )
        raise InvalidInputError(msg)
    if choice.error is not None:
        return (known(choice.error, names, "--error"),)
    if not any(parts):
        guess = _obvious("error", names)
        if guess is not None:
            return (guess,)
    pair = [
        known(name, names, f"--{role}") if name is not None else _obvious(role, names)
        for role, name in zip(("reference", "prediction"), parts, strict=True)
    ]
    if None in pair:
        lacking = "reference" if pair[0] is None else "prediction"
        msg = (
            f"No column is plainly the {'error' if not any(parts) else lacking}. Name "
            "it: --error COLUMN, or --reference COLUMN and --prediction COLUMN. "
            f"The columns are: {listed(names)}."
        )
        raise InvalidInputError(msg)
    if pair[0] == pair[1]:
        msg = f"column {pair[0]!r} cannot be both reference and prediction."
        raise InvalidInputError(msg)
    return tuple(name for name in pair if name is not None)


def find_uncertainty(choice: Choice, names: list[str]) -> tuple[str, bool]:
    """Return the column of the uncertainty, and whether it is a variance."""
    if choice.uncertainty is not None and choice.variance is not None:
        msg = "Pass --uncertainty or --variance, but not both."
        raise InvalidInputError(msg)
    if choice.uncertainty is not None:
        return known(choice.uncertainty, names, "--uncertainty"), False
    if choice.variance is not None:
        return known(choice.variance, names, "--variance"), True
    for role in ("uncertainty", "variance"):
        guess = _obvious(role, names)
        if guess is not None:
            return guess, role == "variance"
    msg = (
        "No column is plainly the uncertainty. Name it: --uncertainty COLUMN, or "
        f"--variance COLUMN. The columns are: {listed(names)}."
    )
    raise InvalidInputError(msg)


def find_columns(
    choice: Choice, frame: pl.DataFrame, error: Sequence[str], by: Iterable[str] = ()
) -> Columns:
    """Return the columns that a recalibrator of this table needs.

    `by` are columns that it bins by; they are features, too.
    """
    names = frame.columns
    uncertainty, is_variance = find_uncertainty(choice, names)
    if uncertainty in error:
        msg = f"column {uncertainty!r} cannot be both error and uncertainty."
        raise InvalidInputError(msg)
    taken = {uncertainty, *error}
    asked = [known(name, names, "--feature") for name in choice.features]
    formula = choice.formula
    if formula is not None:
        formula = known(formula, names, "--formula")
        taken.add(formula)
    derived = FROM_FORMULA if formula is not None else ()
    binned = [known(name, [*names, *derived], "--by") for name in by]
    asked += [name for name in binned if name != uncertainty]
    groups = [known(name, names, "--group") for name in choice.groups]
    if choice.all_features:
        ours = [f"{name}{RECALIBRATED}" for name in names]  # made by `apply`
        unfit = taken.union(groups, ours, _never_known(names, error))
        free = [n for n in names if n not in unfit]
        asked += [name for name in free if is_numeric(frame, name)]
    asked = [name for name in dict.fromkeys(asked) if name not in derived]
    for name in (*asked, *groups):
        if name in taken:
            msg = f"column {name!r} has another part already; it is no feature."
            raise InvalidInputError(msg)
    if clash := set(derived) & set(names) & {*asked, *groups}:
        msg = f"--formula derives {min(clash)!r}, which is a column of the file, too."
        raise InvalidInputError(msg)
    numbers = [n for n in asked if n not in groups and is_numeric(frame, n)]
    labels = [n for n in dict.fromkeys([*asked, *groups]) if n not in numbers]
    return Columns(uncertainty, is_variance, tuple(numbers), tuple(labels), formula)


def take_rows(
    frame: pl.DataFrame,
    columns: Columns,
    error: Sequence[str] = (),
    *,
    drop_missing: bool = False,
    least: int = LEAST_ROWS,
    positive: bool = False,
) -> Rows:
    """Return the checked rows of a table that has these columns.

    There must be at `least` so many, and uncertainties of 0 are refused if they must be
    `positive`.
    """
    import polars as pl

    u_name, names = columns.uncertainty, frame.columns
    for name in (u_name, *columns.numbers, *columns.labels):
        known(name, names, "the recalibrator")
    with ThreadPoolExecutor() as pool:  # making numbers of text takes long
        of_numbers = (u_name, *columns.numbers)
        parsed = pool.map(lambda name: numbers(frame, name), of_numbers)
        found = dict(zip(of_numbers, parsed, strict=True))
    found |= {name: labels(frame, name) for name in columns.labels}
    if columns.formula is not None:
        name = known(columns.formula, names, "--formula")
        found[name] = labels(frame, name)
    found |= {name: numbers(frame, name) for name in error}

    missing = {name: series.is_null() for name, series in found.items()}
    anywhere = pl.DataFrame(list(missing.values())).select(pl.any_horizontal("*"))
    lost = anywhere.to_series()
    dropped = int(lost.sum())
    if dropped and not drop_missing:
        counts = ", ".join(
            f"{name!r} {m.sum()}" for name, m in missing.items() if m.any()
        )
        msg = (
            f"{dropped} of {frame.height} rows have missing values, by column: "
            f"{counts}. Fill them in, or leave these rows out with --drop-missing."
        )
        raise InvalidInputError(msg)
    if dropped:
        frame = frame.filter(~lost)
        found = {name: series.filter(~lost) for name, series in found.items()}
    if frame.height < least:
        rows = "1 row" if frame.height == 1 else f"{frame.height} rows"
        msg = f"{rows} with all values: too few. At least {least} are needed."
        raise InvalidInputError(msg)

    u = found[u_name]
    what = "a variance" if columns.is_variance else "an uncertainty"
    _refuse(u < 0, u, u_name, f"is negative, and {what} cannot be")
    if positive:
        _refuse(u == 0, u, u_name, f"is no positive number, as {what} must be")
    found[u_name] = u.sqrt() if columns.is_variance else u
    X = pl.DataFrame([found[n] for n in (u_name, *columns.numbers, *columns.labels)])
    if columns.formula is not None:
        table = describe_formulas(found[columns.formula])
        derived = zip(FROM_FORMULA, table.to_dict().values(), strict=True)
        X = X.with_columns(pl.Series(name, values) for name, values in derived)
    parts = [found[name].to_numpy() for name in error]
    errors = parts[0] - parts[1] if len(parts) == 2 else [*parts, None][0]
    return Rows(frame, X, errors, dropped)


def numbers(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return a column as finite numbers; what is missing is null."""
    import polars as pl

    column = frame[name]
    if column.dtype == pl.String:
        values = _parsed(column, name)
    elif column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        values = column.cast(pl.Float64)
    else:
        msg = f"column {name!r} must hold numbers; it holds {column.dtype}."
        raise InvalidInputError(msg)
    values = values.fill_nan(None)
    _refuse(values.is_infinite(), values, name, "is infinite; a number must be finite")
    return values.rechunk()  # into one array, as it will be used


def labels(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return a column as text; what is missing is null."""
    import polars as pl

    column = frame[name]
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        msg = f"column {name!r} must hold labels or numbers; it holds {column.dtype}."
        raise InvalidInputError(msg)
    return column.cast(pl.String)


def _parsed(column: pl.Series, name: str) -> pl.Series:
    import polars as pl

    values = column.cast(pl.Float64, strict=False)
    odd = values.is_null() & column.is_not_null()
    if odd.any():
        text = column.str.strip_chars()
        values = text.cast(pl.Float64, strict=False)
        bad = values.is_null() & text.is_not_null()
        bad &= ~text.str.to_lowercase().is_in(MISSING)
        hint = "is not a number"
        if bad.any() and "," in str(column.filter(bad)[0]):
            hint += " (is the comma a decimal point? Then write a point)"
        _refuse(bad, column, name, hint)
    return values


def is_numeric(frame: pl.DataFrame, name: str) -> bool:
    """Return whether a column holds numbers."""
    import polars as pl

    dtype = frame.schema[name]
    if dtype != pl.String:
        return bool(dtype.is_numeric())
    try:
        return not numbers(frame, name).is_null().all()
    except InvalidInputError as problem:
        return "infinite" in str(problem)  # of numbers, which are refused later


def _refuse(bad: pl.Series, column: pl.Series, name: str, what: str) -> None:
    count = int(bad.sum() or 0)
    if count:
        row = int(np.argmax(bad.fill_null(False).to_numpy()))
        more = "" if count == 1 else f" So are {count - 1} more."
        msg = (
            f"column {name!r}, row {row + 1} (not counting the header): "
            f"{column[row]!r} {what}.{more}"
        )
        raise InvalidInputError(msg)


def renamed(columns: Columns, named: Choice, names: list[str]) -> Columns:
    """Return columns whose uncertainty goes by another name, if one was given."""
    if named.uncertainty is None and named.variance is None:
        return columns
    uncertainty, is_variance = find_uncertainty(named, names)
    return replace(columns, uncertainty=uncertainty, is_variance=is_variance)


def free_name(name: str | None, columns: Columns, names: list[str]) -> str:
    """Return the name of the new column, which must not be taken."""
    name = name or f"{columns.uncertainty}{RECALIBRATED}"
    if name in names:
        msg = f"there is a column {name!r} already. Choose another with --name."
        raise InvalidInputError(msg)
    return name


def known(name: str, names: list[str], asked_by: str) -> str:
    """Return a column's name if there is such a column; else suggest the nearest."""
    if name in names:
        return name
    by_small = {each.lower(): each for each in reversed(names)}
    near = get_close_matches(name.lower(), by_small, n=1, cutoff=0.5)
    hint = f"Did you mean {by_small[near[0]]!r}? " if near else ""
    msg = (
        f"{asked_by} needs a column {name!r}, and there is none. {hint}The columns "
        f"are: {listed(names)}."
    )
    raise InvalidInputError(msg)


def _never_known(names: list[str], error: Sequence[str]) -> list[str]:
    """Return columns that plainly are true values or errors, beside predictions.

    New rows do not have them, and with the prediction they give the error away.
    """
    plain = {
        role: [name for name in names if name.strip().lower() in OBVIOUS[role]]
        for role in ("error", "reference", "prediction")
    }
    if not plain["prediction"] and len(error) < 2:
        return []
    return plain["error"] + plain["reference"]


def _obvious(role: str, names: list[str]) -> str | None:
    found = [name for name in names if name.strip().lower() in OBVIOUS[role]]
    if len(found) > 1:
        msg = (
            f"Several columns could be the {role}: {listed(found)}. Say which: "
            f"--{role} COLUMN."
        )
        raise InvalidInputError(msg)
    return found[0] if found else None
