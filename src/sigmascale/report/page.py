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

from .._support import numerals
from .._support.extras import needed_for
from .._support.files import write_text
from .._support.text import listed, quoted, shorten, visible
from .._support.version import __version__
from ..exceptions import InvalidInputError
from ..validation import words
from ..validation.validation import Validation

LESSER = ("S_", "ENCE_", "UCE_", "f_v_")  # scores of bins
FEW_FOR_FAULTS = 1000
TITLE = "Are these uncertainties calibrated?"
KINDS = {"Calibrated": "good", "Recalibration helped": "good"}
KINDS |= {"Inconclusive": "unsure", "No gain from recalibration": "unsure"}


@dataclass(frozen=True)
class Box:
    """A result in a few words, which the page shows first."""

    stage: str
    word: str
    rest: str
    numbers: str

    @property
    def kind(self) -> str:
        """The class of the style sheet."""
        return KINDS.get(self.word, "bad")


def report_html(
    validation: Validation,
    *,
    title: str = TITLE,
    recalibrator: Any = None,
    steps: Sequence[str] | None = None,
) -> str:
    """Return a report on the uncertainties of a set as one HTML page.

    The page needs no network and no JavaScript, shows all pictures as inline SVG, and
    can be read on a phone, on paper, in light and in dark. The same input gives the
    same text.

    Parameters
    ----------
    validation : Validation
        What :func:`sigmascale.validate` found; with its `before`, the report shows
        before and after.
    title : str, optional
        The title.
    recalibrator : Recalibrator, optional
        What recalibrated the rows, fitted: the report describes it.
    steps : sequence of str, optional
        What to do next; by default in Python.

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
    _check(validation, title, recalibrator)
    from . import pictures

    # all pictures, drawn in one go
    v = validation
    along = pictures.factors(v)
    drawn = pictures.draw([*along, *pictures.others(v)])
    first, rest = drawn[:2], drawn[2 : len(along)]

    stages = [("", v)] if v.before is None else [("Before", v.before), ("After", v)]
    template = environment().get_template("page.html.jinja")
    page: str = template.render(
        title=title,
        version=__version__,
        facts=words.facts(v),
        boxes=boxes(v),
        first=first,
        results=[(stage, words.tables(x)) for stage, x in stages],
        statements=words.statements(v, with_cost=v.before is None),
        steps=[*map(str, v.next_steps)] if steps is None else steps,
        over_time=_over_time(v),
        along=rest,
        others=drawn[len(along) :],
        fitted=[] if recalibrator is None else recalibrator.describe().split("\n"),
        stages=[stage or "estimate" for stage, _ in stages],
        numbers=_numbers([x for _, x in stages]),
        score_rows=_score_rows([x for _, x in stages]),
        cautions=[*_cautions(v, recalibrator)],
        confidence=numerals.level(v.confidence),
        has_groups=v.rows.groups is not None,
    )
    return page


def boxes(v: Validation) -> list[Box]:
    """Return the results that the page shows first: before, after and the effect."""
    if v.before is None or v.change is None:
        return [Box("", *words.outcome(v), words.in_short(v))]
    was, now = numerals.alike(v.change.before, v.change.after)
    change = f"{v.change.score} {was} before, {now} after"
    return [
        Box("Before recalibration", *words.outcome(v.before), words.in_short(v.before)),
        Box("After recalibration", *words.outcome(v), words.in_short(v)),
        Box("Effect, paired on the same rows", *words.effect(v.change), change),
    ]


def write_report(
    path: str | os.PathLike[str],
    validation: Validation,
    *,
    title: str = TITLE,
    recalibrator: Any = None,
    steps: Sequence[str] | None = None,
) -> None:
    """Write the page of :func:`report_html` to a file, whole or not at all.

    Parameters
    ----------
    path : path-like
        Where to write; an existing file is replaced.
    validation, title, recalibrator, steps
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
    how: dict[str, Any] = {"title": title, "recalibrator": recalibrator}
    page = report_html(validation, **how, steps=steps)
    write_text(Path(path), page)


