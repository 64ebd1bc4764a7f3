"""From molecular formulas to numbers: composition, mass, hetero-atoms, groups."""

import difflib
import math
import re
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._support.notices import row_number
from .exceptions import InvalidInputError

# Conventional standard atomic weights, IUPAC 2021 (doi:10.1515/pac-2019-0603); the
# mass number of the longest-lived isotope for elements that have none. H, N, O and F
# keep the older digits with which the published QM9 masses were computed.
_WEIGHTS = """
H 1.00794 He 4.002602 Li 6.94 Be 9.0121831 B 10.81 C 12.011 N 14.0067 O 15.9994
F 18.9984 Ne 20.1797 Na 22.98976928 Mg 24.305 Al 26.9815384 Si 28.085 P 30.973761998
S 32.06 Cl 35.45 Ar 39.95 K 39.0983 Ca 40.078 Sc 44.955907 Ti 47.867 V 50.9415
Cr 51.9961 Mn 54.938043 Fe 55.845 Co 58.933194 Ni 58.6934 Cu 63.546 Zn 65.38
Ga 69.723 Ge 72.630 As 74.921595 Se 78.971 Br 79.904 Kr 83.798 Rb 85.4678 Sr 87.62
Y 88.905838 Zr 91.224 Nb 92.90637 Mo 95.95 Tc 97 Ru 101.07 Rh 102.90549 Pd 106.42
Ag 107.8682 Cd 112.414 In 114.818 Sn 118.710 Sb 121.760 Te 127.60 I 126.90447
Xe 131.293 Cs 132.90545196 Ba 137.327 La 138.90547 Ce 140.116 Pr 140.90766 Nd 144.242
Pm 145 Sm 150.36 Eu 151.964 Gd 157.25 Tb 158.925354 Dy 162.500 Ho 164.930329
Er 167.259 Tm 168.934219 Yb 173.045 Lu 174.9668 Hf 178.486 Ta 180.94788 W 183.84
Re 186.207 Os 190.23 Ir 192.217 Pt 195.084 Au 196.966570 Hg 200.592 Tl 204.38
Pb 207.2 Bi 208.98040 Po 209 At 210 Rn 222 Fr 223 Ra 226 Ac 227 Th 232.0377
Pa 231.03588 U 238.02891 Np 237 Pu 244 Am 243 Cm 247 Bk 247 Cf 251 Es 252 Fm 257
Md 258 No 259 Lr 262 Rf 267 Db 268 Sg 269 Bh 270 Hs 269 Mt 277 Ds 281 Rg 282 Cn 285
Nh 286 Fl 290 Mc 290 Lv 293 Ts 294 Og 294
"""
ATOMIC_WEIGHTS = {s: float(w) for s, w in re.findall(r"(\S+) (\S+)", _WEIGHTS)}

# Far beyond any molecule; they bound the work done for a hostile or damaged string.
_MAX_LENGTH = 1000
_FEWEST, _MOST = 1e-9, 1e9
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_WORD = re.compile(r"[A-Z][a-z]*|[a-z]+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉•⋅", "0123456789··")
# "CuSO4.5H2O" is copper sulfate with five waters, never 4.5 atoms of oxygen.
_WATER = re.compile(r"([A-Za-z)\]}][0-9]*)\.(?=(?:[0-9]+(?:\.[0-9]+)?)?H2O$)")

Counts = dict[str, int | float]


def composition(formula: str) -> Counts:
    """Count the atoms of a molecular formula.

    Parameters
    ----------
    formula : str
        Element symbols with optional multipliers, brackets ``()``, ``[]``, ``{}`` to
        any sensible depth, and additions after ``·`` (or ``.`` before ``H2O``).

    Returns
    -------
    dict of str to int or float
        Atoms per element, in order of first appearance; a float only where the
        formula has a fractional multiplier. What is not a formula raises
        `InvalidInputError`, which names the character.

    Examples
    --------
    >>> from sigmascale.chemistry import composition
    >>> composition("CH3(CH2)4OH")
    {'C': 5, 'H': 12, 'O': 1}
    >>> composition("CuSO4·5H2O")
    {'Cu': 1, 'S': 1, 'O': 9, 'H': 10}
    """
    return dict(_count(_checked(formula)))


