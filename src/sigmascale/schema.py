"""Which column of a table is what: named by the user, guessed, or remembered.

Decided here for Python, the command line and the app alike. A name is read as words:
those of a part (true, pred, std, ...) and those of a quantity, its stem. What belongs
together has the same stem: energy_ref, energy_pred, energy_std. A guess is made only
where one set of columns is plainly better than all others; else the error lists the
best sets.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import combinations, product
from typing import Any

import narwhals as nw
import numpy as np

from ._support.checks import (
    as_array,
    as_frame,
    check_column,
    check_fraction,
    refuse_values,
)
from ._support.labels import Categories
from ._support.notices import warn
from ._support.text import listed, quoted, shorten
from .exceptions import (
    ColumnError,
    DamagedFileError,
    IndexColumnWarning,
    InvalidInputError,
)
from .forms import of_members, of_quantiles
from .predictions import Predictions

# Words of each part, in small letters; of two in a name, the upper part wins.
WORDS = {
    "variance": "var variance variances sigma2 std2 s2",
    "uncertainty": "u ue uq unc uncert uncertainty uncertainties sigma std stdev "
    "stddev sd stderr se sem spread",
    "error": "err error errors residual residuals resid",
    "prediction": "pred preds prediction predictions predicted hat model calc ml "
    "calculated fit fitted sim simulated simulation forecast fcst fc estimate "
    "estimated mean mu mace gp gpr nn rf krr svr xgb gnn mlp",
    "reference": "true truth ref reference target actual obs observed observation "
    "exp expt experiment experimental dft measured measurement meas gt",
}
_PART_OF = {word: part for part, words in WORDS.items() for word in words.split()}
# What names of one letter tell; R and V only together, E only without predictions.
_LETTERS = {"y": "reference", "r": "reference", "v": "prediction", "e": "error"}
# Words that neither tell a part nor belong to a quantity.
_FILLERS = {"y", "ens", "ensemble", "posterior", "predictive", "total", "value"}
_FILLERS |= {"ground"}
_UNIT = re.compile(r"\s*[(\[{][^()\[\]{}]*[)\]}]")  # as in "u (eV)"
_DEVIATION = re.compile(r"(standard|std)[\W_]*(deviations?|dev|errors?|err)(?![a-z])")
_JOINED = re.compile(r"([a-z]{1,3})(hat|pred|true|std|var|mean|obs|sim)")  # as yhat
_WEAK = 0.1  # what a letter, or a variance, counts less in the score of a set
MOST_SETS = 8  # of columns that fit alike, in an error
RECALIBRATED = "_recalibrated"  # what `apply` adds to the name of the uncertainty
PYTHON = {
    "reference": "y_true",
    "prediction": "y_pred",
    "uncertainty": "y_std",
    "weight": "weights",
}
_OPTIONS = {"features": "feature", "labels": "label"}
_UNCERTAIN = ("uncertainty", "variance", "members", "quantile_columns", "interval")
_PAIR: tuple[str, ...] = ("reference", "prediction", "uncertainty")


@dataclass(frozen=True)
class Choice:
    """What a user says of the columns; None, or nothing, is what is not said.

    Members, quantiles and intervals take the place of an uncertainty. Messages speak of
    `options` on the command line, and of arguments in Python.
    """

    error: str | None = None
    reference: str | None = None
    prediction: str | None = None
    uncertainty: str | None = None
    variance: str | None = None
    members: tuple[str, ...] = ()
    quantile_columns: tuple[str, ...] = ()
    interval: tuple[str, ...] = ()
    interval_coverage: float | None = None
    min_std: float | None = None
    features: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    all_features: bool = False
    groups: str | None = None
    weight: str | None = None
    time: str | None = None
    options: bool = False

    def called(self, part: str, value: str = "") -> str:
        """Return what a part is called where it is named, with what it is set to.

        >>> Choice().called("reference", "E"), Choice(options=True).called("error")
        ('y_true="E"', '--error')
        """
        value = shorten(value)
        if self.options:
            name = _OPTIONS.get(part, part).replace("_", "-")
            return f"--{name} {shlex.quote(value)}" if value else f"--{name}"
        part = PYTHON.get(part, part)
        return f'{part}="{value}"' if value else f"`{part}`"


@dataclass(frozen=True)
class Schema:
    """The columns of a table that are used, by the part that they play.

    Attributes
    ----------
    uncertainty : str
        The column of uncertainties, or of variances; or what is made of others.
    is_variance : bool
        Whether these are variances.
    numbers, labels : tuple of str
        The features: columns of numbers, and columns of labels.
    error : tuple of str
        The column of errors, or those of reference and prediction; none if errors are
        not known.
    prediction : str or None
        The column of predictions, if there is one.
    groups, weight, time : str or None
        The columns of groups, weights and times.
    made_of, levels : tuple of str, tuple of float
        Members of an ensemble, or quantiles and their levels, that prediction and
        uncertainty are made of.
    min_std : float or None
        What uncertainties below it are lifted to.
    left_out : tuple of str
        Columns of numbers that are no features by their names, or only count rows.
    guessed : tuple of str
        Columns that nobody has named.
    """

    uncertainty: str
    is_variance: bool = False
    numbers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    prediction: str | None = None
    groups: str | None = None
    weight: str | None = None
    time: str | None = None
    made_of: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    min_std: float | None = None
    left_out: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """All features, as they follow the uncertainty."""
        return (*self.numbers, *self.labels)

    @property
    def made(self) -> tuple[str, str]:
        """What a prediction and an uncertainty that are made of others are called."""
        kind = "quantiles" if self.levels else "members"
        return f"{kind}_{'middle' if self.levels else 'mean'}", f"{kind}_std"

    def values(self, table: Any) -> tuple[Any, Any]:
        """Return the prediction and the uncertainty of rows of `made_of`."""
        return of_quantiles(self.levels, table) if self.levels else of_members(table)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that a table must have, each once."""
        made = self.made if self.made_of else ()
        used = [*self.made_of, self.uncertainty, *self.features, *self.error]
        used += filter(None, (self.prediction, self.groups, self.weight, self.time))
        return tuple(x for x in dict.fromkeys(used) if x not in made)

    def read(self, frame: Any) -> Predictions:
        """Return the predictions of a data frame in memory."""
        table = _table(frame)

        def column(name: str | None) -> Any:
            return None if name is None else table[name].to_native()

        if self.made_of:
            parts = [check_column(column(name), name) for name in self.made_of]
            middle, u = self.values(np.column_stack(parts))
        else:
            u = column(self.uncertainty)
        if self.is_variance:
            u = check_column(u, self.uncertainty)
            must, remedy = "at least 0, as variances are", "Drop or repair these rows."
            refuse_values(u < 0, u, self.uncertainty, must, remedy, "negative")
            u = np.sqrt(u)
        is_made = self.made_of and self.prediction == self.made[0]
        labels = {x: Categories.of(as_array(column(x), x)) for x in self.labels}
        return Predictions(
            middle if is_made else column(self.prediction),
            u,
            y_true=column(self.error[0]) if len(self.error) == 2 else None,
            error=column(self.error[0]) if len(self.error) == 1 else None,
            features={x: column(x) for x in self.numbers} | labels,
            groups=column(self.groups),
            weights=column(self.weight),
            time=column(self.time),
            min_std=self.min_std,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what a file keeps, as JSON knows it."""
        kept = {each.name: getattr(self, each.name) for each in fields(self)[:-2]}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in kept.items()}

    @classmethod
    def from_dict(cls, found: Any) -> Schema:
        """Return the schema that :meth:`to_dict` wrote; refuse anything else."""
        names = {each.name for each in fields(cls)[:-2]}
        lists = ("levels", "numbers", "labels", "error", "made_of")
        right = isinstance(found, dict) and found.keys() == names
        if right and (right := all(isinstance(found[x], list | tuple) for x in lists)):
            texts = [name for x in lists[1:] for name in found[x]]
            texts += [
                found[x] for x in names.difference(lists, {"is_variance", "min_std"})
            ]
            right = all(isinstance(x, str | None) for x in texts)
            right &= isinstance(found["is_variance"], bool)
        if not right:
            msg = "the names of columns in the recalibrator's file are damaged."
            raise DamagedFileError(msg, "schema")
        return cls(**found | {x: tuple(found[x]) for x in lists})

    def __str__(self) -> str:
        """Return what is taken from a table, in words.

        >>> str(Schema("s2", True, ("mass",), error=("R", "V")))
        'error R - V; uncertainty sqrt(s2); features: mass'
        """
        u = shorten(self.uncertainty)
        u = f"sqrt({u})" if self.is_variance else u
        if self.made_of:
            kind = "quantiles" if self.levels else "members"
            u += f" (of {len(self.made_of)} {kind}: {listed(self.made_of)})"
        words = [f"error {' - '.join(map(shorten, self.error))}"] if self.error else []
        words.append(f"uncertainty {u}")
        named = {"groups": self.groups, "weight": self.weight, "time": self.time}
        words += [f"{part} {shorten(name)}" for part, name in named.items() if name]
        features = ", ".join(map(shorten, self.features)) or "none"
        return f"{'; '.join(words)}; features: {features}"


# -- of a table that nobody has seen before --------------------------------------------


def find(
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    counting: Collection[str] = (),
    *,
    errors: bool = True,
) -> Schema:
    """Return which columns of a table are what.

    Parameters
    ----------
    choice : Choice
        What is said of the columns.
    names : sequence of str
        All columns.
    numeric, counting : collection of str
        Those that hold numbers, and those that only count rows.
    errors : bool, default True
        Whether errors must be known.

    Returns
    -------
    Schema
    """
    for part in ("features", "labels", "exclude"):
        for name in getattr(choice, part):
            known(name, names, choice.called(part))
    found = _guessed(_said(choice, names), choice, names, numeric, errors=errors)
    return _with_features(found, choice, names, numeric, counting)


def _said(choice: Choice, names: Sequence[str]) -> Schema:
    """Return a schema with what is named; its uncertainty may be empty."""
    one = ("error", "reference", "prediction", "uncertainty", "variance")
    for part in (*one, "groups", "weight", "time"):
        known(getattr(choice, part), names, choice.called(part))
    for both in (*combinations(_UNCERTAIN, 2), one[:2], one[:3:2]):
        if all(getattr(choice, part) for part in both):
            msg = f"Pass {' or '.join(map(choice.called, both))}, not both."
            raise ColumnError(msg, both[0])
    made_of, levels = _made_of(choice, names)
    same = ("prediction", "groups", "weight", "time", "min_std")
    found = Schema(
        choice.uncertainty or choice.variance or "",
        choice.variance is not None,
        error=(choice.error,) if choice.error else (),
        made_of=made_of,
        levels=levels,
        **{part: getattr(choice, part) for part in same},
    )
    if not made_of:
        return found
    middle, u = found.made
    return replace(found, uncertainty=u, prediction=choice.prediction or middle)


def _made_of(
    choice: Choice, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return members, or quantiles and their levels; an interval is two of these."""
    part = next((x for x in _UNCERTAIN[2:] if getattr(choice, x)), "interval")
    columns, levels = list(choice.interval), list[float]()
    for item in choice.members:
        like = [x for x in names if fnmatchcase(x, item.replace("[", "[[]"))]
        columns += [item] if item in names or not like else like
    if choice.interval or choice.interval_coverage is not None:
        share = check_fraction(choice.interval_coverage, "interval_coverage")
        levels = [(1 - share) / 2, (1 + share) / 2]
    for item in choice.quantile_columns:
        name, _, level = item.rpartition("=")
        columns.append(name)
        try:
            levels.append(float(level))
        except ValueError:
            msg = f"{choice.called(part)} must be COLUMN=LEVEL; found {quoted(item)}."
            raise ColumnError(msg, part) from None
    for name in columns:
        known(name, names, choice.called(part))
    if len(columns) == 1 or (levels and len(columns) != len(levels)):
        msg = f"{choice.called(part)} must name two columns; found {len(columns)}."
        raise ColumnError(msg, part, tuple(columns))
    order = np.argsort(levels) if levels else range(len(columns))
    if levels:
        levels = [levels[i] for i in order]
        of_quantiles(levels, [levels])  # refuses levels that tell no uncertainty
    return tuple(dict.fromkeys(columns[i] for i in order)), tuple(levels)


def _with_features(
    found: Schema,
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    counting: Collection[str],
) -> Schema:
    """Return a schema with the features that are named, or with all there are."""
    if choice.exclude and not choice.all_features:
        both = map(choice.called, ("exclude", "all_features"))
        msg = "{} takes columns out of {}, and needs it.".format(*both)
        raise ColumnError(msg, "exclude")
    asked = (*choice.features, *choice.labels)
    other = {found.uncertainty, *found.error, *found.made_of, found.weight}
    if clash := other.difference({found.prediction}).intersection(asked):
        msg = f"{quoted(min(clash, key=str))} has another part; it is no feature."
        raise ColumnError(msg, "features", tuple(map(str, clash)))
    taken = other.union(asked, choice.exclude, {found.groups, found.time})
    free = [x for x in names if x in numeric and x not in taken and choice.all_features]
    unfit = {x for x in free if _is_no_feature(x, found) or x in counting}
    wanted = [*choice.features, *(x for x in free if x not in unfit)]
    numbers = [x for x in wanted if x in numeric and x not in choice.labels]
    labels = [x for x in (*wanted, *choice.labels) if x not in numbers]
    return replace(
        found,
        numbers=tuple(dict.fromkeys(numbers)),
        labels=tuple(dict.fromkeys(labels)),
        left_out=tuple(x for x in free if x in unfit),
    )


def _is_no_feature(name: str, found: Schema) -> bool:
    """Return whether a name says that the column is no feature.

    These are uncertainties, what `apply` has made and, beside predictions, true values
    and errors: new rows do not have them, and with the prediction they give the error
    away.
    """
    if RECALIBRATED in name or name.strip().lower() in ("", "unnamed: 0", "index"):
        return True
    used = (_read(each).stem for each in (*found.error, found.uncertainty))
    told = _read(name)
    return told.part not in ("", "prediction") and told.stem in (frozenset(), *used)


# -- guesses ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """A column, the part that its name tells, or "", and the words of its quantity."""

    name: str
    part: str = ""
    stem: frozenset[str] = frozenset()
    weak: bool = False  # so that another of the part is preferred
    named: bool = False  # by the user: it need not fit


def _plain_text(name: str) -> str:
    """Return a name in small letters and without a unit."""
    return _UNIT.sub("", name).strip().lower().replace("^2", "2").replace("²", "2")


def _words(name: str) -> frozenset[str]:
    """Return the words of a name.

    >>> sorted(_words("GP std. dev. (eV)")), sorted(_words("qobs"))
    (['gp', 'std'], ['obs', 'q'])
    """
    text = _DEVIATION.sub("std", _plain_text(name)).replace("y_test", "y_true")
    found: list[str] = []
    for word in re.split(r"[\W_]+", text):
        joined = _JOINED.fullmatch(word)
        found += joined.groups() if joined else [word]
    return frozenset(filter(None, found))


def _read(name: str) -> _Column:
    """Return what a name alone tells: the part, and the quantity.

    >>> _read("energy_ref").part, _read("pred_std").part, _read("MACE_energy").part
    ('reference', 'uncertainty', 'prediction')
    """
    if letter := _LETTERS.get(_plain_text(name)):
        return _Column(name, letter, weak=True)
    words = _words(name)
    told = {_PART_OF[x] for x in words if x in _PART_OF}
    part = next((x for x in WORDS if x in told), "")
    return _Column(name, part, words - set(_PART_OF) - _FILLERS, part == "variance")


def _columns(names: Iterable[str]) -> list[_Column]:
    """Return columns with the parts that their names tell beside each other."""
    found = [_read(name) for name in names]
    truths = {x.stem for x in found if x.part == "reference"}
    guesses = {x.stem for x in found if x.part == "prediction"}
    letters = {_plain_text(x.name) for x in found}
    lonely = set() if {"r", "v"} <= letters else {"r", "v"}
    lonely |= {"e"} if guesses else set()
    told = []
    for x in found:
        words, part = _words(x.name), x.part
        if words in guesses - truths:  # logS beside logS_pred is what it predicts
            part = "reference"
        elif words in truths - guesses:  # and beside logS_true it is the prediction
            part = "prediction"
        elif _plain_text(x.name) in lonely:
            part = ""
        told.append(x if part == x.part else _Column(x.name, part, words))
    return told


Found = dict[str, _Column]  # by part


def _likeness(x: _Column, others: Iterable[_Column]) -> float:
    """Return how much of its quantity a column shares with others."""
    stems = [(x.stem, other.stem) for other in others if other is not x]
    return sum(1.0 if a == b else len(a & b) / len(a | b) for a, b in stems)


def _score(found: Found) -> float:
    """Return how well columns go together; all of one quantity go best."""
    columns = found.values()
    return sum(_likeness(x, columns) / 2 - _WEAK * x.weak for x in columns)


def _is_plain(found: Found) -> bool:
    """Return whether columns are of the same quantity, which two of them tell.

    One is the prediction, or error: `y, mean_temp, std` is of a feature, perhaps. Those
    that the user has named may be of any.
    """
    columns = found.values()
    stems = [x.stem for x in columns if x.stem and not x.named]
    if not stems or len(found) == 1:
        return True
    main = found.get("prediction") or found["error"]
    shared = len(stems) > 1 and main.stem == stems[0]
    return len(set(stems)) == 1 and (shared or any(x.named for x in columns))


def _sets(way: Sequence[str], may: dict[str, list[_Column]]) -> list[Found]:
    """Return the sets of columns that go together best; none has two parts."""
    every = (dict(zip(way, x, strict=True)) for x in product(*(may[k] for k in way)))
    sets = [x for x in every if len({y.name for y in x.values()}) == len(way)]
    scores = [round(_score(x), 9) for x in sets]
    return [x for x, score in zip(sets, scores, strict=True) if score == max(scores)]


def _guessed(
    found: Schema,
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    *,
    errors: bool,
) -> Schema:
    """Return a schema with the parts that nobody has named, if they can be told."""
    named = {
        "error": choice.error,
        "reference": choice.reference,
        "prediction": found.prediction,
        "uncertainty": found.uncertainty,
    }
    no_part = {*choice.features, *choice.labels, *choice.exclude, *found.made_of}
    no_part |= {x or "" for x in (found.groups, found.weight, found.time)}
    no_part |= {x or "" for x in named.values()}
    free = _columns(x for x in names if x in numeric and x not in no_part)
    may = {part: [x for x in free if x.part == part] for part in named}
    may["uncertainty"] += [x for x in free if x.part == "variance"]
    for part, name in named.items():
        if name:
            stem = frozenset[str]() if name in found.made else _read(name).stem
            may[part] = [_Column(name, part, stem, named=True)]
    ways = [_PAIR, ("error", "uncertainty")]
    if not errors:
        ways += [("prediction", "uncertainty"), ("uncertainty",)]
    ways = [way for way in ways if all(x in way for x, name in named.items() if name)]
    for way in ways:
        plain = [x for x in _sets(way, may) if _is_plain(x)]
        if len(plain) == 1:
            break
    else:
        raise _unclear(ways, may, free, choice, names)
    best = plain[0]
    parts = {part: x.name for part, x in best.items()}
    error = tuple(parts[x] for x in way if x != "uncertainty")
    return replace(
        found,
        uncertainty=parts["uncertainty"],
        is_variance=found.is_variance or best["uncertainty"].part == "variance",
        error=() if way[0] in ("prediction", "uncertainty") else error,
        prediction=parts.get("prediction", found.prediction),
        guessed=tuple(x.name for x in best.values() if not x.named),
    )


def _unclear(
    ways: list[tuple[str, ...]],
    may: dict[str, list[_Column]],
    free: list[_Column],
    choice: Choice,
    names: Sequence[str],
) -> ColumnError:
    """Return the error that no column is plainly what is needed, with candidates."""
    way = next((x for x in ways if all(may[part] for part in x)), ways[0])
    order = ("uncertainty", "reference", "prediction", "error")
    lacking = [part for part in order if part in way and not may[part]]
    hints = dict(may)
    if "uncertainty" in lacking:
        hints["uncertainty"] = may["error"]  # which z_err may be, too
    told = [x for part in way for x in hints[part]]
    near = sorted(free, key=lambda x: _likeness(x, told), reverse=True)[:MOST_SETS]
    near = [x for x in free if x in near]  # in the order of the table
    sets = _sets(way, {part: hints[part] or near for part in way}) if told else []
    best = sets[0] if sets else {}
    differ = [x for x in way if len({each[x].name for each in sets}) > 1]
    odd = sorted(best, key=lambda x: _likeness(best[x], best.values()))
    part = (*lacking, *differ, *odd, "uncertainty")[0]
    rivals = tuple(dict.fromkeys(each[part].name for each in sets))
    could = f"; it could be {listed(map(quoted, rivals))}" if rivals else ""
    asked = [x for x in way if not (may[x] and may[x][0].named)]
    example = " ".join(
        choice.called(x, best[x].name if best else "COLUMN") for x in asked
    )
    instead = {"uncertainty": "variance", "reference": "error"}.get(part)
    hint = f" (or {choice.called(instead, 'COLUMN')})" if instead else ""
    msg = (
        f"No column is plainly the {part}{could}. Name it{hint}, for example: "
        f"{example}. The columns are: {listed(map(quoted, names), 12)}."
    )
    shown = [{x: each[x].name for x in asked} for each in sets[:MOST_SETS]]
    return ColumnError(msg, part, rivals, sets=shown)


def guess(
    names: Sequence[str], numeric: Collection[str], counting: Collection[str] = ()
) -> tuple[dict[str, str], list[ColumnError]]:
    """Return what each column seems to be, and what cannot be told.

    A column is "error", "reference", "prediction", "uncertainty", "variance" or
    "feature", or else "". Where several sets of columns fit, that is shown in which
    all of them agree.

    >>> guess(["E_true", "E_model", "sigma", "mass"], ["E_true", "E_model", "sigma"])[0]
    {'E_true': 'reference', 'E_model': 'prediction', 'sigma': 'uncertainty', 'mass': ''}
    """
    parts = dict.fromkeys(names, "")
    try:
        found = find(Choice(all_features=True), names, numeric, counting)
    except ColumnError as problem:
        first, *others = problem.fields.get("sets") or [{}]
        agreed = [x for x in first if all(first[x] == each[x] for each in others)]
        return parts | {first[part]: part for part in agreed}, [problem]
    parts |= dict.fromkeys(found.numbers, "feature")
    pair = ("error",) if len(found.error) == 1 else ("reference", "prediction")
    parts |= dict(zip(found.error, pair, strict=True))
    parts[found.uncertainty] = "variance" if found.is_variance else "uncertainty"
    return parts, []


# -- of a table for a recalibrator that knows its columns ------------------------------


def remembered(
    schema: Schema, choice: Choice, names: Sequence[str], *, errors: bool
) -> Schema:
    """Return the columns of a table for a recalibrator that was fitted on another.

    Features are those of the fit. Other columns may be named anew.
    """
    if choice.features or choice.labels or choice.all_features or choice.exclude:
        msg = (
            "Features are those that the recalibrator was fitted on: "
            f"{listed(schema.features) or 'none'}. Name none."
        )
        raise ColumnError(msg, "features")
    said = _said(choice, names)
    anew = ["groups", "weight", "time"]
    if said.uncertainty:
        anew += ["uncertainty", "is_variance", "made_of", "levels"]
    if said.min_std is not None:
        anew.append("min_std")
    found = replace(schema, **{x: getattr(said, x) for x in anew})
    known_before = schema.prediction if schema.prediction in names else None
    made = found.made[0] if found.made_of else known_before
    prediction = said.prediction or made
    error = said.error or schema.error
    if choice.reference or len(error) == 2:
        error = choice.reference or error[0], prediction or error[-1]
    found = replace(found, error=error if errors else (), prediction=prediction)
    for name in found.columns:
        known(name, names, "The recalibrator")
    return found


def known(name: str | None, names: Sequence[str], asked_by: str) -> str | None:
    """Return a column's name if there is such a column; else suggest the nearest."""
    if name is None or name in names:
        return name
    by_small = {each.lower(): each for each in reversed(names)}
    near = get_close_matches(name.lower(), by_small, n=1, cutoff=0.5)
    hint = f"Did you mean {quoted(by_small[near[0]])}? " if near else ""
    msg = (
        f"{asked_by} needs a column {quoted(name)}, and there is none. {hint}The "
        f"columns are: {listed(map(quoted, names), 12)}."
    )
    raise ColumnError(msg, "unknown", (name,), near=[by_small[x] for x in near])


# -- data frames in memory -------------------------------------------------------------


def of_frame(frame: Any, choice: Choice) -> Schema:
    """Return which columns of a data frame are what; there need not be errors.

    An index among the columns is told in a warning where all features are taken.
    """
    table = _table(frame)
    kinds = table.schema
    numeric = [name for name, kind in kinds.items() if kind.is_numeric()]
    counting = [x for x in numeric if kinds[x].is_integer() and counts(table[x])]
    found = find(choice, table.columns, numeric, counting, errors=False)
    if index := [x for x in found.left_out if x in counting]:
        warn(
            f"Column {quoted(index[0])} only counts rows: it is taken for an index, "
            "and is no feature. Name it among `features` if it is one.",
            IndexColumnWarning,
            stacklevel=3,
        )
    return found


def _table(frame: Any) -> nw.DataFrame[Any]:
    """Return a data frame of any library."""
    table = as_frame(frame, "frame")
    if table is None:
        msg = (
            "`frame` must be a data frame of pandas, Polars or PyArrow; found "
            f"{type(frame).__name__}."
        )
        raise InvalidInputError(msg)
    return table


def counts(column: Any) -> bool:
    """Return whether whole numbers are 0, 1, 2, ... or 1, 2, 3, ... and no more."""
    if len(column) < 3 or column.is_null().any():
        return False
    return column[0] in (0, 1) and bool((np.diff(column.to_numpy()) == 1).all())
