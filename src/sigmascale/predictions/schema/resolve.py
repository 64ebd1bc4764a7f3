"""One column for each role: as the user says, as names tell, or as a fit remembers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw

from ..._support.notices import warn
from ..._support.text import listed, quoted
from ...exceptions import ColumnError, IndexColumnWarning, TextColumnWarning
from ..roles import OF_ROWS
from .choice import Choice, known, said_of
from .guesses import guessed
from .names import is_no_feature
from .schema import MOST_LABELS, ROWS_A_LABEL, Schema, are_labels, as_table, counts

TOO_MANY_LABELS = (
    f"text is a feature if it has 2 to {MOST_LABELS} labels, and {ROWS_A_LABEL} rows "
    "for each on average"
)

# -- of a table that nobody has seen before --------------------------------------------


def find(
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    counting: Collection[str] = (),
    labelled: Collection[str] = (),
    *,
    errors: bool = True,
) -> Schema:
    """Return which columns of a table are what.

    Parameters
    ----------
    choice : Choice
        What is said of the columns.
    names : sequence of str
        All columns.
    numeric, counting : collection of str
        Those that hold numbers, and those that only count rows.
    labelled : collection of str
        Those of text that are features where all columns are.
    errors : bool, default True
        Whether errors must be known.

    Returns
    -------
    Schema
    """
    for role in ("features", "labels", "exclude"):
        for name in getattr(choice, role):
            known(name, names, choice.called(role))
    said = said_of(choice, names)
    complete = guessed(said, choice, names, numeric, errors=errors)
    return _with_features(complete, choice, names, numeric, counting, labelled)


def of_frame(frame: Any, choice: Choice) -> Schema:
    """Return which columns of a data frame are what; there need not be errors.

    An index among the columns is told in a warning where all features are taken.
    """
    table = as_table(frame)

    # what the columns hold
    numeric = []
    counting = []
    labelled = []
    for name, kind in table.schema.items():
        if kind.is_numeric():
            numeric.append(name)
            if kind.is_integer() and counts(table[name]):
                counting.append(name)
        elif choice.all_features and _holds_labels(table[name]):
            labelled.append(name)

    schema = find(choice, table.columns, numeric, counting, labelled, errors=False)
    if schema.texts_left_out:
        warn(
            f"{listed(map(quoted, schema.texts_left_out))}: left out of the features, "
            f"as {TOO_MANY_LABELS}. Name it among `features` if it is one.",
            TextColumnWarning,
            stacklevel=3,
        )
    if index := [name for name in schema.left_out if name in counting]:
        warn(
            f"Column {quoted(index[0])} only counts rows: it is taken for an index, "
            "and is no feature. Name it among `features` if it is one.",
            IndexColumnWarning,
            stacklevel=3,
        )
    return schema


def _holds_labels(column: Any) -> bool:
    """Return whether a column that holds no numbers is a feature of labels."""
    kinds = (nw.String, nw.Boolean, nw.Categorical, nw.Enum)
    return column.dtype in kinds and are_labels(column.n_unique(), len(column))


def guess(
    names: Sequence[str],
    numeric: Collection[str],
    counting: Collection[str] = (),
    labelled: Collection[str] = (),
) -> tuple[dict[str, str], ColumnError | None]:
    """Return what each column seems to be, and what cannot be told.

    A column is "error", "reference", "prediction", "uncertainty", "variance" or
    "feature", "label", or else "". Where several sets of columns fit, that is shown in
    which all of them agree.

    >>> guess(["E_true", "E_model", "sigma", "mass"], ["E_true", "E_model", "sigma"])[0]
    {'E_true': 'reference', 'E_model': 'prediction', 'sigma': 'uncertainty', 'mass': ''}
    """
    role_of = dict.fromkeys(names, "")
    try:
        choice = Choice(all_features=True, options=True)
        schema = find(choice, names, numeric, counting, labelled)
    except ColumnError as problem:
        first, *others = problem.fields.get("sets") or [{}]
        for role, name in first.items():
            if all(other.get(role) == name for other in others):
                role_of[name] = role
        return role_of, problem
    role_of |= dict.fromkeys(schema.numbers, "feature")
    role_of |= dict.fromkeys(schema.labels, "label")
    of_error = ("error",) if len(schema.error) == 1 else ("reference", "prediction")
    role_of |= dict(zip(schema.error, of_error, strict=True))
    role_of[schema.uncertainty] = "variance" if schema.is_variance else "uncertainty"
    return role_of, None


# -- of a table for a recalibrator that knows its columns ------------------------------


def remembered(
    schema: Schema, choice: Choice, names: Sequence[str], *, errors: bool
) -> Schema:
    """Return the columns of a table for a recalibrator that was fitted on another.

    Features are those of the fit. Other columns may be named anew.
    """
    if choice.features or choice.labels or choice.all_features or choice.exclude:
        msg = (
            "Features are those that the recalibrator was fitted on: "
            f"{listed(schema.features) or 'none'}. Name none."
        )
        raise ColumnError(msg, "features")

    # what is said anew replaces what is remembered
    said = said_of(choice, names)
    anew = [*OF_ROWS]
    if said.uncertainty:
        anew += ["uncertainty", "is_variance", "made_of", "levels"]
    if said.min_std is not None:
        anew.append("min_std")
    schema = replace(schema, **{role: getattr(said, role) for role in anew})

    # errors follow the prediction
    prediction = said.prediction
    if prediction is None and schema.made_of:
        prediction = schema.made[0]
    elif prediction is None and schema.prediction in names:
        prediction = schema.prediction
    error = said.error or schema.error
    if choice.reference or len(error) == 2:
        error = choice.reference or error[0], prediction or error[-1]
    schema = replace(schema, error=error if errors else (), prediction=prediction)
    for name in schema.columns:
        known(name, names, "The recalibrator")
    return schema


# -- features --------------------------------------------------------------------------


def _with_features(
    schema: Schema,
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    counting: Collection[str],
    labelled: Collection[str],
) -> Schema:
    """Return a schema with the features that are named, or with all there are."""
    if choice.exclude and not choice.all_features:
        exclude = choice.called("exclude")
        all_features = choice.called("all_features")
        msg = f"{exclude} takes columns out of {all_features}, and needs it."
        raise ColumnError(msg, "exclude")
    asked = (*choice.features, *choice.labels)
    used = {schema.uncertainty, *schema.error, *schema.made_of, schema.weight}
    if clash := used.difference({schema.prediction}).intersection(asked):
        msg = f"{quoted(min(clash, key=str))} has another role; it is no feature."
        raise ColumnError(msg, "features", tuple(map(str, clash)))

    # of all features, those whose name or content says that they are none are left out
    wanted = list(choice.features)
    left_out = []
    texts_left_out = []
    if choice.all_features:
        taken = used.union(asked, choice.exclude, {schema.groups, schema.time})
        output = (*schema.error, schema.uncertainty)
        counting, numeric, labelled = set(counting), set(numeric), set(labelled)
        for name in names:
            if name in taken:
                continue
            if name in counting or is_no_feature(name, output):
                left_out.append(name)
            elif name not in numeric and name not in labelled:
                texts_left_out.append(name)
            else:
                wanted.append(name)

    are_numbers = set(numeric).difference(choice.labels)
    numbers = [name for name in wanted if name in are_numbers]
    labels = [name for name in (*wanted, *choice.labels) if name not in are_numbers]
    return replace(
        schema,
        numbers=tuple(dict.fromkeys(numbers)),
        labels=tuple(dict.fromkeys(labels)),
        left_out=tuple(left_out),
        texts_left_out=tuple(texts_left_out),
    )
