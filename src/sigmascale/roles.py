"""Which columns of a table play which part: named by the user, or by themselves.

Decided here for Python, the command line and the app alike. A name is only taken for
what it says if no other column contradicts it: `E` beside `E_pred` is an energy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol

from ._support.files import is_utf8
from .exceptions import (
    ColumnError,
    DamagedFileError,
    IndexColumnWarning,
    InvalidInputError,
)

if TYPE_CHECKING:
    import narwhals as nw

# Names that leave no doubt, in small letters and without a unit.
OBVIOUS = {
    "error": ("e", "error", "errors", "err", "residual", "residuals"),
    "reference": ("r", "reference", "ref", "y_true", "truth", "true", "target"),
    "prediction": ("v", "prediction", "predicted", "pred", "y_pred"),
    "uncertainty": (
        *("u", "ue", "u_e", "uq", "uncertainty", "sigma", "std", "y_std"),
        *("std_pred", "pred_std"),
    ),
    "variance": ("variance", "var", "y_var"),
}
_UNIT = re.compile(r"\s*[(\[][^()\[\]]*[)\]]$")  # as in "u (eV)"
# What stands beside the name of a quantity: its true value, its prediction, ...
_OF_A_QUANTITY = {
    *(name for role in ("error", "reference", "prediction") for name in OBVIOUS[role]),
    *("calc", "dft", "exp", "ml", "model", "hat", "std", "obs"),
}
_IN_PYTHON = {
    "reference": "y_true",
    "prediction": "y_pred",
    "uncertainty": "y_std",
    "weight": "weights",
    "feature": "features",
    "label": "labels",
    "all_features": 'features="all"',
}
MOST_NAMES = 12  # of columns in a message
FROM_FORMULA = ("mass", "heteroatom_fraction", "OxNy")
RECALIBRATED = "_recalibrated"  # what `apply` adds to the name of the uncertainty
LIMITS = ("_low", "_high")  # and to the name of the new column
SEVERAL = " & "  # between the names of several uncertainties
STAR = "*"  # stands for the name of a target, in patterns of columns
_FORMS = ("members", "quantile_columns", "interval")
MADE = ("members_mean", "members_std", "quantiles_middle", "quantiles_std")
_ERRORS, _UNCERTAINTIES = (
    ("error", "reference", "prediction"),
    ("uncertainty", "variance"),
)


class TableColumns(Protocol):
    """What is asked of the columns of a table, in memory or not."""

    @property
    def names(self) -> Sequence[str]:
        """What the columns are called."""

    def is_numeric(self, name: str) -> bool:
        """Return whether a column holds numbers."""

    def counts_rows(self, name: str) -> bool:
        """Return whether a column holds 0, 1, 2, ... or 1, 2, 3, ... and no more."""


@dataclass(frozen=True)
class Form:
    """Columns that say predictions and uncertainties otherwise: members, quantiles.

    From these, a table gets two more columns, whose names are `made`.

    Attributes
    ----------
    columns : tuple of str
        The members of an ensemble, or quantiles; limits of intervals are two of these.
    levels : tuple of float
        The levels of quantiles; members have none.
    """

    columns: tuple[str, ...]
    levels: tuple[float, ...] = ()

    @property
    def made(self) -> tuple[str, str]:
        """What the prediction and the uncertainty are called."""
        return MADE[2:] if self.levels else MADE[:2]

    def values(self, table: Any) -> tuple[Any, Any]:
        """Return the predictions and uncertainties of rows, as Python makes them."""
        from ._support.forms import of_members, of_quantiles

        return of_quantiles(self.levels, table) if self.levels else of_members(table)

    def __str__(self) -> str:
        """Return what it is made of.

        >>> str(Form(("q05", "q95"), (0.05, 0.95)))
        'quantiles q05 = 0.05, q95 = 0.95, of which the asymmetry is not kept'
        """
        if not self.levels:
            first, *_, last = self.columns
            return f"{len(self.columns)} members: {first} to {last}"
        both = zip(self.columns, self.levels, strict=True)
        pairs = ", ".join(f"{name} = {level:g}" for name, level in both)
        return f"quantiles {pairs}, of which the asymmetry is not kept"


@dataclass(frozen=True)
class Roles:
    """The columns of a table that are used, by the part that they play.

    Attributes
    ----------
    uncertainty : str
        The column of uncertainties, or of variances; or what their sum is called.
    is_variance : bool
        Whether these are variances.
    numbers, labels : tuple of str
        The features: columns of numbers, and columns of labels.
    formula : str or None
        A column of chemical formulas, from which further features are derived.
    error : tuple of str
        The column of errors, or those of reference and prediction; none if errors
        are not needed.
    prediction : str or None
        The column of predictions, if it is needed.
    left_out : tuple of str
        Columns of numbers whose names, or whose numbers, say that they are no features.
    components : tuple of str
        Several columns of uncertainties, or of variances, of which the uncertainty is
        the root of the sum of squares, or of the sum. They are features, too.
    weight : str or None
        The column of weights, if there is one.
    made_of, levels : tuple of str, tuple of float
        What prediction and uncertainty are made of, if they are: see :class:`Form`.
    minimum : float or None
        What uncertainties below it are lifted to.
    """

    uncertainty: str
    is_variance: bool = False
    numbers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    formula: str | None = None
    error: tuple[str, ...] = ()
    prediction: str | None = None
    left_out: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    weight: str | None = None
    made_of: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    minimum: float | None = None

    @property
    def form(self) -> Form | None:
        """What prediction and uncertainty are made of, if they are."""
        return Form(self.made_of, self.levels) if self.made_of else None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as JSON knows them."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, found: Any) -> Roles:
        """Return the roles that :meth:`to_dict` wrote; refuse anything else."""
        if found is None:
            msg = (
                "the recalibrator does not know the columns of files: it was not made "
                "by `sigmascale fit`."
            )
            raise InvalidInputError(msg)
        defaults = {each.name: each.default for each in fields(cls)}
        parts = dict(found) if isinstance(found, dict) else {}
        right = set(parts) == set(defaults)
        for name, value in parts.items():
            basic = float if name in ("levels", "minimum") else str
            if isinstance(value, list):
                right &= all(isinstance(each, basic) for each in value)
                parts[name] = value = tuple(value)
            kind = type(defaults.get(name, ""))
            kinds = {bool: bool, tuple: tuple, NoneType: basic | None}
            right &= isinstance(value, kinds.get(kind, str))
        if not right:
            msg = "the names of columns in the recalibrator's file are damaged."
            raise DamagedFileError(msg)
        return cls(**parts)

    def __str__(self) -> str:
        """Return what is taken from a table in words.

        >>> str(Roles("s2", True, ("mass",), error=("R", "V")))
        'error R - V; uncertainty sqrt(s2); features: mass'
        """
        error = f"error {' - '.join(self.error)}; " if self.error else ""
        square = "" if self.is_variance else "²"
        u = " + ".join(f"{each}{square}" for each in self.of_uncertainty)
        if not self.is_variance and not self.components:
            u = self.uncertainty
        else:
            u = f"sqrt({u})"
        if self.form is not None:
            u += f" (of {self.form})"
        weight = "" if self.weight is None else f"weight {self.weight}; "
        features = ", ".join(self.features) or "none"
        return f"{error}uncertainty {u}; {weight}features: {features}"

    @property
    def of_uncertainty(self) -> tuple[str, ...]:
        """The column of the uncertainty, or of its components."""
        return self.components or (self.uncertainty,)

    @property
    def features(self) -> list[str]:
        """All features by name, as they follow the uncertainty in X."""
        derived = FROM_FORMULA if self.formula is not None else ()
        return [*self.components, *self.numbers, *self.labels, *derived]

    @property
    def of_numbers(self) -> list[str]:
        """The columns that must hold numbers."""
        used = [*self.made_of, *self.of_uncertainty, *self.numbers, *self.error]
        used += filter(None, (self.prediction, self.weight))
        return list(dict.fromkeys(used))

    @property
    def optional(self) -> tuple[str, ...]:
        """The features that have no other part: some methods do without them."""
        needed = replace(self, numbers=()).of_numbers
        return tuple(n for n in (*self.numbers, *self.labels) if n not in needed)

    @property
    def of_labels(self) -> list[str]:
        """The columns that are taken as text."""
        return [*self.labels, *([] if self.formula is None else [self.formula])]


@dataclass(frozen=True)
class Choice:
    """What a user says of the columns; None stands for what is not said.

    `by` are columns that a recalibrator bins by; they are features, too. `components`
    are all columns of uncertainties, or of variances, where there are several. Members,
    quantiles and intervals take the place of an uncertainty; `taken` are columns that
    it was made of. Features may be missing if that is `gaps`. Messages speak of
    `options` on the command line, and of arguments in Python.
    """

    error: str | None = None
    reference: str | None = None
    prediction: str | None = None
    uncertainty: str | None = None
    variance: str | None = None
    features: Sequence[str] = ()
    all_features: bool = False
    exclude: Sequence[str] = ()
    formula: str | None = None
    labels: Sequence[str] = ()
    by: Sequence[str] = ()
    components: Sequence[str] = ()
    weight: str | None = None
    members: str | None = None
    quantile_columns: str | None = None
    interval: str | None = None
    interval_coverage: float | None = None
    minimum: float | None = None
    taken: Sequence[str] = ()
    gaps: bool = False
    options: bool = False

    def called(self, role: str, value: str = "") -> str:
        """Return what a role is called where it is named, with what it is set to.

        >>> Choice().called("error", "COLUMN"), Choice(options=True).called("by")
        ('`error="COLUMN"`', '--by')
        """
        if self.options:
            return f"--{role.replace('_', '-')} {value}".strip()
        role = _IN_PYTHON.get(role, role)
        return f'`{role}="{value}"`' if value else f"`{role}`"

    @property
    def error_names(self) -> tuple[str | None, ...]:
        """What is said of the errors."""
        return self.error, self.reference, self.prediction

    @property
    def names_several(self) -> bool:
        """Whether columns of several targets are named, by patterns."""
        given = [getattr(self, role) for role in (*_ERRORS, *_UNCERTAINTIES)]
        return any(STAR in name for name in (*given, *self.components) if name)

    @property
    def _example(self) -> str:
        return f"{self.called('error')} 'E_*' {self.called('uncertainty')} 'u_*'"

    @property
    def patterns(self) -> dict[str, str]:
        """The patterns by the roles that they are for; each must have one star."""
        if self.components:
            both = " or ".join(map(self.called, _UNCERTAINTIES))
            msg = (
                f"{both} is given once if it is a pattern; found "
                f"{listed(list(self.components))}."
            )
            raise InvalidInputError(msg)
        found = {
            role: getattr(self, role)
            for role in (*_ERRORS, *_UNCERTAINTIES)
            if getattr(self, role) is not None
        }
        for role, pattern in found.items():
            if pattern.count(STAR) != 1:
                msg = (
                    f"{self.called(role)} {pattern!r} must have one star, as there are "
                    f"several targets: {self._example}."
                )
                raise InvalidInputError(msg)
        return found

    def of_target(self, target: str) -> Choice:
        """Return what is said of one target, whose name takes the place of stars."""
        named: dict[str, Any] = {
            role: pattern.replace(STAR, target)
            for role, pattern in self.patterns.items()
        }
        return replace(self, **named)

    def form_in(self, names: Sequence[str]) -> Form | None:
        """Return what prediction and uncertainty are made of, if they are."""
        said = [role for role in (*_UNCERTAINTIES, *_FORMS) if getattr(self, role)]
        if len(said) > 1:
            both = " or ".join(map(self.called, said))
            msg = f"Pass {both}, but not both: each says what the uncertainty is."
            raise ColumnError(msg, "uncertainty")
        if (self.interval is None) is not (self.interval_coverage is None):
            one, other = map(self.called, ("interval", "interval_coverage"))
            msg = f"{one} and {other} go together: limits, and what they claim to hold."
            raise InvalidInputError(msg)
        if not set(said) & set(_FORMS):
            return None
        names = [name for name in names if name not in MADE]
        columns, levels = _form_columns(said[0], str(getattr(self, said[0])), names)
        if self.interval_coverage is not None:
            from ._support.forms import ends_of

            levels = ends_of(self.interval_coverage)
        if self.names_several:
            msg = f"{self.called(said[0])} is for one target. Name it without a star."
            raise InvalidInputError(msg)
        return Form(columns, levels)

    def made_by(self, form: Form, names: Sequence[str]) -> Choice:
        """Return what is said of a table that has the columns that a form makes."""
        middle, spread = form.made
        has_error = self.error or (
            self.reference is None and _obvious("error", names, self)
        )
        return replace(
            self,
            uncertainty=spread,
            prediction=self.prediction or (None if has_error else middle),
            taken=form.columns,
            members=None,
            quantile_columns=None,
            interval=None,
            interval_coverage=None,
        )

    def find_targets(self, table: TableColumns) -> dict[str, Roles]:
        """Return the roles by target; one target without a name is a table of one."""
        names = list(table.names)
        if (form := self.form_in(names)) is not None:
            roles = self.made_by(form, names).find(table)
            prediction = roles.prediction or form.made[0]
            roles = replace(roles, prediction=prediction, made_of=form.columns)
            return {"": replace(roles, levels=form.levels)}
        if not self.names_several:
            return {"": self.find(table)}
        found = _matching_columns(self, names)
        choice = self
        if self.all_features:  # columns of other targets are none
            taken = {name for columns in found.values() for name in columns.values()}
            taken |= {f"{name}{RECALIBRATED}" for name in taken}
            others = tuple(name for name in names if name in taken)
            choice = replace(self, exclude=(*self.exclude, *others))
        return {target: choice.of_target(target).find(table) for target in found}

    def find(self, table: TableColumns, *, with_error: bool = True) -> Roles:
        """Return the roles of a table's columns, those of the errors too.

        If there need not be errors, a prediction alone will do, or nothing.
        """
        names = list(table.names)
        is_numeric = cache(table.is_numeric)
        error: tuple[str, ...] = ()
        try:
            error = find_error(self, names)
        except ColumnError as problem:
            if with_error or problem.columns:
                raise
        uncertainty, is_variance, components = find_uncertainty(self, names)
        for name in components or [uncertainty]:
            if name in error:
                msg = f"column {name!r} cannot be both error and uncertainty."
                raise InvalidInputError(msg)
        prediction = error[1] if len(error) == 2 else self.prediction
        if not error and prediction is None:
            prediction = _obvious("prediction", names, self)
        formula = self.formula
        if formula is not None:
            formula = known(formula, names, self.called("formula"))
        derived = FROM_FORMULA if formula is not None else ()

        asked = [known(name, names, self.called("feature")) for name in self.features]
        binned = [
            known(name, [*names, *derived], self.called("by")) for name in self.by
        ]
        asked += [name for name in binned if name != uncertainty]
        labels = [known(name, names, self.called("label")) for name in self.labels]
        # errors cannot be told from new rows, but predictions can
        weight = find_weight(self, names, (uncertainty, *components, *error))
        taken = {uncertainty, *components, formula, *error, weight} - {prediction}
        taken.update(self.taken)
        left_out: list[str] = []
        excluded = [known(name, names, self.called("exclude")) for name in self.exclude]
        if excluded and not self.all_features:
            msg = (
                f"{self.called('exclude')} is for {self.called('all_features')}: it "
                "takes columns out of these."
            )
            raise InvalidInputError(msg)
        if self.all_features:
            used = taken.union(labels, asked, excluded, error)
            free = [name for name in names if name not in used]
            free = [name for name in free if is_numeric(name)]
            unfit = no_features(names, error, uncertainty)
            unfit |= set(filter(table.counts_rows, free)) | _unnamed(names)
            left_out = [name for name in free if name in unfit]
            asked += [name for name in free if name not in unfit]
        asked = [name for name in dict.fromkeys(asked) if name not in derived]
        for name in (*asked, *labels):
            if name in taken:
                msg = f"column {name!r} has another part already; it is no feature."
                raise InvalidInputError(msg)
        if clash := set(derived) & set(names) & {*asked, *labels}:
            found = min(clash)
            derives = self.called("formula")
            msg = f"{derives} derives {found!r}, which is a column of the file, too."
            raise InvalidInputError(msg)
        numbers = {n: None for n in asked if n not in labels and is_numeric(n)}
        labels = [n for n in dict.fromkeys([*asked, *labels]) if n not in numbers]
        return Roles(
            uncertainty,
            is_variance,
            tuple(numbers),
            tuple(labels),
            formula,
            error,
            prediction,
            tuple(left_out),
            components,
            weight,
            minimum=self.minimum,
        )


@dataclass(frozen=True)
class Expected:
    """The roles of another table, and what a user says of this one.

    Attributes
    ----------
    roles : dict of str to Roles
        Those of the table that a recalibrator was fitted on, by target.
    choice : Choice
        Other names of its columns.
    with_error, with_prediction : bool
        Whether errors are needed, and whether predictions are used if there are any.
    least_rows : int or None
        With fewer rows, the table is refused; None stands for as many as show
        something.
    gaps : bool
        Whether features may be missing.
    """

    roles: dict[str, Roles]
    choice: Choice
    with_error: bool = False
    with_prediction: bool = False
    least_rows: int | None = None
    gaps: bool = False

    def form_in(self, names: Sequence[str]) -> Form | None:
        """Return what prediction and uncertainty are made of, if they are."""
        form = self.choice.form_in(names)
        if form is not None or any(getattr(self.choice, r) for r in _UNCERTAINTIES):
            return form
        for form in (each.form for each in self.roles.values()):
            for name in () if form is None else form.columns:
                known(name, names, "the recalibrator")
        return form

    def find_targets(self, table: TableColumns) -> dict[str, Roles]:
        """Return the roles of a table's columns, all of which must be there."""
        names, choice = list(table.names), self.choice
        if (form := self.form_in(names)) is not None:
            if choice.form_in(names) is not None:
                choice = choice.made_by(form, names)
            found = self._find(names, self.roles[""], choice, "")
            return {"": replace(found, made_of=form.columns, levels=form.levels)}
        if list(self.roles) != [""]:
            return {
                target: self._find(names, fitted, choice.of_target(target), target)
                for target, fitted in self.roles.items()
            }
        if choice.names_several:
            msg = "it is a recalibrator of one target. Name columns without a star."
            raise InvalidInputError(msg)
        return {"": self._find(names, self.roles[""], choice, "")}

    def _find(self, names: list[str], was: Roles, choice: Choice, target: str) -> Roles:
        asked_by = f"target {target!r}" if target else "the recalibrator"
        found = replace(
            was,
            error=(),
            prediction=None,
            left_out=(),
            weight=None,
            made_of=(),
            levels=(),
            minimum=was.minimum if choice.minimum is None else choice.minimum,
        )
        if self.with_error:
            _refuse_others(was, choice)
        elif choice.uncertainty is not None or choice.variance is not None:
            found = _other_uncertainty(found, choice, names)
        needed = [*found.of_uncertainty, *found.numbers, *found.labels]
        if self.with_error:
            error = was.error or find_error(choice, names)
            weight = find_weight(choice, names, (*found.of_uncertainty, *error))
            found = replace(found, error=error, weight=weight)
            needed += error
        for name in needed:
            known(name, names, asked_by)
        if found.formula is not None:
            known(found.formula, names, choice.called("formula"))
        prediction = choice.prediction
        if prediction is not None:
            known(prediction, names, choice.called("prediction"))
        elif was.prediction in names:
            prediction = was.prediction
        return replace(found, prediction=prediction) if self.with_prediction else found


