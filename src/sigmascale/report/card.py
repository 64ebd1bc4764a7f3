"""The card: results that travel with a model, a table or a paper, on one page.

A card is plain data: what `validate` found, of which rows, with what. HTML and Markdown
show it and carry it along as JSON, so that whoever has the rows can compute all of it
again (:func:`verify_card`). Nothing in a card is executed, and nothing is fetched.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from .._support.checks import Ints
from .._support.files import parse_json, write_text
from .._support.hashing import hash_of_rows, scrambled
from .._support.text import listed, quoted, shorten
from .._support.version import __version__
from ..exceptions import DamagedFileError, InvalidInputError
from ..predictions.predictions import Predictions
from ..recalibration.persistence import checksum
from ..validation import words
from ..validation.validation import Validation
from .page import as_json, boxes, environment

CARD_FORMAT = 2
ENDINGS = (".html", ".htm", ".md", ".json")
SAME_NUMBER = 1e-9  # relative, by which numbers may differ and be the same
MOST_TOLD = 8  # differences that are told one by one
CARD_TITLE = "Uncertainty report card"
JSON_ID = "sigmascale-card"  # of the JSON within a page
LARGEST_CARD = 20_000_000  # bytes
KEPT_BITS = 28  # of numbers that are hashed; a sheet keeps some 53, and rounds


# -- what a card holds -----------------------------------------------------------------


def card_of(
    validation: Validation,
    *,
    recalibrator: Any = None,
    title: str = CARD_TITLE,
    about: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a card as plain data, which JSON can hold.

    Parameters
    ----------
    validation : Validation
        What :func:`sigmascale.validate` found; with its `before`, the card has both.
    recalibrator : Recalibrator, optional
        What recalibrated the rows.
    title : str, optional
        The title.
    about : dict, optional
        What else the card shall say of its data, such as the command that made it:
        "command", a list of words; "options", what they say; "file", its name;
        "file_sha256"; "left_out", columns that were not tested; "seed".

    Returns
    -------
    dict

    Examples
    --------
    >>> import sigmascale as ss
    >>> card = ss.report.card_of(ss.validate(ss.datasets.load_diabetes().test))
    >>> card["data"]["n_rows"], len(card["sha256"])
    (221, 64)
    """
    said = dict(about or {})
    v = validation
    rows = v.rows
    card: dict[str, Any] = {
        "sigmascale_card": CARD_FORMAT,
        "version": __version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "title": title,
        "seed": said.get("seed", 0),
        "command": said.get("command", []),
        "options": said.get("options"),
        "data": {
            "file": said.get("file"),
            "file_sha256": said.get("file_sha256"),
            "rows_sha256": rows_sha256(rows),
            "n_rows": rows.n_rows,
            "n_groups": None if rows.groups is None else int(rows.groups.max()) + 1,
            "n_effective": float(rows.n_effective),
            "columns": list(rows.names),
            "dimension": rows.components,
        },
        "recalibrator": _about_recalibrator(recalibrator),
        "not_tested": _not_tested(v, said.get("left_out", ())),
        "before": None if v.before is None else _results(v.before),
        "results": _results(v),
        "boxes": [asdict(box) | {"kind": box.kind} for box in boxes(v)],
        "for_a_paper": v.describe("paper"),
    }
    card = _plain(card)
    card["sha256"] = _sha256_of(card)
    return card


def _results(v: Validation) -> dict[str, Any]:
    """Return what was found, as numbers and as the lines that are printed."""
    lines = [asdict(table) for table in words.tables(v)]
    return v.to_dict() | {"numbers": v.summary().rows(), "tables": lines}


def _about_recalibrator(recalibrator: Any) -> dict[str, Any] | None:
    """Return what a recalibrator says of itself, and the hash of what was learned."""
    if recalibrator is None:
        return None
    return {"sha256": checksum(recalibrator), "words": recalibrator.describe()}


def _not_tested(v: Validation, left_out: Any) -> list[str]:
    """Return what the results say nothing of."""
    rows = v.rows
    said = ["rows from another source than these"]
    if rows.time is None:
        said.append("change over time")
    if len(rows.names) == 1:
        said.append("features: none was given")
    if left_out:
        said.append(f"columns not used: {listed(list(left_out), 6)}")
    combinations = v.checks.get("combinations")
    if combinations is not None and combinations.result == "not tested":
        said.append("combinations of columns: too few rows")
    if v.scope == "u":
        said.append("intervals")
    if v.scope == "intervals":
        said.append("the size of u")
    if rows.groups is None:
        said.append("whether rows are independent: no groups were given")
    return said


