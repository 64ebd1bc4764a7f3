"""What is drawn is what was computed, artist by artist."""

import itertools
import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

import sigmascale as ss
from sigmascale import plots
from sigmascale.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def sets():
    """Rows before and after recalibration, that were not fitted."""
    rng = np.random.default_rng(1)
    n = 3000
    kind = rng.choice(["alloy", "oxide", "metal"], n, p=[0.2, 0.5, 0.3])
    mass, u, y = rng.uniform(20, 200, n), rng.lognormal(0, 0.5, n), rng.normal(0, 5, n)
    error = u * rng.normal(size=n) * np.where(kind == "alloy", 1.9, 1)
    features = {"mass": mass, "kind": kind}
    p = ss.Predictions(y - error, u, y_true=y, features=features)
    known, new = p.take(np.arange(1500)), p.take(np.arange(1500, n))
    return new, ss.Recalibrator(ss.RakedScaling(n_bins=5)).fit(known).apply(new)


@pytest.fixture(scope="module")
def judged(sets):
    return [ss.validate(p) for p in sets]


def points(ax, marker=None):
    """Return what lines with markers show, as (x, y) pairs."""
    found = [
        np.column_stack(line.get_data())
        for line in ax.lines
        if (line.get_marker() == marker if marker else line.get_marker() != "None")
    ]
    return np.vstack(found) if found else np.empty((0, 2))


def bars(ax):
    """Return the ends of bars, as (x0, y0, x1, y1)."""
    found = [c.get_segments() for c in ax.collections if hasattr(c, "get_segments")]
    return np.array([each.ravel() for several in found for each in several])


def band_of(ax, label):
    """Return the x, low and high of a band."""
    (found,) = [c for c in ax.collections if c.get_label() == label]
    vertices = found.get_paths()[0].vertices
    x = np.unique(vertices[:, 0])
    low, high = (
        np.array([f(vertices[vertices[:, 0] == each, 1]) for each in x])
        for f in (np.min, np.max)
    )
    return x, low, high


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def note_of(ax):
    return ax.get_title("left").replace("\n", " ")


# -- checks ----------------------------------------------------------------------------


def test_the_figure_of_checks_shows_what_decides_each(judged):
    v, _ = judged
    ax = plots.checks(v)
    rows = [tick.get_text() for tick in ax.get_yticklabels()]
    assert set(rows) == set(v.checks)
    assert rows[:3] == ["calibration", "consistency", "adaptivity: kind"]  # the worst
    span = ax.patches[0].get_extents().transformed(ax.transData.inverted())
    assert (span.x0, span.x1) == pytest.approx((1 / v.tolerance, v.tolerance))
    marks = {round(y): x for x, y in points(ax, "o")}
    ends = [round(float(x), 6) for line in ax.lines for x in line.get_xdata()]
    results = {round(text.get_position()[1]): text.get_text() for text in ax.texts}
    for row, name in enumerate(rows):
        check = v.checks[name]
        factor, low, high = check.subgroup.factors
        assert marks[row] == pytest.approx(factor)
        assert {round(low, 6), round(high, 6)} <= set(ends)
        expected = {"pass": "pass", "FAIL": "FAIL", "inconclusive": "?"}
        is_same = check.unit == "" and check.same_as_all_rows
        is_same &= check.result == v.checks["calibration"].result != "pass"
        mark = "–" if is_same else expected.get(check.result, "–")
        assert results[row] == mark
    # RMS z stands as it is
    kind = v.checks["adaptivity: kind"].subgroup
    assert marks[2] == pytest.approx(kind.estimate)


def test_before_and_after_differ_by_colour_mark_and_place(judged):
    ax = plots.checks(*judged)
    before, after = points(ax, "s"), points(ax, "o")
    rows = [tick.get_text() for tick in ax.get_yticklabels()]
    row = rows.index("adaptivity: kind")
    for v, found, side in zip(judged, (before, after), (-1, 1), strict=True):
        own = found[np.abs(found[:, 1] - row) < 0.3]
        estimate = v.checks["adaptivity: kind"].subgroup.estimate
        assert own[0] == pytest.approx([estimate, row + 0.2 * side])
    assert {"before", "after"} <= set(legend_of(ax))
    shades = {
        line.get_marker(): np.dot(
            mpl.colors.to_rgb(line.get_color()), [0.3, 0.59, 0.11]
        )
        for line in ax.lines
        if line.get_label() in ("before", "after")
    }
    assert abs(shades["s"] - shades["o"]) > 0.1  # told apart in grey, too


