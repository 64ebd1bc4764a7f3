"""Which columns of a table play which part: named by the user, or by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from typing import Any

from ..._support.files import is_utf8
from ...exceptions import DamagedFileError, InvalidInputError
from .sources import listed
from .values import RawTable

# Names that leave no doubt, in small letters.
OBVIOUS = {
    "error": ("e", "error", "errors", "err"),
    "reference": ("r", "reference", "ref", "y_true", "truth"),
    "prediction": ("v", "prediction", "predicted", "pred", "y_pred"),
    "uncertainty": ("u", "uncertainty", "sigma", "std", "y_std"),
    "variance": ("variance", "var"),
}
FROM_FORMULA = ("mass", "heteroatom_fraction", "OxNy")
RECALIBRATED = "_recalibrated"  # what `apply` adds to the name of the uncertainty
LIMITS = ("_low", "_high")  # and to the name of the new column
SEVERAL = " & "  # between the names of several uncertainties


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
        Columns of numbers whose names say that they are no features.
    components : tuple of str
        Several columns of uncertainties, or of variances, of which the uncertainty is
        the root of the sum of squares, or of the sum. They are features, too.
    weight : str or None
        The column of weights, if there is one.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as JSON knows them."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if name != "weight" or value is not None
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

        def is_right(name: str, value: Any) -> bool:
            if name in ("numbers", "labels", "error", "left_out", "components"):
                return isinstance(value, list) and all(
                    isinstance(each, str) for each in value
                )
            if name == "is_variance":
                return isinstance(value, bool)
            return isinstance(value, str) or (value is None and name != "uncertainty")

        names = {field.name for field in fields(cls)}
        if isinstance(found, dict):
            # which older files, and those without weights, do not have
            found = {"components": [], "weight": None, **found}
        if (
            not isinstance(found, dict)
            or set(found) != names
            or not all(is_right(name, value) for name, value in found.items())
        ):
            msg = "the names of columns in the recalibrator's file are damaged."
            raise DamagedFileError(msg)
        parts: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in found.items()
        }
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
        used = [*self.of_uncertainty, *self.numbers, *self.error, self.prediction]
        used.append(self.weight)
        return [name for name in dict.fromkeys(used) if name is not None]

    @property
    def of_labels(self) -> list[str]:
        """The columns that are taken as text."""
        return [*self.labels, *([] if self.formula is None else [self.formula])]


@dataclass(frozen=True)
class Choice:
    """What a user says of the columns; None stands for what is not said.

    `by` are columns that a recalibrator bins by; they are features, too. `components`
    are all columns of uncertainties, or of variances, where there are several.
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

    @property
    def error_names(self) -> tuple[str | None, ...]:
        """What is said of the errors."""
        return self.error, self.reference, self.prediction

    def find(self, table: RawTable) -> Roles:
        """Return the roles of a table's columns, those of the errors too."""
        names = table.frame.columns
        is_numeric = cache(table.is_numeric)
        error = find_error(self, names)
        uncertainty, is_variance = find_uncertainty(self, names)
        components = find_components(self, names)
        uncertainty = SEVERAL.join(components) or uncertainty
        for name in components or [uncertainty]:
            if name in error:
                msg = f"column {name!r} cannot be both error and uncertainty."
                raise InvalidInputError(msg)
        prediction = error[1] if len(error) == 2 else None
        formula = self.formula
        if formula is not None:
            formula = known(formula, names, "--formula")
        derived = FROM_FORMULA if formula is not None else ()

        asked = [known(name, names, "--feature") for name in self.features]
        binned = [known(name, [*names, *derived], "--by") for name in self.by]
        asked += [name for name in binned if name != uncertainty]
        labels = [known(name, names, "--label") for name in self.labels]
        # errors cannot be told from new rows, but predictions can
        weight = find_weight(self, names, (uncertainty, *components, *error))
        taken = {uncertainty, *components, formula, *error, weight} - {prediction}
        left_out: list[str] = []
        excluded = [known(name, names, "--exclude") for name in self.exclude]
        if excluded and not self.all_features:
            msg = "--exclude is for --all-features: it takes columns out of these."
            raise InvalidInputError(msg)
        if self.all_features:
            used = taken.union(labels, asked, excluded, error)
            free = [name for name in names if name not in used]
            free = [name for name in free if is_numeric(name)]
            unfit = no_features(names, error, uncertainty)
            left_out = [name for name in free if name in unfit]
            asked += [name for name in free if name not in unfit]
        asked = [name for name in dict.fromkeys(asked) if name not in derived]
        for name in (*asked, *labels):
            if name in taken:
                msg = f"column {name!r} has another part already; it is no feature."
                raise InvalidInputError(msg)
        if clash := set(derived) & set(names) & {*asked, *labels}:
            found = min(clash)
            msg = f"--formula derives {found!r}, which is a column of the file, too."
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
        )


