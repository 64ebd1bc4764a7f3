"""Workers of a cluster: whether they have this package, and what they noticed.

Batches of a lazy frame run in threads of this process or in workers elsewhere. Each
batch counts how its rows differ from those of the fit; counts of all batches are added
up where `apply` was called, and each thing is told there, once: as soon as it shows,
as nobody knows which batch is the last, or by who knows the end, at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Lock
from typing import Any
from weakref import WeakSet

from .._support.notices import warn
from .._support.text import listed, shorten
from .._support.version import __version__
from ..exceptions import InvalidInputError
from ..recalibration.fitted_rows import Outside, Unlike
from ..recalibration.recalibrator import Recalibrator

HOW_TO_INSTALL = (
    "Install it there: in the environment of the workers, or in an archive that they "
    "unpack; PYSPARK_PYTHON names the Python of Spark's workers."
)
_checked: WeakSet[Any] = WeakSet()  # sessions and clients whose workers are right
_waiting: ContextVar[list[Tally] | None] = ContextVar("waiting", default=None)


class Tally:
    """What was noticed in all batches; it tells each thing once.

    Parameters
    ----------
    recalibrator : Recalibrator
        The one that knows what rows of the fit were like.
    is_whole : bool
        Whether the first batch is the whole table.
    """

    def __init__(self, recalibrator: Recalibrator, *, is_whole: bool) -> None:
        self._recalibrator = recalibrator
        self._is_whole = is_whole
        self._process = os.getpid()
        self._lock = Lock()
        self._total: Unlike | None = None
        self._told: set[tuple[str, str]] = set()
        # what brings counts from a worker to the process that has called `apply`
        self.send: Callable[[Any], None] | None = None
        waiting = _waiting.get()
        self._waits = waiting is not None
        if waiting is not None:
            waiting.append(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels: no counts, and no recalibrator."""
        return {"_process": self._process, "send": self.send}

    def take(self, unlike: Unlike) -> None:
        """Take the counts of a batch, wherever it was evaluated."""
        if os.getpid() == self._process:
            self.add(unlike)
        elif self.send is not None and any(unlike[1:]):
            self.send(unlike)

    def add(self, unlike: Unlike) -> None:
        """Add the counts of a batch, and tell what is new unless that waits."""
        untold = []
        with self._lock:  # threads evaluate batches at the same time
            total = unlike if self._total is None else self._total.plus(unlike)
            self._total = total
            if self._waits:
                return
            for key, oddity in self._recalibrator._oddities(total).items():
                if key not in self._told:
                    self._told.add(key)
                    untold.append(oddity)
        beginning = "" if self._is_whole else "Of the rows read so far, "
        for sentence, category in untold:
            warn(f"{beginning}{sentence}", category, stacklevel=2)

    def tell(self) -> None:
        """Tell what was noticed, after the last batch."""
        if self._total is not None:
            oddities = self._recalibrator._oddities(self._total)
            for sentence, category in oddities.values():
                warn(sentence, category, stacklevel=2)


@contextmanager
def told_at_the_end() -> Iterator[None]:
    """Tell what all batches that are evaluated in here have counted, at the end."""
    tallies: list[Tally] = []
    token = _waiting.set(tallies)
    try:
        yield
    finally:
        _waiting.reset(token)
    for tally in tallies:
        tally.tell()


# -- Spark -----------------------------------------------------------------------------


def prepare_spark(frame: Any, tally: Tally) -> None:
    """Check that Spark's workers have this package, and let them send their counts."""
    session = frame.sparkSession
    if session not in _checked:
        _check_spark(session)
        _checked.add(session)
    with suppress(Exception):  # Spark Connect has no accumulators
        tally.send = _Sender(session.sparkContext, tally)


class _Sender:
    """Brings counts from workers by way of an accumulator of Spark."""

    def __init__(self, context: Any, tally: Tally) -> None:
        from pyspark.accumulators import AccumulatorParam

        process = os.getpid()

        class Counts(AccumulatorParam):
            def zero(self, value: Any) -> Any:
                return value

            def addInPlace(self, gathered: Any, added: Any) -> Any:
                if os.getpid() != process:  # in a worker: gathered, to be sent
                    return [*gathered, *added]
                for counts in added:
                    tally.add(_read(counts))
                return gathered

        self._accumulator = context.accumulator([], Counts())

    def __call__(self, unlike: Unlike) -> None:
        self._accumulator.add([_plain(unlike)])


def _check_spark(session: Any) -> None:
    """Refuse workers of Spark that do not have this package, in this version."""

    def versions(parts: Iterator[Any]) -> Iterator[Any]:  # it travels by its value
        import sys

        import pyarrow as pa

        try:
            from .._support.version import __version__ as answer
        except ImportError as problem:
            answer = f"{sys.executable} says: {problem}"
        for part in parts:
            yield pa.RecordBatch.from_pydict({"answer": [answer] * part.num_rows})

    try:
        rows = session.range(1).mapInArrow(versions, "answer string").collect()
        answers = {row["answer"] for row in rows}
    except Exception as problem:
        # of the stack of Java and Python, the last line that names an error
        errors = [type(problem).__name__]
        for line in str(problem).splitlines():
            if "Error:" in line:
                errors.append(line.strip())
        answers = {shorten(errors[-1], 200)}
    _refuse_other_versions(answers, "Spark")


# -- Dask ------------------------------------------------------------------------------


def prepare_dask(tally: Tally) -> None:
    """Check that Dask's workers have this package, and let them send their counts."""
    try:
        from distributed import get_client

        client = get_client()
    except (ImportError, ValueError):  # threads of this process
        return
    if client not in _checked:
        _check_dask(client)
        _checked.add(client)
    topic = f"sigmascale-{id(tally)}"
    client.subscribe_topic(topic, lambda event: tally.add(_read(event[1])))
    tally.send = _Event(topic)


class _Event:
    """Brings counts from workers as events of Dask."""

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def __call__(self, unlike: Unlike) -> None:
        from distributed import get_worker

        get_worker().log_event(self._topic, _plain(unlike))


def _check_dask(client: Any) -> None:
    """Refuse workers of Dask that do not have this package, in this version."""

    def version() -> str:  # it travels by its value
        try:
            from .._support.version import __version__
        except ImportError as problem:
            return str(problem)
        return __version__

    _refuse_other_versions(set(client.run(version).values()), "Dask")


# -- both ------------------------------------------------------------------------------


def _refuse_other_versions(answers: set[str], engine: str) -> None:
    """Refuse workers that do not answer with the version of this process.

    They answer with their version, or with the error that the import has met.
    """
    unlike = sorted(answers - {__version__})
    if unlike:
        msg = (
            f"The workers of {engine} must be able to import sigmascale {__version__}, "
            f"as this process does; found: {listed(unlike)}. {HOW_TO_INSTALL}"
        )
        raise InvalidInputError(msg, "workers")


def _plain(unlike: Unlike) -> list[Any]:
    """Return counts as lists and dicts of numbers, which every protocol takes."""
    outside = {column: list(counts) for column, counts in unlike.outside.items()}
    return [unlike.n_rows, unlike.unseen, unlike.gaps, outside]


def _read(plain: Any) -> Unlike:
    """Return counts of what :func:`_plain` has made of them."""
    n_rows, unseen, gaps, plain_outside = plain
    outside = {column: Outside(*counts) for column, counts in plain_outside.items()}
    return Unlike(n_rows, unseen, gaps, outside)
