"""How uncertainties are judged: verdicts, the limits behind them, and local scores."""

from .validation import Validation, rows_needed, validate
from .verdicts import Region, Verdict

__all__ = [
    "Region",
    "Validation",
    "Verdict",
    "rows_needed",
    "validate",
]