@dataclass(frozen=True)
class Expected:
    """The roles of another table, and what a user says of this one.

    Attributes
    ----------
    roles : Roles
        Those of the table that a recalibrator was fitted on.
    choice : Choice
        Other names of its columns.
    with_error, with_prediction : bool
        Whether errors are needed, and whether predictions are used if there are any.
    least_rows : int or None
        With fewer rows, the table is refused; None stands for as many as show
        something.
    """

    roles: Roles
    choice: Choice
    with_error: bool = False
    with_prediction: bool = False
    least_rows: int | None = None

    def find(self, table: RawTable) -> Roles:
        """Return the roles of a table's columns, all of which must be there."""
        names, choice = table.frame.columns, self.choice
        found = replace(self.roles, error=(), prediction=None, left_out=(), weight=None)
        if choice.uncertainty is not None or choice.variance is not None:
            found = self._other_uncertainty(found, names)
        needed = (*found.of_uncertainty, *found.numbers, *found.labels)
        for name in set(needed).difference(names):
            known(name, names, "the recalibrator")
        if found.formula is not None:
            known(found.formula, names, "--formula")
        if self.with_error:
            error = find_error(choice, names)
            weight = find_weight(choice, names, (*found.of_uncertainty, *error))
            found = replace(found, error=error, weight=weight)
        if self.with_prediction:
            if choice.prediction is not None:
                prediction = known(choice.prediction, names, "--prediction")
                found = replace(found, prediction=prediction)
            elif self.roles.prediction in names:
                found = replace(found, prediction=self.roles.prediction)
        return found

    def _other_uncertainty(self, found: Roles, names: list[str]) -> Roles:
        """Return the roles with the uncertainties that the user names."""
        uncertainty, is_variance = find_uncertainty(self.choice, names)
        components = find_components(self.choice, names)
        if len(components) != len(found.components):
            msg = (
                "the recalibrator was fitted with as many uncertainties as: "
                f"{', '.join(found.of_uncertainty)}. Name them all, in this order."
            )
            raise InvalidInputError(msg)
        return replace(
            found,
            uncertainty=SEVERAL.join(components) or uncertainty,
            is_variance=is_variance,
            components=components,
        )


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


def find_weight(choice: Choice, names: list[str], taken: Sequence[str]) -> str | None:
    """Return the column of weights, if one is named."""
    if choice.weight is None:
        return None
    weight = known(choice.weight, names, "--weight")
    if weight in taken:
        msg = f"column {weight!r} has another part already; it holds no weights."
        raise InvalidInputError(msg)
    return weight


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


def find_components(choice: Choice, names: list[str]) -> tuple[str, ...]:
    """Return the columns of uncertainties, or variances, where there are several."""
    asked_by = "--uncertainty" if choice.variance is None else "--variance"
    found = [known(name, names, asked_by) for name in choice.components]
    if len(set(found)) < len(found):
        msg = f"{asked_by}: a column is given twice, {', '.join(found)}."
        raise InvalidInputError(msg)
    return tuple(found)


def no_features(names: list[str], error: Sequence[str], uncertainty: str) -> set[str]:
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


def free_names(
    name: str | None, roles: Roles, names: list[str], *, with_limits: bool
) -> list[str]:
    """Return the names of the new columns, which must not be taken."""
    name = name or f"{'u' if roles.components else roles.uncertainty}{RECALIBRATED}"
    found = [name, *(f"{name}{end}" for end in LIMITS if with_limits)]
    for each in found:
        if not is_utf8(each):
            msg = f"--name {each!r} is no text in UTF-8. Choose another name."
            raise InvalidInputError(msg)
        if each in names:
            msg = f"there is a column {each!r} already. Choose another with --name."
            raise InvalidInputError(msg)
    return found


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


def _plain(role: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.strip().lower() in OBVIOUS[role]]


def _obvious(role: str, names: list[str]) -> str | None:
    found = _plain(role, names)
    if len(found) > 1:
        msg = (
            f"Several columns could be the {role}: {listed(found)}. Say which: "
            f"--{role} COLUMN."
        )
        raise InvalidInputError(msg)
    return found[0] if found else None
