"""Many questions, one error rate: step-down maxima over shuffled sets.

All statistics of a set come from the same shuffle, so that their joint distribution is
known, and with it that of the largest of them. A statistic is compared with the largest
of all that are not more extreme than itself: the chance that any question of a
calibrated set is answered "no" is then the level, however many questions there are.

References
----------
P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._support.checks import Floats


@dataclass(frozen=True)
class Compared:
    """Statistics of a set, and of shuffled sets.

    Attributes
    ----------
    observed : dict of str to float
        The statistic of each question.
    draws : dict of str to array of shape (n_draws,)
        The same of shuffled sets.
    """

    observed: dict[str, float]
    draws: dict[str, Floats]

    @property
    def n_draws(self) -> int:
        """The number of shuffled sets."""
        return next(iter(self.draws.values())).size

    def p_values(self) -> dict[str, float]:
        """Return the share of shuffled sets with a statistic as large, one by one."""
        return {
            name: (1 + int(np.count_nonzero(self.draws[name] >= value)))
            / (1 + self.n_draws)
            for name, value in self.observed.items()
        }

    def adjusted(self) -> dict[str, float]:
        """Return p-values that are corrected for the number of questions."""
        observed, drawn = self._standardised()
        names = sorted(observed, key=lambda name: -observed[name])
        # the largest of each statistic and of all that come after it
        largest = np.maximum.accumulate(
            np.array([drawn[name] for name in reversed(names)]), axis=0
        )[::-1]
        adjusted, so_far = {}, 0.0
        for name, maxima in zip(names, largest, strict=True):
            count = int(np.count_nonzero(maxima >= observed[name]))
            so_far = max(so_far, (1 + count) / (1 + self.n_draws))
            adjusted[name] = so_far
        return adjusted

    def critical(self, name: str, level: float) -> float:
        """Return the value that a statistic must exceed to be significant by itself.

        It is that of the largest of all statistics, brought to the scale of this one.
        """
        _, drawn = self._standardised()
        largest = np.max(list(drawn.values()), axis=0)
        limit = float(np.quantile(largest, 1 - level))
        centre, spread = self._scale(name)
        return centre + spread * limit

    def _scale(self, name: str) -> tuple[float, float]:
        values = self.draws[name]
        return float(values.mean()), max(float(values.std()), 1e-12)

    def _standardised(self) -> tuple[dict[str, float], dict[str, Floats]]:
        """Return statistics in units that all share: their spread by chance."""
        scales = {name: self._scale(name) for name in self.observed}
        observed = {
            name: (value - scales[name][0]) / scales[name][1]
            for name, value in self.observed.items()
        }
        drawn = {
            name: (self.draws[name] - centre) / spread
            for name, (centre, spread) in scales.items()
        }
        return observed, drawn
