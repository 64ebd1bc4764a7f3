"""Columns that come near to an uncertainty, and are none: members, limits, quantiles.

A message says what they look like, and how they are named.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from typing import Any

from ..._support.text import listed, quoted
from .names import read_name, words_of

LEAST_MEMBERS = 3  # two columns that count may be anything
_LEVEL = re.compile(r"(.*?)[_\s-]*(\d+(?:\.\d+)?|\.\d+)[_\s-]*(%|[^\d.]*)")
# Words that say what columns are together, or that they are near to an uncertainty.
_WORDS = {
    "quantile": "q quantile quantiles quant p pct perc percentile tau",
    "member": "member model ens ensemble tree seed fold net nn run committee est "
    "estimator replica sample draw bootstrap boot mc pass head",
    "made": "abs absolute squared sq relative rel percent residual residuals resid",
    "no deviation": "mae mse msd rmsd up down plus minus ll ul min max bottom top",
}
_QUANTILE_WORDS = set(_WORDS["quantile"].split())
_MEMBER_WORDS = set(_WORDS["member"].split())
_MADE = set(_WORDS["made"].split())  # errors that were made, not those expected
# What the lower limit is called, and the upper one beside it.
_LIMITS = {
    "lo": "hi",
    "low": "high",
    "lower": "upper",
    "lwr": "upr",
    "lb": "ub",
    "lcl": "ucl",
    "left": "right",
}
_LOGARITHM = re.compile(r"(?<![a-z])(log|ln)[\W_]*(var|variance|sigma|std)", re.I)
_SEVERAL = re.compile(r"(?<![a-z\d])([2-9]|1\.96)(sigma|std|sd)(?![a-z\d])", re.I)
_NO_DEVIATIONS = {*_WORDS["no deviation"].split(), *_LIMITS, *_LIMITS.values()}
_SMILES = {"smiles", "smi", "canonical_smiles"}


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
    if words & _NO_DEVIATIONS or _LOGARITHM.search(name) or _SEVERAL.search(name):
        return True
    if words & _MADE and read_name(name).role == "error":
        return True
    match = _LEVEL.fullmatch(name)
    return bool(match and words_of(f"{match[1]} {match[3]}") & _QUANTILE_WORDS)


def is_misleading(name: str, names: Sequence[str]) -> bool:
    """Return whether a package calls something so beside others that is no std.

    The `mean_se` of statsmodels is of the mean alone; chemprop's `_unc` a variance.
    """
    if name == "mean_se":
        return {"obs_ci_lower", "obs_ci_upper"} <= set(names)
    if not (name.endswith("_unc") and name.removesuffix("_unc") in names):
        return False
    return any(column.lower() in _SMILES for column in names)


def numbered(names: Sequence[str]) -> list[str]:
    """Return columns that are called alike but for a number, three or more.

    >>> numbered(["y", "pred_0", "pred_1", "pred_2", "pred_std"])
    ['pred_0', 'pred_1', 'pred_2']
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[re.sub(r"\d+(\.\d+)?", "*", name)].append(name)
    groups = [group for group in alike.values() if len(group) >= LEAST_MEMBERS]
    return [name for group in groups for name in group]


def looks(
    names: Sequence[str], every: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what columns look like together, and how a choice names them.

    >>> names = ["y", "yhat_lower", "yhat_upper", "pred_0", "pred_1", "pred_2"]
    >>> limits, members = looks(names, names)
    >>> limits[0]
    "'yhat_lower', 'yhat_upper' look like limits of intervals"
    >>> members[1]
    {'members': ('pred_*',)}
    """
    # errors and uncertainties have levels and limits as well, which say something else
    roles = {name: read_name(name).role for name in names}
    values = [name for name in names if roles[name] not in ("error", "uncertainty")]

    # limits, in pairs; of new values rather than of the mean, as statsmodels has both
    if "obs_ci_lower" in values:
        values = [name for name in values if not name.startswith("mean_ci_")]
    in_pairs = set[str]()
    for name in values:
        if other := _other_limit(name, roles):
            in_pairs |= {name, other}
            words = f"{quoted(name)}, {quoted(other)} look like limits of intervals"
            share = _level_of(name)
            is_share = share is not None and 0.5 <= share < 1
            coverage = share if is_share else "SHARE"
            yield words, {"interval": (name, other), "interval_coverage": coverage}

    # levels of quantiles, or numbers of members
    values = [name for name in values if name not in in_pairs]
    levels = dict.fromkeys(name for name in values if _is_level(name))
    if len(levels) > 1:
        with_levels = tuple(f"{name}={_level_of(name):g}" for name in levels)
        words = f"{listed(map(quoted, levels), 3)} look like quantiles"
        yield words, {"quantile_columns": with_levels}
    members = [name for name in numbered(values) if name not in levels]
    if len(members) < len(numbered(names)):
        members = []  # with an uncertainty each they are several targets
    if members and all(map(_is_member, members)):
        pattern = re.sub(r"\d+", "*", members[0])
        words = f"{listed(map(quoted, members), 3)} look like members of an ensemble"
        yield words, {"members": (pattern,)}
    for name in names:
        if name != "mean_se" and is_misleading(name, every):
            yield f"{quoted(name)} is a variance", {"variance": name}


def _other_limit(name: str, names: Container[str]) -> str | None:
    """Return the column of upper limits beside one of lower ones, if there is one."""
    for low, high in _LIMITS.items():
        for lower, upper in ((low, high), (low.title(), high.title())):
            other = re.sub(rf"(?<![a-zA-Z]){lower}(?![a-z])", upper, name)
            if other != name and other in names:
                return other
    return None


def _level_of(name: str) -> float | None:
    """Return the level or share that the last number in a name says, if there is one.

    >>> [_level_of(name) for name in ("q05", "5 %", "lo-97.5", "tau=0.5", "upper")]
    [0.05, 0.05, 0.975, 0.5, None]
    """
    numbers = re.findall(r"\d*\.\d+|\d+", name)
    if not numbers:
        return None
    if "." not in numbers[-1] and len(numbers[-1]) > 1:  # 05, 50, or 025
        return float(f"0.{numbers[-1]}")
    number = float(numbers[-1])
    return number if number < 1 else number / 100


def _is_level(name: str) -> bool:
    """Return whether the number in a name may be the level of a quantile."""
    match = _LEVEL.fullmatch(name)
    if match is None:
        return False
    is_said = bool(words_of(f"{match[1]} {match[3]}") & _QUANTILE_WORDS)
    return is_said or match[3] == "%" or (not match[1] and 0 < float(match[2]) < 1)


def _is_member(name: str) -> bool:
    """Return whether a name with a number says that a prediction is counted."""
    text = re.sub(r"\d+", " ", name)
    role = read_name(text).role
    return role == "prediction" or (not role and bool(words_of(text) & _MEMBER_WORDS))
