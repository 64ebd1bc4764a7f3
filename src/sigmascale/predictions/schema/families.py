"""Columns that belong together: members that count, limits in pairs, quantiles.

None of them is an uncertainty, though their names may come close to one. Where no
column is plainly the uncertainty, a message offers them for what they are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._support.text import quoted
from .names import WORDS, read_name, words_of

_NUMBERED = re.compile(r"(.*?\D|)(\d{1,3})(\D*)")  # as in Tb_model_12, or q05_pred
_LEVEL = re.compile(r"(.*?)[_\s-]*(\d+(?:\.\d+)?|\.\d+)[_\s-]*(%|[^\d.]*)")
_SHARE = re.compile(r"(?<![\d.])(0?\.\d+|\d{2}(?:\.\d+)?)(?![\d.])")
# Words that say what columns are together.
_OTHER_WORDS = {
    "member": "model member ens ensemble tree seed fold net nn run committee est "
    "estimator replica sample draw bootstrap boot mc pass head",
    "quantile": "q quantile quantiles quant p pct perc percentile tau",
    "limit": "y ci pi conf confidence int interval intervals bound bounds limit lim cl "
    "cb prediction predictive obs mean level band pct",
}
_MEMBERS = set(_OTHER_WORDS["member"].split())
_PREDICTED = set(WORDS["prediction"].split()) | {"yhat"}
_QUANTILE_WORDS = set(_OTHER_WORDS["quantile"].split())
# What the lower limit is called, and the upper one beside it.
_LIMITS = {
    "lo": "hi",
    "low": "high",
    "lower": "upper",
    "lwr": "upr",
    "lb": "ub",
    "lcl": "ucl",
    "ll": "ul",
    "l": "u",
    "min": "max",
    "left": "right",
    "bottom": "top",
}
_PLAIN_LIMITS = {"lo", "low", "lower", "lwr", "lb", "lcl"}  # which features rarely are
_OF_LIMITS = set(_OTHER_WORDS["limit"].split())
_SMILES = {"smiles", "smi", "canonical_smiles"}
_LOGARITHM = re.compile(r"(?<![a-z])(log|ln)[\W_]*(var|variance|sigma|std)", re.I)
_SEVERAL = re.compile(r"(?<![a-z\d])([2-9]|1\.96)(sigma|std|sd)(?![a-z\d])", re.I)
# Of errors: those that were made, not those that are expected.
_MADE = {"abs", "absolute", "squared", "sq", "relative", "rel", "percent"}
_MADE |= {"residual", "residuals", "resid"}
_MEAN_ERRORS = {"mae", "mse", "msd", "rmsd"}
_ONE_SIDED = {"up", "down", "plus", "minus"}  # of errors that differ either way
_Targets = Mapping[frozenset[str], set[str]]  # columns by the words of a quantity
LEAST_MEMBERS = 3  # two columns that count may be anything


@dataclass(frozen=True)
class Family:
    """Columns that say an uncertainty together, and how a choice names them.

    Attributes
    ----------
    columns : tuple of str
        The columns.
    words : str
        What is said of them: they look like members, say.
    choice : dict
        The fields of a choice that takes them so.
    is_sure : bool
        Whether it is to be preferred to a column that is called an uncertainty.
    """

    columns: tuple[str, ...]
    words: str
    choice: dict[str, Any] = field(default_factory=dict)
    is_sure: bool = False


def families(names: Sequence[str], numeric: Collection[str]) -> list[Family]:
    """Return the families among the columns of a table, the most telling first.

    >>> names = ["y", "pred_0", "pred_1", "pred_2", "pred_mean"]
    >>> [family.choice for family in families(names, names)]
    [{'members': ('pred_*',)}]
    >>> names = ["y", "yhat", "yhat_lower", "yhat_upper"]
    >>> families(names, names)[0].choice["interval"]
    ('yhat_lower', 'yhat_upper')
    """
    numeric = set(numeric)
    numbers = [name for name in names if name in numeric]
    together = _intervals_of_observations(numbers)
    if any(name.lower() in _SMILES for name in names):
        together += _of_chemprop(numbers)
    # a column belongs to one family
    targets = _named_by_quantity(numbers)
    for look_for in (_members, _intervals, _quantiles):
        taken = {name for family in together for name in family.columns}
        free = [name for name in numbers if name not in taken]
        together += look_for(free, targets)
    return together


def is_no_deviation(name: str) -> bool:
    """Return whether a name says that a column is no uncertainty, but near to one.

    It may be a limit, a quantile, the logarithm of an uncertainty, some of them, or an
    error that was made.

    >>> [is_no_deviation(x) for x in ("yhat_upper", "pred_q95", "log_var", "2sigma")]
    [True, True, True, True]
    >>> [is_no_deviation(x) for x in ("abs_error", "resid", "resid_std", "y_err")]
    [True, True, False, False]
    """
    words = words_of(name)
    limits = {*_LIMITS, *_LIMITS.values()} - {"l", "u"}
    if words & (limits | _ONE_SIDED | _MEAN_ERRORS):
        return True
    if _LOGARITHM.search(name) or _SEVERAL.search(name):
        return True
    if words & _MADE and read_name(name).part == "error":
        return True

    # a number may be the level of a quantile, if the words around it say so
    match = _LEVEL.fullmatch(name)
    if match is None:
        return False
    around = words_of(f"{match[1]} {match[3]}")
    return bool(around & _QUANTILE_WORDS)


def _named_by_quantity(names: Iterable[str]) -> dict[frozenset[str], set[str]]:
    """Return the columns that may be of a target, by the words of its quantity."""
    named: dict[frozenset[str], set[str]] = defaultdict(set)
    for name in names:
        named[words_of(name) - {"median"}].add(name)
        column = read_name(name)
        if column.part in ("reference", "prediction"):
            named[column.stem].add(name)
    return named


def _is_of_target(
    quantity: frozenset[str], targets: _Targets, columns: Iterable[str]
) -> bool:
    """Return whether words are those of what other columns are of, or none."""
    return not quantity or bool(targets.get(quantity, set()).difference(columns))


# -- members ---------------------------------------------------------------------------


def _members(names: Sequence[str], targets: _Targets) -> list[Family]:
    """Return columns of predictions that are called alike but for a number."""
    numbered = _counted(names)
    # where true values or uncertainties count as well, there are several targets
    numbers_of_targets = []
    for (head, tail), columns in numbered.items():
        if read_name(f"{head} {tail}").part not in ("", "prediction"):
            numbers_of_targets.append(set(columns))

    ensembles = []
    for (head, tail), columns in numbered.items():
        # numbers without gaps, or seeds, which may be any, as 7 and 42
        span = max(columns) - min(columns) + 1
        is_complete = len(columns) == span or "seed" in words_of(head)
        if len(columns) < LEAST_MEMBERS or not is_complete:
            continue
        is_of_targets = set(columns) in numbers_of_targets
        in_order = [columns[number] for number in sorted(columns)]
        if _are_members(head, tail, targets, in_order) and not is_of_targets:
            choice = {"members": (f"{head}*{tail}",)}
            words = "look like members of an ensemble"
            ensembles.append(Family(tuple(in_order), words, choice))
    return ensembles


def _counted(names: Iterable[str]) -> dict[tuple[str, str], dict[int, str]]:
    """Return columns by what stands before and after a number, and by that number."""
    numbered: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            head, number, tail = match.groups()
            numbered[head, tail][int(number)] = name
    return numbered


def _are_members(
    head: str, tail: str, targets: _Targets, columns: Sequence[str]
) -> bool:
    """Return whether what stands around numbers says that predictions are counted."""
    text = f"{head} {tail}"
    words = words_of(text)
    if read_name(text).part not in ("", "prediction"):
        return False
    quantity = words - _MEMBERS - _PREDICTED - {"y", "e"}
    is_counted = bool(words & (_MEMBERS | _PREDICTED))
    return is_counted and _is_of_target(quantity, targets, columns)


# -- limits of intervals ---------------------------------------------------------------


def _intervals_of_observations(names: Sequence[str]) -> list[Family]:
    """Return what statsmodels says of new observations, beside the error of the mean.

    Its `mean_se` is the standard error of the line, and no uncertainty of a value.
    """
    limits = ("obs_ci_lower", "obs_ci_upper")
    if not {"mean_se", *limits} <= set(names):
        return []
    words = (
        "are limits for new values (of 95 % unless alpha was changed), and 'mean_se' "
        "is the error of the mean alone"
    )
    choice = {"interval": limits, "interval_coverage": 0.95}
    return [Family(limits, words, choice, is_sure=True)]


def _intervals(names: Sequence[str], targets: _Targets) -> list[Family]:
    """Return pairs of limits, the widest first."""
    share_of_pair: dict[tuple[str, str], float | None] = {}
    free = set(names)
    for name in names:
        for low, high in _LIMITS.items():
            upper = _other_limit(name, low, high)
            if upper in free and _are_limits(name, low, targets, (name, upper)):
                share_of_pair[name, upper] = _share_of(name)
    widest_first = sorted(
        share_of_pair, key=lambda pair: share_of_pair[pair] or 0.0, reverse=True
    )
    intervals = []
    for pair in widest_first:
        choice = {"interval": pair, "interval_coverage": share_of_pair[pair]}
        intervals.append(Family(pair, "look like limits of intervals", choice))
    return intervals


def _other_limit(name: str, low: str, high: str) -> str:
    """Return the name in which the upper limit stands for the lower one, if any."""
    match = re.search(rf"(?<![a-z]){low}(?![a-z])", name, re.I)
    if match is None:
        return ""
    # in letters as large as those of the lower one: LO and HI, Lower and Upper
    word = match[0]
    if word.istitle():
        high = high.title()
    elif word.isupper():
        high = high.upper()
    return name[: match.start()] + high + name[match.end() :]


def _are_limits(name: str, low: str, targets: _Targets, pair: tuple[str, str]) -> bool:
    """Return whether the lower of two columns is one of a prediction's limits."""
    words = {word.rstrip("0123456789") for word in words_of(name)} - {""}
    of_predictions = _OF_LIMITS | _PREDICTED
    is_said = bool(words & of_predictions) or low in _PLAIN_LIMITS
    quantity = frozenset(words - {low} - of_predictions)
    return is_said and _is_of_target(quantity, targets, pair)