def test_what_lies_beyond_the_axis_stands_at_its_end(judged):
    v = judged[0]
    check = v.checks["consistency"]
    wide = replace(check.subgroup, factors=(1e260, 0.0, float("inf")))
    checks = {**v.checks, "consistency": replace(check, subgroup=wide)}
    ax = plots.checks(replace(v, checks=checks))
    low, high = ax.get_xlim()
    assert np.isfinite([low, high]).all()
    marks = {round(y): x for x, y in points(ax, "o")}
    assert marks[1] == pytest.approx(high)
    none = replace(check, subgroup=None, result="inconclusive")
    plots.checks(replace(v, checks={**v.checks, "consistency": none}))


def test_rms_z_along_a_number_is_that_of_its_subgroups(judged):
    v, _ = judged
    ax = plots.factors(v, by="mass")
    subgroups = v.checks["adaptivity: mass"].subgroups
    assert points(ax)[:, 1] == pytest.approx([s.estimate for s in subgroups])
    mass = v.rows.features["mass"]
    upright = {round(x0, 6): (y0, y1) for x0, y0, x1, y1 in bars(ax) if x0 == x1}
    for s in subgroups:
        (condition,) = s.conditions
        low = mass.min() if condition.low is None else condition.low
        high = mass.max() if condition.high is None else condition.high
        limits = upright[round((low + high) / 2, 6)]
        assert limits == pytest.approx((s.low, s.high))
    assert ax.get_xlabel() == "mass"
    assert ax.get_ylabel() == "RMS z"
    assert ax.get_yscale() == "log"


def decides(ax):
    """Return where the bars of deciding subgroups are: x from, x to, y."""
    found = [line for line in ax.lines if line.get_linewidth() == 5]
    return [(*line.get_xdata(), *set(line.get_ydata())) for line in found]


def test_labels_have_their_names_and_the_one_that_decides_a_bar(judged):
    ax = plots.factors(*judged, by="kind")
    names = [tick.get_text() for tick in ax.get_xticklabels()]
    for v, marker in zip(judged, "so", strict=True):
        subgroups = v.checks["adaptivity: kind"].subgroups
        assert names == [s.conditions[0].labels[0] for s in subgroups]
        estimates = [s.estimate for s in subgroups]
        assert points(ax, marker)[:, 1] == pytest.approx(estimates)
    worst = judged[0].checks["adaptivity: kind"].subgroup
    assert worst.where == "kind = alloy"
    first = decides(ax)[0]
    place = names.index("alloy")
    assert first == pytest.approx((place - 0.3, place + 0.3, worst.estimate))
    assert {"before", "after", "accepted: 0.80 to 1.25"} <= set(legend_of(ax))


def test_u_and_the_worst_feature_stand_side_by_side_and_keep_the_legend(judged):
    v, _ = judged
    figure = Figure(figsize=(8, 3))
    ax = plots.factors(v, ax=figure.subplots())
    assert [x.get_xlabel() for x in figure.axes] == ["uncertainty u", "kind"]
    assert ax is figure.axes[0]
    assert "accepted: 0.80 to 1.25" in legend_of(ax)
    alone = ss.validate(v.rows.with_features(()))
    assert len(plots.factors(alone).figure.axes) == 1


def test_a_validation_with_its_before_is_drawn_as_both(judged, sets):
    both = ss.validate(sets[1], before=sets[0])
    one, other = plots.factors(both, by="mass"), plots.factors(*judged, by="mass")
    np.testing.assert_array_equal(points(one), points(other))


def test_bias_and_coverage_are_drawn_along_a_variable(judged):
    v, _ = judged
    for check in ("bias", "coverage"):
        ax = plots.factors(v, by="kind", check=check)
        own = [s for s in v.checks[check].subgroups if s.column == "kind"]
        found = np.sort(points(ax)[:, 1])
        assert found == pytest.approx(np.sort([s.estimate for s in own]))
    assert plots.factors(v, by="u", check="bias").get_yscale() == "linear"


def test_a_variable_without_subgroups_says_so(judged):
    v = judged[0]
    for name in ("mass", "kind"):
        empty = replace(v.checks[f"adaptivity: {name}"], subgroups=())
        checks = v.checks | {f"adaptivity: {name}": empty}
        ax = plots.factors(replace(v, checks=checks), by=name)
        assert "too few rows" in [text.get_text() for text in ax.texts]


