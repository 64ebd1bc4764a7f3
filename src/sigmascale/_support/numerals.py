"""Numbers for people: the only place that rounds a number and puts it into words.

Estimates are rounded to the nearest, limits outwards: what is printed as a limit is
never narrower than what was computed, so who sees an interval inside an accepted range
may believe it. Beyond a factor of ten nothing is known that anybody could use: such
limits read "> 10" everywhere.
"""

from __future__ import annotations

import math

MINUS = "−"
LARGEST = 10.0  # limits beyond it are not told apart: "> 10"
_SLACK = 1e-9  # of the last decimal: 1.23 is stored as 1.2299999…, and is no 1.24


def number(x: float, digits: int = 3, *, signed: bool = False) -> str:
    """Return a value in a unit, such as that of y, to so many significant digits.

    Whole numbers stay as they are; a difference has a sign.

    >>> number(126.13), number(2015.0), number(-0.2691), number(float("inf"))
    ('126', '2015', '−0.269', '∞')
    >>> number(0.0151, signed=True), number(-0.0151, signed=True), number(1e9 + 0.5)
    ('+0.0151', '−0.0151', '1e+09')
    >>> number(123456.7), number(1234.56, 5), number(0.000123456), number(0.1 + 0.2, 6)
    ('123,000', '1,234.6', '0.000123', '0.3')
    """
    if signed and x > 0:
        return f"+{number(x, digits)}"
    if not math.isfinite(x):
        return _signed(x, f"{x}")
    if x == round(x) and abs(x) < 1e5:
        return _signed(x, f"{abs(x):.0f}")
    rounded = abs(float(f"{x:.{digits}g}"))
    if 1e3 <= rounded < 1e6:  # with a mark between thousands
        return _signed(x, f"{rounded:,.10g}")
    return _signed(x, f"{rounded:.{digits}g}")


def fixed(x: float, decimals: int) -> str:
    """Return a number of a column or a list whose numbers have as many decimals.

    >>> fixed(0.9501, 3), fixed(-1234.5, 0)
    ('0.950', '−1,234')
    """
    return _rounded(x, decimals, 0)


def about(n: float) -> str:
    """Return a count that is an estimate itself, to two digits.

    >>> about(4690.2), about(83.4), about(12_345_678)
    ('4,700', '83', '12,000,000')
    """
    return f"{float(f'{n:.2g}'):,.0f}"


def factor(x: float) -> str:
    """Return RMS z, mean z or another factor: two decimals below 10, one below 100.

    >>> factor(1.3649), factor(-0.0321), factor(0.002), factor(12.34), factor(412.3)
    ('1.36', '−0.03', '0.00', '12.3', '412')
    """
    return _rounded(x, _decimals(x), 0)


def upper(limit: float) -> str:
    """Return an upper limit of a factor or of mean z: never below what it was.

    >>> upper(1.2314), upper(1.23), upper(-0.267), upper(11.7), upper(float("inf"))
    ('1.24', '1.23', '−0.26', '> 10', '> 10')
    """
    return f"> {LARGEST:.0f}" if limit > LARGEST else _rounded(limit, 2, 1)


def lower(limit: float) -> str:
    """Return a lower limit of a factor or of mean z: never above what it was.

    >>> lower(1.2386), lower(0.8), lower(-0.261), lower(-11.7)
    ('1.23', '0.80', '−0.27', '< −10')
    """
    if limit < -LARGEST:
        return f"< {MINUS}{LARGEST:.0f}"
    return _rounded(limit, _decimals(limit), -1)


def interval(estimate: float, low: float, high: float) -> str:
    """Return an estimate of RMS z or mean z with its limits.

    >>> interval(2.203, 2.041, 2.7049), interval(-0.46, -0.7211, -0.2039)
    ('2.20 [2.04, 2.71]', '−0.46 [−0.73, −0.20]')
    >>> interval(4.2, 2.61, 73.5), interval(12.31, 10.42, 16.81)
    ('4.20 [2.61, > 10]', '12.3 [10.4, 16.9]')
    """
    # where the estimate itself is large its limits are known as well as those of others
    end = _rounded(high, _decimals(high), 1) if estimate > LARGEST else upper(high)
    return f"{factor(estimate)} [{lower(low)}, {end}]"


