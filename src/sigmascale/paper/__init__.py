"""What is of the study of 2023 alone: local statistics, bin study, targets, tails."""

# scores and these use each other; loaded first, scores loads both in order
from .. import scores as scores
