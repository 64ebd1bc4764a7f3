"""The roles that columns of a table play, each declared once.

The options of commands, the arguments of :meth:`Predictions.from_frame`, what is chosen
and what messages call it follow from these fields. A role of single rows, such as their
groups, is a field of :class:`~sigmascale.predictions.schema.Schema` as well.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, fields
from typing import Any


def role(
    words: str,
    metavar: str = "COLUMN",
    default: Any = None,
    *,
    option: str = "",
    argument: str | None = "",
    page: str = "",
    common: bool = False,
    of_rows: str = "",
) -> Any:
    """Return the field of a role.

    Parameters
    ----------
    words : str
        What it is, in the help of commands.
    metavar : str
        What is passed: a column, or a column with its level.
    default : object
        An empty tuple where several columns play it.
    option, argument : str
        What it is called on the command line and in Python, if not as the field; an
        argument is None if there is no such in Python.
    page : str
        What the page of the app calls it; nothing if it is no choice there.
    common : bool
        Whether the first page of help shows it.
    of_rows : str
        What the column holds, "number", "label" or "time", if it is known of each row
        beside errors and features, and goes to `Predictions` as it is.
    """
    about = {
        "help": words,
        "metavar": metavar,
        "name": option,
        "short": "",
        "common": common,
        "argument": argument,
        "page": page,
        "of_rows": of_rows,
    }
    return dataclasses.field(default=default, metadata=about)


@dataclass(frozen=True, kw_only=True)
class UncertaintyRoles:
    """Columns: what is not named is guessed from names"""  # noqa: D400

    uncertainty: str | None = role(
        "standard deviations", argument="y_std", page="uncertainty u", common=True
    )
    prediction: str | None = role(
        "predictions", argument="y_pred", page="prediction", common=True
    )
    variance: str | None = role("squares, instead of uncertainties", page="variance u²")
    members: tuple[str, ...] = role(
        "or a member of an ensemble; 'm_*' is many", default=(), page="ensemble member"
    )
    quantile_columns: tuple[str, ...] = role(
        *("or a quantile, with its level: q05=0.05", "COLUMN=LEVEL", ()),
        argument="quantiles",
        page="quantile",
    )
    interval: tuple[str, ...] = role(
        "or a limit of intervals; then the other", default=(), page="limit of intervals"
    )
    interval_coverage: float | None = role(
        "nominal coverage of these", "SHARE", argument="coverage"
    )
    min_std: float | None = role("raise what is smaller, such as 0", "NUMBER")


@dataclass(frozen=True, kw_only=True)
class Roles(UncertaintyRoles):
    """Columns: what is not named is guessed from names"""  # noqa: D400

    reference: str | None = role(
        "true values", argument="y_true", page="true value", common=True
    )
    error: str | None = role("true values minus predictions, instead", page="error")
    features: tuple[str, ...] = role(
        "a feature; repeat it for more",
        default=(),
        option="feature",
        page="feature",
        common=True,
    )
    all_features: bool = role(
        "all other columns of numbers, or of few labels",
        *("", False),
        argument=None,
        common=True,
    )
    labels: tuple[str, ...] = role(
        "a feature of labels, such as codes",
        default=(),
        option="label",
        page="feature: labels",
    )
    exclude: tuple[str, ...] = role(
        "not this one of all features", default=(), argument=None
    )
    groups: str | None = role(
        "rows with equal values belong together",
        page="groups",
        common=True,
        of_rows="label",
    )
    weight: str | None = role(
        "weights of the rows; 0 leaves a row out",
        argument="weights",
        page="weight",
        of_rows="number",
    )
    time: str | None = role("when rows came", page="time", of_rows="time")


OPTIONS: dict[str, str] = {}  # what each role is called on the command line
ARGUMENTS: dict[str, str] = {}  # and in Python, where it is an argument
OF_ROWS: dict[str, str] = {}  # what columns that go to Predictions as they are hold
for _field in fields(Roles):
    _about = _field.metadata
    OPTIONS[_field.name] = f"--{_about['name'] or _field.name.replace('_', '-')}"
    if _about["argument"] is not None:
        ARGUMENTS[_field.name] = _about["argument"] or _field.name
    if _about["of_rows"]:
        OF_ROWS[_field.name] = _about["of_rows"]


def roles_of_page() -> list[dict[str, Any]]:
    """Return the roles that the page of the app offers, common ones first.

    >>> roles_of_page()[0]
    {'role': 'uncertainty', 'words': 'uncertainty u', 'several': False}
    """
    offered = [field for field in fields(Roles) if field.metadata["page"]]
    offered.sort(key=lambda field: not field.metadata["common"])
    return [
        {
            "role": field.name,
            "words": field.metadata["page"],
            "several": field.default == (),
        }
        for field in offered
    ]