# -- comparisons and monitors ----------------------------------------------------------


def test_paired_differences_are_drawn_with_their_intervals(sets):
    p, q = sets
    found = ss.compare({"raw": p, "raked": q, "half": p.with_y_std(p.y_std / 3)})
    for score in (None, "nll"):
        ax = plots.comparison(found, score=score)
        for row, name in enumerate(("raked", "half")):
            each = found.differences[name][score or "crps"]
            drawn = {tuple(line.get_ydata()): line.get_xdata() for line in ax.lines}
            assert drawn[row, row] == pytest.approx([each.low, each.high])
            assert drawn[(row,)] == pytest.approx([each.value])
    assert points(ax, "X")[0, 1] == 1  # significantly worse
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert labels == ["raked", "half"]
    names = legend_of(plots.comparison({"raw": p, "third": p.with_y_std(p.y_std / 3)}))
    assert names == ["worse"]
    for high, face in ((-1e-6, plots.BLUE), (0.001, "none")):  # better; inconclusive
        each = replace(found.differences["raked"]["crps"], low=-0.2, high=high)
        ax = plots.comparison(replace(found, differences={"raked": {"crps": each}}))
        (mark,) = [line for line in ax.lines if line.get_marker() == "o"]
        assert mark.get_markerfacecolor() == face
    with pytest.raises(InvalidInputError, match="score"):
        plots.comparison(found, score="beauty")


def test_the_evidence_over_time_is_that_of_the_monitor(sets):
    p, _ = sets
    monitor = ss.Monitor(p).update(p).update(p.with_y_std(p.y_std / 2))
    ax = plots.monitor(monitor)
    by_name = {line.get_label(): line for line in ax.lines}
    rows, evidence = by_name["too small"].get_data()
    np.testing.assert_array_equal(rows, monitor.history[:, 0])
    np.testing.assert_allclose(evidence, 10 ** monitor.history[:, 2])
    assert set(by_name) >= {"too large", "biased up", "biased down", "in a region"}
    span = ax.patches[0].get_extents().transformed(ax.transData.inverted())
    assert (span.x0, span.x1) == pytest.approx((monitor.alarm.since, monitor.alarm.row))
    assert set(by_name["alarm at 20"].get_ydata()) == {20.0}
    timed = p.take(np.arange(1000)).with_features(())
    rows = ss.Predictions(error=timed.error, y_std=timed.y_std, time=np.arange(1000))
    assert plots.monitor(rows).get_xlabel() == "rows"


# -- rows and scores -------------------------------------------------------------------


def test_errors_are_drawn_against_u_with_lines_at_2u(sets):
    p, _ = sets
    ax = plots.errors(p, max_points=10_000)
    drawn = {tuple(x) for x in points(ax)}
    rows = {tuple(x) for x in np.column_stack([p.y_std, p.error])}
    outside = int(re.search(r"(\d+) outside", ax.get_xlabel())[1])
    assert drawn <= rows
    assert len(rows) - len(drawn) == outside
    for line in ax.lines:
        if line.get_label() == "±2u":
            x, y = line.get_data()
            np.testing.assert_allclose(y, 2 * x)
    beyond = 100 * np.mean(np.abs(p.z) > 2)
    assert note_of(ax) == f"beyond 2u: {beyond:.3g} %; 4.55 % expected"
    some = plots.errors(p, max_points=100)
    assert len(points(some)) <= 100
    assert "100 of 1,500 rows" in some.get_xlabel().replace("\n", " ")
    assert legend_of(ax) == ["errors E", "±2u"]
    vector = ss.Predictions(error=np.ones((50, 3)), y_std=np.linspace(1, 2, 50))
    assert points(plots.errors(vector))[:, 1] == pytest.approx(1)
    # of three normal components, chi-squared with 3 degrees of freedom is above 12
    assert "0.738 % expected" in note_of(plots.errors(vector))


def test_recalibrated_errors_are_expected_beyond_2u_as_their_distributions_say(sets):
    left = plots.errors(*sets)
    claims = sets[1].distributions
    inside = [claims.cdf(claims.location + k * claims.scale) for k in (-2, 2)]
    share = 1 - float(np.mean(inside[1] - inside[0]))
    assert f"{100 * share:.3g} % expected" in note_of(left.figure.axes[1])


