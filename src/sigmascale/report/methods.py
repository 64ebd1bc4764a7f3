"""The methods of a report in words that a paper can take, with their references."""

from __future__ import annotations

from typing import Any

from .._support.citations import (
    ABC,
    BCA,
    BOOSTING,
    CURVE,
    FRENKEL,
    LEVI,
    LOCAL,
    MARTINGALES,
    NEWCOMBE,
    SCORES,
    SKEWNESS,
    SMIRNOV,
    STEP_DOWN,
    TAILS,
    WILSON,
    WITHIN,
)
from .._support.version import __version__
from ..judging.scan import CAP, EXACT_ROWS, LARGEST, MOST_BINS
from ..judging.validation import JOINT, Validation
from ..judging.verdicts import (
    AVERAGE_SHARE,
    BIAS_SHARE,
    LAW_SHARE,
    TESTS_SHARE,
)
from ..monitoring.monitor import Monitor
from .results import Results
from .text import percent

# How the interval of a bin is made, and whom to cite for it.
INTERVALS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bca": ("BCa bootstrap", (BCA,)),
    "bootstrap-t": ("bootstrap-t", ()),
    "student": ("Student's t", ()),
    "moments": ("closed form of the BCa bootstrap", (ABC,)),
}


class Citations:
    """Numbers references in the order in which they are first cited."""

    def __init__(self) -> None:
        self.references: list[str] = []

    def __call__(self, *references: str) -> str:
        """Return the mark of some references, such as " [1, 3]"."""
        for each in references:
            if each not in self.references:
                self.references.append(each)
        numbers = sorted(self.references.index(each) + 1 for each in references)
        return f" [{', '.join(map(str, numbers))}]" if numbers else ""


def write_methods(results: Results) -> tuple[list[str], list[str]]:
    """Return the paragraphs, and the references that they cite by number."""
    cite = Citations()
    paragraphs = [_judging(results, cite), _scoring(results, cite)]
    if results.over_time is not None and results.over_time.monitor is not None:
        paragraphs.append(_watching(results.over_time.monitor, cite))
    if results.recalibrated:
        paragraphs.append(_recalibration(results, cite))
    return paragraphs, cite.references


def _watching(monitor: Monitor, cite: Citations) -> str:
    """Return how changes over time were looked for."""
    level = percent(1 - monitor.confidence)
    return (
        "Changes over time were looked for by test martingales: bets on the ranks of z "
        f"and |z| among the first {monitor.burn_in:,} rows in time and all rows since, "
        "for factors and shifts of several sizes and for all times at which they may "
        f"begin{cite(MARTINGALES)}. If nothing changes, an alarm is raised with a "
        f"probability of at most {level}."
    )


def _judging(results: Results, cite: Citations) -> str:
    """Return how questions were answered."""
    final = results.final.validation
    level = 1 - final.confidence
    seed = "" if final.seed is None else f", seed {final.seed}"
    groups = ""
    if results.n_groups is not None:
        groups = (
            f" Rows came in {results.n_groups:,} groups; intervals and tests take "
            "whole groups as independent, not rows."
        )
    if results.n_effective is not None:
        groups += (
            " Rows were weighted: means, bins and tests are weighted ones, and "
            f"intervals those of {results.n_effective:,.0f} rows in effect."
        )
    return (
        f"The standard uncertainties u of {results.rows.n_rows:,} predictions with "
        "errors E (reference minus prediction) were judged with sigmascale "
        f"{__version__}{seed}, by their z-scores z = E/u.{groups} "
        f"The {len(final.verdicts)} questions share an error rate of {_level(level)}. "
        f"A share of {percent(AVERAGE_SHARE)} is the average's: uncertainties are "
        f"right on average if the {_level(1 - AVERAGE_SHARE * level)} interval of "
        "⟨Z²⟩, the mean of z², contains 1. Its limits are those of the closed form of "
        f"the BCa bootstrap from moments{cite(ABC)}, widened to those of a Student's t "
        "fitted to z where its tails reach further. "
        f"A share of {percent(BIAS_SHARE, 1)} is that of bias: errors "
        f"are unbiased on average if the {_level(1 - BIAS_SHARE * level)} interval of "
        f"the mean of z contains 0. {_tests(results, cite)}"
    )


def _tests(results: Results, cite: Citations) -> str:
    """Return what shuffled sets have tested, and what a yes is worth."""
    final = results.final.validation
    if not final.n_draws:
        return "There were too few rows, or errors, for any other test."
    names = "u" if len(results.rows.names) == 1 else "u and of each feature"
    together = ""
    if results.n_groups is not None:
        together = ", in which whole groups were kept together"
    elif results.rows.n_rows > EXACT_ROWS:
        together = (
            f" (the largest, up to {LARGEST:,}, one by one, all others by the normal "
            "law of their sums)"
        )
    joint = ""
    if JOINT in final.verdicts:
        joint = (
            " For all variables jointly, trees by gradient "
            f"boosting{cite(BOOSTING)} predict the z² of each of two folds from the "
            "other, and rows are ordered by that."
        )
    return (
        f"A share of {percent(LAW_SHARE, 1)} is that of the share of errors held, and "
        f"{percent(TESTS_SHARE)} that of scans. "
        f"The values of {names} were put in up to {MOST_BINS} bins, equal values "
        "together (labels: one bin each). The ⟨Z²⟩ of runs of neighbouring bins of "
        "many lengths (of labels and sets of them) was compared with that of the other "
        "rows by the likelihood ratio of the gamma law, in which z² counts as at most "
        f"{CAP:g} times its mean: regions are thus judged relative to the average. "
        "Local bias is the difference of the mean of z, and "
        f"local coverage that of the share of errors within {final.reach:.3g}u, the "
        f"multiple of u that holds 95\u00a0% of all errors.{joint} By chance, such "
        f"differences are as large as in {final.n_draws:,} sets with shuffled "
        f"z-scores{together}; the largest of all{cite(STEP_DOWN)} makes intervals of "
        "all regions that hold at once. An interval that excludes 1 means “no”, if "
        "the region's own interval of ⟨Z²⟩, which knows tails, does so, too. Otherwise "
        "a variable is answered “yes” if the intervals of "
        "every tenth of the rows, and of every label of 5\u00a0% of them, lie within a "
        f"factor of {final.tolerance:g} (the tolerance) of right, and “cannot tell” if "
        "not."
    )


