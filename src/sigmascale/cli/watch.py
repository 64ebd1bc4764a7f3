"""``sigmascale watch``: say whether a recalibrator still fits what arrives."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from hashlib import sha256
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..exceptions import InvalidInputError
from ..roles import listed
from .app import CANNOT_TELL, FAILED, PASSED, app, say, show_json, show_words
from .files import (
    HEAD,
    PACKED,
    STANDARD,
    TEXT,
    UNTYPED,
    check_output,
    kind_of,
    load_saved,
    read_source,
    unpacked,
)
from .options import (
    IN_MEMORY,
    OF_ERRORS,
    AsJson,
    Files,
    SavedScaler,
    column_option,
    example,
    gather,
)

if TYPE_CHECKING:
    from ..monitoring.monitor import Monitor
    from ..persistence import SavedMap
    from ..roles import Expected
    from .table import Columns, Table

PICTURES = (".png", ".svg", ".pdf")
PIECE = 1 << 20  # bytes that are taken at once, if so many are there
FIRST = 8  # bytes that tell a format


@app.command(
    epilog=example(
        "sigmascale fit demo-output/calibration.csv --conformal-share 0.3 -o c.json",
        "sigmascale watch c.json demo-output/test.csv",
        "sigmascale watch c.json demo-output/test.csv --state monitor.json",
    )
)
@gather(choice=OF_ERRORS, reading=IN_MEMORY)
def watch(
    scaler: SavedScaler,
    files: Files,
    choice: Any,
    reading: Any,
    calibration: Annotated[
        str | None,
        typer.Option(
            help="Rows that show what is normal, which SCALER was not fitted on; those "
            "that fit --conformal-share held back, or the first ones, if not given.",
            metavar="FILE",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="Go on from this file, if it is there, and write it in the end; it "
            "belongs to one SCALER and its options.",
            metavar="JSON",
        ),
    ] = None,
    time: Annotated[str | None, column_option("When rows came.")] = None,
    groups: Annotated[
        str | None,
        column_option(
            "Rows with equal values of it belong together, come one after another, and "
            "count as one; without --calibration, the first of them are normal."
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="One minus the chance that rows without a change ever raise an alarm; "
            "0.95 if not given.",
            metavar="SHARE",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the evidence over time.", metavar="PICTURE"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Watch whether uncertainties still fit the errors that arrive.

    Rows are taken in the order of the files. An alarm says whether uncertainties have
    become too small or too large, everywhere or in a region of a feature, or
    predictions biased; since when, and by how much. However many rows come, in one run
    or in many with --state, false alarms are as rare as --confidence says. Lines of
    standard input (-) are taken as they come, and an alarm is told when it is raised.
    If rows are not independent, alarms cannot be trusted; that is noticed and told.

    Exit code: 0 no alarm, 1 alarm, 4 too few rows to know what is normal; 2 bad
    input, 3 a defect.
    """
    from .._support.files import locked
    from .._support.notices import quiet
    from ..roles import Expected
    from .table import Table

    for output, endings in ((state, (".json",)), (plot, PICTURES)):
        if output is not None:
            check_output(output, endings, [*files, scaler])
    saved = load_saved(scaler, one=True)
    expected = Expected(saved.roles, choice, with_error=True)
    normal = None
    if calibration is not None:
        normal = Table.open([calibration], reading, expected)
    live = files == [STANDARD]
    arrivals, told = [0, 0, 0], None
    with locked(state):
        monitor = _monitor(saved, normal, state, confidence, groups, scaler)
        known = monitor.alarm
        for data in _tables(files, reading, expected, live=live):
            arrivals = [*map(add, arrivals, (data.n_rows, data.n_read, data.dropped))]
            if data.n_rows:
                times = None if time is None else data.times(time)
                error, u = data.left_errors(saved.maps), data.recalibrated(saved.maps)
                with data.told(), quiet():  # a caution is told in the end
                    monitor.update(error, u, data.features, times, data.groups(groups))
            if told is None and monitor.alarm is not known:
                told = monitor.alarm
                if live:  # which may go on for long
                    _tell_at_once(monitor, to_stderr=as_json)
        if state is not None:
            monitor.save(state)
    if plot is not None:
        _draw(monitor, plot)
    if as_json:
        alarm = None if monitor.alarm is None else monitor.alarm.to_dict()
        found = {
            "rows": monitor.n_rows,
            "evidence": monitor.evidence,
            "alarm": alarm,
            "caution": monitor.caution,
        }
        counts = dict(zip(("rows", "rows_read", "dropped"), arrivals, strict=True))
        show_json({"data": data.to_dict() | counts, **found})
    else:
        show_words(data.counted(*arrivals))
        if told is None or not live:
            say()
            show_words(*_words(monitor))
        elif monitor.caution:
            show_words(monitor.caution)
    raise typer.Exit(
        CANNOT_TELL
        if not monitor.knows_normal
        else PASSED
        if monitor.alarm is None
        else FAILED
    )


def _tables(
    files: list[str], reading: Any, expected: Expected, *, live: bool
) -> Iterator[Table]:
    """Yield the table of files, or `live` those of standard input as they come."""
    from .table import Table

    if not live:
        yield Table.open(files, reading, expected)
        return
    few = replace(expected, least_rows=0)
    for table in _arriving(reading):
        yield Table.take(files, reading, table, few)


def _tell_at_once(monitor: Monitor, *, to_stderr: bool) -> None:
    """Print an alarm, and do not wait for the end of the stream."""
    with redirect_stdout(sys.stderr) if to_stderr else nullcontext():
        show_words(*_words(monitor))
        sys.stdout.flush()


