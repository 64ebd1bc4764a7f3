"""How uncertainties are judged: certificates, verdicts, and the limits behind them."""

from .certificate import Certificate, Proof
from .validation import Step, Validation
from .verdicts import Region, Verdict

__all__ = ["Certificate", "Proof", "Region", "Step", "Validation", "Verdict"]
