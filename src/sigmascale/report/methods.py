"""The methods of a report in words that a paper can take, with their references."""

from __future__ import annotations

from typing import Any

from .._support.version import __version__
from ..scaling import (
    BinwiseScaling,
    BoostedScaling,
    GroupScaling,
    IsotonicScaling,
    LinearScaling,
    NoScaling,
    RakedScaling,
    SelectedScaling,
    TemperatureScaling,
    VarianceScaler,
)
from .evidence import N_RESAMPLES, Evidence
from .text import percent

REFERENCES = {
    "scores": "P. Pernot, Can bin-wise scaling improve consistency and adaptivity of "
    "prediction uncertainty for machine learning regression? arXiv:2310.11978 (2023).",
    "local": "P. Pernot, Calibration in machine learning uncertainty quantification: "
    "beyond consistency to target adaptivity. arXiv:2309.06240 (2023).",
    "bca": "B. Efron, Better bootstrap confidence intervals. J. Am. Stat. Assoc. 82, "
    "171–185 (1987). doi:10.1080/01621459.1987.10478410",
    "abc": "T. DiCiccio and B. Efron, More accurate confidence intervals in "
    "exponential families. Biometrika 79, 231–245 (1992). doi:10.1093/biomet/79.2.231",
    "wilson": "E. B. Wilson, Probable inference, the law of succession, and "
    "statistical inference. J. Am. Stat. Assoc. 22, 209–212 (1927). "
    "doi:10.1080/01621459.1927.10502953",
    "newcombe": "R. G. Newcombe, Two-sided confidence intervals for the single "
    "proportion: comparison of seven methods. Stat. Med. 17, 857–872 (1998). "
    "doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E",
    "holm": "S. Holm, A simple sequentially rejective multiple test procedure. "
    "Scand. J. Statist. 6, 65–70 (1979).",
    "curve": "P. Pernot, Confidence curves for UQ validation: probabilistic reference "
    "vs. oracle. arXiv:2206.15272 (2022).",
    "levi": "D. Levi, L. Gispan, N. Giladi and E. Fetaya, Evaluating and calibrating "
    "uncertainty prediction in regression tasks. Sensors 22, 5540 (2022). "
    "doi:10.3390/s22155540",
    "frenkel": "L. Frenkel and J. Goldberger, Calibration of a regression network "
    "based on the predictive variance with applications to medical images. ISBI "
    "(2023). doi:10.1109/ISBI53787.2023.10230543",
    "busk": "J. Busk et al., Calibrated uncertainty for molecular property prediction "
    "using ensembles of message passing neural networks. Mach. Learn.: Sci. Technol. "
    "3, 015012 (2022). doi:10.1088/2632-2153/ac3eb3",
    "raking": "W. E. Deming and F. F. Stephan, On a least squares adjustment of a "
    "sampled frequency table when the expected marginal totals are known. Ann. Math. "
    "Statist. 11, 427–444 (1940). doi:10.1214/aoms/1177731829",
    "boosting": "J. H. Friedman, Greedy function approximation: a gradient boosting "
    "machine. Ann. Statist. 29, 1189–1232 (2001). doi:10.1214/aos/1013203451",
    "ks": "N. Smirnov, Table for estimating the goodness of fit of empirical "
    "distributions. Ann. Math. Statist. 19, 279–281 (1948). "
    "doi:10.1214/aoms/1177730256",
}

# What a recalibrator does, and who is to be cited for it.
DOES: dict[type[Any], tuple[str, tuple[str, ...]]] = {
    NoScaling: ("uncertainties are left as they are", ()),
    TemperatureScaling: ("all uncertainties are multiplied by one factor", ("levi",)),
    LinearScaling: (
        "u is replaced by sqrt(a² u² + b²) with a and b of maximum likelihood",
        (),
    ),
    BinwiseScaling: (
        "uncertainties are multiplied by a factor for their bin",
        ("frenkel", "scores"),
    ),
    GroupScaling: (
        "uncertainties are multiplied by a factor for their group",
        ("frenkel", "scores"),
    ),
    IsotonicScaling: (
        "u² is replaced by an isotonic fit of the squared errors",
        ("busk",),
    ),
    RakedScaling: (
        "uncertainties are multiplied by factors for their bin of u and of every "
        "feature, found by raking so that all bins are calibrated at once",
        ("raking",),
    ),
    BoostedScaling: (
        "uncertainties are multiplied by a smooth factor of u and the features, "
        "learned by gradient boosting under the gamma deviance",
        ("boosting",),
    ),
}