def _plain(value: Any) -> Any:
    """Return what JSON can hold: numbers that are none become text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    return value.item() if isinstance(value, np.generic) else value


def _sha256_of(card: Mapping[str, Any]) -> str:
    """Return the hash of a card's numbers and words, but for the hash itself."""
    hashed = {name: value for name, value in card.items() if name != "sha256"}
    text = json.dumps(hashed, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return _sha256(text)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def rows_sha256(p: Predictions) -> str:
    """Return a hash of rows by their values, whatever their order, format and file.

    Numbers are rounded to eight digits, which all formats keep; labels are counted in
    their alphabetical order, weights by their ratios, groups by the rows that they
    hold. Sorted rows are hashed.

    Parameters
    ----------
    p : Predictions
        Rows with errors.

    Returns
    -------
    str

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.load_diabetes().test
    >>> rows_sha256(p) == rows_sha256(p.take(slice(None, None, -1)))
    True
    """
    # what tells rows apart, as bits
    columns = list(_numbers_of(p))
    keys = [np.ascontiguousarray(column).view(np.uint64) for column in columns]

    # a group is the sum of its rows, whatever it is called
    if p.groups is not None:
        of_rows = hash_of_rows(columns)
        of_groups = np.zeros(int(p.groups.max()) + 1, dtype=np.uint64)
        np.add.at(of_groups, p.groups, of_rows)
        keys.append(scrambled(of_groups)[p.groups])

    # what the columns are, and then the rows, sorted
    names = {
        "columns": list(p.names),
        "labels": [_labels_in_use(p, position) for position in range(len(p.names))],
        "kinds": [p.y_true is not None, p.components, len(keys)],
    }
    digest = hashlib.sha256(json.dumps(names, ensure_ascii=True).encode())
    order = np.lexsort(keys[::-1])
    for key in keys:
        digest.update(np.ascontiguousarray(key[order]).astype("<u8").tobytes())
    return digest.hexdigest()


def _numbers_of(p: Predictions) -> Iterator[Any]:
    """Yield what tells rows apart, as columns of float64."""
    for position, column in enumerate(p.columns):
        if p.categories[position] is None:
            yield _to_eight_digits(column)
        else:
            yield _ranks(p, position).astype(np.float64)
    if p.y_true is not None and p.y_pred is not None:
        values = np.column_stack([p.y_pred, p.y_true])
    else:
        values = p.errors.reshape(p.n_rows, -1)
    for column in values.T:
        yield _to_eight_digits(column)
    if p.weights is not None:  # only ratios matter
        yield _to_eight_digits(p.weights / p.weights.max())
    if p.time is not None:
        yield p.time.astype(np.int64 if p.time.dtype.kind == "M" else float) + 0.0


def _to_eight_digits(column: Any) -> Any:
    """Return numbers of 28 bits, with one kind of NaN and of 0."""
    mantissa, exponent = np.frexp(column + 0.0)
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, KEPT_BITS)), exponent - KEPT_BITS)
    return np.where(np.isnan(column), np.nan, rounded + 0.0)


def _labels_in_use(p: Predictions, position: int) -> list[str] | None:
    """Return the labels of a column in alphabetical order; None of numbers."""
    labels = p.categories[position]
    if labels is None:
        return None
    codes = p.columns[position]
    used = np.unique(codes[codes >= 0]).astype(int)
    return sorted(str(labels[code]) for code in used)


def _ranks(p: Predictions, position: int) -> Ints:
    """Return the place of each row's label among those in use; −1 if it is missing."""
    labels: Any = p.categories[position]
    in_use = _labels_in_use(p, position) or ()
    rank_of = {label: rank for rank, label in enumerate(in_use)}
    ranks = np.array([rank_of.get(str(label), -1) for label in labels], dtype=np.int64)
    codes = p.columns[position].astype(np.int64)
    return np.where(codes >= 0, ranks[codes], -1)


# -- files -----------------------------------------------------------------------------


