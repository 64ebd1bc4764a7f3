"""Conditions on rows: a small language, which we read ourselves.

A condition may come from a card or a page of a stranger. It names columns of the table,
numbers and texts, and what is written here; nothing else is understood. So it opens no
file, calls no function, and takes no more memory than the columns that it compares.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

import polars as pl

from .._support.text import listed, quoted
from ..exceptions import InvalidInputError
from ..predictions.schema import known

if TYPE_CHECKING:
    from .input_table import TypedColumns

LONGEST = 10_000  # characters of a condition
DEEPEST = 32  # brackets in brackets, and operations on results of operations
EXAMPLE = "split = 'test' AND mass < 120"
KEYWORDS = {"AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "LIKE", "TRUE", "FALSE"}
COMPARISONS: dict[str, Callable[[Any, Any], pl.Expr]] = {
    "=": operator.eq,
    "==": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC: dict[str, Callable[[Any, Any], pl.Expr]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
# Text in single quotes, names in double ones; either sign is doubled within. There are
# no comments, so that -- is refused.
_TOKEN = re.compile(
    r"""(?:(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")*")
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[^\W\d]\w*)
    |(?P<sign><>|<=|>=|!=|==|-(?!-)|[+*/%<>=(),]))\s*""",
    re.VERBOSE,
)


def met(condition: str, columns: TypedColumns) -> pl.Expr:
    """Return where rows meet a condition; one that compares a missing value does not.

    >>> frame = pl.DataFrame({"mass": [12.0, None, 130.0], "phase": ["a", "b", "b"]})
    >>> from sigmascale.cli.input_table import TypedColumns
    >>> columns = TypedColumns(frame.lazy(), decimal=".")
    >>> frame.filter(met("mass < 120 OR phase IN ('b', 'c')", columns)).height
    3
    """
    return _Parser(condition, columns).condition()


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    place: int  # of its first character, counted from 1


@dataclass(frozen=True)
class _Operand:
    """An expression, what its values are, and how many operations are nested in it."""

    value: pl.Expr
    kind: str  # "number", "text", "date", "truth value" or "missing value"
    height: int = 0
    text: str | None = None  # of a text in quotes, which may stand for a date


class _Parser:
    """A recursive descent, with a method for each level of precedence."""

    def __init__(self, condition: str, columns: TypedColumns) -> None:
        condition = condition.strip()
        self.source = condition
        self.columns = columns
        self.tokens: list[_Token] = []
        self.at = 0
        self.nesting = 0
        if len(condition) > LONGEST:
            self._refuse(f"it has more than {LONGEST:,} characters")

        # words and signs, and the columns among them
        place = 0
        while place < len(condition):
            match = _TOKEN.match(condition, place)
            if match is None:
                self._refuse(f"{condition[place]!r} is not understood", place + 1)
            kind = str(match.lastgroup)
            self.tokens.append(_Token(kind, match[kind], match.start(kind) + 1))
            place = match.end()
        self.tokens.append(_Token("end", "", len(condition) + 1))
        used = {_name(token) for token in self.tokens if token.kind in ("word", "name")}
        self.kinds = columns.kinds([name for name in columns.names if name in used])

    def condition(self) -> pl.Expr:
        """Return the whole condition."""
        operand = self._alternatives()
        if self._next.kind != "end":
            self._refuse_next()
        return self._truth(operand).value

    # -- tokens ------------------------------------------------------------------------

    @property
    def _next(self) -> _Token:
        return self.tokens[self.at]

    def _take(self, *expected: str) -> str:
        """Return the next keyword or sign and go on, if it is expected; else ""."""
        token = self._next
        found = token.text.upper()
        if token.kind not in ("word", "sign") or found not in expected:
            return ""
        self.at += 1
        return found

    def _need(self, expected: str) -> None:
        if not self._take(expected):
            self._refuse_next(f"; {expected} is expected")

    def _refuse_next(self, more: str = "") -> NoReturn:
        token = self._next
        found = quoted(token.text) if token.text else "the end"
        self._refuse(f"{found} cannot stand here{more}", token.place)

    def _refuse(self, words: str, place: int | None = None) -> NoReturn:
        """Refuse the condition; say what is wrong with it, and at which character."""
        at = "" if place is None else f" (character {place})"
        msg = (
            f"--where {quoted(self.source)} cannot be used: {words}{at}. It is a "
            f'condition such as "{EXAMPLE}": numbers are compared with numbers, text '
            "in single quotes with text. The columns are: "
            f"{listed(self.columns.names)}."
        )
        raise InvalidInputError(
            msg, "condition", columns=list(self.columns.names), place=place
        )

    # -- levels of precedence ----------------------------------------------------------

    def _nested(self, read: Callable[[], _Operand]) -> _Operand:
        """Return what stands in brackets, or after a sign."""
        self.nesting += 1
        if self.nesting > DEEPEST:
            self._refuse("it is nested too deeply", self._next.place)
        operand = read()
        self.nesting -= 1
        return operand

    def _alternatives(self) -> _Operand:
        """Return conditions of which one must be met."""
        return self._joined("OR", self._conjunction, pl.any_horizontal)

    def _conjunction(self) -> _Operand:
        """Return conditions all of which must be met."""
        return self._joined("AND", self._negation, pl.all_horizontal)

    def _joined(
        self, word: str, read: Callable[[], _Operand], join: Callable[..., pl.Expr]
    ) -> _Operand:
        """Return one operand, or several with a word between them, side by side."""
        operands = [read()]
        while self._take(word):
            operands.append(read())
        if len(operands) == 1:
            return operands[0]
        values = [self._truth(operand).value for operand in operands]
        return self._result(join(values), "truth value", *operands)

    def _negation(self) -> _Operand:
        if not self._take("NOT"):
            return self._comparison()
        operand = self._truth(self._nested(self._negation))
        return self._result(~operand.value, "truth value", operand)

    def _comparison(self) -> _Operand:
        """Return a comparison of sums, or a sum alone."""
        left = self._sum()
        place = self._next.place
        word = self._take(*COMPARISONS, "IS", "NOT", "IN", "BETWEEN", "LIKE")
        if not word:
            return left
        left = _compared(left)
        is_negated = word == "NOT"
        if is_negated:
            word = self._take("IN", "BETWEEN", "LIKE")
        if word in COMPARISONS:
            met = self._compare(left, word, self._sum(), place)
        elif word == "IS":
            is_negated = bool(self._take("NOT"))
            self._need("NULL")
            met = left.value.is_null()
        elif word == "IN":
            met = self._is_in(left)
        elif word == "BETWEEN":
            met = self._compare(left, ">=", self._sum(), place)
            self._need("AND")
            met &= self._compare(left, "<=", self._sum(), place)
        elif word == "LIKE":
            met = self._is_like(left)
        else:
            self._refuse_next("; IN, BETWEEN or LIKE is expected")
        return self._result(~met if is_negated else met, "truth value", left)

    def _compare(
        self, left: _Operand, sign: str, right: _Operand, place: int
    ) -> pl.Expr:
        left, right = self._alike(left, _compared(right), place)
        return COMPARISONS[sign](left.value, right.value)

    def _is_in(self, left: _Operand) -> pl.Expr:
        """Return whether values are among those of a list in brackets."""
        self._need("(")
        values = []
        while True:
            place = self._next.place
            sign = self._take("-")
            token = self._next
            if token.kind != "number" and (sign or token.kind != "text"):
                self._refuse_next("; a number or a text is expected")
            self.at += 1
            value = _value(token)
            _, right = self._alike(left, _literal(value), place)
            if right.kind == "date":
                value = self._date(str(value), place)
            values.append(-value if sign else value)
            if not self._take(","):
                break
        self._need(")")
        return left.value.is_in(values)

    def _is_like(self, left: _Operand) -> pl.Expr:
        """Return whether texts follow a pattern: % is any text, _ one character."""
        token = self._next
        if token.kind != "text":
            self._refuse_next("; a text is expected")
        self.at += 1
        pattern = str(_value(token))
        self._alike(left, _literal(pattern), token.place)
        marks = {"%": ".*", "_": "."}
        parts = [marks.get(sign, pl.escape_regex(sign)) for sign in pattern]
        return left.value.str.contains(f"(?s)^{''.join(parts)}$")

    def _sum(self) -> _Operand:
        return self._arithmetic("+-", self._product)

    def _product(self) -> _Operand:
        return self._arithmetic("*/%", self._factor)

    def _arithmetic(self, signs: str, read: Callable[[], _Operand]) -> _Operand:
        """Return numbers with signs between them, from the left."""
        left = read()
        while sign := self._take(*signs):
            right = self._number(read())
            value = ARITHMETIC[sign](self._number(left).value, right.value)
            left = self._result(value, "number", left, right)
        return left

    def _factor(self) -> _Operand:
        """Return a value, a column, or what stands in brackets."""
        if self._take("-"):
            operand = self._number(self._nested(self._factor))
            return self._result(-operand.value, "number", operand)
        if self._take("("):
            operand = self._nested(self._alternatives)
            self._need(")")
            return operand
        if word := self._take("TRUE", "FALSE"):
            return _Operand(pl.lit(word == "TRUE"), "truth value")
        token = self._next
        is_keyword = token.kind == "word" and token.text.upper() in KEYWORDS
        if is_keyword or token.kind in ("sign", "end"):
            self._refuse_next()
        self.at += 1
        if token.kind in ("text", "number"):
            return _literal(_value(token))
        return self._column(token)

    def _column(self, token: _Token) -> _Operand:
        """Return a column: numbers, also in text, as numbers, and labels as text."""
        name = _name(token)
        if token.kind == "word" and self._next.text == "(":
            self._refuse(f"{quoted(name)} is no word of a condition", token.place)
        known(name, self.columns.names, f"--where (character {token.place})")
        dtype = self.columns.schema[name]
        column = pl.col(name)
        if dtype == pl.Null:
            return _Operand(column, "missing value")
        if self.kinds[name] == "number":
            return _Operand(self.columns.number(name), "number")
        if dtype == pl.Boolean:
            return _Operand(column, "truth value")
        if dtype in (pl.String, pl.Categorical, pl.Enum):
            return _Operand(column.cast(pl.String), "text")
        if dtype == pl.Date:
            return _Operand(column.cast(pl.Datetime("us")), "date")
        if dtype == pl.Datetime:  # as a clock at that place shows it
            return _Operand(column.dt.replace_time_zone(None), "date")
        return _Operand(column, str(dtype))

    # -- what goes together ------------------------------------------------------------

    def _result(self, value: pl.Expr, kind: str, *of: _Operand) -> _Operand:
        """Return what is made of operands, unless too much is nested in them."""
        height = 1 + max(operand.height for operand in of)
        if height > DEEPEST:
            self._refuse("it is nested too deeply", self._next.place)
        return _Operand(value, kind, height)

    def _truth(self, operand: _Operand) -> _Operand:
        if operand.kind != "truth value":
            self._refuse(
                f"a {operand.kind} is no condition; a comparison is expected",
                self._next.place,
            )
        return operand

    def _number(self, operand: _Operand) -> _Operand:
        if operand.kind not in ("number", "missing value"):
            self._refuse(f"a {operand.kind} is no number", self._next.place)
        return operand

    def _alike(
        self, left: _Operand, right: _Operand, place: int
    ) -> tuple[_Operand, _Operand]:
        """Return two operands as values that can be compared."""
        kinds = {left.kind, right.kind}
        if "date" in kinds and left.text is not None:
            left = _Operand(pl.lit(self._date(left.text, place)), "date")
        elif "date" in kinds and right.text is not None:
            right = _Operand(pl.lit(self._date(right.text, place)), "date")
        elif "missing value" not in kinds and len(kinds) > 1:
            self._refuse(f"a {left.kind} cannot be compared with a {right.kind}", place)
        return left, right

    def _date(self, text: str, place: int) -> datetime:
        """Return the date that a text stands for."""
        try:
            date = datetime.fromisoformat(text)
        except ValueError:
            date = None
        if date is None or date.tzinfo is not None:
            self._refuse(f"{quoted(text)} is no date such as '2024-12-31'", place)
        return date


def _compared(operand: _Operand) -> _Operand:
    """Return an operand in which what is no number, such as 0/0, is missing.

    Not within sums: each `fill_nan` has what it is of twice.
    """
    if operand.kind != "number" or not operand.height:
        return operand
    return replace(operand, value=operand.value.fill_nan(None))


def _name(token: _Token) -> str:
    """Return the column that a word, or a name in quotes, stands for."""
    is_quoted = token.kind == "name"
    return token.text[1:-1].replace('""', '"') if is_quoted else token.text


def _value(token: _Token) -> Any:
    """Return a number, or a text without its quotes."""
    if token.kind == "number":
        return float(token.text)
    return token.text[1:-1].replace("''", "'")


def _literal(value: str | float) -> _Operand:
    """Return a value as an operand."""
    if isinstance(value, str):
        return _Operand(pl.lit(value), "text", text=value)
    return _Operand(pl.lit(value), "number")