def test_errors_lie_within_their_intervals_in_the_order_of_u(sets):
    for rows in sets:
        ax = plots.intervals(rows, coverage=0.8, max_points=300)
        claimed = rows.distributions
        low, high = (claimed.interval(0.8) - rows.y_pred[:, None]).T
        held = (low <= rows.error) & (rows.error <= high)
        share = f"missed: {100 * (1 - held.mean()):.3g} %; 20 % expected"
        assert note_of(ax) == share
        good, bad = points(ax, "o"), points(ax, "X")
        assert len(good) + len(bad) == 300
        assert {y for _, y in bad} <= set(rows.error[~held])
        area = ax.patches[0].get_data()
        drawn = {*zip(area.baseline, area.values, strict=True)}
        assert drawn <= {*zip(low, high, strict=True)}
        u_of = dict(zip(high, rows.y_std, strict=True))
        assert (np.diff([u_of[top] for top in area.values]) >= 0).all()
    ax = plots.intervals(rows, by="prediction", max_points=300)
    predicted = dict(zip(rows.error, rows.y_pred, strict=True))
    _, drawn = points(ax)[np.argsort(points(ax)[:, 0])].T
    assert (np.diff([predicted[each] for each in drawn]) >= 0).all()


def test_scores_are_drawn_as_they_were_computed(sets):
    p, _ = sets
    diagram = ss.scores.reliability_diagram(p)
    ax = plots.reliability(diagram)
    expected = np.column_stack([diagram.rmv, diagram.rmse])
    np.testing.assert_array_equal(points(ax, "o"), expected)
    np.testing.assert_array_equal(bars(ax)[:, [1, 3]], np.c_[diagram.low, diagram.high])
    _, low, high = band_of(ax, "if calibrated")
    np.testing.assert_allclose(low, diagram.attainable_low)
    np.testing.assert_allclose(high, diagram.attainable_high)
    assert any(f"ENCE {diagram.ence:.2f};" in each for each in legend_of(ax))

    curve = ss.scores.calibration_curve(p)
    ax = plots.calibration(curve)
    line = next(x for x in ax.lines if x.get_label().startswith("observed"))
    np.testing.assert_array_equal(line.get_data(), [curve.coverage, curve.observed])
    _, low, high = band_of(ax, "if calibrated")
    np.testing.assert_allclose(low, curve.low)
    np.testing.assert_allclose(high, curve.high)
    assert f"observed: area {curve.area:.3f}" in legend_of(ax)

    histogram = ss.scores.pit_histogram(p)
    ax = plots.pit(histogram)
    stairs = ax.patches[0].get_data()
    np.testing.assert_array_equal(stairs.values, histogram.density)
    np.testing.assert_array_equal(stairs.edges, histogram.edges)
    _, low, high = band_of(ax, "if calibrated")
    assert (low[0], high[0]) == (histogram.low, histogram.high)

    confidence = ss.scores.confidence_curve(p)
    ax = plots.confidence_curve(confidence)
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    np.testing.assert_array_equal(drawn["by u, largest first"], confidence.error)
    np.testing.assert_array_equal(drawn["oracle, by the error"], confidence.oracle)
    np.testing.assert_array_equal(drawn["expected"], confidence.reference)


def test_local_statistics_shows_valid_and_other_bins_and_the_average(sets):
    p, _ = sets
    for by in ("u", "kind"):
        result = ss.scores.local_statistics(p, by=by)
        ax = plots.local_statistics(result)
        x = np.arange(3) if by == "kind" else result.x
        for marker, which in (("o", result.valid), ("X", ~result.valid)):
            expected = np.column_stack([x, result.value])[which]
            np.testing.assert_allclose(points(ax, marker).reshape(-1, 2), expected)
        average = points(ax, "s")
        assert average[0, 1] == pytest.approx(result.overall[0])
        missed, n_bins = int((~result.valid).sum()), result.valid.size
        assert note_of(ax).startswith(f"{missed} of {n_bins} bins miss 1; ")
    zero = replace(result, value=np.zeros(3), low=np.zeros(3), valid=np.zeros(3, bool))
    assert len(points(plots.local_statistics(zero), "v")) == 3


