"""The questions, in the order of their checks: one class each, in a file of its own."""

from .bias import Bias
from .coverage import Coverage
from .question import Estimates, Question
from .size import SizeOfU

QUESTIONS: tuple[type[Question], ...] = (SizeOfU, Coverage, Bias)

__all__ = ["QUESTIONS", "Estimates", "Question"]
