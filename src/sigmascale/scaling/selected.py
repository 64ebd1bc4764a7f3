"""The default: the simplest recalibrator that is as good as the best."""

from __future__ import annotations

from textwrap import shorten, wrap
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._support.checks import LARGEST_Z, Floats, Ints, check_count
from .._support.notices import row_number, warn
from .._support.progress import track
from .._support.render import WIDTH, text_table
from ..bins.sums import nll_from
from ..exceptions import (
    AverageOffWarning,
    CandidateDroppedWarning,
    DegenerateFitWarning,
    InvalidInputError,
)
from ..maps import Node
from ..predictions import Predictions
from .base import VarianceScaler
from .binwise import BinwiseScaling
from .boosted import BoostedScaling
from .component import ComponentScaling
from .crossfit import (
    Ranking,
    Unseen,
    canonical_order,
    capped,
    judge_unseen,
    largest_ratio,
    make_folds,
    predict_unseen,
    rank,
)
from .isotonic import IsotonicScaling
from .linear import LinearScaling
from .raked import RakedScaling
from .summaries import CodedColumn, coded_columns
from .temperature import NoScaling, TemperatureScaling

ROWS_PER_BIN = 50  # fewer rows do not determine the factor of a bin
CALIBRATED = 0.05  # |ln <Z²>| up to which an average is right, and "none" a candidate
DIVERGED = 10.0  # times the largest ratio of an unseen error that one factor meets
ABSURD = 1e150  # no uncertainty is that large
HALF_LOG_2_PI = 0.5 * float(np.log(2 * np.pi))
FOOTNOTE = "Loss: NLL of unseen rows in which an enormous error counts up to a cap."
RANKED_ROWS = 2000  # whose ranks are compared to find copies of columns
COPIES = 0.9999  # correlation of the ranks of columns that say the same
DISAGREES = 0.02  # of the NLL, for a word on it
DECISIVE = 0.5  # share of the sum of z² that a few rows have if they decide
FEW = 0.01  # of all rows


def default_candidates(
    categorical: list[int | str] | None,
    random_state: int,
    components: list[int | str] | None = None,
) -> dict[str, VarianceScaler]:
    """Return the candidates, the simplest first."""
    several: dict[str, VarianceScaler] = {}
    if components is not None:
        several = {"component": ComponentScaling(components)}
    return {
        "none": NoScaling(),
        "temperature": TemperatureScaling(),
        "linear": LinearScaling(),
        **several,
        "isotonic": IsotonicScaling(),
        "raked": RakedScaling(
            base="linear", categorical=categorical, random_state=random_state
        ),
        "boosted": BoostedScaling(categorical=categorical, random_state=random_state),
    }


