"""``sigmascale fit``: fit a recalibrator to known errors, and save it."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

from .._support.numerals import number
from .._support.text import WIDTH
from ..predictions.roles import Roles
from .options import PASSED, CommandResult, Reading, option, refuse, tables, wrapped

if TYPE_CHECKING:
    from ..predictions.predictions import Predictions
    from ..recalibration.recalibrator import Recalibrator
    from ..recalibration.scalings import Scaling


@dataclass(frozen=True, kw_only=True)
class Fit(Roles, Reading):
    """Fit a recalibrator to known errors, and save it.

    With --test-share some rows are held out, and tested before and after.
    """

    examples = (
        "sigmascale fit demo-output/calibration.csv --all-features -o r.json",
        "sigmascale fit demo-output/test.csv -o r.json --test-share 0.3",
    )

    files: tuple[str, ...] = tables()
    output: str = option(
        *("file for the recalibrator; - is stdout", "JSON", MISSING),
        short="-o",
        endings=(".json",),
    )
    test_share: float | None = option(
        "hold out this share of the rows, and test on it: did it help?",
        "SHARE",
        common=True,
    )
    report: str | None = option(
        "write a report on these rows to this file",
        "HTML",
        common=True,
        endings=(".html", ".htm"),
    )
    scaling: str | None = option(
        "what is fitted; --help all lists them [boosted]", "NAME", common=True
    )
    bias: Literal["constant", "auto"] | None = option(
        "correct predictions: constant; auto, where rows gain", "HOW", common=True
    )
    by: tuple[str, ...] = option("column to bin by, or u; for binwise", "COLUMN", ())
    bins: int | None = option("number of bins; for binwise", "N")
    loss: Literal["nll", "consistency", "adaptivity", "total"] | None = option(
        "what factors minimise; for binwise", "LOSS"
    )
    distribution: Literal["empirical", "normal"] = option(
        "of the errors: empirical, or normal", "KIND", "empirical"
    )
    hold_out: float = option(
        "take it from this share, held out: split conformal", "SHARE", 0.0
    )
    parts: tuple[str, ...] = option(
        "nominal coverage in each of its labels, or fifths", "COLUMN", ()
    )
    seed: int = option("seed of all random numbers", "N", 0)

    @classmethod
    def notes(cls) -> list[str]:
        """Return all scalings, one a line."""
        from ..recalibration.scalings import summaries

        lines = ["", "Scalings:"]
        for name, what in summaries().items():
            line = f"  {name:<12} {what}"
            lines.append(fill(line, WIDTH, subsequent_indent=" " * 15))
        return lines

    def run(self) -> CommandResult:
        """Fit a recalibrator to a table, and write it."""
        from ..recalibration.persistence import dumps, save
        from ..recalibration.recalibrator import Recalibrator
        from ..validation.advice import validate
        from .check import found, reported, typed_steps
        from .file_formats import to_standard_output
        from .input_table import InputTable

        self.check_outputs()
        if self.report is not None and self.test_share is None:
            refuse("--report is about held-out rows: pass --test-share.")

        # rows to fit, and rows to test on; columns of options are features, too
        features = dict.fromkeys(self.features)
        for name in (*self.by, *self.parts):
            if name not in ("u", *self.labels):
                features[name] = None
        table = InputTable.open(self.files, self, gaps=None, features=tuple(features))
        p = table.predictions()
        held_out = None
        if self.test_share is not None:
            with table.naming_rows():
                p, held_out = parted(p, self.test_share, self.seed)

        # the recalibrator, and what it says of itself
        recalibrator = Recalibrator(
            self._scaling(),
            bias=self.bias,
            distribution=self.distribution,
            hold_out=self.hold_out,
            parts=list(self.parts) or None,
            random_state=self.seed,
        )
        with table.naming_rows():
            recalibrator.fit(p)
        description = recalibrator.describe()
        factors = _factors(recalibrator, p)
        told: dict[str, Any] = {
            "data": table.to_dict(),
            "scaling": self.scaling,
            "words": description,
            "cautions": [*recalibrator.cautions_],
            "fitted": len(p),
            "factors": factors,
        }
        words = [
            table.about_columns(),
            "",
            wrapped(*description.splitlines()),
            wrapped(_in_words(factors)),
        ]

        # did it help, on the rows that were held out
        v = None
        if held_out is not None:
            with table.naming_rows():
                after = recalibrator.apply(held_out)
                v = validate(after, before=held_out, rng=self.seed)
            told["tested"] = len(held_out)
            told |= found(v)
            steps = typed_steps(v, self)
            words += ["", f"On {len(held_out):,} held-out rows:"]
            words += [v.text(steps, about_rows=False)]
            words += reported(self, v, recalibrator, steps)

        # the file, and how it is used
        told["output"] = self.output
        schema = {"schema": table.schema.to_dict()}
        if self.output == "-":
            to_standard_output(dumps(recalibrator, schema))
            words = []
        else:
            save(recalibrator, self.output, schema)
            words.append(f"\nSaved {self.output}.")
            if v is None:
                check = f"check TEST.csv --recalibrator {self.output}"
                words[-1] += " Next:"
                words.append(f"  sigmascale {check}     (other rows than these)")
                words.append(f"  sigmascale apply {self.output} NEW.csv -o OUT.csv")
        return CommandResult(told, "\n".join(words), PASSED, v, recalibrator)

    def _scaling(self) -> Scaling | None:
        """Return the scaling that the options describe; refuse others.

        Nobody may have named one: of few rows, u times one factor may then do as well.
        """
        from ..recalibration.scalings import SCALINGS

        name = self.scaling or "boosted"
        if name not in SCALINGS:
            refuse(
                f"--scaling must be one of {', '.join(SCALINGS)}; found {name!r:.80}."
            )
        scaling = SCALINGS[name]
        by = self.by if len(self.by) > 1 else next(iter(self.by), None)
        options = {"n_bins": self.bins, "by": by, "loss": self.loss}
        parameters = inspect.signature(scaling).parameters
        given = {}
        for name, value in options.items():
            if value is not None:
                given[name] = value
                if name not in parameters:
                    flag = "--bins" if name == "n_bins" else f"--{name}"
                    refuse(f"{flag} is not for --scaling {name}, but for binwise.")
        return None if self.scaling is None else scaling(**given)


def parted(p: Predictions, share: float, seed: int) -> tuple[Predictions, Predictions]:
    """Return the rows to fit, and a random share of them to test on, whole groups."""
    from ..recalibration.folds import divided
    from .input_table import LEAST_ROWS

    if not 0 < share < 1:
        refuse(f"--test-share must lie between 0 and 1; found {share:g}.")
    fitted, tested = divided(p, share, seed)
    if min(fitted.size, tested.size) < LEAST_ROWS:
        refuse(
            f"--test-share {share:g} leaves {fitted.size} rows to fit and "
            f"{tested.size} to test on; at least {LEAST_ROWS} are needed for each."
        )
    return p.take(fitted), p.take(tested)


def _factors(recalibrator: Recalibrator, p: Predictions) -> dict[str, float]:
    """Return quantiles, by name, of what uncertainties are multiplied by."""
    import numpy as np

    shares = {"min": 0.0, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "max": 1.0}
    factors = recalibrator.predict(p) / p.y_std
    quantiles = np.quantile(factors, list(shares.values()))
    return dict(zip(shares, quantiles.tolist(), strict=True))


def _in_words(factors: dict[str, float]) -> str:
    """Return what uncertainties are multiplied by, unless one factor says it."""
    least, low, median, high, most = (number(value) for value in factors.values())
    if least == most:
        return ""
    return (
        f"u_new / u of these rows: median {median}, 90 % of rows {low} to {high}, all "
        f"{least} to {most}."
    )
