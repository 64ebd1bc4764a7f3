"""Which column of a table is what: named by the user, guessed, or remembered.

Decided here for Python, the command line and the app alike. A name is read as words:
those of a part (true, pred, std, ...) and those of a quantity, its stem. What belongs
together has the same stem: energy_ref, energy_pred, energy_std. A guess is made only
where one set of columns fits better than all others; else the error lists the sets.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import combinations, product
from types import NoneType
from typing import Any

import narwhals as nw
import numpy as np

from ._support.checks import (
    as_column,
    as_frame,
    check_column,
    check_fraction,
    refuse_values,
)
from ._support.forms import of_members, of_quantiles
from ._support.labels import Categories
from ._support.notices import warn
from ._support.text import listed, quoted
from .exceptions import (
    ColumnError,
    DamagedFileError,
    IndexColumnWarning,
    InvalidInputError,
)
from .predictions import Predictions

# Words of each part, in small letters; of two in a name, the upper part wins.
WORDS = {
    "variance": "var variance variances sigma2 std2 s2",
    "uncertainty": "u ue uq unc uncert uncertainty uncertainties sigma std stdev "
    "stddev sd stderr se sem",
    "error": "e err error errors residual residuals resid",
    "prediction": "v pred preds prediction predictions predicted hat model calc ml "
    "calculated fit fitted sim simulated forecast fcst fc estimate estimated mean mu",
    "reference": "r y true truth ref reference target actual obs observed observation "
    "exp expt experiment experimental dft measured measurement gt",
}
_PART_OF = {w: part for part, words in WORDS.items() for w in words.split()}
# Words that say which model it is of; beside a quantity they tell a prediction.
_MODELS = {"mace", "gp", "gpr", "nn", "rf", "krr", "svr", "xgb", "gnn", "mlp"}
_BESIDE = _MODELS | {
    "y",
    "ens",
    "ensemble",
    "posterior",
    "predictive",
    "total",
    "value",
}
_WEAK = {"mean", "mu", "fit", "model"}  # which features are called, too
# Words by which a name tells no part: sizes, other units, numbers of things.
_NO_PART = {"abs", "absolute", "sq", "squared", "mae", "rmse", "rel", "relative"}
_NO_PART |= {"id", "idx", "index", "no", "number", "date", "time", "name"}
_UNIT = re.compile(r"\s*[(\[{][^()\[\]{}]*[)\]}]")  # as in "u (eV)"
_JOINED = re.compile(r"\by_?(hat|pred|true|std|var|mean|obs)\b")
_DEVIATION = re.compile(r"(standard|std)[\W_]*(deviations?|dev|errors?|err)\b")
_PYTHON = {
    "reference": "y_true",
    "prediction": "y_pred",
    "uncertainty": "y_std",
    "weight": "weights",
    "features": "features",
}
_OPTIONS = {"features": "feature", "labels": "label", "all_features": "all-features"}
RECALIBRATED = "_recalibrated"  # what `apply` adds to the name of the uncertainty
MOST_SETS = 8  # of columns that fit alike, in an error
_FORMS = ("members", "quantile_columns", "interval")
_UNCERTAIN = ("uncertainty", "variance", *_FORMS)


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
        if self.options:
            name = _OPTIONS.get(part, part).replace("_", "-")
            return f"--{name} {shlex.quote(value)}" if value else f"--{name}"
        part = _PYTHON.get(part, part)
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
            made = dict(
                zip(self.made, self.values(np.column_stack(parts)), strict=True)
            )
            u = made[self.uncertainty]
        else:
            made, u = {}, column(self.uncertainty)
        if self.is_variance:
            u = check_column(u, self.uncertainty)
            must, remedy = "at least 0, as variances are", "Drop or repair these rows."
            refuse_values(u < 0, u, self.uncertainty, must, remedy, "negative")
            u = np.sqrt(u)
        labels = {x: _labels(column(x), x) for x in self.labels}
        y_pred = made.get(self.prediction or "")
        return Predictions(
            column(self.prediction) if y_pred is None else y_pred,
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
        defaults = {each.name: each.default for each in fields(cls)[:-2]}
        parts = dict(found) if isinstance(found, dict) else {}
        right = set(parts) == set(defaults)
        for name, value in parts.items():
            basic = float if name in ("levels", "min_std") else str
            if isinstance(value, list):
                right &= all(isinstance(each, basic) for each in value)
                parts[name] = value = tuple(value)
            kind = type(defaults.get(name, ""))
            kinds = {bool: bool, tuple: tuple, NoneType: basic | None}
            right &= isinstance(value, kinds.get(kind, str))
        if not right:
            msg = "the names of columns in the recalibrator's file are damaged."
            raise DamagedFileError(msg, "schema")
        return cls(**parts)

    def __str__(self) -> str:
        """Return what is taken from a table, in words.

        >>> str(Schema("s2", True, ("mass",), error=("R", "V")))
        'error R - V; uncertainty sqrt(s2); features: mass'
        """
        u = f"sqrt({self.uncertainty})" if self.is_variance else self.uncertainty
        if self.levels:
            both = zip(self.made_of, self.levels, strict=True)
            pairs = ", ".join(f"{name} = {level:g}" for name, level in both)
            u += f" (of quantiles {pairs}, of which the asymmetry is not kept)"
        elif self.made_of:
            n, first, last = len(self.made_of), self.made_of[0], self.made_of[-1]
            u += f" (of {n} members: {first} to {last})"
        parts = [f"error {' - '.join(self.error)}"] if self.error else []
        parts.append(f"uncertainty {u}")
        named = {"groups": self.groups, "weight": self.weight, "time": self.time}
        parts += [f"{part} {name}" for part, name in named.items() if name is not None]
        return f"{'; '.join(parts)}; features: {', '.join(self.features) or 'none'}"


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
    for part in ("groups", "weight", "time"):
        known(getattr(choice, part), names, choice.called(part))
    for part in ("features", "labels", "exclude"):
        for name in getattr(choice, part):
            known(name, names, choice.called(part))
    found = _with_error(_with_uncertainty(choice, names), choice, names)
    found = _guessed(found, choice, names, numeric, errors=errors)
    said = {getattr(choice, part) for part in ("error", "reference", "prediction")}
    said |= {choice.uncertainty, choice.variance}
    used = dict.fromkeys((*found.error, found.prediction, found.uncertainty))
    guessed = tuple(x for x in used if x and x in names and x not in said)
    found = replace(found, guessed=guessed, min_std=choice.min_std)
    named = {x: getattr(choice, x) for x in ("groups", "weight", "time")}
    return _with_features(replace(found, **named), choice, names, numeric, counting)


def _with_uncertainty(choice: Choice, names: Sequence[str]) -> Schema:
    """Return a schema with the uncertainty that is named, if one is."""
    given = [part for part in _UNCERTAIN if getattr(choice, part)]
    if len(given) > 1:
        both = " or ".join(map(choice.called, given))
        msg = f"Pass {both}, not both: each says what the uncertainty is."
        raise ColumnError(msg, "uncertainty")
    if bool(choice.interval) is not (choice.interval_coverage is not None):
        both = " and ".join(map(choice.called, ("interval", "interval_coverage")))
        msg = f"{both} go together: limits, and the share that they claim to hold."
        raise ColumnError(msg, "interval")
    if not given:
        return Schema("")
    part = given[0]
    if part not in _FORMS:
        name = known(getattr(choice, part), names, choice.called(part))
        return Schema(name or "", part == "variance")
    columns, levels = _form(choice, part, names)
    made = Schema("", made_of=columns, levels=levels)
    return replace(made, uncertainty=made.made[1])


def _with_error(found: Schema, choice: Choice, names: Sequence[str]) -> Schema:
    """Return a schema with errors that are named, and a prediction that is made."""
    pair = choice.reference or choice.prediction
    if choice.error and pair:
        called = map(choice.called, ("error", "reference", "prediction"))
        msg = "Pass {}, or {} and {}, not both.".format(*called)
        raise ColumnError(msg, "error")
    for part in ("error", "reference", "prediction"):
        known(getattr(choice, part), names, choice.called(part))
    prediction = choice.prediction or (found.made[0] if found.made_of else None)
    error: tuple[str, ...] = (choice.error,) if choice.error else ()
    if choice.reference and prediction:
        error = choice.reference, prediction
    return replace(found, error=error, prediction=prediction)


def _with_features(
    found: Schema,
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    counting: Collection[str],
) -> Schema:
    """Return a schema with the features that are named, or with all there are."""
    asked = (*choice.features, *choice.labels)
    other = {found.uncertainty, *found.made_of, *found.error, found.weight}
    if len({found.uncertainty, *found.error}) <= len(found.error):
        parts = listed(map(quoted, (found.uncertainty, *found.error)))
        msg = f"A column has two parts: {parts}. Name another for one of them."
        raise ColumnError(msg, "uncertainty")
    if clash := (other - {found.prediction}).intersection(asked):
        msg = f"{quoted(min(clash, key=str))} has another part; it is no feature."
        raise ColumnError(msg, "features", tuple(map(str, clash)))
    free: list[str] = []
    left_out: tuple[str, ...] = ()
    if choice.all_features:
        taken = other.union(asked, choice.exclude, {found.groups, found.time})
        free = [x for x in names if x in numeric and x not in taken]
        unfit = _no_features(names, found).union(counting)
        left_out = tuple(x for x in free if x in unfit)
        free = [x for x in free if x not in unfit]
    elif choice.exclude:
        both = map(choice.called, ("exclude", "all_features"))
        msg = "{} is for {}: it takes columns out of these.".format(*both)
        raise ColumnError(msg, "exclude")
    wanted = dict.fromkeys((*choice.features, *free, *choice.labels))
    numbers = [x for x in wanted if x in numeric and x not in choice.labels]
    labels = tuple(x for x in wanted if x not in numbers)
    return replace(found, numbers=tuple(numbers), labels=labels, left_out=left_out)


def _no_features(names: Sequence[str], found: Schema) -> set[str]:
    """Return columns whose names say that they are no features.

    These are uncertainties, what `apply` has made and, beside predictions, true values
    and errors: new rows do not have them, and with the prediction they give the error
    away.
    """
    unfit = {x for x in names if RECALIBRATED in x}
    unfit |= {x for x in names if x.strip().lower() in ("", "unnamed: 0", "index")}
    unfit.add(found.uncertainty.removesuffix(RECALIBRATED))
    used = (*found.error, found.uncertainty)
    stems = {(), *(_read(name)[1] for name in used)}
    for name in names:
        part, stem = _read(name)
        if stem in stems and part in ("uncertainty", "variance", "error", "reference"):
            unfit.add(name)
    return unfit


def _form(
    choice: Choice, part: str, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the columns that are listed, or match, and the levels of quantiles."""
    pairs: list[tuple[str, str]] = []
    for item in getattr(choice, part):
        name, _, level = item.rpartition("=")
        if item in names:
            pairs.append((item, (re.findall(r"\d*[.]?\d+", item) or [""])[-1]))
        elif part == "quantile_columns" and name in names:
            pairs.append((name, level))
        elif "*" in item:
            start, end = item.split("*", 1)
            hits = [x for x in names if fnmatchcase(x, item.replace("[", "[[]"))]
            pairs += [(x, x[len(start) : len(x) - len(end)]) for x in hits]
        else:
            known(item, names, choice.called(part))
    columns = list(dict.fromkeys(name for name, _ in pairs))
    if len(columns) < 2 or (part == "interval" and len(columns) > 2):
        more = "" if part == "interval" else " or more"
        msg = (
            f"{choice.called(part)} must name two columns{more}; found {len(columns)}."
        )
        raise ColumnError(msg, part, tuple(columns))
    if part == "members":
        return tuple(columns), ()
    if part == "interval":
        share = check_fraction(choice.interval_coverage, "interval_coverage")
        return tuple(columns), ((1 - share) / 2, (1 + share) / 2)
    levels = {name: _level(text) for name, text in pairs}
    if any(not 0 < level < 1 for level in levels.values()):
        wrong = next(name for name, level in levels.items() if not 0 < level < 1)
        msg = (
            f"{choice.called(part)}: {quoted(wrong)} has no level between 0 and 1. Say "
            f"it: {quoted(f'{wrong}=0.05')}."
        )
        raise ColumnError(msg, part, (wrong,))
    ordered = tuple(sorted(levels, key=lambda name: levels[name]))
    return ordered, tuple(levels[name] for name in ordered)


