"""Which column of a table is what: named by the user, guessed, or remembered.

Decided here for Python, the command line and the app alike: `names` reads what the name
of a column tells, `choose` finds one column for each part, and `read` keeps what was
found and takes it from data frames.
"""

from .choose import Choice, find, guess, known, of_frame, remembered
from .names import RECALIBRATED
from .read import Schema, counts

__all__ = [
    "RECALIBRATED",
    "Choice",
    "Schema",
    "counts",
    "find",
    "guess",
    "known",
    "of_frame",
    "remembered",
]