def test_every_local_statistic_is_drawn_with_its_target(sets):
    p, _ = sets
    for name in ("mean_z", "coverage", "rce"):
        result = ss.scores.local_statistics(p, statistic=name, by="mass")
        ax = plots.local_statistics(p, statistic=name, by="mass")
        assert ax.lines[0].get_ydata()[0] == result.target
        assert ax.get_ylabel() == f"local {result.words}"
        drawn = np.concatenate([points(ax, marker).reshape(-1, 2) for marker in "oX"])
        np.testing.assert_allclose(np.sort(drawn[:, 1]), np.sort(result.value))


def test_several_results_in_one_axes_share_one_band_and_one_legend(sets):
    looks = {"before": plots.VERMILION, "after": plots.BLUE}
    for draw, compute in (
        (plots.calibration, ss.scores.calibration_curve),
        (plots.pit, ss.scores.pit_histogram),
        (plots.reliability, ss.scores.reliability_diagram),
        (plots.confidence_curve, ss.scores.confidence_curve),
    ):
        ax = None
        for p, (label, color) in zip(sets, looks.items(), strict=True):
            ax = draw(compute(p), ax=ax, label=label, color=color)
        labels = [each.split(":")[0] for each in legend_of(ax)]
        assert {"before", "after"} <= set(labels)
        assert labels.count("if calibrated") == 1


PAIRS = (
    "calibration",
    "confidence_curve",
    "errors",
    "intervals",
    "local_statistics",
    "pit",
)


def test_two_sets_have_the_same_colours_in_every_picture(sets):
    for name in (*PAIRS, "reliability"):
        ax = getattr(plots, name)(*sets)
        colours = set()
        for panel in ax.figure.axes:
            colours |= {to_hex(line.get_color()) for line in panel.lines}
            colours |= {to_hex(patch.get_facecolor()) for patch in panel.patches}
        assert {plots.VERMILION, plots.BLUE} <= colours, name
        assert colours <= {
            plots.VERMILION,
            plots.BLUE,
            plots.INK,
            plots.SOFT,
            plots.GREY,
        }


def test_rows_are_drawn_as_their_results_are(sets):
    p, _ = sets
    computed = {
        "reliability": ss.scores.reliability_diagram(p),
        "calibration": ss.scores.calibration_curve(p),
        "pit": ss.scores.pit_histogram(p),
        "confidence_curve": ss.scores.confidence_curve(p),
        "local_statistics": ss.scores.local_statistics(p),
    }
    for name, result in computed.items():
        drawn = [getattr(plots, name)(given) for given in (p, result)]
        assert legend_of(drawn[0]) == legend_of(drawn[1])
        for one, other in zip(*(ax.lines for ax in drawn), strict=True):
            np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())


def test_limits_of_0_do_not_squash_a_reliability_diagram(sets):
    rng = np.random.default_rng(0)
    u, groups = np.repeat(rng.lognormal(size=100), 4), np.repeat(np.arange(100), 4)
    error = np.repeat(rng.normal(size=100), 4) * u
    p = ss.Predictions(error=error, y_std=u, groups=groups)
    diagram = ss.scores.reliability_diagram(p)
    for each in (diagram, replace(diagram, low=0 * diagram.low)):
        low, high = plots.reliability(each).get_ylim()
        assert 0 < low < diagram.rmse.min()
        assert high < 1e3 * low


# -- for print -------------------------------------------------------------------------


def drawn_texts(figure):
    """Return every text that is to be seen in a figure."""
    found = []
    for ax in figure.findobj(Axes):
        for axis in (ax.xaxis, ax.yaxis):
            for tick in axis._update_ticks() if axis.get_visible() else ():
                found += [tick.label1, tick.label2]
            found += [axis.label, axis.offsetText]
        found += [each for each in ax.get_children() if isinstance(each, Text)]
        if ax.get_legend():
            found += ax.get_legend().get_texts()
    seen = {id(x): x for x in found if x.get_visible() and x.get_text().strip()}
    return list(seen.values())


