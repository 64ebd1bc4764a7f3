"""The default: the simplest recalibrator that is as good as the best."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

import numpy as np

from .._support.checks import LARGEST_Z, Floats, Ints, Labels, check_count
from .._support.progress import track
from .._support.render import WIDTH, text_table
from .._support.rows import Rows
from .._support.telling import warn
from ..bins.sums import nll_from
from ..exceptions import (
    CandidateDroppedWarning,
    DegenerateFitWarning,
    InvalidInputError,
)
from ..maps import Node
from .base import VarianceScaler
from .binwise import BinwiseScaling
from .boosted import BoostedScaling
from .choice import Ranking, predict_unseen, rank
from .crossfit import canonical_order, deviance, largest_ratio, make_folds
from .isotonic import IsotonicScaling
from .linear import LinearScaling
from .none import NoScaling
from .raked import RakedScaling
from .summaries import coded_columns
from .temperature import TemperatureScaling

ROWS_PER_BIN = 50  # fewer rows do not determine the factor of a bin
CALIBRATED = 0.05  # |ln <Z²>| up to which "none" is a candidate at all
DIVERGED = 10.0  # times the largest ratio of an unseen error that one factor meets
ABSURD = 1e150  # no uncertainty is that large
FOOTNOTE = "Differences count an enormous error up to a cap; NLL counts it in full."


def default_candidates(
    categorical: list[int | str] | None, random_state: int
) -> dict[str, VarianceScaler]:
    """Return the candidates, the simplest first."""
    return {
        "none": NoScaling(),
        "temperature": TemperatureScaling(),
        "linear": LinearScaling(),
        "binwise 10": BinwiseScaling(10),
        "isotonic": IsotonicScaling(),
        "binwise 20": BinwiseScaling(20),
        "binwise 40": BinwiseScaling(40),
        "raked": RakedScaling(categorical=categorical, random_state=random_state),
        "boosted": BoostedScaling(categorical=categorical, random_state=random_state),
    }


class SelectedScaling(VarianceScaler):
    """Pick a recalibrator by cross-validation: the default choice on unknown data.

    Candidates, from none and one factor to boosted ones, are fitted on all folds but
    one and judged by the log-likelihood of the rows they have not seen, in which a
    single enormous error counts only up to a cap. The simplest candidate within one
    standard error of the best (of their difference, row by row, or group by group) is
    fitted on all rows.
    A candidate that fails, or that meets an unseen error which it thought impossible,
    is dropped with a warning.

    Parameters
    ----------
    candidates : dict of str to recalibrator, optional
        What to choose from, the simplest first. By default: none, temperature, linear,
        10 bins of u, isotonic, 20 and 40 bins of u, raked and boosted.
    n_folds : int, default 5
        Number of folds.
    categorical : list of int or str, optional
        Numeric columns of X whose values are labels. Text columns always are.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    scaler_ : recalibrator
        The chosen one, fitted on all rows.
    name_, best_name_ : str
        Names of the chosen candidate and of the one with the best likelihood.
    cv_results_ : dict of str to list
        A table with one line a candidate: "candidate", "nll", "difference" to the best
        (of the capped loss), its "standard_error", and the "verdict" in words.

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.make_molecules(3000, seed=1)
    >>> scaler = SelectedScaling().fit(data.X, data.error)
    >>> scaler.name_ in ("raked", "boosted")
    True
    """

    def __init__(
        self,
        candidates: dict[str, VarianceScaler] | None = None,
        *,
        n_folds: int = 5,
        categorical: list[int | str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.candidates = candidates
        self.n_folds = n_folds
        self.categorical = categorical
        self.random_state = random_state

    does = "the simplest recalibrator that is as good as the best is used"

    def _learn(self, rows: Rows) -> Node:
        from sklearn.base import clone

        seed = check_count(self.random_state, "random_state", least=0)
        n_folds = check_count(self.n_folds, "n_folds", least=2)
        # what is wrong with the columns is the caller's to mend, not a candidate's
        labelled = set(rows.positions(self.categorical, "categorical"))
        coded_columns(rows, labelled)
        given: Any = self.candidates
        if given is not None and not (isinstance(given, dict) and given):
            msg = (
                "`candidates` must hold at least one recalibrator, by its name; found "
                f"{given!r}. Pass a dict."
            )
            raise InvalidInputError(msg)
        candidates = self.candidates or default_candidates(self.categorical, seed)
        one_group = rows.groups is not None and np.unique(rows.groups).size == 1
        if rows.n_rows < 2 * n_folds or one_group:
            found = f"{rows.n_rows} rows" + (" of one group" if one_group else "")
            warn(
                f"{found} are too few to cross-validate; a single factor is learned "
                "from them.",
                DegenerateFitWarning,
                stacklevel=4,
            )
            candidates, n_folds = {"temperature": TemperatureScaling()}, 1
        features = (rows.labels(i) for i in range(1, len(rows.columns)))
        rows = rows.take(canonical_order([rows.uncertainty, *features], rows.errors))
        size = np.abs(rows.errors) / rows.uncertainty
        fold = make_folds(size, n_folds, np.random.default_rng(seed), rows.groups)

        predicted: dict[str, Floats] = {}
        verdicts: dict[str, str] = {}
        for name in track(candidates, "selecting a recalibrator", len(candidates)):
            try:
                predicted[name] = _cross_predict(candidates[name], rows, fold)
            except _NotSuitableError as reason:
                verdicts[name] = str(reason)
            except Exception as problem:
                verdicts[name] = f"dropped: {type(problem).__name__}: {problem}"
        one_factor = _cross_predict(TemperatureScaling(), rows, fold)
        self._drop_diverged(predicted, verdicts, rows.errors, one_factor)
        for name, verdict in verdicts.items():
            if verdict.startswith("dropped"):
                message = f"candidate {name!r} {verdict}"
                warn(message, CandidateDroppedWarning, stacklevel=4)
        if not predicted:
            msg = "Every candidate failed: " + "; ".join(
                f"{name} {verdict}" for name, verdict in verdicts.items()
            )
            raise InvalidInputError(msg)
        names = list(candidates)
        self._choose(names, predicted, verdicts, rows.errors, rows.groups)
        self.scaler_: VarianceScaler = clone(candidates[self.name_])._fit_rows(rows)
        self.scaler_.min_uncertainty_ = self.min_uncertainty_
        self.scaler_.n_features_in_ = self.n_features_in_
        chosen: Node = self.scaler_.map_
        return chosen

    @property
    def chosen(self) -> VarianceScaler:
        """The one that was chosen."""
        return self.scaler_

    def _learned_words(self) -> str:
        return f"Chosen is {self.name_!r}: {self.scaler_.describe()}"

    def _drop_diverged(
        self,
        predicted: dict[str, Floats],
        verdicts: dict[str, str],
        error: Floats,
        one_factor: Floats,
    ) -> None:
        """Drop candidates whose uncertainty an unseen error exceeded absurdly."""
        with np.errstate(over="ignore"):
            worst = {
                name: float(np.max((error / u) ** 2)) for name, u in predicted.items()
            }
            ordinary = float(np.max((error / one_factor) ** 2))
        ordinary = max(largest_ratio(error), ordinary)
        for name in list(predicted):
            if name in ("none", "temperature") or worst[name] <= DIVERGED * ordinary:
                continue
            if len(predicted) == 1:
                break
            verdicts[name] = (
                f"dropped: it diverged, an unseen |z| is {np.sqrt(worst[name]):.2g}"
            )
            del predicted[name]

    def _choose(
        self,
        names: list[str],
        predicted: dict[str, Floats],
        verdicts: dict[str, str],
        error: Floats,
        groups: Labels | None = None,
    ) -> None:
        """Choose the simplest candidate within one standard error of the best."""
        # an error can exceed its uncertainty by so much that its square overflows
        least = np.abs(error) / LARGEST_Z
        predicted = {name: np.maximum(u, least) for name, u in predicted.items()}
        e2 = error**2
        unit = float(e2.mean())
        cap = largest_ratio(e2)
        ranking = rank(
            {
                name: 0.5 * deviance(e2 / unit, 2 * np.log(u) - np.log(unit), cap)
                for name, u in predicted.items()
            },
            groups,
        )
        z2 = {name: (error / u) ** 2 for name, u in predicted.items()}
        off = abs(np.log(float(z2["none"].mean()) or 1e-300)) if "none" in z2 else 0.0
        eligible = [
            name
            for name in names
            if name in predicted
            and ranking.is_as_good(name)
            and (name != "none" or off <= CALIBRATED)
        ]
        self.best_name_ = ranking.best
        self.name_ = eligible[0] if eligible else self.best_name_
        self.cv_results_: dict[str, list[Any]] = {
            "candidate": names,
            "nll": [
                float(nll_from(np.mean(z2[n] + 2 * np.log(predicted[n]))))
                if n in predicted
                else None
                for n in names
            ],
            "difference": [ranking.difference.get(n) for n in names],
            "standard_error": [ranking.standard_error.get(n) for n in names],
            "verdict": [
                verdicts[n]
                if n in verdicts
                else self._verdict(n, ranking, n in eligible)
                for n in names
            ],
        }

    def _verdict(self, name: str, ranking: Ranking, eligible: bool) -> str:
        as_good = ranking.is_as_good(name)
        if name == self.best_name_:
            words = "best likelihood"
        elif as_good:
            words = f"within 1 s.e. of {self.best_name_}"
        else:
            mean, error = ranking.difference[name], ranking.standard_error[name]
            words = f"worse than {self.best_name_} by {mean:.3f} ± {error:.3f}"
        if name == self.name_:
            return f"chosen: {words}"
        if eligible:
            return f"{words}, less simple than {self.name_}"
        return words if not as_good else f"{words}, but not calibrated"

    def explain(self) -> str:
        """Return the table of candidates, with the reason of the choice, as text."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        names, losses, verdicts = (
            self.cv_results_[key] for key in ("candidate", "nll", "verdict")
        )
        shown = ["-" if loss is None else f"{loss:.4f}" for loss in losses]
        taken = max(map(len, (*names, "candidate"))) + max(map(len, shown)) + 4
        rows = [
            (name, loss, shorten(verdict, max(30, WIDTH - taken), placeholder=" ..."))
            for name, loss, verdict in zip(names, shown, verdicts, strict=True)
        ]
        table = text_table(("candidate", "NLL", "verdict"), rows)
        return f"{table}\n{FOOTNOTE}"


class _NotSuitableError(Exception):
    """A candidate that these data cannot carry; no reason to warn."""


def _cross_predict(candidate: VarianceScaler, rows: Rows, fold: Ints) -> Floats:
    """Return what a candidate predicts for rows that it has not seen, if it can."""
    if isinstance(candidate, BinwiseScaling) and isinstance(candidate.n_bins, int):
        needed = ROWS_PER_BIN * candidate.n_bins
        if rows.n_rows < needed:
            reason = f"not tried: {candidate.n_bins} bins need {needed} rows"
            raise _NotSuitableError(reason)
    predicted = predict_unseen(candidate, rows, fold)
    absurd = ~(predicted < ABSURD)  # or not a number
    if absurd.any():
        msg = f"predicted {predicted[absurd][0]:.3g}"
        raise ValueError(msg)
    return predicted
