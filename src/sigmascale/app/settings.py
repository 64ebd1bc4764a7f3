"""What a person has said of a table on the page, as the command line would take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..exceptions import ColumnError, InvalidInputError

if TYPE_CHECKING:
    from ..cli.options import Reading
    from ..roles import Choice

# What a column can be; of those in ONE there is at most one.
ONE = ("error", "reference", "prediction", "uncertainty", "variance")
ROLES = (*ONE, "groups", "feature", "label", "ignored")
MOST_COLUMNS = 10_000
LONGEST_TEXT = 1_000


@dataclass(frozen=True)
class TableSettings:
    """A file, what its columns are, and how it is read.

    Attributes
    ----------
    file : str
        Its name in the folder of the app.
    roles : dict of str to str
        What each column is; None if they are still to be guessed.
    separator, decimal, where : str or None
        As for the command line.
    drop_missing : bool
        Whether rows with missing values are left out.
    """

    file: str
    roles: dict[str, str] | None = None
    separator: str | None = None
    decimal: str | None = None
    where: str | None = None
    drop_missing: bool = False

    @classmethod
    def parse(cls, file: str, found: Any) -> TableSettings:
        """Check what the page has sent."""
        if not isinstance(found, dict):
            msg = "The settings of a table must be an object."
            raise InvalidInputError(msg)
        roles = found.get("roles")
        if roles is not None and (
            not isinstance(roles, dict)
            or len(roles) > MOST_COLUMNS
            or not all(value in ROLES for value in roles.values())
        ):
            msg = f"Columns must be one of {', '.join(ROLES)}."
            raise InvalidInputError(msg)
        texts = {}
        for name in ("separator", "decimal", "where"):
            text = found.get(name) or None
            if text is not None and (
                not isinstance(text, str) or len(text) > LONGEST_TEXT
            ):
                msg = f"{name} must be text, of at most {LONGEST_TEXT} characters."
                raise InvalidInputError(msg)
            texts[name] = text
        return cls(file, roles, **texts, drop_missing=bool(found.get("drop_missing")))

    def to_dict(self) -> dict[str, Any]:
        """Return all but the file."""
        return {name: value for name, value in vars(self).items() if name != "file"}

    def of(self, role: str) -> list[str]:
        """Return the columns that have a role."""
        return [name for name, each in (self.roles or {}).items() if each == role]

    @property
    def groups(self) -> str | None:
        """The column of groups, if there is one."""
        return next(iter(self.of("groups")), None)

    def choice(self) -> Choice:
        """Return the columns as the command line names them."""
        from ..roles import Choice

        for role in (*ONE, "groups"):
            if len(self.of(role)) > 1:
                names = ", ".join(repr(name) for name in self.of(role))
                msg = f"There can be one column of the kind {role}; found {names}."
                raise InvalidInputError(msg)
        if not self.of("uncertainty") and not self.of("variance"):
            msg = "No column is the uncertainty. Choose one in the table of columns."
            raise ColumnError(msg, "uncertainty")
        if not self.of("error") and not (
            self.of("reference") and self.of("prediction")
        ):
            msg = (
                "No column is the error. Choose one in the table of columns; or choose "
                "both the reference and the prediction, whose difference it is."
            )
            raise ColumnError(msg, "error")
        one: dict[str, Any] = {role: next(iter(self.of(role)), None) for role in ONE}
        return Choice(
            options=True,
            **one,
            features=tuple(self.of("feature")),
            labels=tuple(self.of("label")),
        )

    def reading(self) -> Reading:
        """Return how the file is read."""
        from ..cli.options import Reading

        return Reading(
            where=self.where,
            drop_missing=self.drop_missing,
            separator=self.separator,
            decimal=self.decimal,
        )

    def errors(self) -> list[tuple[str, str]]:
        """Return the options that name errors and uncertainties."""
        named = ("error", "reference", "prediction")
        found = [(f"--{role}", name) for role in named for name in self.of(role)]
        return found + self.uncertainties()

    def uncertainties(self) -> list[tuple[str, str]]:
        """Return the option that names uncertainties."""
        named = ("uncertainty", "variance")
        return [(f"--{role}", name) for role in named for name in self.of(role)]

    def features(self) -> list[tuple[str, str]]:
        """Return the options that name features."""
        named = ("feature", "label")
        return [(f"--{role}", name) for role in named for name in self.of(role)]

    def how_read(self, *, where: bool = True) -> list[tuple[str, str | None]]:
        """Return the options that say how the file is read."""
        options: list[tuple[str, str | None]] = []
        options += [("--where", self.where)] if where and self.where else []
        options += [("--separator", self.separator)] if self.separator else []
        options += [("--decimal", self.decimal)] if self.decimal else []
        return options + ([("--drop-missing", None)] if self.drop_missing else [])
