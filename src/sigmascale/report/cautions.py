"""What the reader of a report should not conclude from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..judging.validation import AVERAGE, BIAS
from ..oddities import Shift
from .results import Results
from .text import doubt_of_average, percent, variable

FEW_ROWS = 1000
FEW_SHARED = 0.01  # share of rows that two honest sets may have in common by chance


@dataclass(frozen=True)
class Caution:
    """A caution: in short, and with its reason."""

    heading: str
    text: str


def cautions(results: Results) -> list[Caution]:
    """Return the cautions that apply, the gravest first, and those that always do."""
    return [
        *_same_rows(results),
        *_shifted(results),
        *_repeats(results),
        *_sampled(results),
        *_few_rows(results),
        *_tails(results),
        *_worse(results),
        *_not_examined(results),
        *_chosen_here(results),
        *[
            Caution("That every bin and group was judged.", note)
            for note in results.notes
        ],
        *_always(results),
    ]


def _sampled(results: Results) -> Iterator[Caution]:
    words = results.final.validation.sampled
    if words:
        yield Caution("That every row was looked at.", words)


def _same_rows(results: Results) -> Iterator[Caution]:
    known = results.calibration
    if known is None:
        if results.recalibrated:
            yield Caution(
                "That the recalibration would do as well on other rows.",
                "This report was not told which rows the recalibrator learned from. If "
                "the judged rows are among them, all that stands under “after” is too "
                "good to be true; nor could it check whether both sets are alike.",
            )
        return
    rows = results.rows.n_rows
    if known.n_shared > FEW_SHARED * rows:
        which = "All" if known.n_shared == rows else f"{known.n_shared:,} of the"
        yield Caution(
            "That the recalibration would do as well on other rows.",
            f"{which} {rows:,} judged rows are also in the set that the recalibrator "
            "learned from. A recalibrator always fits the rows it has seen: all that "
            "stands under “after” is too good to be true. Judge by other rows.",
        )


def _shifted(results: Results) -> Iterator[Caution]:
    known = results.calibration
    found = [s for s in known.shifts if s.shifted] if known is not None else []
    if found:
        yield Caution(
            "That the judged rows are like those the recalibrator learned from.",
            f"They differ in {'; '.join(map(_difference, found))}. Factors are least "
            "trustworthy where there was little to learn from.",
        )


def _difference(shift: Shift) -> str:
    parts = [f"distance {shift.distance:.2f} of 1"]
    if shift.unseen:
        few = ", ".join(shift.unseen[:5]) + (", …" if len(shift.unseen) > 5 else "")
        parts.append(
            f"{percent(shift.outside, 1)} of the rows have labels never seen: {few}"
        )
    elif shift.outside:
        parts.append(
            f"{percent(shift.outside, 1)} of the rows are outside the range seen"
        )
    return f"{variable(shift.name)} ({', '.join(parts)})"


def _few_rows(results: Results) -> Iterator[Caution]:
    """Warn where large faults could hide, with how large they could be."""
    validation, rows = results.final.validation, results.rows.n_rows
    found = {
        name: verdict.at_most
        for name, verdict in validation.verdicts.items()
        if name in validation.local and verdict.at_most is not None
    }
    hidden = any(factor > validation.tolerance for factor in found.values())
    if rows >= FEW_ROWS and not hidden:
        return
    if found:
        name = max(found, key=lambda each: found[each])
        along = "grouped" if results.rows.is_labelled(name) else "ordered"
        words = (
            f"With {rows:,} rows and errors of this shape, u of a tenth of the rows, "
            f"{along} by {variable(name)}, could be off by a factor of "
            f"{found[name]:.3g}. Fewer rows could hide still larger faults."
        )
    else:
        words = f"There are only {rows:,} rows: only gross faults could be found."
    yield Caution("That a “yes” rules out large faults.", words)


def _tails(results: Results) -> Iterator[Caution]:
    final = results.final
    z, bias = final.z, final.validation.verdicts[BIAS]
    if z.heavy:
        yield Caution(
            "That ±2u holds 95 % of the errors, or ±3u nearly all.",
            f"z has heavy tails: {percent(z.beyond, 1)} of the rows are beyond three "
            "times its root mean square, against 0.27 % of normal ones. Calibrated "
            "uncertainties have the right variance, not the right intervals; the "
            f"multiple of u that holds 95 % of these errors is {z.k95:.2f}. A few "
            "large errors also weigh heavily on ⟨Z²⟩ and the likelihood. "
            f"{final.validation.tails}".strip(),
        )
    # where nothing can be told, the verdict says it
    doubt = doubt_of_average(final)
    if doubt and final.validation.verdicts[AVERAGE].answer != "cannot tell":
        yield Caution("That the verdict on the average can be trusted.", doubt)
    if z.biased and bias.answer != "no":  # else the verdict says it
        yield Caution(
            "That errors are due to chance alone.",
            f"The mean of z is {z.mean:.2f}: the predictions may be biased. ⟨Z²⟩ "
            "counts bias as if it were spread; correct the predictions first.",
        )


def _repeats(results: Results) -> Iterator[Caution]:
    if results.repeats:
        yield Caution(
            "That the rows are independent.",
            f"Rows look like repeats: {results.repeats}. No groups were given, so "
            "that each row counts as a new finding: intervals are too narrow, and a "
            "“no” comes too easily. Judge again with groups, the label of the sample, "
            "molecule or trajectory of each row.",
        )


def _worse(results: Results) -> Iterator[Caution]:
    if not results.recalibrated:
        return
    before, after = (stage.validation.scores.nll for stage in results.stages)
    if after > before:
        yield Caution(
            "That recalibration made the uncertainties better.",
            f"The likelihood is worse after it: NLL rises from {before:.3f} to "
            f"{after:.3f}.",
        )


def _not_examined(results: Results) -> Iterator[Caution]:
    if len(results.rows.names) == 1:
        yield Caution(
            "That uncertainties are right for every kind of input.",
            "No feature was examined. Uncertainties that are consistent can be too "
            "small for some inputs and too large for others.",
        )
    if results.unexamined:
        yield Caution(
            f"Anything about {', '.join(results.unexamined)}.",
            "The recalibrator knows what is not among the features judged here.",
        )


def _chosen_here(results: Results) -> Iterator[Caution]:
    if results.comparison is not None:
        yield Caution(
            "That the best line of the comparison will be the best elsewhere.",
            "Whoever picks a method by its scores on the judged rows makes these "
            "scores too good. Pick by cross-validation on the calibration set, or "
            "judge the winner on rows that had no part in the choice.",
        )


def _always(results: Results) -> Iterator[Caution]:
    validation = results.final.validation
    verdict = validation.verdicts["u"]
    share = validation.confidence if verdict.attainable is None else verdict.attainable
    bins = validation.local["u"].n.size
    yield Caution(
        "That a single bin whose interval misses 1 is a fault.",
        f"Even if all uncertainties were right, about {round((1 - share) * bins)} of "
        f"{bins} bins would miss it by chance. Look for runs of neighbouring bins.",
    )
    yield Caution(
        "That a “yes” is a proof.",
        f"Verdicts are corrected for the {len(validation.verdicts)} questions asked "
        "here, not for other features, methods or data that were looked at before; and "
        "a feature that no one recorded can hide where uncertainties are wrong. "
        f"{_independence(results)} Right uncertainties can still be too large to be "
        "useful: the likelihood (NLL) and the confidence curve tell.",
    )


def _independence(results: Results) -> str:
    weighted = ""
    if results.n_effective is not None:
        weighted = (
            " Rows were weighted in all but the confidence curve and the statistics of "
            "tails, which take them alike."
        )
    if results.n_groups is None:
        return f"No groups were given: rows were taken to be independent.{weighted}"
    return (
        f"Rows of one of the {results.n_groups:,} groups were kept together; groups "
        f"were taken to be independent.{weighted}"
    )
