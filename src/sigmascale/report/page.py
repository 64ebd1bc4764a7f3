"""The report as one HTML page: results go into a template, and text stays text."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import scores
from .._support.files import write_text
from .._support.text import listed, quoted, shorten, visible
from .._support.version import __version__
from ..exceptions import InvalidInputError
from ..predictions.diagnostics import repeats_found
from ..validation.validation import Validation

# The sign, and the class of the page's style sheet. A word stands beside the sign.
MARKS_ON_PAGE = {"yes": ("✓", "yes"), "no": ("✗", "no"), "cannot tell": ("?", "unsure")}
LESSER = ("ENCE_", "UCE_")  # scores that few ask for
MEANINGS = {
    "CRPS": "of whole distributions, in the unit of the error",
    "NLL": "of normal errors; lower is better",
    "ZMS": "⟨Z²⟩, the mean of z²",
    "S_cal": "|ln ⟨Z²⟩|: average",
    "S_u": "in bins of u: consistency",
    "S_tot": "S_cal + S_u + those of the features",
    "f_v": "share of bins whose 95 % interval of ⟨Z²⟩ holds 1",
}
FEW_FOR_FAULTS = 1000
TITLE = "Are these uncertainties right?"


def report_html(
    before: Validation,
    after: Validation | None = None,
    *,
    title: str = TITLE,
    recalibrator: Any = None,
) -> str:
    """Return a report on the uncertainties of a set as one HTML page.

    The page needs no network and no JavaScript, shows all pictures as inline SVG, and
    can be read on a phone, on paper, in light and in dark. The same input gives the
    same text.

    Parameters
    ----------
    before : Validation
        What :func:`sigmascale.validate` found of the predictions as they are.
    after : Validation, optional
        The same of these rows as a recalibrator makes them: the report then shows
        before and after.
    title : str, optional
        The title.
    recalibrator : Recalibrator, optional
        What made them, fitted: the report says what it has learned.

    Returns
    -------
    str

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.make_molecules(300).predictions
    >>> page = ss.report.report_html(ss.validate(p), title="As they came")
    >>> page.startswith("<!DOCTYPE html>"), "As they came" in page
    (True, True)
    """
    _check(before, after, title, recalibrator)
    from . import pictures

    last = after or before
    stages = [before] if after is None else [before, after]

    # all pictures, drawn in one go: each kind takes its own again
    along = pictures.along(before, after)
    others = pictures.others(before, after)
    first_two = [pictures.certificate(before, after), pictures.forest(before, after)]
    certificate, forest, *drawn = pictures.draw([*first_two, *along, *others])

    # verdicts that are shown, and those of further features, which are folded away
    names = pictures.shown(before, after)
    shown = [last.verdicts[name] for name in names]
    folded = [v for name, v in last.verdicts.items() if name not in names]

    # scores, and those that few ask for, which are folded away, too
    scores_before_after = score_rows(stages)
    lesser = (*LESSER, *(f"S_{verdict.name}" for verdict in folded))
    main_rows: list[Row] = []
    lesser_rows: list[Row] = []
    for row in scores_before_after:
        if row.name.startswith(lesser):
            lesser_rows.append(row)
        else:
            main_rows.append(row)

    template = environment().get_template("page.html.jinja")
    page: str = template.render(
        title=title,
        version=__version__,
        marks=MARKS_ON_PAGE,
        headline=before.headline if after is None else after.compared_with(before),
        before=before,
        after=after,
        last=last,
        stages=["value"] if after is None else ["before", "after"],
        certificate=certificate,
        forest=forest,
        along=drawn[: len(along)],
        others=drawn[len(along) :],
        shown=shown,
        rest=folded,
        facts=_facts(last),
        over_time=_over_time(last),
        within=_within(stages),
        learned=_learned(recalibrator),
        score_rows=main_rows,
        lesser_rows=lesser_rows,
        tail_rows=tail_rows(stages),
        cautions=[*_cautions(before, after, recalibrator)],
        tolerance=f"{last.tolerance:g}",
        confidence=percent(last.confidence),
        scan_rate=percent(2 * (1 - last.confidence)),
        clusters=_clusters(last),
    )
    return page


def write_report(
    path: str | os.PathLike[str],
    before: Validation,
    after: Validation | None = None,
    *,
    title: str = TITLE,
    recalibrator: Any = None,
) -> None:
    """Write the page of :func:`report_html` to a file, whole or not at all.

    Parameters
    ----------
    path : path-like
        Where to write; an existing file is replaced.
    before, after, title, recalibrator
        As for :func:`report_html`.

    Examples
    --------
    >>> import tempfile
    >>> import sigmascale as ss
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> p = ss.datasets.make_molecules(300).predictions
    >>> ss.report.write_report(path, ss.validate(p), title="As they came")
    >>> path.stat().st_size > 10_000
    True
    """
    page = report_html(before, after, title=title, recalibrator=recalibrator)
    write_text(Path(path), page)


def _check(before: Any, after: Any, title: Any, recalibrator: Any) -> None:
    """Refuse what is no verdict, or a verdict on other rows."""
    for name, given in (("before", before), ("after", after)):
        is_left_out = name == "after" and not given
        if not isinstance(given, Validation) and not is_left_out:
            msg = (
                f"`{name}` must be what ss.validate returns; found "
                f"{type(given).__name__}. Call ss.validate(p) first."
            )
            raise InvalidInputError(msg)
    if not isinstance(title, str):
        msg = f"`title` must be text; found {quoted(title)}."
        raise InvalidInputError(msg)
    if recalibrator is not None and not hasattr(recalibrator, "scale_"):
        msg = f"`recalibrator` must be a fitted one; found {quoted(recalibrator)}."
        raise InvalidInputError(msg)
    if after is not None and not _same_rows(before.rows, after.rows):
        msg = (
            "`after` must be the verdicts on the rows of `before` with other "
            "uncertainties; found other rows or features. Call ss.validate on p and on "
            "recalibrator.apply(p)."
        )
        raise InvalidInputError(msg)
    try:
        for package in ("jinja2", "matplotlib"):
            importlib.import_module(package)
    except ImportError as problem:
        msg = 'Reports need Matplotlib and Jinja2: pip install "sigmascale[cli]".'
        raise ImportError(msg) from problem


def _same_rows(before: Any, after: Any) -> bool:
    """Return whether two sets have equal features and truths, in whatever order.

    Uncertainties, and with the bias errors, are what recalibration changes.
    """
    if before.names != after.names or before.n_rows != after.n_rows:
        return False
    pairs = list(zip(before.columns[1:], after.columns[1:], strict=True))
    if before.y_true is not None and after.y_true is not None:
        pairs.append((before.y_true, after.y_true))
    return all(np.array_equal(np.sort(was), np.sort(now)) for was, now in pairs)


def environment(*, markdown: bool = False) -> Any:
    """Return what fills templates: text stays text, in HTML and in Markdown.

    Each value is called on its way into the page; Jinja escapes what comes out.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    plain = in_markdown if markdown else visible
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=not markdown,
        undefined=StrictUndefined,
        finalize=lambda value: plain(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["kept"] = _kept
    made.filters["as_yaml"] = _as_yaml
    return made


def _kept(svg: str, name: str) -> Any:
    """Return a picture of ours as it is, between marks by which it is found again."""
    from markupsafe import Markup

    return Markup("<!--{0}-->{1}<!--/{0}-->").format(name, Markup(svg))


def _as_yaml(text: str) -> Any:
    """Return text as a string of YAML, in which no character means anything."""
    from markupsafe import Markup

    as_json = json.dumps(visible(text), ensure_ascii=True)
    for character in "<>&`":
        as_json = as_json.replace(character, f"\\u{ord(character):04x}")
    return Markup(as_json)


def in_markdown(text: str) -> str:
    r"""Return text in which no character means anything to Markdown or HTML.

    >>> in_markdown("a|b <i>*c*</i>")
    'a\\|b &lt;i&gt;\\*c\\*&lt;/i&gt;'
    """
    escaped = visible(text, keep="").replace("&", "&amp;")
    escaped = escaped.replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#$~])", r"\\\1", escaped)


def _facts(last: Validation) -> str:
    """Return the size of the set, and by what it was judged, in a line."""
    rows = last.rows
    parts = [f"{rows.n_rows:,} rows"]
    if rows.groups is not None:
        parts.append(f"{int(rows.groups.max()) + 1:,} groups")
    if rows.weights is not None:
        parts.append(f"weighted ({rows.n_effective:,.0f} rows in effect)")
    parts.append(f"features: {listed(rows.names[1:], 6) or 'none'}")
    parts.append(f"tolerance {last.tolerance:g}")
    return " · ".join(parts)


def _within(stages: list[Validation]) -> str:
    """Return what the 95 % intervals that are claimed hold."""
    rows = stages[-1].rows
    of = "normal" if rows.shape is None else "given"
    if rows.distributions is not None:
        of = "learned"
    what = "balls (errors are vectors)" if rows.is_vector else "intervals"
    words = f"The 95\u00a0% {what} of the {of} distributions hold"
    held = [percent(stage.scores.coverage[0.95]) for stage in stages]
    before = f" ({held[0]} before)" if len(stages) > 1 else ""
    return f"{words} {held[-1]} of the truths{before}."


def _over_time(last: Validation) -> str:
    """Return whether anything has changed over time, where times are known."""
    if last.rows.time is None:
        return ""
    from ..monitoring import over_time

    return f"Over time: {over_time(last.rows, confidence=last.confidence).state.words}"


def _learned(recalibrator: Any) -> list[str]:
    """Return what a recalibrator says of itself."""
    return [] if recalibrator is None else recalibrator.describe().split("\n")


def _clusters(last: Validation) -> str:
    """Return what was taken to be independent."""
    if last.rows.groups is not None:
        return "Rows of a group were kept together; groups were taken as independent."
    return "No groups were given: rows were taken as independent."


# -- what not to conclude --------------------------------------------------------------


def _cautions(
    before: Validation, after: Validation | None, recalibrator: Any
) -> Iterator[str]:
    """Yield what a reader should not conclude, the gravest first."""
    last = after or before
    rows = last.rows
    if rows.distributions is not None and (share := rows.distributions.fitted_share):
        yield (
            f"That recalibration does as well on other rows: {percent(share)} of the "
            "judged rows were fitted, so that all that is said of “after” is too good."
        )
    elif after is not None and recalibrator is None:
        yield (
            "That recalibration does as well on other rows: this report was not told "
            "what was learned, and from which rows. If the judged rows are among them, "
            "all that is said of “after” is too good."
        )
    if rows.groups is None and (words := repeats_found(rows)):
        yield (
            f"That rows are independent: they look like repeats ({words}), and no "
            "groups were given, so that a “no” comes too easily. Judge again with "
            "groups."
        )
    if rows.n_rows < FEW_FOR_FAULTS:
        yield f"That there is no fault where none was found in {rows.n_rows:,} rows."
    if after is not None and after.scores.nll > before.scores.nll:
        yield "That u became better: the likelihood is worse after recalibration."
    if len(rows.names) == 1:
        yield (
            "That u is right for every kind of input: no feature was looked at. Right "
            "at every level, u can be too small for some inputs and too large for "
            "others."
        )
    fitted_features = getattr(recalibrator, "names_", ())[1:]
    not_judged = [name for name in fitted_features if name not in rows.names]
    if not_judged:
        yield (
            f"Anything about {listed(not_judged)}: the recalibrator knows it, and it "
            "was not judged."
        )
    yield (
        "That a “yes” is a proof for features that nobody recorded, for data of "
        "another kind, or for methods that were chosen by these very rows. Nor is "
        "right useful: u can be right and large; CRPS tells."
    )


# -- tables ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A line of a table: its name, a note below the name, and its cells."""

    name: str
    note: str
    cells: tuple[str, ...]


def number(value: float) -> str:
    """Return a score with three significant digits.

    >>> number(0.12345), number(0.0), number(12345.6), number(float("inf"))
    ('0.123', '0', '1.23e+04', '∞')
    """
    return f"{value:.3g}".replace("inf", "∞")


def percent(share: float) -> str:
    r"""Return a share in per cent, with a space at which no line breaks.

    >>> percent(0.9512)
    '95.1\xa0%'
    """
    return f"{100 * share:.3g}\u00a0%"


def score_rows(stages: Sequence[Validation]) -> list[Row]:
    """Return scores before and after, and what perfectly calibrated rows would have."""
    cards = [stage.scores for stage in stages]
    rows = []
    for name in cards[-1].to_dict():
        if name.startswith("within_"):
            rows.append(_coverage_row(name, cards))
        elif name.startswith("f_v_"):
            rows += _fraction_rows(name, cards)
        else:
            cells = (*(number(card[name]) for card in cards), _calibrated(name, cards))
            rows.append(Row(shorten(name, 60), MEANINGS.get(name, ""), cells))

    # by the first word; all others stay in their order
    order = {"CRPS": 0, "held": 1, "NLL": 2}
    rows.sort(key=lambda row: order.get(row.name.split()[0], 3))
    return rows


def _calibrated(name: str, cards: Sequence[scores.Scorecard]) -> str:
    """Return what a score of perfectly calibrated rows would be, with its spread."""
    reference = cards[-1].reference
    mean = reference.mean.get(name, math.nan)
    if not math.isfinite(mean):
        return ""
    return f"{number(mean)} ± {reference.sd[name]:.2g}"


def _coverage_row(name: str, cards: Sequence[scores.Scorecard]) -> Row:
    """Return the row of what intervals of one level hold."""
    level = float(name.removeprefix("within_")) / 100
    cells = (*(percent(card[name]) for card in cards), percent(level))
    return Row(f"held by intervals of {percent(level)}", "", cells)


def _fraction_rows(name: str, cards: Sequence[scores.Scorecard]) -> list[Row]:
    """Return the row of a fraction of valid bins, if there is one in all columns.

    Limits stand within its cells.
    """
    variable = name.removeprefix("f_v_")
    if any(variable not in card.valid for card in cards):
        return []
    cells = (*(str(card.valid[variable]) for card in cards), _calibrated(name, cards))
    return [Row(shorten(name, 60), MEANINGS["f_v"], cells)]


def tail_rows(stages: Sequence[Validation]) -> list[Row]:
    """Return the statistics that heavy tails spoil, and how heavy they are.

    The share of errors within 1.96 u is not among them: the page says it, once.
    """
    try:
        tails = [scores.tails(stage.rows) for stage in stages]
    except InvalidInputError:  # of vectors, few rows, or errors that are all 0
        return []

    def row(name: str, note: str, attribute: str, right: str) -> Row:
        cells = []
        for of_stage in tails:
            value = getattr(of_stage, attribute)
            if isinstance(value, float):
                cells.append(number(value))
            else:  # with its interval
                limits = f"[{number(value.low)}, {number(value.high)}]"
                cells.append(f"{number(value.value)} {limits}")
        return Row(name, note, (*cells, right))

    return [
        row("RCE", "(RMV − RMSE) / RMV, with its interval", "rce", "0"),
        row("ZMS", "with its interval", "zms", "1"),
        row("ν", "degrees of freedom of Student's t for z", "nu", "above 4"),
        row("skewness of z²", "above 0.8, a few rows decide", "skewness_z2", ""),
    ]