def _share_of(name: str) -> float | None:
    """Return the share that limits claim to hold, if their names tell.

    >>> _share_of("AutoARIMA-lo-95"), _share_of("lower_0.9"), _share_of("yhat_lower")
    (0.95, 0.9, None)
    """
    match = _SHARE.search(name)
    if match is None:
        return None
    share = float(match[1])
    if share > 1:  # in per cent
        share = share / 100
    return share if 0.5 <= share < 1 else None


# -- quantiles -------------------------------------------------------------------------


def _quantiles(names: Sequence[str], targets: _Targets) -> list[Family]:
    """Return columns whose numbers are levels: 0.05, 0.5, 0.95; or 5, 50, 95."""
    # columns by what stands before and after a number, and by that number
    alike: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for name in names:
        if match := _LEVEL.fullmatch(name):
            head, number, tail = match.groups()
            alike[head, tail][number] = name

    quantiles = []
    for (head, tail), columns in alike.items():
        # numbers are levels if a word says so, or if they are fractions
        words = words_of(f"{head} {tail}")
        is_said = bool(words & _QUANTILE_WORDS) or tail == "%"
        if not is_said and not all("." in number for number in columns):
            continue
        levels = _levels(list(columns), is_said=is_said)
        quantity = words - _QUANTILE_WORDS - _PREDICTED - {"y"}
        if levels and _is_of_target(quantity, targets, columns.values()):
            by_level = sorted(zip(levels, columns.values(), strict=True))
            in_order = tuple(name for _, name in by_level)
            with_levels = tuple(f"{name}={level:g}" for level, name in by_level)
            choice = {"quantile_columns": with_levels}
            quantiles.append(Family(in_order, "look like quantiles", choice))
    return quantiles