def _checked(formula: object) -> str:
    if not isinstance(formula, str):
        found = f"{reprlib.repr(formula)} ({type(formula).__name__})"
    elif not formula.strip():
        found = "an empty string"
    elif len(formula) > _MAX_LENGTH:
        found = f"{len(formula)} characters, which begin {formula[:20]!r}"
    else:
        return _WATER.sub(r"\1·", formula.translate(_SUBSCRIPTS))
    msg = f"`formula` must be 1 to {_MAX_LENGTH} characters of text; found {found}."
    raise InvalidInputError(msg)


@lru_cache(maxsize=4096)
def _count(text: str) -> Counts:
    total: Counts = {}
    start = 0
    for part in text.split("·"):
        stop = start + len(part)
        begin, factor = _multiplier(text, start) if start > 0 else (start, 1)
        _add(total, _parse(text, begin, stop), factor, text, start)
        start = stop + 1
    return total


def _parse(text: str, at: int, stop: int) -> Counts:
    """Count the atoms of ``text[at:stop]``, which holds no ``·``."""
    if at == stop:
        raise _error(text, min(at, len(text) - 1), "no element")
    counts: Counts = {}
    opened: list[tuple[int, Counts]] = []  # where a bracket is, what stood before it
    while at < stop:
        char = text[at]
        if char in _CLOSING:
            opened.append((at, counts))
            counts = {}
            at += 1
        elif char in _CLOSING.values():
            if not opened or _CLOSING[text[opened[-1][0]]] != char:
                raise _error(text, at, f"nothing to close for {char!r}")
            if not counts:
                raise _error(text, at, "empty bracket")
            inner, (_, counts) = counts, opened.pop()
            here, (at, factor) = at, _multiplier(text, at + 1)
            _add(counts, inner, factor, text, here)
        elif word := _WORD.match(text, at):
            if word[0] not in ATOMIC_WEIGHTS:
                problem = f"unknown element {word[0]!r}"
                raise _error(text, at, problem, _suggestion(text, at, word[0]))
            here, (at, factor) = at, _multiplier(text, word.end())
            _add(counts, {word[0]: 1}, factor, text, here)
        else:
            raise _error(text, at, f"unexpected {char!r}")
    if opened:
        where = opened[-1][0]
        raise _error(text, where, f"unclosed {text[where]!r}")
    return counts


def _multiplier(text: str, at: int) -> tuple[int, int | float]:
    """Read an optional multiplier; return where it ends and its value."""
    number = _NUMBER.match(text, at)
    if number is None:
        return at, 1
    value = float(number[0])
    whole = value.is_integer() and value <= _MOST
    return number.end(), int(value) if whole else value


def _add(counts: Counts, more: Counts, factor: int | float, text: str, at: int) -> None:
    for symbol, n in more.items():
        if not _FEWEST <= n * factor <= _MOST:
            problem = f"{symbol} times {n * factor:g}"
            hint = f"; it must be between {_FEWEST:g} and {_MOST:g}"
            raise _error(text, at, problem, hint)
        counts[symbol] = counts.get(symbol, 0) + n * factor


def _suggestion(text: str, at: int, word: str) -> str:
    # "CL" and "nacl" are matters of case; anything else is taken for a misprint.
    cases = [text[at - 1 : at + 1] if at else "", word[:2], word[:1]]
    likely = [s for case in cases if (s := case.capitalize()) in ATOMIC_WEIGHTS]
    likely = likely or difflib.get_close_matches(word, ATOMIC_WEIGHTS, n=1, cutoff=0.5)
    return f"; did you mean {likely[0]!r}? Case matters" if likely else ""


def _error(text: str, at: int, problem: str, hint: str = "") -> InvalidInputError:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return InvalidInputError(
        f"`formula` {shown!r} is not a formula: {problem} at character {at + 1}{hint}."
    )


