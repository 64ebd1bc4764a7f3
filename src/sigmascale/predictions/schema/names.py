"""What the names of columns tell: the role of each, and what belongs together.

A name is read as words: those of a role (true, pred, std, ...) and those of a quantity,
its stem. What belongs together has the same stem: energy_ref, energy_pred, energy_std.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

# Words of each role, in small letters; of two in a name, the upper role wins.
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
_ROLE_OF = {word: role for role, words in WORDS.items() for word in words.split()}
# What names of one letter tell; R and V only together, E only without predictions.
_LETTERS = {"y": "reference", "r": "reference", "v": "prediction", "e": "error"}
# Words that neither tell a role nor belong to a quantity.
_FILLERS = {"y", "ens", "ensemble", "posterior", "predictive", "total", "value"}
_FILLERS |= {"ground"}
_UNIT = re.compile(r"\s*[(\[{](?!y\b)[^()\[\]{}]*[)\]}]")  # as in "u (eV)", not E[y]
_DEVIATION = re.compile(
    r"(standard|std)[\W_]*(deviations?|dev|errors?|err)(?![a-z])|err(or)?[\W_]*bars?"
)
_SQUARED = re.compile(r"(sigma|stdev|std|sd)[\W_]*(squared|square|sq)(?![a-z])")
_JOINED = re.compile(r"([a-z]{1,3})(hat|pred|true|std|var|mean|obs|sim)")  # as yhat
# What names of uncertainties have in them, if no word of theirs.
_SOUNDS = re.compile(
    r"std|sigma|(sd|err|errors?)(?![a-z])"
    r"|(?<![a-z])(sig|unc\w*|scale|spread|dev|tol|noise|se)(?![a-z])"
)
_WEAK = 0.1  # what a letter, or a variance, counts less in the score of a set
RECALIBRATED = "_recalibrated"  # what `apply` adds to the name of the uncertainty


@dataclass(frozen=True)
class NamedColumn:
    """A column, the role that its name tells, or "", and the words of its quantity."""

    name: str
    role: str = ""
    stem: frozenset[str] = frozenset()
    weak: bool = False  # so that another of the role is preferred
    named: bool = False  # by the user: it need not fit


ColumnSet = dict[str, NamedColumn]  # one column for each role


# -- one name --------------------------------------------------------------------------


def plain_text(name: str) -> str:
    """Return a name in small letters and without a unit."""
    without_unit = _UNIT.sub("", name).strip().lower()
    return without_unit.replace("^2", "2").replace("²", "2")


def words_of(name: str) -> frozenset[str]:
    """Return the words of a name.

    >>> sorted(words_of("GP std. dev. (eV)")), sorted(words_of("qobs"))
    (['gp', 'std'], ['obs', 'q'])
    """
    text = _DEVIATION.sub("std", plain_text(name)).replace("y_test", "y_true")
    text = _SQUARED.sub("variance", text)
    words: list[str] = []
    for word in re.split(r"[\W_]+", text):
        joined = _JOINED.fullmatch(word)
        words += joined.groups() if joined else [word]
    return frozenset(filter(None, words))


def read_name(name: str) -> NamedColumn:
    """Return what a name alone tells: the role, and the quantity.

    >>> read_name("energy_ref").role, read_name("pred_std").role
    ('reference', 'uncertainty')
    """
    if letter := _LETTERS.get(plain_text(name)):
        return NamedColumn(name, letter, weak=True)
    words = words_of(name)
    roles = {_ROLE_OF[word] for word in words if word in _ROLE_OF}
    role = next((role for role in WORDS if role in roles), "")
    stem = words - set(_ROLE_OF) - _FILLERS
    return NamedColumn(name, role, stem, weak=role == "variance")


def sounds_like_u(column: NamedColumn) -> bool:
    """Return whether a name has something of an uncertainty: error_bar, enssd, scale.

    >>> [sounds_like_u(NamedColumn(x)) for x in ("enssd", "yerr", "mass", "phase")]
    [True, True, False, False]
    """
    return _SOUNDS.search(plain_text(column.name)) is not None


def is_no_feature(name: str, used: Iterable[str]) -> bool:
    """Return whether a name says that the column is no feature beside those used.

    These are uncertainties, what `apply` has made and, beside predictions, true values
    and errors: new rows do not have them, and with the prediction they give the error
    away.
    """
    if RECALIBRATED in name or name.strip().lower() in ("", "unnamed: 0", "index"):
        return True
    stems = {read_name(other).stem for other in used}
    column = read_name(name)
    is_output = column.role not in ("", "prediction")
    return is_output and column.stem in stems | {frozenset()}


# -- names beside each other -----------------------------------------------------------


def read_names(names: Iterable[str]) -> list[NamedColumn]:
    """Return columns with the roles that their names tell beside each other."""
    columns = [read_name(name) for name in names]
    truths = {column.stem for column in columns if column.role == "reference"}
    guesses = {column.stem for column in columns if column.role == "prediction"}

    # letters that tell nothing: r and v without each other, e beside predictions
    lonely = {"r", "v"}
    if lonely <= {plain_text(column.name) for column in columns}:
        lonely = set()
    if guesses:
        lonely.add("e")

    beside = []
    for column in columns:
        words = words_of(column.name)
        role = column.role
        if words in guesses - truths:  # logS beside logS_pred is what it predicts
            role = "reference"
        elif words in truths - guesses:  # and beside logS_true it is the prediction
            role = "prediction"
        elif plain_text(column.name) in lonely:
            role = ""
        is_same = role == column.role
        beside.append(column if is_same else NamedColumn(column.name, role, words))
    return beside


def likeness(column: NamedColumn, others: Iterable[NamedColumn]) -> float:
    """Return how much of its quantity a column shares with others."""
    total = 0.0
    for other in others:
        if other is column:
            continue
        if other.stem == column.stem:  # which may have no word
            total += 1.0
        else:
            total += len(column.stem & other.stem) / len(column.stem | other.stem)
    return total


def is_plain(columns: ColumnSet) -> bool:
    """Return whether columns are of the same quantity, which two of them tell.

    One is the prediction, or error: `y, mean_temp, std` is of a feature, perhaps. Those
    that the user has named may be of any.
    """
    guessed = [column for column in columns.values() if not column.named]
    stems = [column.stem for column in guessed if column.stem]
    if not stems or len(columns) == 1:
        return True
    some_named = len(guessed) < len(columns)
    main = columns.get("prediction") or columns["error"]
    shared = len(stems) > 1 and main.stem == stems[0]
    return len(set(stems)) == 1 and (shared or some_named)


def best_sets(way: Sequence[str], may: dict[str, list[NamedColumn]]) -> list[ColumnSet]:
    """Return the sets of columns that go together best; none has two roles."""
    sets = []
    scores = []
    for columns in product(*(may[role] for role in way)):
        if len({column.name for column in columns}) == len(way):
            sets.append(dict(zip(way, columns, strict=True)))
            scores.append(round(_score(columns), 9))
    best = max(scores, default=0.0)
    return [sets[i] for i, score in enumerate(scores) if score == best]


def _score(columns: Sequence[NamedColumn]) -> float:
    """Return how well columns go together; all of one quantity go best."""
    score = 0.0
    for column in columns:
        score += likeness(column, columns) / 2 - _WEAK * column.weak
    return score