class Citations:
    """Numbers references in the order in which they are first cited."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, *keys: str) -> str:
        """Return the mark of some references, such as " [1, 3]"."""
        for key in keys:
            if key not in self.keys:
                self.keys.append(key)
        numbers = sorted(self.keys.index(key) + 1 for key in keys)
        return f" [{', '.join(map(str, numbers))}]" if numbers else ""

    @property
    def references(self) -> list[str]:
        """The references by number."""
        return [REFERENCES[key] for key in self.keys]


def write_methods(evidence: Evidence) -> tuple[list[str], list[str]]:
    """Return the paragraphs, and the references that they cite by number."""
    cite = Citations()
    paragraphs = [_judging(evidence, cite)]
    if evidence.recalibrated:
        paragraphs.append(_recalibration(evidence, cite))
    return paragraphs, cite.references


def describe(scaler: Any) -> str:
    """Return what a recalibrator does, in words."""
    does, _ = DOES.get(type(scaler), ("a method of your own", ()))
    return does


def learned(scaler: Any) -> str:
    """Return the numbers that a recalibrator has learned, if they fit a sentence."""
    match scaler:
        case TemperatureScaling():
            return f"The factor is {scaler.factor_:.4g}."
        case LinearScaling():
            return f"a = {scaler.a_:.4g} and b = {scaler.b_:.4g}, in the error's unit."
        case IsotonicScaling():
            return f"The fit has {scaler.variances_in_.size} knots."
        case BinwiseScaling():
            low, high = scaler.factors_.min(), scaler.factors_.max()
            n = scaler.factors_.size
            return f"The factors of {n} bins lie between {low:.3g} and {high:.3g}."
        case GroupScaling():
            n = scaler.factors_.size - 1
            rest = scaler.factors_[-1]
            return f"{n} groups have a factor of their own, all others {rest:.3g}."
        case RakedScaling():
            pairs = [name for name in scaler.factors_ if name not in scaler.limits_]
            joint = f" Factors of joint bins: {', '.join(pairs)}." if pairs else ""
            return (
                "The factors of a row's bins multiply each other and an overall factor "
                f"of {scaler.scale_:.4g}.{joint}"
            )
        case BoostedScaling():
            return (
                f"{len(scaler.boosters_)} boosters of {scaler.n_trees_} trees each, on "
                f"top of sqrt(a² u² + b²) with a = {scaler.base_.a_:.4g} and "
                f"b = {scaler.base_.b_:.4g}; overall factor {scaler.scale_:.4g}."
            )
    return ""


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
    seed = f", seed {evidence.seed}" if isinstance(evidence.seed, int) else ""
    return (
        f"The standard uncertainties u of {rows:,} predictions with errors E "
        "(reference minus prediction) were judged with sigmascale "
        f"{__version__}{seed}. With z = E/u, average calibration is measured by "
        "S_cal = |ln ⟨Z²⟩|, consistency by S_u, the mean of |ln ⟨Z²⟩| over "
        f"{bins} equal-size bins of u{adaptivity}{cite('scores', 'local')}. A bin is "
        f"valid if the {percent(final.confidence)} interval of its ⟨Z²⟩ contains 1 "
        f"(BCa bootstrap{cite('bca')}, {N_RESAMPLES:,} resamples; for all rows "
        f"together its closed form{cite('abc')}); fractions of valid bins have Wilson "
        f"intervals with continuity correction{cite('wilson', 'newcombe')}. Attainable "
        f"values are means over {draws:,} simulated, perfectly calibrated sets of the "
        f"same size, with z-scores {pool}. A score fails if, after Holm's "
        f"correction{cite('holm')} for {questions} questions, fewer than "
        f"{percent(level)} of these sets score as high. ENCE and UCE are defined in"
        f"{cite('levi', 'frenkel')}, confidence curves and their reference "
        f"in{cite('curve')}."
    )


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
        does, keys = DOES.get(type(fitted), ("", ()))
        means = f": {does}{cite(*keys)}" if does else ""
        name = parameters(fitted)
        text = f"Uncertainties were recalibrated by {name}, fitted{rows}{means}."
    if isinstance(evidence.scaler, SelectedScaling):
        tried = len(evidence.scaler.cv_results_["candidate"])
        text += (
            f" It was selected among {tried} candidates as the simplest within one "
            "standard error of the best likelihood of unseen rows in "
            f"{evidence.scaler.n_folds}-fold cross-validation."
        )
    if known is not None:
        text += (
            " The distributions of u and the features in both sets were compared by "
            f"the test of Kolmogorov and Smirnov{cite('ks')} (labels: by chi-squared)."
        )
    return text


def parameters(scaler: Any) -> str:
    """Return the class and all parameters of a recalibrator."""
    if not isinstance(scaler, VarianceScaler):
        return type(scaler).__name__
    given = ", ".join(f"{key}={value!r}" for key, value in scaler.get_params().items())
    return f"{type(scaler).__name__}({given})"


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