class SelectedScaling(VarianceScaler):
    """Pick a recalibrator by cross-validation: the default choice on unknown data.

    Candidates, from none and one factor to boosted ones, are judged by the
    log-likelihood of rows that they have not seen, with the average set right for all
    of these. A single enormous error counts only up to a cap in the ranking, and in
    full in the standard error: where few rows decide, differences are uncertain. The
    simplest candidate within one standard error of the best (of their difference, row
    by row, or group by group) is used, with the average that unseen rows ask for.
    A candidate that fails, or that meets an unseen error which it thought impossible,
    is dropped with a warning.

    Parameters
    ----------
    candidates : dict of str to recalibrator, optional
        What to choose from, the simplest first. By default: none, temperature, linear,
        isotonic, raked (on top of linear) and boosted.
    components : list of int or str, optional
        Columns of X that are parts of the uncertainty, as aleatoric and epistemic ones:
        :class:`ComponentScaling` of these is a candidate, after linear.
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
        A table with one line a candidate: "candidate", the "loss" by which they are
        ranked, the "difference" to the best and its "standard_error", the plain "nll",
        the "average" <Z²> that it would have without a correction, and the "verdict"
        in words.
    column_notes_ : list of str
        Which columns are constant, identifiers or copies of others, in words.
    decisive_rows_ : list of int
        The few rows that make half of the sum of z² of unseen rows; empty if it takes
        more than 1 % of all.

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
        components: list[int | str] | None = None,
        n_folds: int = 5,
        categorical: list[int | str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.candidates = candidates
        self.components = components
        self.n_folds = n_folds
        self.categorical = categorical
        self.random_state = random_state

    scaler_: VarianceScaler
    does = "the simplest recalibrator that is as good as the best is used"

    def _learn_unseen(self, rows: Predictions) -> tuple[Node, Floats]:
        seed = check_count(self.random_state, "random_state", least=0)
        n_folds = check_count(self.n_folds, "n_folds", least=2)
        # what is wrong with the columns is the caller's to mend, not a candidate's
        labelled = set(rows.positions(self.categorical, "categorical"))
        columns = coded_columns(rows, labelled)
        rows.positions(self.components, "components")
        given: Any = self.candidates
        if given is not None and not (isinstance(given, dict) and given):
            msg = (
                "`candidates` must hold at least one recalibrator, by its name; found "
                f"{given!r}. Pass a dict."
            )
            raise InvalidInputError(msg)
        candidates = self.candidates or default_candidates(
            self.categorical, seed, self.components
        )
        one_group = rows.groups is not None and np.unique(rows.groups).size == 1
        if rows.total < 2 * n_folds or one_group:
            found = f"{rows.n_rows} rows" + (" of one group" if one_group else "")
            warn(
                f"{found} are too few to cross-validate; a single factor is learned "
                "from them.",
                DegenerateFitWarning,
                stacklevel=4,
            )
            candidates, n_folds = {"temperature": TemperatureScaling()}, 1
        self.column_notes_ = _notes(columns, rows.names)
        values = [column.order for column in columns]
        order = canonical_order(values, rows.errors, rows.weights)
        rows = rows.take(order)
        size = np.abs(rows.errors) / rows.uncertainty
        rng = np.random.default_rng(seed)
        fold = make_folds(size, n_folds, rng, rows.groups, rows.weights)

        unseen: dict[str, Unseen] = {}
        verdicts: dict[str, str] = {}
        for name in track(candidates, "selecting a recalibrator", len(candidates)):
            try:
                unseen[name] = _judge(candidates[name], rows, fold)
            except _NotSuitableError as reason:
                verdicts[name] = str(reason)
            except Exception as problem:
                verdicts[name] = f"dropped: {type(problem).__name__}: {problem}"
        one_factor = predict_unseen(TemperatureScaling(), rows, fold)
        self._drop_diverged(unseen, verdicts, rows, one_factor)
        for name, verdict in verdicts.items():
            if verdict.startswith("dropped"):
                message = f"candidate {name!r} {verdict}"
                warn(message, CandidateDroppedWarning, stacklevel=4)
        if not unseen:
            msg = "Every candidate failed: " + "; ".join(
                f"{name} {verdict}" for name, verdict in verdicts.items()
            )
            raise InvalidInputError(msg)
        names = list(candidates)
        self._choose(names, unseen, verdicts, rows)
        z = rows.errors / unseen[self.name_].shape
        if n_folds > 1:  # or there are no unseen rows
            _warn_of_average(self.name_, rows.mean(z**2))
        places = order if rows.places is None else rows.places
        self._find_decisive(z, rows, places)
        self.scaler_ = unseen[self.name_].fitted(candidates[self.name_], rows)
        predicted = np.empty(rows.n_rows)
        predicted[order] = unseen[self.name_].shape
        return self.scaler_.map_, predicted

    @property
    def _chosen(self) -> VarianceScaler:
        """The one that was chosen."""
        return self.scaler_

    def _learned_words(self) -> str:
        return f"Chosen is {self.name_!r}: {self.scaler_.describe()}"

    def _drop_diverged(
        self,
        unseen: dict[str, Unseen],
        verdicts: dict[str, str],
        rows: Predictions,
        one_factor: Floats,
    ) -> None:
        """Drop candidates whose uncertainty an unseen error exceeded absurdly."""
        error = rows.errors
        with np.errstate(over="ignore"):
            worst = {
                name: float(np.max((error / each.uncertainty) ** 2))
                for name, each in unseen.items()
            }
            ordinary = float(np.max((error / one_factor) ** 2))
        ordinary = max(largest_ratio(error, rows.weights), ordinary)
        for name in list(unseen):
            if name in ("none", "temperature") or worst[name] <= DIVERGED * ordinary:
                continue
            if len(unseen) == 1:
                break
            verdicts[name] = (
                f"dropped: it diverged, an unseen |z| is {np.sqrt(worst[name]):.2g}; "
                "look at that row, or leave the candidate out"
            )
            del unseen[name]

    def _choose(
        self,
        names: list[str],
        unseen: dict[str, Unseen],
        verdicts: dict[str, str],
        rows: Predictions,
    ) -> None:
        """Choose the simplest candidate within one standard error of the best."""
        error, groups, weights = rows.errors, rows.groups, rows.weights
        # an error can exceed its uncertainty by so much that its square overflows
        least = np.abs(error) / LARGEST_Z
        shapes = {name: np.maximum(each.shape, least) for name, each in unseen.items()}
        z2 = {name: (error / u) ** 2 for name, u in shapes.items()}
        averages = {
            name: rows.mean((error / np.maximum(each.uncertainty, least)) ** 2)
            for name, each in unseen.items()
        }
        off = abs(np.log(averages.get("none", 1.0) or 1e-300)) > CALIBRATED
        if off and len(unseen) > 1:
            verdicts["none"] = f"not considered: <Z²> is {averages['none']:.3g}, not 1"
        ranked = [name for name in names if name in shapes and name not in verdicts]
        cap = largest_ratio(error, weights)
        half = {name: np.log(shapes[name]) for name in ranked}
        ranking = rank(
            {name: half[name] + 0.5 * capped(z2[name], cap) for name in ranked},
            groups,
            {name: half[name] + 0.5 * z2[name] for name in ranked},
            weights,
        )
        nll = {
            name: float(nll_from(rows.mean(z2[name] + 2 * np.log(shapes[name]))))
            for name in shapes
        }
        self.best_name_ = ranking.best
        self.name_ = next(name for name in ranked if ranking.is_as_good(name))
        self.cv_results_: dict[str, list[Any]] = {
            "candidate": names,
            "loss": [
                None if n not in ranking.loss else ranking.loss[n] + HALF_LOG_2_PI
                for n in names
            ],
            "difference": [ranking.difference.get(n) for n in names],
            "standard_error": [ranking.standard_error.get(n) for n in names],
            "nll": [nll.get(n) for n in names],
            "average": [averages.get(n) for n in names],
            "verdict": [
                verdicts[n] if n in verdicts else self._verdict(n, ranking, nll)
                for n in names
            ],
        }

    def _verdict(self, name: str, ranking: Ranking, nll: dict[str, float]) -> str:
        if name == self.best_name_:
            words = "best"
        elif ranking.is_as_good(name):
            words = f"within 1 s.e. of {self.best_name_}"
        else:
            mean, error = ranking.difference[name], ranking.standard_error[name]
            words = f"worse than {self.best_name_} by {mean:.3f} ± {error:.3f}"
        if name == self.name_:
            return f"chosen: {words}"
        if ranking.is_as_good(name):
            words = f"{words}, less simple"
        lower = nll[name] < nll[self.name_] - DISAGREES
        return f"{words}; its NLL is lower" if lower else words

    def _find_decisive(self, z: Floats, rows: Predictions, places: Ints) -> None:
        """Keep the rows without which the average would be another."""
        parts = z**2 if rows.weights is None else rows.weights * z**2
        largest = np.argsort(-np.sqrt(parts), kind="stable")
        share = np.cumsum(parts[largest]) / np.sum(parts)
        count = 1 + int(np.searchsorted(share, DECISIVE))
        few = count <= max(1, FEW * z.size) and z.size > 1
        found = places[largest[:count]] if few else ()
        self.decisive_rows_ = [row_number(place) for place in found]

    def explain(self) -> str:
        """Return the table of candidates, with the reason of the choice, as text."""
        check_is_fitted(self)
        table = self.cv_results_
        numbers = [
            ["-" if each is None else f"{each:.4f}" for each in table[key]]
            for key in ("loss", "nll")
        ]
        names = table["candidate"]
        widest = [max(map(len, column)) for column in ([*names, "candidate"], *numbers)]
        room = max(30, WIDTH - sum(widest) - 6)
        rows = [
            (name, loss, nll, shorten(verdict, room, placeholder=" ..."))
            for name, loss, nll, verdict in zip(
                names, *numbers, table["verdict"], strict=True
            )
        ]
        lines = [
            text_table(("candidate", "loss", "NLL", "verdict"), rows),
            FOOTNOTE,
        ]
        if self.decisive_rows_:
            shown = ", ".join(map(str, self.decisive_rows_[:5]))
            more = ", ..." if len(self.decisive_rows_) > 5 else ""
            count = len(self.decisive_rows_)
            lines += wrap(
                f"Half of <Z²> comes from {count} of {self.n_samples_fit_} rows (row "
                f"{shown}{more}): these decide on the average, and NLL "
                "says little. Look at them.",
                WIDTH,
            )
        for words in self.column_notes_:
            lines += wrap(words, WIDTH)
        return "\n".join(lines)


def _notes(columns: list[CodedColumn], names: tuple[str, ...]) -> list[str]:
    """Return what is odd about columns: it tells nothing, and may be a mistake."""
    notes = []
    ranks: dict[str, Floats] = {}
    for name, column in zip(names[1:], columns[1:], strict=True):
        distinct, codes = np.unique(column.order, return_inverse=True)
        if distinct.size == 1:
            notes.append(f"Column {name!r} is constant.")
        elif column.labelled and distinct.size == codes.size > 2:
            notes.append(
                f"Column {name!r} has another label in every row: an identifier tells "
                "nothing of new rows. Leave it out."
            )
        else:
            ranks[name] = codes[:RANKED_ROWS] - codes[:RANKED_ROWS].mean()
    kept: list[str] = []
    for name, own in ranks.items():
        for other in kept:
            product = np.linalg.norm(own) * np.linalg.norm(ranks[other])
            if product and abs(own @ ranks[other]) > COPIES * product:
                notes.append(f"Column {name!r} is nearly a copy of {other!r}.")
                break
        else:
            kept.append(name)
    return notes


def _warn_of_average(name: str, average: float) -> None:
    """Say that a candidate is wrong on average, as one that sets no average can be."""
    if average and abs(np.log(average)) > CALIBRATED:
        size = "small" if average > 1 else "large"
        warn(
            f"The chosen candidate, {name!r}, leaves <Z²> at {average:.3g} on unseen "
            f"rows: uncertainties are too {size} by a factor of "
            f"{max(average, 1 / average) ** 0.5:.3g} on average. Give SelectedScaling "
            "candidates that set the average, such as TemperatureScaling().",
            AverageOffWarning,
            stacklevel=5,
        )


class _NotSuitableError(Exception):
    """A candidate that these data cannot carry; no reason to warn."""


def _judge(candidate: VarianceScaler, rows: Predictions, fold: Ints) -> Unseen:
    """Return what a candidate says of rows that it has not seen, if it can."""
    if isinstance(candidate, BinwiseScaling) and isinstance(candidate.n_bins, int):
        needed = ROWS_PER_BIN * candidate.n_bins
        if rows.total < needed:
            reason = f"not tried: {candidate.n_bins} bins need {needed} rows"
            raise _NotSuitableError(reason)
    unseen = judge_unseen(candidate, rows, fold)
    absurd = ~(unseen.uncertainty < ABSURD)  # or not a number
    if absurd.any():
        msg = f"predicted {unseen.uncertainty[absurd][0]:.3g}"
        raise ValueError(msg)
    return unseen
