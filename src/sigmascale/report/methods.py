"""The methods of a report in words that a paper can take, with their references."""

from __future__ import annotations

from typing import Any

from .._support.citations import (
    ABC,
    BCA,
    CURVE,
    FRENKEL,
    HOLM,
    LEVI,
    LOCAL,
    NEWCOMBE,
    SCORES,
    SMIRNOV,
    WILSON,
)
from .._support.version import __version__
from ..judging.validation import Validation
from .evidence import Evidence
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


def write_methods(evidence: Evidence) -> tuple[list[str], list[str]]:
    """Return the paragraphs, and the references that they cite by number."""
    cite = Citations()
    paragraphs = [_judging(evidence, cite)]
    if evidence.recalibrated:
        paragraphs.append(_recalibration(evidence, cite))
    return paragraphs, cite.references


def _judging(evidence: Evidence, cite: Citations) -> str:
    final = evidence.final.validation
    rows = evidence.error.size
    bins = final.local["u"].n.size
    questions = len(final.verdicts)
    numbers = [n for n, x in evidence.features.items() if x.dtype.kind == "f"]
    labels = [n for n in evidence.features if n not in numbers]
    adaptivity = ""
    if numbers or labels:
        where = [f"over {bins} such bins of {_listed(numbers)}"] if numbers else []
        where += [
            f"over the {final.local[name].n.size} groups of {name}" for name in labels
        ]
        adaptivity = f", and adaptivity by the same mean {_listed(where)}"
    level = 1 - final.confidence
    draws = next(iter(final.reference.draws.values())).size
    pool = (
        "resampled from the set's own and rescaled to ⟨Z²⟩ = 1"
        if final.reference.distribution == "empirical"
        else "normal"
    )
    seed = "" if final.seed is None else f", seed {final.seed}"
    return (
        f"The standard uncertainties u of {rows:,} predictions with errors E "
        "(reference minus prediction) were judged with sigmascale "
        f"{__version__}{seed}. With z = E/u, average calibration is measured by "
        "S_cal = |ln ⟨Z²⟩|, consistency by S_u, the mean of |ln ⟨Z²⟩| over "
        f"{bins} equal-size bins of u{adaptivity}{cite(SCORES, LOCAL)}. A bin is "
        f"valid if the {percent(final.confidence)} interval of its ⟨Z²⟩ contains 1 "
        f"({_intervals(final, cite)}); fractions of valid bins have Wilson "
        f"intervals with continuity correction{cite(WILSON, NEWCOMBE)}. Attainable "
        f"values are means over {draws:,} simulated, perfectly calibrated sets of the "
        f"same size, with z-scores {pool}. A score fails if, after Holm's "
        f"correction{cite(HOLM)} for {questions} questions, fewer than "
        f"{percent(level)} of these sets score as high. ENCE and UCE are defined in"
        f"{cite(LEVI, FRENKEL)}, confidence curves and their reference "
        f"in{cite(CURVE)}."
    )


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


def _recalibration(evidence: Evidence, cite: Citations) -> str:
    fitted = evidence.fitted
    known = evidence.calibration
    count = evidence.n_learned_from
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
    if evidence.selection is not None:
        tried = len(evidence.selection["candidate"])
        text += (
            f" It was selected among {tried} candidates as the simplest within one "
            "standard error of the best likelihood of unseen rows in "
            f"{evidence.scaler.n_folds}-fold cross-validation."
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