def measured(estimate: float, low: float, high: float) -> str:
    """Return an estimate in a unit, such as that of y, with its limits.

    All have the decimals with which the estimate has three digits.

    >>> measured(1.352, 1.2991, 1.4), measured(0.00752, 0.00721, 0.00791)
    ('1.35 [1.29, 1.40]', '0.00752 [0.00721, 0.00791]')
    >>> measured(21834.0, 20911.2, 22702.7)
    '21,834 [20,911, 22,703]'
    """
    size = abs(estimate) or max(abs(low), abs(high))
    decimals = 0
    if 0 < size < math.inf:
        decimals = max(0, 2 - math.floor(math.log10(size)))
    ends = (_rounded(low, decimals, -1), _rounded(high, decimals, 1))
    return f"{_rounded(estimate, decimals, 0)} [{ends[0]}, {ends[1]}]"


def alike(one: float, other: float) -> tuple[str, str]:
    """Return two values in a unit, with as many decimals: three digits of the smaller.

    >>> alike(25.98, 42.31), alike(0.00748, 0.00609)
    (('26.0', '42.3'), ('0.00748', '0.00609'))
    """
    sizes = [abs(x) for x in (one, other) if 0 < abs(x) < math.inf]
    decimals = max(0, 2 - math.floor(math.log10(min(sizes, default=1.0))))
    return _rounded(one, decimals, 0), _rounded(other, decimals, 0)


def is_unknown(bound: float) -> bool:
    """Say whether nothing useful is known of a factor that has this upper limit.

    >>> is_unknown(9.99), is_unknown(10.1), is_unknown(float("nan"))
    (False, True, True)
    """
    return not bound <= LARGEST


def percent(share: float, decimals: int | None = None) -> str:
    """Return a share: of rows in whole per cent, with one decimal below 1.5 %.

    A coverage, or a change of a score, has one decimal: ``decimals=1``.

    >>> percent(0.1249), percent(0.0083), percent(0.9486, 1), percent(-0.0312, 1)
    ('12 %', '0.8 %', '94.9 %', '−3.1 %')
    >>> percent(-0.0001, 1)
    '0.0 %'
    """
    if decimals is None:
        decimals = 1 if 0 < abs(share) < 0.015 else 0
    return f"{_rounded(100 * share, decimals, 0)} %"


def percent_interval(share: float, low: float, high: float, decimals: int = 1) -> str:
    """Return a coverage, or the change of a score, with its limits, in per cent.

    >>> percent_interval(0.8503, 0.8331, 0.86681)
    '85.0 % [83.3, 86.7]'
    """
    start = _rounded(100 * low, decimals, -1)
    end = _rounded(100 * high, decimals, 1)
    return f"{percent(share, decimals)} [{start}, {end}]"


def change(share: float, low: float, high: float) -> str:
    """Return a relative change of a score with its limits, with a sign.

    >>> change(-0.0421, -0.048, -0.0361), change(0.0004, 0.0, 0.0007)
    ('−4.2 % [−4.8, −3.6]', '+0.04 % [0.00, 0.07]')
    """
    decimals = 1 if max(abs(low), abs(high)) >= 0.0015 else 2
    words = percent_interval(share, low, high, decimals)
    return f"+{words}" if not words.startswith((MINUS, "0.0 ", "0.00 ")) else words


def level(share: float) -> str:
    """Return a confidence or a nominal coverage, in per cent, as it was asked for.

    >>> level(0.95), level(0.9973), level(0.7)
    ('95 %', '99.73 %', '70 %')
    """
    return f"{100 * share:.8g} %"


# -- how numbers are rounded -----------------------------------------------------------


def _decimals(x: float) -> int:
    """Return the decimals of a factor, as it will be printed."""
    return 2 if abs(x) < 9.995 else 1 if abs(x) < 99.95 else 0


def _rounded(x: float, decimals: int, outwards: int) -> str:
    """Return x to so many decimals: to the nearest (0), upwards (1), downwards (-1)."""
    if not math.isfinite(x):
        return _signed(x, f"{x}")
    units = x * 10**decimals
    slack = _SLACK * max(1.0, abs(units))
    if outwards > 0:
        units = math.ceil(units - slack)
    elif outwards < 0:
        units = math.floor(units + slack)
    text = f"{abs(units) / 10**decimals:,.{decimals}f}"
    is_zero = not float(text.replace(",", ""))
    return text if is_zero else _signed(units, text)  # no −0.00


def _signed(x: float, text: str) -> str:
    """Return the text of a size with the sign of x; infinities by their symbol."""
    if math.isnan(x):
        return "–"
    if math.isinf(x):
        text = "∞"
    return f"{MINUS}{text}" if x < 0 else text