def _levels(texts: Sequence[str], *, is_said: bool) -> list[float]:
    """Return the levels that numbers in names stand for; nothing if they do not.

    >>> (
    ...     _levels(["05", "50", "95"], is_said=True),
    ...     _levels(["2.5", "97.5"], is_said=True),
    ... )
    ([0.05, 0.5, 0.95], [0.025, 0.975])
    """
    # as they are, in per cent, or as digits behind the point: 025 and 975
    numbers = [float(text) for text in texts]
    readings = [numbers]
    if is_said:
        readings.append([number / 100 for number in numbers])
    if is_said and all(text.isdigit() for text in texts):
        readings.append([float(f"0.{text}") for text in texts])

    # the first that are levels, two of which are the ends of an interval
    for levels in readings:
        are_shares = all(0 < level < 1 for level in levels)
        rounded = {round(level, 9) for level in levels}
        mirrored = {round(1 - level, 9) for level in levels}
        are_different = len(rounded) == len(texts) >= 2
        if are_shares and are_different and rounded & mirrored - {0.5}:
            return levels
    return []


# -- files of chemprop -----------------------------------------------------------------


def _of_chemprop(names: Sequence[str]) -> list[Family]:
    """Return what chemprop writes: two models, or `_unc` beside what it overwrites."""
    written = []
    two = [name for name in names if name.endswith(("_model_0", "_model_1"))]
    if len(two) == 2:
        head = two[0][:-1]
        if f"{head}2" not in names:  # more are found as others are
            words = "look like members of an ensemble"
            written.append(Family(tuple(two), words, {"members": (f"{head}*",)}))
    for name in names:
        target = name.removesuffix("_unc")
        if target != name and target in names:
            words = (
                "is a variance if chemprop wrote it (after its quantile or conformal "
                f"calibration a half-width), and {quoted(target)} holds predictions"
            )
            written.append(Family((name,), words, {"variance": name}, is_sure=True))
    return written
