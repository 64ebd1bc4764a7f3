"""Named errors and warnings, so that callers can catch exactly what they expect."""

from __future__ import annotations

from typing import Any


class InvalidInputError(ValueError):
    """An argument cannot be used; the message names it, the place and the remedy.

    Attributes
    ----------
    code : str
        What is wrong in one word, for programs that say it in another way, such as
        "not-finite"; empty where nobody has asked for one yet.
    fields : dict
        What it is about: names of columns, numbers of rows, and the like.
    """

    def __init__(self, message: str = "", code: str = "", **fields: Any) -> None:
        super().__init__(message)
        self.code, self.fields = code, fields


class ColumnError(InvalidInputError):
    """A column of a table is missing, or it is unclear which one is meant.

    Attributes
    ----------
    role : str
        The part that is to be played, such as "y_true"; "unknown" if a column that was
        named does not exist.
    columns : tuple of str
        The columns that it is about: candidates, or names that are near.
    """

    def __init__(
        self, message: str, role: str = "", columns: tuple[str, ...] = (), **fields: Any
    ) -> None:
        super().__init__(message, "column", role=role, columns=list(columns), **fields)
        self.role, self.columns = role, columns


class DamagedFileError(InvalidInputError):
    """A file is not a recalibrator of this library, or not a whole one."""


class NotANumberError(InvalidInputError, TypeError):
    """A column of numbers holds something else."""


class MemberError(RuntimeError):
    """A member of a committee failed, or its forces are not finite."""


class RunStoppedError(RuntimeError):
    """A run was stopped: a radius exceeds its threshold, or u is unlike what was known.

    Attributes
    ----------
    event : sigmascale.integrations.forces.Event
        What happened, and when.
    """

    def __init__(self, event: Any) -> None:
        super().__init__(event.words)
        self.event = event


class FewerBinsWarning(UserWarning):
    """The data do not carry as many bins as were asked for; fewer were made."""


class ZeroUncertaintyWarning(UserWarning):
    """Uncertainties, such as those of 0, were lifted to a minimum."""


class DegenerateFitWarning(UserWarning):
    """Nothing could be learned from some or all rows; a fallback was used."""


class DominantErrorWarning(UserWarning):
    """One error outweighs all others together, so that scores say little of these."""


class ZeroErrorBinWarning(UserWarning):
    """All errors of a bin are exactly 0, so that its log score is infinite."""


class FewRowsWarning(UserWarning):
    """Rows are too few for the distribution of errors, or for so rare a quantile."""


class FewMembersWarning(UserWarning):
    """An ensemble has few members, so that its standard deviation is uncertain."""


class SquareMembersWarning(UserWarning):
    """Members are as many as rows, so that nobody can tell rows from columns."""


class CrossingQuantilesWarning(UserWarning):
    """Quantiles did not ascend with their levels in some rows, and were sorted."""


class NormOrRootMeanSquareWarning(UserWarning):
    """One uncertainty of a vector was read as a root mean square, not as a norm."""


class AbsurdScaleWarning(UserWarning):
    """Uncertainties are far larger than any error: a few rows decide on <Z²>."""


class InterpolatingWarning(UserWarning):
    """A regressor errs far less in training than cross-validated: it interpolates."""


class UnseenCategoryWarning(UserWarning):
    """Rows have labels never seen in `fit`; they take the average factor."""


class InfiniteIntervalWarning(UserWarning):
    """Too few held-out rows for the coverage asked for: limits are infinite."""


class ManyPartsWarning(UserWarning):
    """Coverage is guaranteed in parts of many columns, which widens intervals."""


class RepeatedRowsWarning(UserWarning):
    """Rows are repeats, or not independent, and no groups say which belong together."""


class ExtrapolationWarning(UserWarning):
    """Rows lie far outside the uncertainties or features that were seen in `fit`."""


class MissingFeatureWarning(UserWarning):
    """A feature is missing in some rows, and was missing in none in `fit`."""


class SharedRowsWarning(UserWarning):
    """Rows that a recalibrator is tested on are among those it was fitted on."""


class IndexColumnWarning(UserWarning):
    """A column that only counts rows, or has no name, was not taken for a feature."""


class TextColumnWarning(UserWarning):
    """A column of text has too many labels for a feature, or one, and was excluded."""


class HiddenSheetWarning(UserWarning):
    """The sheet of a workbook that was read is hidden."""


class LikelySlipWarning(UserWarning):
    """What a recalibrator is fitted to is hardly errors, or hardly uncertainties."""


class TargetsNotErrorsWarning(LikelySlipWarning):
    """Errors are many uncertainties away from 0, as targets or predictions are."""


class AbsoluteErrorsWarning(LikelySlipWarning):
    """None of many errors is negative, as if their sign were lost."""


class VarianceNotUncertaintyWarning(LikelySlipWarning):
    """Uncertainties are called variances, or errors follow their square root."""


class UnitsWarning(LikelySlipWarning):
    """Errors and uncertainties differ by powers of ten, as if in different units."""


class ConstantUncertaintyWarning(LikelySlipWarning):
    """All uncertainties of many rows are the same."""