def overprinted(figure):
    """Return pairs of texts that overlap, texts beyond the edge, and those on marks."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [
        (x, x.get_window_extent(canvas.get_renderer())) for x in drawn_texts(figure)
    ]
    bad = []
    for (one, box), (other, next_to) in itertools.combinations(boxes, 2):
        shared = [
            min(getattr(box, f"{way}1"), getattr(next_to, f"{way}1"))
            - max(getattr(box, f"{way}0"), getattr(next_to, f"{way}0"))
            for way in "xy"
        ]
        if min(shared) > 0.5:  # pixels
            bad.append((one.get_text(), other.get_text()))
    width, height = figure.bbox.size
    for text, box in boxes:
        if (
            box.x0 < -0.5
            or box.y0 < -0.5
            or box.x1 > width + 0.5
            or box.y1 > height + 0.5
        ):
            bad.append((text.get_text(), "the edge"))
        for line in text.axes.lines if text.axes else ():
            if line.get_marker() in ("None", "", " ") or not line.get_xydata().size:
                continue
            pixels = line.get_transform().transform(line.get_xydata())
            if any(box.contains(x, y) for x, y in pixels):
                bad.append((text.get_text(), "a mark"))
    return bad


CASES = [(300, 1.9), (5000, 1.9), (300, 1), (5000, 1)]
CASES[1:] = [pytest.param(each, marks=pytest.mark.slow) for each in CASES[1:]]


@pytest.fixture(scope="module", params=CASES)
def printed(request):
    """A set whose u is wrong, or right, of few or many rows, and recalibrated."""
    n, alloys = request.param
    rng = np.random.default_rng(2)
    kinds = ["alloy", "a rather long name", "oxide", "metal"]
    kind, u = rng.choice(kinds, 2 * n), rng.lognormal(0, 0.5, 2 * n)
    error = u * rng.normal(size=2 * n) * np.where(kind == "alloy", alloys, 1)
    features = {"mass": rng.uniform(20, 200, 2 * n), "kind": kind}
    truth = rng.normal(0, 5, 2 * n)
    p = ss.Predictions(truth - error, u, y_true=truth, features=features)
    known, new = p.take(np.arange(n)), p.take(np.arange(n, 2 * n))
    recalibrated = ss.Recalibrator(ss.RakedScaling(n_bins=5)).fit(known).apply(new)
    return [new, recalibrated], [ss.validate(new), ss.validate(recalibrated)]


@pytest.mark.parametrize("columns", [1, 2])
def test_no_text_overprints_another_or_a_mark_in_print(printed, columns):
    printed, judged = printed
    before, after = printed
    third = before.with_y_std(before.y_std / 3)
    quick = before.with_features(())
    watched = ss.Monitor(quick).update(quick).update(quick.with_y_std(quick.y_std / 2))
    rivals = {"raw": before, "raked": after, "a third of what it was": third}
    study = ss.scores.bin_study(before, after, numbers=(2, 8), n_draws=9)
    with plots.style("paper", columns=columns):
        drawn = [plots.comparison(rivals), plots.monitor(watched)]
        drawn.append(plots.bin_study(study)[0])
        for sets, verdicts in ((printed[:1], judged[:1]), (printed, judged)):
            names = (*PAIRS, "reliability")
            drawn += [getattr(plots, name)(*sets) for name in names]
            drawn += [plots.checks(*verdicts), plots.factors(*verdicts)]
            drawn.append(plots.local_statistics(*sets, by="kind"))
            drawn += [plots.factors(*verdicts, by=name) for name in ("u", "kind")]
        for ax in drawn:
            assert overprinted(ax.figure) == []
            assert ax.get_window_extent().height >= 72  # not squashed by what is above
            assert 2.54 * ax.figure.get_figwidth() == pytest.approx(8.5 * columns)


def test_figures_for_print_have_truetype_fonts_and_leave_settings_alone(sets, tmp_path):
    before = dict(mpl.rcParams)
    with plots.style("paper"):
        figure = plots.calibration(*sets).figure
        figure.savefig(tmp_path / "f.pdf")
    assert dict(mpl.rcParams) == before
    assert b"/FontFile2" in (tmp_path / "f.pdf").read_bytes()  # TrueType
    assert {text.get_fontsize() for text in drawn_texts(figure)} == {8.0}
    assert plots.calibration(sets[0]).figure.get_figwidth() == 4.5
    for wrong, words in (({"name": "poster"}, "paper"), ({"columns": 3}, "1 or 2")):
        with pytest.raises(InvalidInputError, match=words), plots.style(**wrong):
            pass


# -- habits ----------------------------------------------------------------------------


def test_every_function_draws_on_given_axes_and_takes_a_style(sets, judged):
    p, _ = sets
    calls = (
        (plots.errors, (p,), {}),
        (plots.intervals, (p,), {}),
        (plots.factors, (judged[0],), {"by": "mass"}),
        (plots.reliability, (ss.scores.reliability_diagram(p),), {}),
        (plots.calibration, (ss.scores.calibration_curve(p),), {}),
        (plots.confidence_curve, (ss.scores.confidence_curve(p),), {}),
        (plots.local_statistics, (ss.scores.local_statistics(p),), {}),
        (plots.monitor, (ss.Monitor(p).update(p),), {}),
    )
    settings = dict(mpl.rcParams)
    for draw, given, more in calls:
        ax = Figure().subplots()
        assert draw(*given, ax=ax, c="#123456", **more) is ax
        colours = {to_hex(line.get_color()) for line in ax.lines}
        assert "#123456" in colours, draw.__name__
        with pytest.raises(InvalidInputError, match="Axes"):
            draw(*given, ax="here", **more)
        with pytest.raises(InvalidInputError, match="found list"):
            draw([1.0], **more)
    assert dict(mpl.rcParams) == settings


def test_what_cannot_be_drawn_is_refused(sets, judged):
    p, _ = sets
    errors_only = ss.Predictions(error=p.error, y_std=p.y_std)
    with pytest.raises(InvalidInputError, match="y_pred"):
        plots.intervals(errors_only, by="prediction")
    with pytest.raises(InvalidInputError, match="mass"):
        plots.factors(judged[0], by="colour")
    with pytest.raises(InvalidInputError, match="no sign"):
        plots.intervals(ss.Predictions(error=np.ones((9, 2)), y_std=np.ones(9)))


def test_names_are_drawn_as_they_are(judged):
    v = judged[0]
    odd = "cost $x$ \n of_y^2"
    named = replace(v.checks["adaptivity: mass"], column=odd)
    checks = {f"adaptivity: {odd}": named, "bias": v.checks["bias"]}
    ax = plots.checks(replace(v, checks=checks))
    ax.figure.canvas.draw()
    shown = ax.get_yticklabels()[0].get_text()
    assert shown == r"adaptivity: cost \$x\$ of_y^2"


def test_svg_is_one_element_with_text_names_of_its_own_and_colours_of_the_page(judged):
    with plots.drawing() as new_figure:
        texts = []
        for key in ("a", "b", "a"):
            ax = new_figure((4.5, 3)).subplots()
            plots.checks(*judged, ax=ax)
            words = {"title": "Checks", "description": "before & after"}
            texts.append(plots.svg(ax.figure, key=key, **words))
        cloud = plots.errors(judged[0].rows).figure
        points = plots.svg(cloud, key="c")
    assert texts[0] == texts[2]
    root = ElementTree.fromstring(texts[0])
    assert root.get("role") == "img"
    assert (root[0].text, root[1].text) == ("Checks", "before & after")
    tags = {each.tag for each in root.iter()}
    assert not tags & {"metadata", "style", "image"}
    written = {each.text for each in root.iter("text")}
    assert {"calibration", "adaptivity: kind", "FAIL"} <= written
    for name in ("blue", "vermilion", "grey", "ink"):
        assert f"var(--{name}," in texts[0] + points
    names = [set(re.findall(r'\bid="([^"]+)"', text)) for text in texts[:2]]
    assert not names[0] & names[1]
    used = re.findall(r'(?:href="|url\()#([^")]+)', texts[0])
    assert set(used) <= names[0]
    # colours of the cloud are the page's too, and said once
    assert "var(--blue" in points
    assert points.count("fill-opacity") < 10


def test_svg_alone_has_a_style_for_light_and_dark(judged):
    with plots.drawing():
        text = plots.svg(plots.checks(judged[0]).figure, alone=True)
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "prefers-color-scheme:dark" in text
    ElementTree.fromstring(text)


def test_figures_need_no_pyplot_and_notebooks_show_them():
    code = (
        "import sys, sigmascale as ss\n"
        "p = ss.datasets.load_diabetes().test\n"
        "figure = ss.plots.errors(p).figure\n"
        "assert figure._repr_png_().startswith(b'\\x89PNG')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_figures_without_matplotlib_are_refused_with_the_extra_that_has_it(
    sets, monkeypatch
):
    halves = sets[0].take(np.arange(700)), sets[0].take(np.arange(700, 1400))
    study = ss.scores.bin_study(*halves, numbers=(2,), n_draws=2)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw, what in ((plots.calibration, sets[0]), (plots.bin_study, study)):
        with pytest.raises(ImportError, match=r"sigmascale\[cli\]"):
            draw(what)