def write_card(
    path: str | os.PathLike[str],
    validation: Validation,
    *,
    recalibrator: Any = None,
    title: str = CARD_TITLE,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write a card, whole or not at all: one page with the results and their hash.

    Parameters
    ----------
    path : path-like
        A file that ends in .html, .md or .json.
    validation, recalibrator, title, about
        As for :func:`card_of`.

    Examples
    --------
    >>> import tempfile
    >>> import sigmascale as ss
    >>> v = ss.validate(ss.datasets.load_diabetes().test)
    >>> path = Path(tempfile.mkdtemp()) / "card.json"
    >>> ss.report.write_card(path, v)
    >>> ss.report.verify_card(path, v)
    ()
    """
    place = Path(path)
    ending = place.suffix.lower()
    if ending not in ENDINGS:
        msg = (
            f"`path` must end in .html, .md or .json; found {quoted(place.name)}. "
            "Name the card after what shall read it."
        )
        raise InvalidInputError(msg, "ending")
    card = card_of(validation, recalibrator=recalibrator, title=title, about=about)

    # a page has pictures, whose hashes the card holds, too
    drawn = {}
    if ending in (".html", ".htm"):
        from . import pictures

        # along u, and along the worst feature, if there is one
        sketches = pictures.draw(pictures.factors(validation)[:2])
        names = ("by_u", "by_feature")
        drawn = {name: x.svg for name, x in zip(names, sketches, strict=False)}
        card["pictures"] = {name: _sha256(svg) for name, svg in drawn.items()}
        card["sha256"] = _sha256_of(card)
    write_text(place, _card_text(card, ending, drawn))


def _card_text(
    card: Mapping[str, Any], ending: str, pictures: Mapping[str, str]
) -> str:
    """Return a card as a page, as Markdown or as JSON: the same card, the same text."""
    if ending == ".json":
        return json.dumps(card, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
    kind = "md" if ending == ".md" else "html"
    template = environment(markdown=kind == "md").get_template(f"card.{kind}.jinja")
    text: str = template.render(
        card=card,
        last=card["results"],
        before=card["before"],
        pictures=pictures,
        data=as_json(card),
        place=JSON_ID,
        metrics=_metrics(card),
    )
    return text


def _metrics(card: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the numbers that model hubs read, by type and name."""
    summary = card["results"]["summary"]
    metrics = []
    for name, value in summary.items():
        is_number = isinstance(value, int | float)  # not text, which is infinite
        if is_number and not name.endswith(("_low", "_high")) and name != "rows":
            kind = name.lower().replace(" ", "_")
            metrics.append({"type": kind, "name": name, "value": value})
    return metrics


# -- reading and verifying -------------------------------------------------------------


class _Reader(HTMLParser):
    """Reads the JSON of a page, which stands in an element of its own."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.is_inside = False
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "pre" and ("id", JSON_ID) in attrs:
            self.is_inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self.is_inside = False

    def handle_data(self, data: str) -> None:
        if self.is_inside:
            self.texts.append(data)


def read_card(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the data of a card; what is no card is refused.

    Parameters
    ----------
    path : path-like
        A file that :func:`write_card` has made.

    Returns
    -------
    dict

    Examples
    --------
    >>> import tempfile
    >>> import sigmascale as ss
    >>> path = tempfile.mkdtemp() + "/card.json"
    >>> ss.validate(ss.datasets.load_diabetes().test).card(path)
    >>> ss.report.read_card(path)["data"]["n_rows"]
    221
    """
    _, card = _read(Path(path))
    return card


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of a card's file, and its data."""
    if path.stat().st_size > LARGEST_CARD:
        msg = f"{path.name} is too large for a card."
        raise DamagedFileError(msg, "card")
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as problem:
        msg = f"{path.name} is no card: it is not text in UTF-8."
        raise DamagedFileError(msg, "card") from problem

    # a page and Markdown carry the card as JSON; else the text is the card
    ending = path.suffix.lower()
    carried = text
    if ending in (".html", ".htm"):
        reader = _Reader()
        reader.feed(text)
        carried = "".join(reader.texts)
    elif ending == ".md":
        block = re.search(rf"```json {JSON_ID}\n(.*?)\n```", text, re.DOTALL)
        carried = block[1] if block else ""
    card = parse_json(carried) if carried.strip() else None
    if not isinstance(card, dict) or card.get("sigmascale_card") != CARD_FORMAT:
        msg = (
            f"{path.name} is no card of sigmascale, or one of another format. Was "
            "the file cut short? Cards are made by `sigmascale check --card`."
        )
        raise DamagedFileError(msg, "card")
    try:
        _sha256_of(card)
    except ValueError as problem:  # JSON has 1e999, which no card holds
        msg = f"{path.name} is no card as it was made: a number in it is infinite."
        raise DamagedFileError(msg, "card") from problem
    return text, card


def verify_card(
    path: str | os.PathLike[str],
    validation: Validation,
    *,
    recalibrator: Any = None,
) -> tuple[str, ...]:
    """Return in what a card differs from what was found now; nothing if it is right.

    Parameters
    ----------
    path : path-like
        The card.
    validation : Validation
        What :func:`sigmascale.validate` finds of the rows that are at hand, with their
        `before` if the card has it.
    recalibrator : Recalibrator, optional
        What recalibrates them.

    Returns
    -------
    tuple of str
        A sentence a difference, the gravest first.

    Examples
    --------
    >>> import tempfile
    >>> import sigmascale as ss
    >>> path = tempfile.mkdtemp() + "/card.json"
    >>> p = ss.datasets.load_diabetes().test
    >>> ss.validate(p).card(path)
    >>> ss.report.verify_card(path, ss.validate(p.with_y_std(2 * p.y_std)))[0]
    'Other rows: the card tested 221, these are 221 others.'
    """
    place = Path(path)
    text, card = _read(place)
    about = {"seed": card.get("seed"), "left_out": ()}
    now = card_of(validation, recalibrator=recalibrator, about=about)
    try:
        return (*_edited(place, text, card), *_other_data(card, now))
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        # somebody has written other data, and their hash
        msg = f"{place.name} is no card of sigmascale: its fields are not those of one."
        raise DamagedFileError(msg, "card") from problem


def _edited(path: Path, text: str, card: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was changed in a card since it was made."""
    if card.get("sha256") != _sha256_of(card):
        yield "The card was edited: its data do not have the hash that it names."
        return

    # pictures stand between comments with their names
    pictures = {}
    for name, sha256 in card.get("pictures", {}).items():
        mark = re.escape(name)
        between = re.search(f"<!--{mark}-->(.*?)<!--/{mark}-->", text, re.DOTALL)
        pictures[name] = between[1] if between else ""
        if _sha256(pictures[name]) != sha256:
            yield f"The picture {quoted(name)} is not the one that was made."

    # the same data make the same page again
    if card["version"] != __version__:
        return  # which may show the same numbers in another way
    try:
        expected = _card_text(card, path.suffix.lower(), pictures)
    except Exception as problem:  # of data that have the hash of others
        yield f"The card cannot be shown as it says: {shorten(str(problem))}."
        return
    if expected != text:
        yield "The page was edited: it does not show the numbers that it carries."


def _other_data(card: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield how rows, recalibrator and numbers differ from those of a card."""
    was, data = card["data"], now["data"]
    if was["columns"] != data["columns"]:
        were, are = (listed(each["columns"], 6) for each in (was, data))
        yield f"Other columns: the card tested {were}; these are {are}."
    elif was["rows_sha256"] != data["rows_sha256"]:
        n_then, n_now = was["n_rows"], data["n_rows"]
        yield f"Other rows: the card tested {n_then:,}, these are {n_now:,} others."
    of_card, of_now = (each["recalibrator"] or {} for each in (card, now))
    if of_card.get("sha256") != of_now.get("sha256"):
        yield "Another recalibrator than that of the card, or none."
    differences = list(_differences(card, now))
    yield from differences[:MOST_TOLD]
    if len(differences) > MOST_TOLD:
        yield f"... and {len(differences) - MOST_TOLD:,} more numbers or words differ."


def _differences(card: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield which numbers and words of a card are found to be others now."""
    for part in ("results", "before", "for_a_paper"):
        of_card = dict(_leaves(card.get(part), part))
        of_now = dict(_leaves(now[part], part))
        for place in of_card | of_now:
            was, now_is = of_card.get(place), of_now.get(place)
            if not _is_same(was, now_is):
                yield f"{place} is {quoted(was)} in the card, and {quoted(now_is)} now."


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield every number and word of data, with its place."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield from _leaves(member, f"{place}.{shorten(name)}")
    elif isinstance(value, list):
        for number, member in enumerate(value):
            yield from _leaves(member, f"{place}[{number}]")
    else:
        yield place, value


def _is_same(was: Any, now_is: Any) -> bool:
    """Return whether two values are the same, or numbers that differ by rounding."""
    are_numbers = isinstance(was, int | float) and isinstance(now_is, int | float)
    if are_numbers and not isinstance(was, bool):
        return math.isclose(was, now_is, rel_tol=SAME_NUMBER, abs_tol=1e-12)
    return bool(was == now_is)