def _scoring(results: Results, cite: Citations) -> str:
    """Return how scores, local intervals and tails were computed."""
    final = results.final.validation
    bins = final.local["u"].n.size
    rows = results.rows
    labels = [name for name in rows.names[1:] if rows.is_labelled(name)]
    numbers = [name for name in rows.names[1:] if name not in labels]
    adaptivity = ""
    if numbers or labels:
        where = [f"over {bins} such bins of {_listed(numbers)}"] if numbers else []
        where += [
            f"over the {final.local[name].n.size} groups of {name}" for name in labels
        ]
        adaptivity = f", and adaptivity by the same mean {_listed(where)}"
    draws = next(iter(final.reference.draws.values())).size
    pool = (
        "resampled from the set's own and rescaled to ⟨Z²⟩ = 1"
        if final.reference.distribution == "empirical"
        else "normal"
    )
    return (
        "As scores, average calibration is measured by S_cal = |ln ⟨Z²⟩|, consistency "
        f"by S_u, the mean of |ln ⟨Z²⟩| over {bins} equal-size bins of u{adaptivity}"
        f"{cite(SCORES, LOCAL)}. A bin is valid if the {percent(final.confidence)} "
        f"interval of its ⟨Z²⟩ contains 1 ({_intervals(final, cite)}); fractions of "
        f"valid bins have Wilson intervals with continuity correction"
        f"{cite(WILSON, NEWCOMBE)}. Attainable values are means over {draws:,} "
        "simulated, perfectly calibrated sets of the same size, with z-scores "
        f"{pool}.{_tails(results, cite)} ENCE and UCE are defined "
        f"in{cite(LEVI, FRENKEL)}, confidence curves and their reference "
        f"in{cite(CURVE)}."
    )


def _tails(results: Results, cite: Citations) -> str:
    if results.final.tails is None:
        return ""
    return (
        " Tails were measured by Student's t fitted to z, by the share of errors "
        f"within 1.96u{cite(WITHIN)}, and by the robust skewness{cite(SKEWNESS)} of "
        f"z², u² and E², with limits above which means say little{cite(TAILS)}."
    )


def _level(share: float) -> str:
    """Return a level, which may have decimals."""
    return f"{100 * share:.4g}\u00a0%"


def _intervals(validation: Validation, cite: Citations) -> str:
    """Return how the intervals of the bins, and that of all rows, are made."""
    method = validation.local["u"].method
    name, references = INTERVALS[method]
    words = f"{name}{cite(*references)}"
    if validation.n_resamples is not None:
        words += f", {validation.n_resamples:,} resamples"
    if method == "moments":
        return words
    whose = "its" if method == "bca" else "BCa's"
    return f"{words}; for all rows together {whose} closed form{cite(ABC)}"


def _recalibration(results: Results, cite: Citations) -> str:
    fitted = results.fitted
    known = results.calibration
    count = results.n_learned_from
    rows = "" if count is None else f" on {count:,} rows"
    if known is not None:
        rows += (
            ", none of them judged"
            if not known.n_shared
            else f", to which {known.n_shared:,} of the judged rows belong"
        )
    if fitted is None:
        text = f"Uncertainties were recalibrated by a method fitted{rows}."
    else:
        does = getattr(fitted, "does", "")
        references = getattr(fitted, "references", ())
        means = f": {does}{cite(*references)}" if does else ""
        name = parameters(fitted)
        text = f"Uncertainties were recalibrated by {name}, fitted{rows}{means}."
    found = results.rows.distributions
    if found is not None:
        text += f" The law of errors is {found.law.words}."
    if results.selection is not None:
        tried = len(results.selection["candidate"])
        text += (
            f" It was selected among {tried} candidates as the simplest within one "
            "standard error of the best likelihood of unseen rows in "
            f"{results.scaling.n_folds}-fold cross-validation."
        )
    if known is not None:
        text += (
            " The distributions of u and the features in both sets were compared by "
            f"the test of Kolmogorov and Smirnov{cite(SMIRNOV)} (labels: by "
            "chi-squared)."
        )
    return text


def parameters(scaler: Any) -> str:
    """Return the class and all parameters of a recalibrator."""
    if not hasattr(scaler, "get_params"):
        return type(scaler).__name__
    own = scaler.get_params(deep=False)
    given = ", ".join(f"{key}={value!r}" for key, value in own.items())
    return f"{type(scaler).__name__}({given})"


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
