"""Several targets: one recalibrator each, which lean on each other, and verdicts."""
