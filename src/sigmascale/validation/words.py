"""What a validation says: the one place where sentences on results are made.

Every front end shows the same pieces, each made here: a first line, what was tested,
tables of lines (result, check, the subgroup that decides with its share of the rows,
estimate, limits), and statements by topic. `as_text` prints them, `as_html` shows them
in notebooks; report, card, app and JSON take them one by one. The limits of a line,
next to the accepted range in the head of its table, are its result: inside is a pass,
outside a FAIL, across an end inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

from .._support import numerals
from .._support.notices import row_number
from .._support.text import TOPIC, WIDTH, listed, visible
from .._support.version import __version__

if TYPE_CHECKING:
    from .change import Change
    from .results import Check, Subgroup
    from .validation import DecidingRows, Validation

MARKS = {"pass": "pass", "FAIL": "FAIL", "inconclusive": "?"}
NONE = "–"  # the mark of what has no result of its own
CONFIDENT = {True: ("overconfident", "small"), False: ("underconfident", "large")}
# features that have a line each, by their result; the others are counted
MOST_FEATURES = {"FAIL": 3, "inconclusive": 2, "pass": 1}
NEGLIGIBLE = 0.001  # a relative change of the CRPS that is none
SMALL = 0.01  # the change that rows must exclude before "no gain" is said
HALF = 0.5  # of the sum of z², which few rows have where they decide
LARGEST_NAMED = 3  # rows of the largest errors that are named
ZEROS = 0.05  # share of errors that are exactly 0, from which it is worth a note
HEAVY = 8.0  # degrees of freedom of tails that are worth a name
MARK, NAME = 6, 16  # characters of columns of the printed result


@dataclass(frozen=True)
class Line:
    """One line of a table: the result of a check, and the subgroup that decides.

    Attributes
    ----------
    mark : {"pass", "FAIL", "?", "–"}
        The result; – of what has none of its own.
    name, where : str
        The check, and the subgroup with its share of the rows.
    numbers : str
        The estimate with its limits.
    check : str
        The name of the check among those of the validation; none of several.
    """

    mark: str
    name: str
    where: str
    numbers: str = ""
    check: str = ""


@dataclass(frozen=True)
class Table:
    """Lines of one statistic, below a head that defines its number."""

    head: str
    column: str
    lines: tuple[Line, ...]


# -- lines -----------------------------------------------------------------------------


def place(subgroup: Subgroup) -> str:
    """Return a subgroup with its share of the rows."""
    if not subgroup.conditions:
        return "all rows"
    return f"{subgroup.where}, {numerals.percent(subgroup.share)} of rows"


def estimate(v: Validation, check: Check, subgroup: Subgroup) -> str:
    """Return an estimate with its limits, which rows in doubt have not."""
    value = subgroup.estimate
    is_share = check.unit == "share"
    if v.doubt:
        return numerals.percent(value, 1) if is_share else numerals.factor(value)
    in_words = numerals.percent_interval if is_share else numerals.interval
    return in_words(value, subgroup.low, subgroup.high)


def line(v: Validation, check: Check, subgroup: Subgroup | None = None) -> Line:
    """Return the line of a check, or of another subgroup of it, such as all rows."""
    result = check.result
    if subgroup is None:
        subgroup = check.subgroup
    elif not check.note:
        result = subgroup.result
    mark = MARKS.get(result, NONE)
    name = "consistency (u)" if check.kind == "consistency" else check.kind
    if subgroup is None:
        return Line(mark, name, f"too few {unit(v)}", "", check.name)
    if check.kind == "bias" and result != "pass":
        name += ", too low" if subgroup.estimate > 0 else ", too high"
    numbers = estimate(v, check, subgroup)
    return Line(mark, name, place(subgroup), numbers, check.name)


def tables(v: Validation) -> list[Table]:
    """Return the lines of all checks: of RMS z, of coverage, and of mean z."""
    by_statistic: dict[str, list[Check]] = {}
    for check in v.checks.values():
        by_statistic.setdefault(check.statistic, []).append(check)
    column = "estimate"
    if not v.doubt:
        column += f" [{numerals.level(v.confidence)} limits]"
    made: list[Table] = []
    for checks in by_statistic.values():
        is_size = checks[0].unit == ""
        lines = _of_size(v, checks) if is_size else _of_others(v, checks)
        made.append(Table(_head(v, checks[0]), "" if made else column, tuple(lines)))
    return made


def _head(v: Validation, check: Check) -> str:
    """Return what defines the number of a table, and which is accepted."""
    if check.unit == "share":
        return f"Coverage, {nominal(v)} ({accepted(check)} accepted)"
    if check.unit == "u":
        return f"Mean z (ideal 0, {accepted(check)} accepted)"
    z = "|error|/(u √d)" if v.rows.is_vector else "error/u"
    return f"RMS z, z = {z} (ideal 1, {accepted(check)} accepted)"


def accepted(check: Check) -> str:
    """Return the accepted range of a check."""
    low, high = check.accepted
    if check.unit == "share":
        return f"{100 * low:.1f} to {numerals.percent(high, 1)}"
    if check.unit == "u":
        return f"±{numerals.factor(high)}"
    return f"{numerals.factor(low)} to {numerals.factor(high)}"


def nominal(v: Validation) -> str:
    """Return what is tested for coverage: "95 % intervals"."""
    what = "balls" if v.rows.is_vector else "intervals"
    return f"{numerals.level(v.coverage)} {what}"


def _of_size(v: Validation, checks: Sequence[Check]) -> Iterator[Line]:
    """Yield the lines of RMS z: of all rows, by u, by features, of combinations."""
    same = [check for check in checks if is_same(v, check)]
    own = [check for check in checks if check not in same]
    for check in own:
        if check.kind in ("calibration", "consistency"):
            yield line(v, check)

    # features: the worst of each result, and how many more there are
    for result, most in MOST_FEATURES.items():
        of_result = [x for x in own if x.kind == "adaptivity" and x.result == result]
        of_result.sort(key=_nearness)
        for check in of_result[:most]:
            yield line(v, check)
        if more := of_result[most:]:
            yield Line(MARKS[result], "adaptivity", _counted(len(more), "more feature"))
    for check in own:
        if check.kind == "combinations" and not is_told_by_one_column(v, check):
            yield _of_combinations(v, check)
    if same:
        names = [x.column or x.kind for x in same]
        named = ["consistency (u)" if name == "u" else name for name in names]
        yield Line(NONE, f"same as all rows: {', '.join(named)}", "")


def _of_combinations(v: Validation, check: Check) -> Line:
    """Return the line of combinations, which never pass."""
    if check.result == "not tested":
        needed = numerals.about(check.note_share)
        where = f"not tested: that takes {needed} {unit(v)}"
        return Line(NONE, check.kind, where, "", check.name)
    if check.result == "no fault found":
        return Line(NONE, check.kind, "no fault found by a tree model", "", check.name)
    return line(v, check)


def _of_others(v: Validation, checks: Sequence[Check]) -> Iterator[Line]:
    """Yield the lines of a check of all columns: of coverage, all rows come first."""
    for check in checks:
        is_of_some = check.subgroup is not None and check.subgroup.conditions
        if check.unit == "share" and check.all_rows is not None and is_of_some:
            yield line(v, check, check.all_rows)
        yield line(v, check)


def is_same(v: Validation, check: Check) -> bool:
    """Return whether a check says no more than that of all rows."""
    of_all = v.checks.get("calibration")
    if of_all is None or check is of_all or check.statistic != of_all.statistic:
        return False
    return check.same_as_all_rows and check.result == of_all.result != "pass"


def own_results(v: Validation) -> list[Check]:
    """Return the checks that count and say more than that of all rows."""
    return [x for x in v.checks.values() if x.counts and not is_same(v, x)]


def is_told_by_one_column(v: Validation, check: Check) -> bool:
    """Return whether a combination is of rows that FAIL by one of its columns alone."""
    if check.result != "FAIL" or check.subgroup is None:
        return False
    conditions = check.subgroup.described or check.subgroup.conditions
    columns = {condition.column for condition in conditions}
    failing = {x.column for x in v.checks.values() if x.result == "FAIL"}
    return len(columns) == 1 and columns <= failing


def _nearness(check: Check) -> float:
    """Return how near to its ideal value the subgroup of a check is, below 0."""
    if check.subgroup is None:
        return 0.0
    value = check.subgroup.estimate
    if check.unit == "":
        return -abs(math.log(max(value, 1e-9)))
    return -abs(value - check.ideal)


def ranked_checks(stages: Sequence[Validation]) -> list[str]:
    """Return the names of the checks of one set or two; features by their result."""
    names = list(dict.fromkeys(name for v in stages for name in v.checks))
    features = [f"adaptivity: {name}" for name in ranked_features(stages)]
    others = [name for name in names if name not in features]
    first = sum(name in ("calibration", "consistency") for name in others)
    return [*others[:first], *features, *others[first:]]


def ranked_features(stages: Sequence[Validation]) -> list[str]:
    """Return features, and time: first what is left at last, then what was worst."""
    order = ["FAIL", "inconclusive", "pass"]
    ranked: dict[str, tuple[int, float]] = {}
    for i, v in enumerate(reversed(stages)):
        for check in v.checks.values():
            if check.kind == "adaptivity" and check.column is not None:
                own = 3 if is_same(v, check) else order.index(check.result)
                is_left = i == 0 and own < 2
                place = (own if is_left else own + 2, _nearness(check))
                ranked[check.column] = min(place, ranked.get(check.column, place))
    return sorted(ranked, key=lambda name: ranked[name])


def unit(v: Validation) -> str:
    """Return what is counted as independent."""
    return "rows" if v.rows.groups is None else "groups"


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


# -- the first line --------------------------------------------------------------------


def headline(v: Validation) -> str:
    """Return the first line: what recalibration changed, or the worst result."""
    word, rest = outcome(v) if v.change is None else effect(v.change)
    return f"{word.upper()}: {rest}"


def outcome(v: Validation) -> tuple[str, str]:
    """Return the result in a word or two, and what it rests on."""
    if v.doubt:
        return "Inconclusive", _doubt(v)
    if v.result == "FAIL":
        return _worst_fault(v)
    counted = own_results(v)
    note = "; u does not rank errors" if is_worthless(v) else ""
    if v.result == "pass":
        n = len(counted)
        bound = numerals.upper(v.bound)
        return "Calibrated", f"within a factor of {bound}, {n} of {n} checks pass{note}"
    few = v.rows_that_decide
    if few is not None and few.share_of_z2 >= HALF:
        return "Inconclusive", _few_decide(few)
    if all(check.subgroup is None or check.note == "few units" for check in counted):
        return "Inconclusive", f"{v.n_units:.0f} {unit(v)} are too few to test"
    n_open = sum(check.result == "inconclusive" for check in counted)
    return "Inconclusive", f"{n_open} of {len(counted)} checks, none fails{note}"


def in_short(v: Validation) -> str:
    """Return RMS z and coverage of all rows, where they were tested."""
    size = _of_all_rows(v, "calibration")
    covered = _of_all_rows(v, "coverage")
    words = [f"RMS z {size}"] if size else []
    return "; ".join([*words, f"{nominal(v)} cover {covered}"] if covered else words)


def _doubt(v: Validation) -> str:
    """Return why the rows cannot be tested."""
    if v.doubt == "repeats":
        return f"rows look like repeats ({v.repeats.split(',')[0]})"
    if v.doubt == "fitted":
        share = numerals.percent(v.rows.distributions.fitted_share)
        return f"{share} of these rows were used to fit the recalibrator"
    n = numerals.about(v.leaked.size)
    return f"about {n} rows look like rows that the model was trained on"


def _worst_fault(v: Validation) -> tuple[str, str]:
    """Return the worst fault and where it is, without a number: its line has one."""
    failing = [x for x in v.checks.values() if x.result == "FAIL" and not is_same(v, x)]
    sizes = [x for x in failing if x.unit == ""]
    bias = next((x for x in failing if x.unit == "u"), None)
    if bias is not None and (failing == [bias] or (sizes and is_cause(bias, sizes))):
        assert bias.subgroup is not None
        sign = "low" if bias.subgroup.estimate > 0 else "high"
        others = {x.result for x in v.checks.values() if x.counts and x is not bias}
        calibrated = "; u is calibrated" if others == {"pass"} else ""
        return "Biased", f"predictions are too {sign}{_for(bias)}{calibrated}"

    # all rows first, then the subgroup that is farthest off
    worst = min(sizes or failing, key=lambda x: (x.kind != "calibration", _nearness(x)))
    assert worst.subgroup is not None
    value = worst.subgroup.estimate
    if worst.unit == "share":
        size = "few" if value < worst.ideal else "many"
        return "Not calibrated", f"{nominal(v)} cover too {size} values{_for(worst)}"
    confident, size = CONFIDENT[value > worst.ideal]
    if not worst.subgroup.conditions:
        return "Not calibrated", f"{confident}, u is too {size} overall"
    return "Not calibrated", f"{confident}{_for(worst)}"


def is_cause(bias: Check, sizes: Sequence[Check]) -> bool:
    """Return whether RMS z would be accepted without the bias: s² − b² is small.

    That can be told of all rows, or of subgroups of the same column.
    """
    b = bias.subgroup
    assert b is not None
    for check in sizes:
        if check.kind == "combinations":  # which look along other columns
            continue
        s = check.subgroup
        assert s is not None
        is_of_same = not b.conditions or b.column == s.column
        if not is_of_same or s.estimate**2 - b.estimate**2 > check.accepted[1] ** 2:
            return False
    return True


def _for(check: Check) -> str:
    """Return the subgroup of a check as the end of a sentence."""
    s = check.subgroup
    if s is None or not s.conditions:
        return " overall"
    return f" for {s.where} ({numerals.percent(s.share)} of rows)"


def effect(change: Change) -> tuple[str, str]:
    """Return whether recalibration helped, and the change of the score."""
    x = change.relative
    words = f"{change.score} {numerals.change(x.value, x.low, x.high)}"
    n = change.n_groups or change.n_rows
    paired = f"{words} ({n:,} {change.unit}, paired)"
    if change.fitted_share > HALF:
        share = numerals.percent(change.fitted_share)
        return "Inconclusive", f"{share} of these rows were used in the fit; {words}"
    is_none = max(-x.low, x.high) <= NEGLIGIBLE
    if x.high < 0 and not is_none:
        return "Recalibration helped", paired
    if x.low > 0 and not is_none:
        return "Recalibration made it worse", f"{words}. Keep the original u."
    if max(-x.low, x.high) <= SMALL:
        return "No gain from recalibration", paired
    return (
        "Inconclusive",
        f"too few {change.unit} to say if recalibration helped: {words}",
    )


# -- statements ------------------------------------------------------------------------


def facts(v: Validation, u: str = "") -> str:
    """Return what was tested, in a line; `u` is what u is called where it was given."""
    rows = v.rows
    words = [f"{rows.n_rows:,} rows"]
    if rows.groups is not None:
        words[0] += f" of {int(rows.groups.max()) + 1:,} groups"
    if rows.weights is not None:
        words.append(f"weighted ({numerals.about(rows.n_effective)} effective)")
    if u:
        words.append(f"u = {u}")
    return ", ".join([*words, _counted(len(rows.names) - 1, "feature")])


def statements(v: Validation, *, with_cost: bool = False) -> list[tuple[str, str]]:
    """Return what is said below the tables: topics, and a sentence or two on each."""
    if v.doubt:
        return [("Note", "No limits: they would assume independent, held-out rows.")]
    said = [("Variation", _variation(v))]
    if with_cost or v.with_cost:
        said.append(("Cost", _cost(v)))
    said.append(("Ranking", _ranking(v)))
    if v.result == "inconclusive" and not numerals.is_unknown(v.bound):
        said.append(("Bound", f"{_bound(v)}."))
    said.append(("Tails", _tails(v)))
    said += [("Note", words) for words in _notes(v)]
    return [(topic, words) for topic, words in said if words]


def varies(v: Validation) -> str:
    """Return by how much RMS z varies between subgroups, and of which column."""
    x = v.variation
    return "" if x is None else f"{numerals.percent(x.sd, 0)} along {x.column}"


def _variation(v: Validation) -> str:
    """Return how much RMS z varies along the column where it varies most."""
    x = v.variation
    if x is None:
        return ""
    sd = numerals.percent_interval(x.sd, x.low, x.high, 0)
    if x.low <= 0:
        limit = sd.rpartition(" ")[2].rstrip("]")
        return f"none detected between fifths of u or a feature (SD below {limit} %)."
    is_label = x.column in v.rows.names and v.rows.is_labelled(x.column)
    between = f"{'labels' if is_label else 'fifths'} of {x.column}"
    return f"RMS z varies by {sd.replace('%', '% (SD)')} between {between}."


def _cost(v: Validation) -> str:
    """Return what recalibration would gain, where that was asked for."""
    x = v.cost
    if x is None:
        return ""
    words = numerals.change(x.value / 100, x.low / 100, x.high / 100)
    if x.high < 0:
        return f"recalibration would change CRPS by {words} (cross-validated)."
    return f"no gain in CRPS from recalibration: {words} (cross-validated)."


def _ranking(v: Validation) -> str:
    """Return whether u ranks the errors, and what that is worth."""
    gain = v.gain_of_u
    if gain is None:
        return ""
    rho = numerals.factor(v.summary()["Spearman"].value)
    spearman = f"Spearman(|error|, u) {rho}"
    if is_worthless(v):
        return f"none: {spearman}; a constant u would serve as well."
    percent = (gain.value / 100, gain.low / 100, gain.high / 100)
    return f"{spearman}; CRPS {numerals.percent_interval(*percent)} below a constant u."


def is_worthless(v: Validation) -> bool:
    """Return whether u does not rank the errors."""
    return v.gain_of_u is not None and v.gain_of_u.low <= 0


def _bound(v: Validation) -> str:
    """Return T, the one-sided limit of the worst subgroup."""
    factor = numerals.upper(v.bound)
    level = numerals.level(v.confidence)
    return f"no tested subgroup is off by more than a factor of {factor} ({level})"


def _tails(v: Validation) -> str:
    """Return heavy tails, and the rows of the largest errors where these decide."""
    few = v.rows_that_decide
    if few is None:
        return ""
    tails = ""
    if v.tails_df < HEAVY:
        df = numerals.number(v.tails_df, 2)
        tails = f"like Student's t with {df} degrees of freedom; "
    rows = ", ".join(f"{row_number(row)}" for row in few.rows[:LARGEST_NAMED])
    sizes = ", ".join(numerals.number(z, 2) for z in few.abs_z[:LARGEST_NAMED])
    return f"{tails}{_few_decide(few)}. Largest |z|: rows {rows} ({sizes})."


def _few_decide(few: DecidingRows) -> str:
    """Return which share of the sum of z² the largest errors have."""
    of_z2 = numerals.percent(few.share_of_z2)
    of_rows = numerals.percent(few.share_of_rows)
    return f"{of_rows} of the rows have {of_z2} of the sum of z²"


def _notes(v: Validation) -> Iterator[str]:
    """Yield what else a reader must know."""
    if v.zeros >= ZEROS:
        share = numerals.percent(v.zeros)
        yield f"{share} of the errors are exactly 0: one u cannot fit these and others."
    if len(v.rows.names) == 1 and v.rows.y_std.min() == v.rows.y_std.max():
        yield "Only all rows were tested: u is constant, and there are no features."
    for check in v.checks.values():
        if check.note == "rare labels":
            share = numerals.percent(check.note_share)
            yield f"{check.column}: {share} of the rows have labels too rare to test."
    if v.leaked.size:
        rows = ", ".join(f"{row_number(row)}" for row in v.leaked[:LARGEST_NAMED])
        yield f"{v.leaked.size:,} rows look like training data, such as rows {rows}."


# -- before and after ------------------------------------------------------------------


def before_and_after(v: Validation) -> list[tuple[str, str, str]]:
    """Return numbers before and after recalibration: name, before and after."""
    assert v.before is not None
    assert v.change is not None
    stages = (v.before, v)

    def of(name: str) -> tuple[str, str]:
        cells = [_of_all_rows(stage, name) for stage in stages]
        return cells[0], cells[1]

    def counts(stage: Validation) -> str:
        results = [str(check.result) for check in own_results(stage)]
        return " / ".join(f"{results.count(result)}" for result in MARKS)

    sizes = [x.summary()["sharpness"].value for x in stages]
    rows = [
        (v.change.score, *numerals.alike(v.change.before, v.change.after)),
        ("RMS z, all rows", *of("calibration")),
        ("RMS z varies by (SD)", varies(v.before), varies(v)),
        (f"{nominal(v)} cover", *of("coverage")),
        ("RMS of u", *numerals.alike(sizes[0], sizes[1])),
        ("checks: pass / FAIL / ?", counts(v.before), counts(v)),
    ]
    return [row for row in rows if row[1] or row[2]]


def _of_all_rows(v: Validation, name: str) -> str:
    """Return the estimate of all rows of a check, if there is one."""
    check = v.checks.get(name)
    if check is None or check.all_rows is None:
        return ""
    return estimate(v, check, check.all_rows)


def _shown_tables(v: Validation) -> list[Table]:
    """Return all lines; after recalibration those that FAIL or are inconclusive."""
    made = tables(v)
    if v.change is None:
        return made
    left: list[Table] = []
    for table in made:
        lines = tuple(x for x in table.lines if x.mark in ("FAIL", "?"))
        if lines:
            left.append(Table(table.head, "" if left else made[0].column, lines))
    return left


def _shown_statements(v: Validation) -> list[tuple[str, str]]:
    """Return all statements; after recalibration those that no table has."""
    is_after = v.change is not None
    return [x for x in statements(v) if not is_after or x[0] in ("Bound", "Note")]


# -- as text ---------------------------------------------------------------------------


def as_text(v: Validation, steps: Iterable[str], *, about_rows: bool = True) -> str:
    """Return what is printed, in lines of at most 80 characters.

    Parameters
    ----------
    v : Validation
        What was found.
    steps : iterable of str
        What to do next, in the language of who reads it; lines of a step stay as they
        are.
    about_rows : bool, default True
        Whether the line is there that says what was tested.
    """
    lines = _wrapped(headline(v))
    if v.change is not None:
        lines += _wrapped(f"After: {v.outcome}")
    if about_rows:
        lines.append(facts(v, "y_std"))
    lines.append("")
    shown = _shown_tables(v)
    if v.change is not None:
        lines.append(f"{'':<26}{'before':>26}{'after':>28}")
        for name, before, after in before_and_after(v):
            lines.append(f"{name:<26}{before:>26}{after:>28}".rstrip())
        lines += [""] if shown else []
    for table in shown:
        lines += _in_columns(Line("", "", table.head, table.column), MARK)
        for each in table.lines:
            lines += _in_columns(each, MARK + NAME)

    said = _shown_statements(v)
    steps = list(steps)
    lines += [""] if said or steps else []
    for topic, words in said:
        lines += _wrapped(words, f"{topic:<{TOPIC}}")
    topic = "Next"
    for step in steps:
        sentence, *as_they_are = step.split("\n")
        lines += [*_wrapped(sentence, f"{topic:<{TOPIC}}"), *as_they_are]
        topic = ""
    return "\n".join(lines).rstrip()


def _in_columns(each: Line, indent: int) -> list[str]:
    """Return a line in columns; numbers stand at the right, below what is too long."""
    name = each.name if not each.where or not each.name else f"{each.name:<{NAME}}"
    left = f"{each.mark:<{MARK}}{name}{each.where}"
    lines = _wrapped(left, indent=indent if each.where else MARK)
    room = WIDTH - len(lines[-1]) - 1
    if each.numbers and len(each.numbers) <= room:
        lines[-1] += each.numbers.rjust(WIDTH - len(lines[-1]))
    elif each.numbers:
        lines.append(each.numbers.rjust(WIDTH))
    return lines


def _wrapped(words: str, start: str = "", indent: int | None = None) -> list[str]:
    """Return lines of words; a number stays with its unit, and no word is cut."""
    tied = visible(start + words, keep="").replace(" %", "\xa0%")
    blank = " " * (len(start) if indent is None else indent)
    lines = wrap(
        tied,
        WIDTH,
        subsequent_indent=blank,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [text.replace("\xa0", " ") for text in lines] or [""]


# -- as HTML ---------------------------------------------------------------------------

COLOURS = {"pass": "#1a7f37", "FAIL": "#b42318", "?": "#8a6100"}


def as_html(v: Validation, steps: Iterable[str]) -> str:
    """Return the same for notebooks."""
    paragraphs = [f"<b>{_html(headline(v))}</b>"]
    if v.change is not None:
        paragraphs.append(_html(f"After: {v.outcome}"))
    paragraphs.append(_html(facts(v, "y_std")))

    rows = []
    if v.change is not None:
        rows.append(_row("th", "", "", "before", "after"))
        rows += [_row("td", "", *row) for row in before_and_after(v)]
    for table in _shown_tables(v):
        rows.append(_row("th", "", table.head, "", table.column))
        for x in table.lines:
            rows.append(_row("td", x.mark, x.name, x.where, x.numbers))
    for topic, words in [*_shown_statements(v), *(("Next", step) for step in steps)]:
        paragraphs.append(f"<b>{topic}</b> {_html(words)}")
    first = 2 if v.change is None else 3
    texts = [f"<p>{words}</p>" for words in paragraphs]
    texts.insert(first, f"<table>{''.join(rows)}</table>")
    return "".join(texts)


def _html(words: str) -> str:
    return escape(visible(words, keep=""))


def _row(tag: str, *cells: str) -> str:
    """Return a row of an HTML table, whose numbers stand at the right."""
    made = []
    for number, cell in enumerate(cells):
        style = f"text-align: {'left' if number < 3 and tag == 'td' else 'right'}"
        if number == 1:
            style = "text-align: left"
        if number == 0 and cell in COLOURS:
            style += f"; color: {COLOURS[cell]}; font-weight: bold"
        made.append(f'<{tag} style="{style}">{_html(cell)}</{tag}>')
    return f"<tr>{''.join(made)}</tr>"


# -- for a paper -----------------------------------------------------------------------


def for_a_paper(v: Validation) -> str:
    """Return what a referee asks: what was tested, how, and what was found."""
    rows = v.rows
    tested = f"{rows.n_rows:,} rows"
    if rows.groups is not None:
        tested += f" in {int(rows.groups.max()) + 1:,} independent groups"
    kinds = dict.fromkeys(x.kind for x in v.checks.values() if x.result != "not tested")
    low, high = (numerals.factor(x) for x in (1 / v.tolerance, v.tolerance))
    sentences = [
        f"Uncertainties of {tested} were tested with sigmascale {__version__} for "
        f"{listed(kinds)}, in subgroups by {listed(rows.names, 6)} (accepted: factors "
        f"of {low} to {high}; {numerals.level(v.confidence)} limits)."
    ]
    if v.doubt:
        return f"{sentences[0]} The test was inconclusive: {_doubt(v)}."
    if v.before is None or v.change is None:
        sentences.append(f"{_found(v)}.")
    else:
        x = v.change.relative
        changed = _spelled(numerals.change(x.value, x.low, x.high))
        sentences.append(f"Before recalibration: {_found(v.before)}.")
        sentences.append(
            f"After it: {_found(v)}; the {v.change.score} changed by {changed}."
        )

    results = [check.result for check in own_results(v)]
    if v.result != "FAIL" and not numerals.is_unknown(v.bound):
        sentences.append(f"{_bound(v)[0].upper()}{_bound(v)[1:]}.")
    of = f"of {_counted(len(results), 'check')}"
    n_fail, n_open = results.count("FAIL"), results.count("inconclusive")
    sentences.append(f"Results {of}: {n_fail} failed, {n_open} inconclusive.")
    return " ".join(sentences)


def _found(v: Validation) -> str:
    """Return RMS z of all rows and of the worst subgroup that fails, and coverage."""
    said = []
    if size := _of_all_rows(v, "calibration"):
        said.append(f"RMS z was {_spelled(size)}")
    for check in sorted(v.checks.values(), key=_nearness):
        s = check.subgroup
        if check.result != "FAIL" or check.unit != "" or s is None:
            continue
        if s.conditions and not is_same(v, check):
            said.append(f"{_spelled(estimate(v, check, s))} for {place(s)}")
            break
    if covered := _of_all_rows(v, "coverage"):
        said.append(f"{nominal(v)} covered {_spelled(covered)}")
    return ", ".join(said)


def _spelled(words: str) -> str:
    """Return an estimate with limits as sentences have it: 2.20 (2.04 to 2.71)."""
    return words.replace("[", "(").replace(", ", " to ").replace("]", ")")