def mass(formula: str) -> float:
    """Molar mass of a formula in g/mol, from standard atomic weights.

    Parameters
    ----------
    formula : str
        A molecular formula; see `composition`.

    Returns
    -------
    float
        The same to the last bit in whichever order the elements are written.

    Examples
    --------
    >>> from sigmascale.chemistry import mass
    >>> round(mass("C6H12O6"), 3)
    180.158
    """
    counts = composition(formula)
    return math.fsum(n * ATOMIC_WEIGHTS[symbol] for symbol, n in counts.items())


def heteroatom_fraction(formula: str) -> float:
    """Fraction of the atoms of a formula that are neither C nor H.

    Parameters
    ----------
    formula : str
        A molecular formula; see `composition`.

    Examples
    --------
    >>> from sigmascale.chemistry import heteroatom_fraction
    >>> heteroatom_fraction("CH4O2N")
    0.375
    """
    counts = composition(formula)
    hetero = sum(n for symbol, n in counts.items() if symbol not in {"C", "H"})
    return hetero / sum(counts.values())


def oxygen_nitrogen_label(formula: str) -> str:
    """Group label by the numbers of oxygen and nitrogen atoms, such as ``'O1N2'``.

    Parameters
    ----------
    formula : str
        A molecular formula; see `composition`.

    Examples
    --------
    >>> from sigmascale.chemistry import oxygen_nitrogen_label
    >>> oxygen_nitrogen_label("C5H10N2O"), oxygen_nitrogen_label("C6H6")
    ('O1N2', 'O0N0')
    """
    counts = composition(formula)
    return f"O{counts.get('O', 0):.12g}N{counts.get('N', 0):.12g}"


@dataclass(frozen=True, eq=False)
class FormulaTable:
    """What `describe_formulas` finds, one entry per row.

    Attributes
    ----------
    mass : ndarray of float, shape (n,)
        Molar mass in g/mol.
    heteroatom_fraction : ndarray of float, shape (n,)
        Fraction of atoms that are neither C nor H.
    group : ndarray of str, shape (n,)
        Oxygen and nitrogen counts, such as ``'O1N2'``.
    """

    mass: NDArray[np.float64]
    heteroatom_fraction: NDArray[np.float64]
    group: NDArray[np.str_]

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, ready for any data-frame constructor."""
        return dict(vars(self))


def describe_formulas(formulas: Iterable[str]) -> FormulaTable:
    """Mass, hetero-atom fraction and group label of every formula of a column.

    Parameters
    ----------
    formulas : iterable of str, shape (n,)
        A list, an array or a data-frame column; each distinct one is parsed once.

    Returns
    -------
    FormulaTable
        Arrays in the order of the rows.

    Examples
    --------
    >>> from sigmascale.chemistry import describe_formulas
    >>> table = describe_formulas(["C6H5NO", "C9H14", "C6H5NO"])
    >>> table.mass.round(3), table.group.tolist()
    (array([107.112, 122.21 , 107.112]), ['O1N1', 'O0N0', 'O1N1'])
    """
    if isinstance(formulas, str):
        msg = "`formulas` must be a list or column, not one string: pass [formula]."
        raise InvalidInputError(msg)
    known: dict[str, tuple[float, float, str]] = {}
    rows: list[tuple[float, float, str]] = []
    to_list = getattr(formulas, "to_pylist", None)  # PyArrow wraps every string
    for row, formula in enumerate(to_list() if to_list else formulas):
        try:
            text = _checked(formula)
            if text not in known:
                label = oxygen_nitrogen_label(text)
                known[text] = mass(text), heteroatom_fraction(text), label
        except InvalidInputError as error:
            msg = f"`formulas`, row {row_number(row)}: {error}"
            raise InvalidInputError(msg) from None
        rows.append(known[text])
    masses, fractions, labels = zip(*rows, strict=True) if rows else ((), (), ())
    return FormulaTable(
        mass=np.array(masses, dtype=np.float64),
        heteroatom_fraction=np.array(fractions, dtype=np.float64),
        group=np.array(labels, dtype=np.str_),
    )
