"""Which column of a table is what: named by the user, guessed, or remembered.

Decided here for Python, the command line and the app alike: `choice` is what a user
says, `names` and `lookalikes` tell what names say, `guesses` finds what nobody has
named, `resolve` puts it together, and `schema` keeps it and reads data frames by it.
"""

from .choice import Choice, known
from .names import RECALIBRATED
from .resolve import TOO_MANY_LABELS, find, guess, of_frame, remembered
from .schema import Schema, are_labels, counts

__all__ = [
    "RECALIBRATED",
    "TOO_MANY_LABELS",
    "Choice",
    "Schema",
    "are_labels",
    "counts",
    "find",
    "guess",
    "known",
    "of_frame",
    "remembered",
]