def _refuse_others(was: Roles, choice: Choice) -> None:
    """Refuse other columns than those that a recalibrator was fitted with."""
    roles = _ERRORS[1:] if len(was.error) == 2 else _ERRORS[:1]
    fitted = dict(zip(roles, was.error, strict=bool(was.error)))
    fitted["variance" if was.is_variance else "uncertainty"] = was.uncertainty
    for role in (*(_ERRORS if was.error else ()), *_UNCERTAINTIES):
        named, column = getattr(choice, role), fitted.get(role)
        if named not in (None, column) and not choice.components:
            is_fitted = "no column" if column is None else repr(column)
            msg = (
                f"the recalibrator was fitted with {is_fitted} as the {role}, and "
                f"{choice.called(role, named)} is another column. Rename columns "
                "if they mean the same, or fit again."
            )
            raise ColumnError(msg, role, (named,))


def _form_columns(
    role: str, text: str, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the columns that an option lists or matches, and levels of quantiles.

    >>> _form_columns("members", "m_*", ["y", "m_1", "m_2"])
    (('m_1', 'm_2'), ())
    >>> _form_columns("quantile_columns", "q*", ["q95", "q05", "q2.5"])
    (('q2.5', 'q05', 'q95'), (0.025, 0.05, 0.95))
    >>> _form_columns("quantile_columns", "low=0.1,high=0.9", ["low", "high"])
    (('low', 'high'), (0.1, 0.9))
    """
    option, quantiles = f"--{role.replace('_', '-')}", role == "quantile_columns"
    if STAR in text and "=" not in text:
        if text.count(STAR) > 1:
            msg = f"{option} {text!r} must have one star, or none."
            raise InvalidInputError(msg)
        found = {name: star for star, name in _matches(text, names).items()}
        if not found:
            msg = (
                f"{option} {text!r} matches no column. The columns are: "
                f"{listed(names)}."
            )
            raise InvalidInputError(msg)
        if not quantiles:
            return tuple(found), ()
        pairs = sorted((level_of(option, x), name) for name, x in found.items())
        return tuple(name for _, name in pairs), tuple(level for level, _ in pairs)
    columns, levels = [], []
    for part in text.split(","):
        name, equals, level = part.partition("=") if quantiles else (part, "", "")
        if quantiles and not equals:
            msg = (
                f"{option} takes columns and levels, as in q05=0.05,q95=0.95, or a "
                f"pattern, as in 'q*'; found {text!r}."
            )
            raise InvalidInputError(msg)
        columns.append(known(name.strip(), names, option))
        if quantiles:
            levels.append(_number(option, level))
    if len(set(columns)) < len(columns):
        msg = f"{option}: a column is given twice, {', '.join(columns)}."
        raise InvalidInputError(msg)
    if role == "interval" and len(columns) != 2:
        msg = f"{option} takes two columns, as in low,high; found {text!r}."
        raise InvalidInputError(msg)
    return tuple(columns), tuple(levels)


def level_of(option: str, text: str) -> float:
    """Return the level that part of a column's name says.

    One or two digits are percent, more follow the point; above 1 all are percent.

    >>> [
    ...     level_of("", each)
    ...     for each in ("05", "5", "0.05", "2.5", "975", "_0.5", "100")
    ... ]
    [0.05, 0.05, 0.05, 0.025, 0.975, 0.5, 1.0]
    """
    text = text.strip(" _-%")
    if text.isdecimal() and len(text) > 2 and text != "100":
        return _number(option, f"0.{text}")
    level = _number(option, text)
    return level / 100 if level >= 1 or text.isdecimal() else level


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as problem:
        msg = (
            f"{option}: {text!r} is no level of a quantile. Name levels with their "
            "columns: q05=0.05,q95=0.95."
        )
        raise InvalidInputError(msg) from problem


def _other_uncertainty(found: Roles, choice: Choice, names: Sequence[str]) -> Roles:
    """Return the roles with the uncertainties that the user names."""
    uncertainty, is_variance, components = find_uncertainty(choice, names)
    if len(components) != len(found.components):
        msg = (
            "the recalibrator was fitted with as many uncertainties as: "
            f"{', '.join(found.of_uncertainty)}. Name them all, in this order."
        )
        raise InvalidInputError(msg)
    return replace(
        found,
        uncertainty=uncertainty,
        is_variance=is_variance,
        components=components,
    )


def _matching_columns(
    choice: Choice, names: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the columns of each target by their roles.

    What the star stands for is the name of a target: patterns of all roles must have
    the same. Targets come in the order of their columns.
    """
    patterns = choice.patterns
    if not set(patterns) & set(_ERRORS) or not set(patterns) & set(_UNCERTAINTIES):
        msg = (
            "Several targets need patterns of both their errors and uncertainties: "
            f"{choice._example}; or those of the reference and the prediction for the "
            "errors, and of variances."
        )
        raise InvalidInputError(msg)
    found: dict[str, dict[str, str]] = {}
    for role, pattern in patterns.items():
        found[role] = _matches(pattern, names)
        if not found[role]:
            msg = (
                f"{choice.called(role)} {pattern!r} matches no column. The columns "
                f"are: {listed(names)}."
            )
            raise InvalidInputError(msg)
    first, *others = found
    for other in others:
        if alone := sorted(set(found[first]) ^ set(found[other])):
            both = " and ".join(
                f"{choice.called(role)} {patterns[role]!r}" for role in (first, other)
            )
            msg = (
                f"{both} must stand for the same targets; only one of them has a "
                f"column of: {listed(alone)}."
            )
            raise InvalidInputError(msg)
    return {
        target: {role: found[role][target] for role in found} for target in found[first]
    }


def _matches(pattern: str, names: Sequence[str]) -> dict[str, str]:
    """Return the columns that match a pattern, by what its star stands for.

    What was made of a column that matches, too, is left out.

    >>> _matches("u_*", ["E_a", "u_a", "u_b", "u_b_recalibrated"])
    {'a': 'u_a', 'b': 'u_b'}
    """
    before, after = map(re.escape, pattern.split(STAR))
    compiled = re.compile(f"{before}(.+){after}", re.DOTALL)
    found = {name: hit[1] for name in names if (hit := compiled.fullmatch(name))}
    made = {f"{name}{RECALIBRATED}" for name in found}
    return {target: name for name, target in found.items() if name not in made}


def find_error(choice: Choice, names: Sequence[str]) -> tuple[str, ...]:
    """Return the column of errors, or those of the reference and the prediction."""
    parts = (choice.reference, choice.prediction)
    if choice.error is not None and any(parts):
        error, *both = map(choice.called, ("error", "reference", "prediction"))
        msg = (
            f"Pass {error}, or {both[0]} and {both[1]}, but not both: the error is "
            "reference minus prediction."
        )
        raise ColumnError(msg, "error")
    if choice.error is not None:
        return (known(choice.error, names, choice.called("error")),)
    if not any(parts):
        guess = _obvious("error", names, choice)
        if guess is not None:
            return (guess,)
    pair = [
        known(name, names, choice.called(role))
        if name is not None
        else _obvious(role, names, choice)
        for role, name in zip(("reference", "prediction"), parts, strict=True)
    ]
    if None in pair:
        lacking = "reference" if pair[0] is None else "prediction"
        lacking = lacking if any(parts) else "error"
        error, *both = (
            choice.called(role, "COLUMN")
            for role in ("error", "reference", "prediction")
        )
        why = _contradiction("error", names)
        msg = (
            f"No column is plainly the {lacking}.{why} Name it: {error}, or {both[0]} "
            f"and {both[1]}. The columns are: {listed(names)}."
        )
        raise ColumnError(msg, lacking, tuple(_plain("error", names)) if why else ())
    if pair[0] == pair[1]:
        msg = f"column {pair[0]!r} cannot be both reference and prediction."
        raise InvalidInputError(msg)
    return tuple(name for name in pair if name is not None)


def find_weight(
    choice: Choice, names: Sequence[str], taken: Sequence[str]
) -> str | None:
    """Return the column of weights, if one is named."""
    if choice.weight is None:
        return None
    weight = known(choice.weight, names, choice.called("weight"))
    if weight in taken:
        msg = f"column {weight!r} has another part already; it holds no weights."
        raise InvalidInputError(msg)
    return weight


def find_uncertainty(
    choice: Choice, names: Sequence[str]
) -> tuple[str, bool, tuple[str, ...]]:
    """Return the column of the uncertainty, and whether it is a variance.

    Where there are several, their names make one, and all of them are returned, too.
    """
    for role in _UNCERTAINTIES:
        if (named := getattr(choice, role)) is not None:
            asked_by = choice.called(role)
            several = tuple(known(each, names, asked_by) for each in choice.components)
            if len(set(several)) < len(several):
                msg = f"{asked_by}: a column is given twice, {', '.join(several)}."
                raise InvalidInputError(msg)
            named = SEVERAL.join(several) or known(named, names, asked_by)
            return named, role == "variance", several
    for role in _UNCERTAINTIES:
        if (guess := _obvious(role, names, choice)) is not None:
            return guess, role == "variance", ()
    either = " or ".join(choice.called(role, "COLUMN") for role in _UNCERTAINTIES)
    msg = (
        f"No column is plainly the uncertainty.{_contradiction('uncertainty', names)} "
        f"Name it: {either}. The columns are: {listed(names)}."
    )
    raise ColumnError(msg, "uncertainty")


def no_features(
    names: Sequence[str], error: Sequence[str], uncertainty: str
) -> set[str]:
    """Return columns whose names say that they are no features.

    These are uncertainties and variances, what `apply` has made, what it was made from
    and, beside predictions, true values and errors: new rows do not have them, and
    with the prediction they give the error away.
    """
    made = {f"{name}{RECALIBRATED}" for name in names}
    made |= {f"{name}{end}" for name in made for end in LIMITS}
    unfit = made.union(_plain("uncertainty", names), _plain("variance", names))
    unfit.add(uncertainty.removesuffix(RECALIBRATED))
    if len(error) == 2 or _plain("prediction", names):
        unfit.update(_plain("error", names), _plain("reference", names))
    return unfit


def new_names(
    name: str | None,
    roles: dict[str, Roles],
    names: Sequence[str],
    endings: Sequence[str] = (),
) -> list[str]:
    """Return the names of new columns of all targets, which must not be taken.

    A star in `name` stands for the names of several targets. Each name is followed by
    itself with `endings`.
    """
    several = list(roles) != [""]
    if several and name is not None and name.count(STAR) != 1:
        msg = (
            f"--name {name!r} must have one star, for the names of {len(roles)} "
            "targets: --name 'new_*'."
        )
        raise InvalidInputError(msg)
    found: list[str] = []
    for target, each in roles.items():
        old = "u" if each.components or each.made_of else each.uncertainty
        called = f"{old}{RECALIBRATED}"
        if name is not None:
            called = name.replace(STAR, target) if several else name
        for new in (called, *(f"{called}{end}" for end in endings)):
            if not is_utf8(new):
                msg = f"--name {new!r} is no text in UTF-8. Choose another name."
                raise InvalidInputError(msg)
            if new in (*names, *found):
                msg = f"there is a column {new!r} already. Choose another with --name."
                raise InvalidInputError(msg)
            found.append(new)
    return found


def known(name: str, names: Sequence[str], asked_by: str) -> str:
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
    raise ColumnError(msg, "unknown", (name,))


def listed(names: Sequence[str]) -> str:
    """Return names for a message; long ones, and many, are cut short.

    >>> listed(["u", "mass"])
    "'u', 'mass'"
    """
    from ._support.render import shorten

    shown = ", ".join(repr(shorten(name, 40)) for name in names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


class _FrameColumns:
    """The columns of a data frame in memory."""

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self._frame = frame
        self.names = frame.columns

    def is_numeric(self, name: str) -> bool:
        """Return whether a column holds numbers."""
        return self._frame[name].dtype.is_numeric()

    def counts_rows(self, name: str) -> bool:
        """Return whether a column holds 0, 1, 2, ... or 1, 2, 3, ... and no more."""
        x = self._frame[name]
        if not x.dtype.is_integer() or len(x) < 3 or x.is_null().any():
            return False
        numbers = x.to_numpy()
        return numbers[0] in (0, 1) and bool((numbers[1:] - numbers[:-1] == 1).all())


def find_columns(
    frame: nw.DataFrame[Any],
    choice: Choice,
    *,
    groups: str | None = None,
    time: str | None = None,
) -> Roles:
    """Return the roles of a data frame's columns; there need not be errors.

    Those of numbers that are no features, because they count rows for example, are
    told in a warning.
    """
    from ._support.notices import warn

    table = _FrameColumns(frame)
    for name, role in ((groups, "groups"), (time, "time")):
        if name is not None:
            known(name, table.names, choice.called(role))
    roles = choice.find(table, with_error=bool(choice.error or choice.reference))
    index = [x for x in roles.left_out if table.counts_rows(x)]
    index += [x for x in _unnamed(table.names) if x not in index]
    if choice.all_features and index:
        warn(
            f"Column {index[0]!r} only counts rows, or has no name: it is taken for an "
            "index, and is no feature. Name it among `features` if it is one.",
            IndexColumnWarning,
            stacklevel=4,
        )
    return roles


def guess(table: TableColumns) -> tuple[dict[str, str], list[ColumnError]]:
    """Return what each column seems to be, and what cannot be told.

    A column is an error, a reference, a prediction, an uncertainty, a variance or a
    feature, or else "ignored".
    """
    names, problems = list(table.names), []
    found = dict.fromkeys(names, "ignored")
    error: tuple[str, ...] = ()
    uncertainty = ""
    try:
        uncertainty, is_variance, _ = find_uncertainty(Choice(), names)
        found[uncertainty] = "variance" if is_variance else "uncertainty"
    except ColumnError as problem:
        problems.append(problem)
    try:
        error = find_error(Choice(), names)
        kinds = ("error",) if len(error) == 1 else ("reference", "prediction")
        found |= dict(zip(error, kinds, strict=True))
    except ColumnError as problem:
        problems.append(problem)
    if not problems:
        unfit = no_features(names, error, uncertainty) | _unnamed(names)
        for name, role in found.items():
            if role == "ignored" and name not in unfit and table.is_numeric(name):
                found[name] = "ignored" if table.counts_rows(name) else "feature"
    return found, problems


def _unnamed(names: Sequence[str]) -> set[str]:
    """Return the first column if it has no name, as the index of a data frame has."""
    first = names[0].strip().lower() if names else "?"
    return {names[0]} if first in ("", "unnamed: 0", "index") else set()


def _simple(name: str) -> str:
    """Return a name in small letters and without a unit.

    >>> _simple("u (eV)"), _simple("Std Pred")
    ('u', 'std_pred')
    """
    return re.sub(r"[\s-]+", "_", _UNIT.sub("", name.strip()).lower())


def _plain(role: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if _simple(name) in OBVIOUS[role]]


def _rival(name: str, names: Iterable[str]) -> str | None:
    """Return the column by whose name a letter is that of a quantity, if there is one.

    >>> _rival("E", ["E", "E_pred"]), _rival("E", ["E", "u_E"])
    ('E_pred', None)
    """
    short = _simple(name)
    if len(short) > 1:
        return None
    for other in names:
        first, _, second = _simple(other).rpartition("_")
        if (first == short and second in _OF_A_QUANTITY) or (
            second == short and first in _OF_A_QUANTITY
        ):
            return other
    return None


def _contradiction(role: str, names: Sequence[str]) -> str:
    """Return why a name that says it all is not taken, in a sentence, or nothing."""
    for name in _plain(role, names):
        if (other := _rival(name, names)) is not None:
            return f" {name!r} seems to be the quantity that {other!r} is of."
    return ""


def _obvious(role: str, names: Sequence[str], choice: Choice) -> str | None:
    found = [name for name in _plain(role, names) if _rival(name, names) is None]
    if len(found) > 1:
        msg = (
            f"Several columns could be the {role}: {listed(found)}. Say which: "
            f"{choice.called(role, 'COLUMN')}."
        )
        raise ColumnError(msg, role, tuple(found))
    return found[0] if found else None


def source_of(roles: dict[str, Roles]) -> dict[str, Any]:
    """Return what is kept of the columns, by target unless there is one."""
    if list(roles) == [""]:
        return roles[""].to_dict()
    return {"targets": {name: each.to_dict() for name, each in roles.items()}}
