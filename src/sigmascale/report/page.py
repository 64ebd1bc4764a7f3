"""The report as HTML: numbers become text here, and text goes into the template."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .._support.files import write_text
from .._support.version import __version__
from ..comparison import Comparison
from ..exceptions import InvalidInputError
from ..judging.validation import Validation
from ..predictions import Predictions
from ..scaling.selected import FOOTNOTE
from .cautions import cautions
from .methods import parameters, write_methods
from .pictures import draw, sketches
from .results import Results, Seed, gather
from .svg import Parts
from .text import (
    MARKS,
    clean,
    doubt_of_average,
    headline,
    meaning_of_answers,
    question_of,
    small_print,
    tabulate_candidates,
    tabulate_comparison,
    tabulate_distributions,
    tabulate_scores,
    tabulate_tails,
)

_LINKS = {
    "https://doi.org/": re.compile(r"doi:(\S+)"),
    "https://arxiv.org/abs/": re.compile(r"arXiv:([\d.]+\d)"),
}


def report_html(
    validation: Validation | Predictions,
    *,
    recalibrated: Validation | Predictions | None = None,
    scaler: Any = None,
    calibration: Any = None,
    comparison: Comparison | None = None,
    time: Any = None,
    names: Mapping[str, str] | None = None,
    title: str = "Are these uncertainties right?",
    parts: str | os.PathLike[str] | None = None,
    rng: Seed = 0,
) -> str:
    """Return a report on the uncertainties of a set as one HTML page.

    The page needs no network and no JavaScript, shows all pictures as inline SVG, and
    can be read on a phone, on paper, in light and in dark. The same input gives the
    same text.

    Parameters
    ----------
    validation : Validation or Predictions
        What :func:`sigmascale.validate` returned for the uncertainties as they are; or
        Predictions with errors, which are judged with its defaults.
    recalibrated : Validation or Predictions, optional
        The same for these rows with new uncertainties: the report then shows before and
        after. Where verdicts are passed, let the old uncertainties be the `ties` of the
        new ones, and the bins of the features are the same in both.
    scaler : recalibrator, optional
        What made them, fitted: its factors and, if it selected, its reasons are shown.
    calibration : pair (X, y) or Predictions, optional
        The set it was fitted on, conditioning table and errors: the report checks that
        the judged set is another one, and like it.
    comparison : Comparison, optional
        What :func:`sigmascale.compare` returned, shown as a table.
    time : array-like of shape (n,), optional
        When the judged rows came, numbers or dates: the report then has a section on
        time, which tells whether calibration has changed, and since when. Predictions
        bring their own.
    names : mapping of str to str, optional
        Lines about the data for the head of the report, such as
        ``{"judged set": "test.csv", "error": "column E"}``.
    title : str, optional
        The title.
    parts : path-like, optional
        A folder that the pictures are written to as well, as SVG and PNG, and the
        methods as text: for a paper, or slides.
    rng : int, Generator or None, default 0
        Seed of the references of the confidence curves.

    Returns
    -------
    str

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.make_molecules(300)
    >>> page = report_html(ss.validate(data.error, data.uncertainty))
    >>> page.startswith("<!DOCTYPE html>"), "Not calibrated" in page
    (True, True)
    """
    about = _check_words(title, names)
    _check_packages()
    results = gather(
        validation,
        recalibrated=recalibrated,
        scaler=scaler,
        calibration=calibration,
        comparison=comparison,
        time=time,
        rng=rng,
    )
    paragraphs, references = write_methods(results)
    folder = None if parts is None else Parts(parts)
    pictures = draw(sketches(results), None if folder is None else folder.save)
    if folder is not None:
        folder.finish(paragraphs, references)
    page: str = _template().render(
        title=title,
        version=__version__,
        headline=headline(results),
        answer=results.final.validation.answer,
        meanings=meaning_of_answers(results.final.validation),
        facts=[*_facts(results), *about],
        stages=results.stages,
        scores=tabulate_scores(results, ("ENCE_", "UCE_"), wanted=False),
        more_scores=tabulate_scores(results, ("ENCE_", "UCE_"), wanted=True),
        distributions=tabulate_distributions(results),
        tails=tabulate_tails(results),
        groups=results.n_groups,
        time=_about_time(results),
        pictures=pictures,
        scaler=None if not results.recalibrated else _about(results),
        selection=results.selection
        and tabulate_candidates(
            results.selection, getattr(results.scaling, "name_", None)
        ),
        footnote=FOOTNOTE,
        comparison=None if comparison is None else tabulate_comparison(comparison),
        better="" if comparison is None else comparison.sentence,
        cautions=cautions(results),
        methods=paragraphs,
        references=[(text, _link(text)) for text in references],
    )
    return page


def write_report(
    path: str | os.PathLike[str], validation: Validation | Predictions, **options: Any
) -> None:
    """Write the page of :func:`report_html` to a file, whole or not at all.

    Parameters
    ----------
    path : path-like
        Where to write; an existing file is replaced.
    validation, **options
        As for :func:`report_html`.

    Examples
    --------
    >>> import tempfile
    >>> import sigmascale as ss
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> data = ss.datasets.make_molecules(300)
    >>> found = ss.validate(data.error, data.uncertainty)
    >>> write_report(path, found, title="As they came")
    >>> path.stat().st_size > 10_000
    True
    """
    write_text(Path(path), report_html(validation, **options))


def _check_packages() -> None:
    """Refuse at once to make a report where a package is not installed."""
    try:
        for package in ("jinja2", "matplotlib"):
            importlib.import_module(package)
    except ImportError as problem:
        msg = 'Reports need Matplotlib and Jinja2: pip install ".[cli]" in a checkout.'
        raise ImportError(msg) from problem


def _check_words(title: Any, names: Any) -> list[tuple[str, str]]:
    """Return the lines of `names`, if they and the title are text."""
    if not isinstance(title, str):
        msg = f"`title` must be text; found {title!r}."
        raise InvalidInputError(msg)
    if names is not None and not isinstance(names, Mapping):
        msg = f"`names` must be a mapping of names to text; found {names!r}."
        raise InvalidInputError(msg)
    return [(str(name), str(text)) for name, text in (names or {}).items()]


def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        # called on all that goes into the page; Jinja escapes what comes out
        finalize=lambda value: clean(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = lambda name: Markup(
        re.sub(r"(\w{3}_)(?=\w)", r"\1<wbr>", str(escape(clean(name))))
    )
    environment.globals |= {
        "marks": MARKS,
        "doubt_of_average": doubt_of_average,
        "question_of": question_of,
        "small_print": small_print,
    }
    return environment.get_template("page.html.jinja")


def _facts(results: Results) -> list[tuple[str, str]]:
    local = results.final.validation.local["u"]
    facts = [
        ("rows judged", f"{results.rows.n_rows:,}"),
        (
            "bins",
            f"{local.n.size} of each number, about {round(local.n.mean()):,} rows",
        ),
        ("features", ", ".join(results.rows.names[1:]) or "none"),
        ("tolerance", f"a factor of {results.final.validation.tolerance:g}"),
    ]
    if results.n_groups is not None:
        facts.insert(1, ("groups of rows", f"{results.n_groups:,}"))
    if results.n_effective is not None:
        facts.insert(1, ("rows in effect, weighted", f"{results.n_effective:,.0f}"))
    if results.over_time is not None:
        times, found = results.over_time.local, results.over_time
        first, last = (
            found.shown(float(each)) for each in (times.x_min[0], times.x_max[-1])
        )
        facts.append(("time", f"{_plain(first)} to {_plain(last)}"))
    if results.n_learned_from is not None:
        facts.append(("rows learned from", f"{results.n_learned_from:,}"))
    if results.scaler is not None:
        facts.append(("recalibrator", type(results.scaling).__name__))
    return facts


def _plain(time: Any) -> str:
    return time if isinstance(time, str) else f"{time:.10g}"


def _about_time(results: Results) -> list[str]:
    """Return the words of the section on time; none if there is no such section."""
    found = results.over_time
    if found is None:
        return []
    words = [found.words]
    if found.alarm is not None:
        words.append(found.alarm.suggestion)
    if results.rows.weights is not None:
        words.append("Here all rows count the same, whatever their weight.")
    return words


def _about(results: Results) -> dict[str, str]:
    fitted = results.fitted
    if fitted is None:
        return {"name": "", "words": ""}
    # what others have made need not tell what it does
    whole = results.scaler if hasattr(results.scaler, "law_") else fitted
    words = whole.describe() if hasattr(whole, "describe") else ""
    return {"name": parameters(fitted), "words": words}


def _link(reference: str) -> str | None:
    for address, pattern in _LINKS.items():
        if found := pattern.search(reference):
            return address + quote(found[1], safe="/:;().")
    return None