def _monitor(
    saved: SavedMap,
    normal: Table | None,
    state: Path | None,
    confidence: float | None,
    grouped: str | None,
    scaler: str,
) -> Monitor:
    """Return the monitor of a file, or a new one."""
    from ..monitoring.monitor import Monitor

    checksum = sha256(Path(scaler).read_bytes()).hexdigest()
    belongs_to = {"recalibrator": checksum, "--groups": grouped or "none"}
    calibration, features, groups = None, None, None
    if normal is not None:
        calibration = normal.left_errors(saved.maps) / normal.recalibrated(saved.maps)
        features = normal.features
        groups = normal.groups(grouped)
        belongs_to["--calibration"] = sha256(calibration.tobytes()).hexdigest()
    elif saved.conformal is not None and grouped is None:
        calibration = saved.conformal.z
    if state is None or not state.exists():
        monitor = Monitor(
            calibration,
            features,
            groups=groups,
            confidence=0.95 if confidence is None else confidence,
        )
        monitor.belongs_to = {"--calibration": "none", **belongs_to}
        return monitor
    monitor = Monitor.load(state)
    had = monitor.belongs_to | {"--confidence": str(monitor.confidence)}
    if confidence is not None:
        belongs_to["--confidence"] = str(confidence)
    other = [name for name in belongs_to if had.get(name) != belongs_to[name]]
    if other:
        msg = (
            f"{state}: was begun with another {' and another '.join(other)}, and "
            "evidence from both does not add up. Go on with that, or name another "
            "file for a new state."
        )
        raise InvalidInputError(msg)
    return monitor


def _words(monitor: Monitor) -> tuple[str, ...]:
    caution = () if monitor.caution is None else (monitor.caution,)
    if monitor.alarm is not None:
        return f"Alarm: {monitor.alarm.words}", *caution, monitor.alarm.suggestion
    if not monitor.knows_normal:
        needed = f"{monitor.burn_in} {'groups' if monitor.is_grouped else 'rows'}"
        return (
            f"Cannot tell: {monitor.n_rows} rows have come, and the first {needed} are "
            "needed to know what is normal. Name rows with --calibration, or go on "
            "with --state.",
        )
    limit = 1 / (1 - monitor.confidence)
    return (
        f"No alarm after {monitor.n_rows} rows: the evidence for a change is "
        f"{monitor.evidence:.2g}, and an alarm is raised at {limit:.3g}.",
        *caution,
    )


def _draw(monitor: Monitor, path: Path) -> None:
    from .._support.files import whole_file
    from ..plots import plot_monitor

    figure: Any = plot_monitor(monitor).figure
    with whole_file(path) as part:
        figure.savefig(part, dpi=150)


# -- standard input as it comes ------------------------------------------------------


def _arriving(reading: Any) -> Iterator[Columns]:
    """Yield the rows of standard input whenever whole lines of text have come.

    Formats that are no lines of text are read to their end first. Whoever interrupts
    it (Ctrl-C) ends the input.
    """
    content, header, n_rows = b"", b"", 0
    for piece in _pieces():
        content += piece
        if len(content) < FIRST and b"\n" not in content:
            continue
        kind = kind_of(STANDARD, (header + content)[:HEAD])
        if kind not in TEXT or content.startswith(PACKED):
            content += b"".join(_pieces())
            break
        has_header = kind in UNTYPED
        end = _end_of_lines(content, quoted=has_header)
        if has_header and not header:
            header = _first_line(content[:end])
            content, end = content[len(header) :], end - len(header)
        if content[:end].strip():
            table = _table(header + content[:end], reading, n_rows)
            content = content[end:]
            n_rows += table.frame.height
            yield table
    if content.strip() or not n_rows:
        table = _table(header + content, reading, n_rows)
        if not table.frame.height:
            msg = f"{STANDARD}: there are columns ({listed(table.names)}), but no rows."
            raise InvalidInputError(msg)
        yield table


def _pieces() -> Iterator[bytes]:
    """Yield what has come, as soon as something has."""
    stream: Any = sys.stdin.buffer
    try:
        while piece := stream.read1(PIECE):
            yield piece
    except KeyboardInterrupt:
        return


def _end_of_lines(content: bytes, *, quoted: bool) -> int:
    """Return where the last whole line ends; or else 0.

    Where texts are `quoted`, these may have several lines, and it is not within them.
    """
    end = content.rfind(b"\n") + 1
    while quoted and end and content.count(b'"', 0, end) % 2:
        end = content.rfind(b"\n", 0, end - 1) + 1
    return end


def _first_line(lines: bytes) -> bytes:
    """Return the first line with something in it, and blank ones before it."""
    at = len(lines) - len(lines.lstrip())
    end = at
    while (end := lines.find(b"\n", end) + 1) and lines.count(b'"', 0, end) % 2:
        continue
    return lines[:end]


def _table(content: bytes, reading: Any, n_before: int) -> Columns:
    """Return the table of some bytes; messages count rows from the first of all."""
    import polars as pl

    from .table import Columns

    if not content.strip():
        msg = f"{STANDARD}: standard input is empty."
        raise InvalidInputError(msg)
    content = unpacked(STANDARD, content)
    source, head = io.BytesIO(content), content[:HEAD]
    frame, kind = read_source(STANDARD, source, head, reading.separator)
    places = pl.int_range(n_before, n_before + frame.height, eager=True)
    return Columns(frame, reading.decimal or ".", kind in UNTYPED, places)