def _check(validation: Any, title: Any, recalibrator: Any) -> None:
    """Refuse what is no result of a validation."""
    if not isinstance(validation, Validation):
        msg = (
            "`validation` must be what ss.validate returns; found "
            f"{type(validation).__name__}. Call ss.validate(p) first."
        )
        raise InvalidInputError(msg)
    if not isinstance(title, str):
        msg = f"`title` must be text; found {quoted(title)}."
        raise InvalidInputError(msg)
    if recalibrator is not None and not hasattr(recalibrator, "scale_"):
        msg = f"`recalibrator` must be a fitted one; found {quoted(recalibrator)}."
        raise InvalidInputError(msg)
    with needed_for("a report"):
        for package in ("jinja2", "matplotlib"):
            importlib.import_module(package)


def environment(*, markdown: bool = False) -> Any:
    """Return what fills templates: text stays text, in HTML and in Markdown.

    Each text passes `visible` or `in_markdown` on its way into the page; in HTML, Jinja
    escapes what comes out.
    """
    with needed_for("a report or a card"):
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
    made.filters["as_json"] = lambda text: as_json(visible(text))
    return made


def _kept(svg: str, name: str) -> Any:
    """Return a picture of ours as it is, between marks by which it is found again."""
    from markupsafe import Markup

    return Markup("<!--{0}-->{1}<!--/{0}-->").format(name, Markup(svg))


def as_json(value: Any) -> Any:
    """Return JSON, and YAML, in which no character means anything to a page."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for character in "<>&`'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def in_markdown(text: str) -> str:
    r"""Return text in which no character means anything to Markdown or HTML.

    >>> in_markdown("a|b <i>*c*</i>")
    'a\\|b &lt;i&gt;\\*c\\*&lt;/i&gt;'
    """
    escaped = visible(text, keep="").replace("&", "&amp;")
    escaped = escaped.replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#$~])", r"\\\1", escaped)


def _over_time(v: Validation) -> str:
    """Return whether anything has changed over time, where times are known."""
    if v.rows.time is None:
        return ""
    from ..monitoring import over_time

    return over_time(v.rows, confidence=v.confidence).state.words


# -- what not to conclude --------------------------------------------------------------


def _cautions(v: Validation, recalibrator: Any) -> Iterator[str]:
    """Yield what a reader should not conclude, the gravest first."""
    rows = v.rows
    if share := rows.distributions.fitted_share:
        yield (
            f"That recalibration does as well on other rows: {numerals.percent(share)} "
            "of the rows were used in the fit, so that results after it are too good."
        )
    elif v.before is not None and recalibrator is None:
        yield (
            "That recalibration does as well on other rows: this report does not know "
            "which rows were used in the fit. If these are among them, results after "
            "it are too good."
        )
    if rows.n_rows < FEW_FOR_FAULTS:
        yield f"That there is no fault where none was found in {rows.n_rows:,} rows."
    if len(rows.names) == 1:
        yield (
            "That u is calibrated for every subgroup of features: none was given. u "
            "can be too small for some inputs and too large for others."
        )
    fitted_features = getattr(recalibrator, "names_", ())[1:]
    not_tested = [name for name in fitted_features if name not in rows.names]
    if not_tested:
        yield (
            f"Anything about {listed(not_tested)}: the recalibrator uses it, and it "
            "was not tested."
        )
    yield (
        "That a pass holds for features that nobody recorded, for data of another "
        "kind, or for methods that were chosen by these very rows. Nor is calibrated "
        "useful: u can be calibrated and large; CRPS tells."
    )


# -- tables ----------------------------------------------------------------------------


Row = tuple[str, list[str]]  # its name and its cells


def _numbers(stages: Sequence[Validation]) -> list[Row]:
    """Return the numbers of a table of a paper, with their limits."""
    tables = [stage.summary().rows() for stage in stages]
    names = dict.fromkeys(name for table in tables for name in table)
    return [(name, [table.get(name, "") for table in tables]) for name in names]


def _score_rows(stages: Sequence[Validation]) -> list[Row]:
    """Return scores of bins, and what perfectly calibrated rows would have."""
    cards = [stage.scores for stage in stages]
    reference = cards[-1].reference
    rows = []
    for name in cards[-1].to_dict():
        if not name.startswith(LESSER) or name.endswith(("_low", "_high")):
            continue
        if name not in cards[0].to_dict():  # of one stage alone
            continue
        cells = [numerals.number(card[name]) for card in cards]
        mean = reference.mean.get(name, math.nan)
        target = ""
        if math.isfinite(mean):
            sd = numerals.number(reference.sd[name], 2)
            target = f"{numerals.number(mean)} ± {sd}"
        rows.append((shorten(name, 60), [*cells, target]))
    return rows