def _level(text: str) -> float:
    """Return the level that text tells: 0.05, 05 and 5% are the same.

    >>> _level("05"), _level("0.05"), _level("97.5%")
    (0.05, 0.05, 0.975)
    """
    try:
        value = float(text.strip(" _-%qp"))
    except ValueError:
        return 0.0
    return value if "." in text and value < 1 else value / 100


# -- guesses ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Candidate:
    """A column that may play a part; one that is named fits with all others."""

    name: str
    stem: tuple[str, ...]
    named: bool = False

    def fits(self, other: _Candidate) -> bool:
        """Return whether both may be of one quantity."""
        told = self.stem and other.stem and not (self.named or other.named)
        return not told or self.stem == other.stem


def _words(name: str) -> list[str]:
    """Return the words of a name, in small letters and without a unit.

    >>> _words("GP std. dev. (eV)"), _words("yhat"), _words("logS_pred")
    (['gp', 'std'], ['y', 'hat'], ['logs', 'pred'])
    """
    text = _UNIT.sub("", name.strip()).lower().replace("^2", "2").replace("²", "2")
    text = _JOINED.sub(r"y_\1", _DEVIATION.sub("std", text.replace("y_test", "y_true")))
    return [word for word in re.split(r"[\W_]+", text) if word]


def _read(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the part that a name tells, or "", and its stem.

    >>> _read("energy_ref"), _read("pred_std"), _read("MACE_energy"), _read("mass")
    (('reference', ('energy',)), ('uncertainty', ()), ('prediction', ('energy',)),
     ('', ('mass',)))
    """
    words = _words(name)
    if len(words) == 1:
        plain = len(words[0]) > 1 or _UNIT.sub("", name).strip().lower() == words[0]
        part = _PART_OF.get(words[0], "") if plain else ""
        return part, () if part else tuple(words)
    # a letter beside other words is a quantity, unless it is that of u_E
    telling = [w for w in words if w in _PART_OF and (len(w) > 1 or w == "u")]
    stem = tuple(w for w in words if w not in telling and w not in _BESIDE)
    tells = telling or _MODELS.intersection(words)
    if not tells or _NO_PART.intersection(words) or stem in (("log",), ("ln",)):
        return "", tuple(words)
    told = {_PART_OF[w] for w in telling} or {"prediction"}
    return next(part for part in WORDS if part in told), stem


def _candidates(names: Iterable[str]) -> dict[str, list[_Candidate]]:
    """Return the columns that may play each part, by their names alone."""
    read = {name: _read(name) for name in names}
    found: dict[str, list[_Candidate]] = {part: [] for part in WORDS}
    for name, (part, stem) in read.items():
        if part:
            found[part].append(_Candidate(name, stem))
    # what a prediction is of, itself, is the truth: logS beside logS_pred, E beside
    # E_pred; so it is no error, unless only its uncertainty is there (E and u_E)
    told = {x.stem for x in found["reference"]} | {()}
    quantities = {x.stem for x in found["prediction"]} - told
    for name in read:
        words = tuple(_words(name))
        if words in quantities:
            for several in found.values():
                several[:] = [x for x in several if x.name != name]
            found["reference"].append(_Candidate(name, words))
    # mean_temp is a feature, unless there is a temp_std or temp_true
    stems = {x.stem for x in (*found["reference"], *found["uncertainty"])}
    found["prediction"] = [
        x
        for x in found["prediction"]
        if x.stem in stems or not x.stem or not _WEAK.intersection(_words(x.name))
    ]
    # R and V stand together, E and y where no word tells the same
    letters = {x.name.lower(): x for part in found.values() for x in part}
    if not {"r", "v"} <= set(letters):
        letters = {k: x for k, x in letters.items() if k not in "rv"}
    for part, several in found.items():
        if part in ("error", "reference", "prediction"):
            long = [x for x in several if len("".join(_words(x.name))) > 1]
            several[:] = long or [x for x in several if x.name.lower() in letters]
    if found["prediction"]:
        found["error"] = [x for x in found["error"] if _words(x.name) != ["e"]]
    stems = {x.stem for x in found["uncertainty"]}
    found["variance"] = [x for x in found["variance"] if x.stem not in stems]
    return found


def _guessed(
    found: Schema,
    choice: Choice,
    names: Sequence[str],
    numeric: Collection[str],
    *,
    errors: bool,
) -> Schema:
    """Return a schema with the parts that nobody has named, if they can be told."""
    no_part = {*choice.features, *choice.labels, *choice.exclude, *found.made_of}
    no_part |= {choice.groups or "", choice.weight or "", choice.time or ""}
    may = _candidates(x for x in names if x in numeric and x not in no_part)
    variances = {x.name for x in may["variance"]}
    may["uncertainty"] += may.pop("variance")
    named = {
        "error": choice.error,
        "reference": choice.reference,
        "prediction": found.prediction,
        "uncertainty": found.uncertainty,
    }
    for part, name in named.items():
        may[part] = [x for x in may[part] if x.name not in named.values()]
        if name:
            stem = () if name in found.made else _read(name)[1]
            may[part] = [_Candidate(name, stem, named=True)]
    ways = [("reference", "prediction", "uncertainty"), ("error", "uncertainty")]
    if choice.error:
        ways = ways[1:]
    elif choice.reference or (choice.prediction and errors):
        ways = ways[:1]
    if not errors:
        ways += [("prediction", "uncertainty"), ("uncertainty",)]
    for way in ways:
        sets = [
            dict(zip(way, each, strict=True))
            for each in product(*(may[part] for part in way))
            if all(a.fits(b) for a, b in combinations(each, 2))
        ]
        if sets:
            best = _best(sets, choice)
            break
    else:
        raise _unclear(may, choice, names)
    parts = {part: x.name for part, x in best.items()}
    error = [parts[x] for x in way if x in ("error", "reference", "prediction")]
    known = "error" in parts or "reference" in parts
    return replace(
        found,
        uncertainty=parts["uncertainty"],
        is_variance=found.is_variance or parts["uncertainty"] in variances,
        error=tuple(error) if known else (),
        prediction=parts.get("prediction", found.prediction),
    )


def _best(sets: list[dict[str, _Candidate]], choice: Choice) -> dict[str, _Candidate]:
    """Return the set whose columns have most stems in common, if there is one."""

    def alike(found: dict[str, _Candidate]) -> int:
        return sum(a.stem == b.stem for a, b in combinations(found.values(), 2))

    most = max(map(alike, sets))
    best = [each for each in sets if alike(each) == most]
    if len(best) == 1:
        return best[0]
    part = next(x for x in best[0] if len({each[x].name for each in best}) > 1)
    rivals = tuple(dict.fromkeys(each[part].name for each in best))
    guesses = [
        {k: x.name for k, x in each.items() if not x.named} for each in best[:MOST_SETS]
    ]
    example = " ".join(choice.called(k, v) for k, v in guesses[0].items())
    msg = (
        f"Several columns could be the {part}: {listed(map(quoted, rivals))}. Say "
        f"which, for example: {example}."
    )
    raise ColumnError(msg, part, rivals, sets=guesses)


def _unclear(
    may: dict[str, list[_Candidate]], choice: Choice, names: Sequence[str]
) -> ColumnError:
    """Return the error that no column is plainly what is needed."""
    parts = ("uncertainty", "reference", "prediction")
    lacking = next((part for part in parts if not may[part]), "prediction")
    if lacking == "reference" and not may["prediction"]:
        lacking = "error"
    called = [choice.called(part, "COLUMN") for part in ("error", *parts, "variance")]
    how = "{} or {} and {}".format(called[0], *called[2:4])
    if lacking == "uncertainty":
        how = f"{called[1]} or {called[4]}"
    msg = (
        f"No column is plainly the {lacking}. Name it: {how}. The "
        f"columns are: {listed(map(quoted, names), 12)}."
    )
    rivals = tuple(x.name for x in may.get(lacking, ()))
    return ColumnError(msg, lacking, rivals, names=list(names))


def guess(
    names: Sequence[str], numeric: Collection[str], counting: Collection[str] = ()
) -> tuple[dict[str, str], list[ColumnError]]:
    """Return what each column seems to be, and what cannot be told.

    A column is "error", "reference", "prediction", "uncertainty", "variance" or
    "feature", or else "". Where several sets of columns fit, the first is shown.

    >>> guess(["E_true", "E_model", "sigma", "mass"], ["E_true", "E_model", "sigma"])[0]
    {'E_true': 'reference', 'E_model': 'prediction', 'sigma': 'uncertainty', 'mass': ''}
    """
    parts = dict.fromkeys(names, "")
    try:
        found = find(Choice(all_features=True), names, numeric, counting)
    except ColumnError as problem:
        for part, name in (problem.fields.get("sets") or [{}])[0].items():
            parts[name] = part
        return parts, [problem]
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
    found = replace(
        schema,
        groups=choice.groups,
        weight=choice.weight,
        time=choice.time,
        min_std=schema.min_std if choice.min_std is None else choice.min_std,
    )
    if any(getattr(choice, part) for part in _UNCERTAIN):
        u = _with_uncertainty(choice, names)
        of_u = ("uncertainty", "is_variance", "made_of", "levels")
        found = replace(found, **{x: getattr(u, x) for x in of_u})
    was = schema.prediction if schema.prediction in names else None
    prediction = choice.prediction or (found.made[0] if found.made_of else was)
    error: tuple[str, ...] = ()
    if errors and choice.error:
        error = (choice.error,)
    elif errors and (choice.reference or len(schema.error) == 2):
        error = choice.reference or schema.error[0], prediction or schema.error[-1]
    elif errors:
        error = schema.error
    found = replace(found, error=error, prediction=prediction)
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
    counting = [x for x in numeric if kinds[x].is_integer() and _counts(table[x])]
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


def _labels(values: Any, name: str) -> Categories:
    """Return the labels of a column; days are labels, times of day are not."""
    column = as_column(values, name)
    if column.dtype.kind == "M":
        days = column.astype("M8[D]")
        if (column[~np.isnat(column)] != days[~np.isnat(column)]).any():
            msg = f"`{name}` must hold labels; found times of day. Take their days."
            raise InvalidInputError(msg, "dates", name=name)
    return Categories.of(column)


def _counts(column: Any) -> bool:
    """Return whether a column holds 0, 1, 2, ... or 1, 2, 3, ... and no more."""
    if len(column) < 3 or column.is_null().any():
        return False
    numbers = column.to_numpy()
    return numbers[0] in (0, 1) and bool((numbers[1:] - numbers[:-1] == 1).all())
