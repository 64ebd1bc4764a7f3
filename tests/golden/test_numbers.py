"""Numbers of drawn sets stay what they are, unless somebody means to change them.

What is learned, watched and scored is condensed to a few sums a set, which any change
of a comparison or a sign moves. After a change that is meant,

    python tests/golden/test_numbers.py

writes numbers.json anew, with the versions that made it. Trees are those of
scikit-learn, and are compared where its version is the same.
"""

import json
import warnings
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
import sklearn

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

PATH = Path(__file__).with_name("numbers.json")
SKLEARN = ".".join(sklearn.__version__.split(".")[:2])
OF_TREES = ("boosted", "trees")


# -- rows ------------------------------------------------------------------------------


def rows(n, seed, *, only=None, vectors=False, **more):
    """Rows with ties, gaps and labels, whose errors depend on all of it."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.6, n)
    mass = np.where(rng.random(n) < 0.05, np.nan, np.round(rng.normal(size=n), 2))
    kind = rng.choice(["a", "b", "rare"], n, p=[0.6, 0.35, 0.05])
    size = np.exp(0.3 * np.nan_to_num(mass)) * np.where(kind == "b", 1.5, 0.8)
    z = rng.standard_t(5, (n, 2) if vectors else n) + (0 if vectors else 0.2)
    error = (u[:, None] if vectors else u) * z * (size[:, None] if vectors else size)
    y_pred = rng.normal(size=error.shape)
    features = {"mass": mass, "kind": kind}
    if only is not None:
        features = {name: features[name] for name in only}
    for name, make in more.items():
        more[name] = make(rng, n)
    return ss.Predictions(y_pred, u, error=error, features=features, **more)


def complete(p):
    return p.take(np.flatnonzero(~np.isnan(p.features["mass"])))


def rounded(n, seed):
    """Rows of few values, many of whose errors are 0."""
    rng = np.random.default_rng(seed)
    u = np.round(rng.lognormal(0, 0.5, n), 1) + 0.1
    error = np.round(u * rng.normal(size=n) * (rng.random(n) < 0.7), 1)
    weights = np.round(rng.uniform(0.2, 2, n), 1)
    return ss.Predictions(y_std=u, error=error, weights=weights)


def of_u(n, seed, errors, **more):
    """Rows whose errors are a function of u and of normal numbers."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.6, n)
    return ss.Predictions(y_std=u, error=errors(u, rng.normal(size=n)), **more)


def weights(rng, n):
    return rng.uniform(0.3, 3, n)


def groups(rng, n):
    return rng.integers(0, n // 4, n)


def time(rng, n):
    return rng.permutation(n)


SETS = {
    "plain": rows(300, 1),
    "weighted": rows(300, 2, weights=weights),
    "grouped": rows(300, 3, groups=groups),
    "timed": rows(300, 4, time=time, only=["mass"]),
    "vectors": rows(300, 5, vectors=True),
    "rounded": rounded(250, 6),
    "few": rows(30, 7, only=["mass"]),
    "many": rows(1500, 8),
    "power": of_u(400, 10, lambda u, z: u**1.6 * z),
    "excess": of_u(400, 11, lambda u, z: np.sqrt(np.maximum(u**2 - 0.2, 0.02)) * z),
    "shapes": of_u(1200, 12, lambda u, z: u * np.where(u > 1, np.sign(z), z)),
}


def new_rows(name, p):
    if p.y_pred is None:
        return rounded(40, 60)
    return rows(40, 70, only=p.names[1:], vectors=p.is_vector)


NEW = {name: new_rows(name, p) for name, p in SETS.items()}

# -- what is condensed -----------------------------------------------------------------


def condensed(value):
    """Return a number for an array that any change moves, or a list of such."""
    if is_dataclass(value):
        of_fields = {part.name: getattr(value, part.name) for part in fields(value)}
        return condensed(list(of_fields.values()))
    if isinstance(value, (dict, list, tuple)):
        parts = value.values() if isinstance(value, dict) else value
        found = [condensed(part) for part in parts]
        return [part for part in found if part not in (None, [])]
    if isinstance(value, (str, type(None), np.random.Generator)):
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        return None
    array = np.ravel(array).astype(float)
    known = np.where(np.isfinite(array), array, 0.0)
    unknown = int(np.count_nonzero(~np.isfinite(array)))
    total = known @ (1 + 0.5 * np.cos(np.arange(known.size)))
    return [float(f"{total:.10g}"), unknown] if unknown else float(f"{total:.10g}")


def flat(value):
    if isinstance(value, list):
        return [number for part in value for number in flat(part)]
    return [value]


# -- what is learned -------------------------------------------------------------------

SCALINGS = {
    "temperature": ss.TemperatureScaling(),
    "linear": ss.LinearScaling(),
    "line without b² subtracted": ss.LinearScaling(subtract=False),
    "isotonic": ss.IsotonicScaling(),
    "raked": ss.RakedScaling(),
    "raked line": ss.RakedScaling(8, base="linear", prior_rows=5),
    "binwise": ss.BinwiseScaling(6),
    "binwise by mass": ss.BinwiseScaling(4, by="mass", prior_rows=0),
    "binwise by both": ss.BinwiseScaling((3, 2), by=("u", "mass")),
    "binwise by kind": ss.BinwiseScaling(by="kind"),
    "boosted": ss.BoostedScaling(),
}
OPTIONS = {
    "normal": {"distribution": "normal"},
    "normal, bounded": {"distribution": "normal", "bounds": (-1, 2)},
    "held out": {"hold_out": 0.4},
    "constant": {"bias": "constant"},
    "trees": {"bias": "auto"},
    "bounded": {"bounds": (0, None)},
    "parts": {"parts": ["u", "kind"]},
    "parts held out": {"parts": ["mass"], "hold_out": 0.5},
}


def of_fit(r, p, new):
    """Return what a fit says of new rows, and of those that it was fitted to."""
    q = r.apply(new)
    d = q.distributions
    said = [q.y_std, len(r.cautions_), d.crps(q.target) if not q.is_vector else 0]
    if q.is_vector:
        said += [d.radius(0.5), d.radius(0.9), d.energy_score(q.target)]
        said += [d.sample(3, rng=0)]
    else:
        said += [q.y_pred, d.mean, d.std, d.pit(q.target), d.sample(3, rng=0)]
        said += [d.interval(level) for level in (0.5, 0.9, 0.97)]
        said += [d.cdf(q.target + 0.1), d.quantile([0.01, 0.4])]
        said += [q.distributions[:3].sample(2, rng=1)]
    if r.bias_ is None and not q.is_vector:
        said += [value for value in vars(r.scale_.base).values() if value is not None]
    unseen = r.out_of_fold_
    return condensed([*said, unseen.y_std, r.apply(p).y_std])


def fits():
    for name, p in SETS.items():
        for key, scaling in SCALINGS.items():
            by = getattr(scaling, "by", None)
            needed = set(np.atleast_1d(by)) - {None, "u"} if by else set()
            is_slow = len(p) > 300 and key not in ("linear", "isotonic", "boosted")
            if needed <= set(p.names) and not is_slow:
                known, new = p, NEW[name]
                if "mass" in needed:  # of which nothing may be missing
                    known, new = complete(known), complete(new)
                yield f"{name}, {key}", known, ss.Recalibrator(scaling), new
    for key, options in OPTIONS.items():
        for name in ("plain", "weighted", "many", "timed", "shapes"):
            p = SETS[name]
            columns = options.get("parts", [])
            is_known = "bounds" not in options or p.y_pred is not None
            if set(columns) <= set(p.names) and is_known:
                r = ss.Recalibrator(ss.LinearScaling(), **options)
                yield f"{name}, linear, {key}", p, r, NEW[name]
    for loss in ("consistency", "adaptivity", "total"):
        scaling = ss.BinwiseScaling(3, by="mass", loss=loss, n_score_bins=5)
        known = complete(rows(200, 9, only=["mass"]))
        yield f"plain, {loss}", known, ss.Recalibrator(scaling), known.take(slice(20))


# -- what is watched -------------------------------------------------------------------


def watched():
    def stream(n, seed, change=None, **more):
        p = rows(n, seed, only=more.pop("only", ["kind"]), **more)
        error = p.error if change is None else change(p.error, p)
        features = {} if change is None else p.features
        if change is None:
            return p
        return ss.Predictions(
            p.y_pred,
            p.y_std,
            error=error,
            features={name: features[name] for name in p.names[1:]},
            groups=p.groups,
        )

    changes = {
        "none": None,
        "small": lambda e, p: 1.4 * e,
        "large": lambda e, p: e / 1.4,
        "bias": lambda e, p: e + 0.5 * p.y_std,
        "region": lambda e, p: np.where(p.features["kind"] == "b", 1.8 * e, e),
    }
    known = rows(600, 20, only=["kind"])
    r = ss.Recalibrator(ss.LinearScaling()).fit(known)
    for name, change in changes.items():
        for begun, monitor in (
            ("fit", ss.Monitor(r)),
            ("reference", ss.Monitor(rows(500, 21, only=["kind"]), confidence=0.9)),
            ("stream", ss.Monitor(burn_in=100)),
        ):
            for k, size in enumerate((90, 700, 1)):
                monitor.update(stream(size, 22 + k))
            monitor.update(stream(900, 30, change))
            yield f"{name}, {begun}", monitor
    by_mass = rows(700, 31, only=["mass"], groups=lambda rng, n: np.arange(n) // 3)
    later = stream(
        1500,
        32,
        lambda e, p: np.where(p.features["mass"] > 0.5, 2.5 * e, e),
        only=["mass"],
        groups=lambda rng, n: np.arange(n) // 3,
    )
    yield "groups", ss.Monitor(by_mass).update(later)
    half_lowest = [
        p._with(columns=(p.columns[0], np.maximum(p.columns[1], 0.0), p.columns[2]))
        for p in (rows(500, 45), rows(900, 46))
    ]
    yield "many lowest values", ss.Monitor(half_lowest[0]).update(half_lowest[1])
    of_vectors = [rows(400, 40 + k, vectors=True, only=["kind"]) for k in range(2)]
    yield "vectors", ss.Monitor(of_vectors[0]).update(of_vectors[1])


def of_monitor(monitor):
    state = monitor.state
    alarm = None if state.alarm is None else vars(state.alarm)
    return condensed([state.n_rows, state.evidence, alarm, monitor.history])


def followed():
    r = ss.Recalibrator(ss.LinearScaling()).fit(SETS["plain"])
    of_vectors = ss.Recalibrator(ss.LinearScaling()).fit(SETS["vectors"])
    yield ss.Follower(of_vectors, 0.8).update(rows(300, 52, vectors=True))
    for coverage in (0.5, 0.9):
        for p in (rows(400, 50), rows(400, 51, groups=groups)):
            yield ss.Follower(r, coverage).update(p)


# -- what is scored --------------------------------------------------------------------


def scores():
    calls = {name: getattr(ss.scores, name) for name in ss.scores.__all__}
    few = {"n_draws": 20, "n_resamples": 50}
    options = [
        ("local_statistics", {"n_bins": 6, "slide": True, "statistic": "coverage"}),
        ("local_statistics", {"n_bins": 6, "by": "mass", "method": "moments"}),
        ("local_statistics", {"n_bins": 6, "statistic": "mean"}),
        ("calibration_curve", {"kind": "quantile"}),
        ("confidence_curve", {"statistic": "mae", "n_draws": 20}),
        ("ence", {"by": "mass", "n_bins": 5}),
        ("uce", {"n_bins": 7}),
        ("local_calibration_error", {"n_bins": 7, "by": "kind"}),
        ("reference_scores", {"distribution": "empirical", "n_draws": 20}),
        ("interval_score", {"level": 0.8}),
        ("coverage", {"level": 0.5}),
    ]
    of_all = [(name, {}) for name in calls if name[0].islower()]
    for name in ("plain", "weighted", "grouped", "vectors", "rounded", "few"):
        p = SETS[name]
        q = ss.Recalibrator(ss.LinearScaling()).fit(p).apply(p)
        for call, settings in of_all + options:
            known = few.keys() & (calls[call].__kwdefaults__ or {}).keys()
            settings = {key: few[key] for key in sorted(known)} | settings
            for kind, of in (("", p), (", recalibrated", q)):
                try:
                    found = condensed([calls[call](of, **settings)])
                except (InvalidInputError, TypeError):
                    continue
                yield f"{name}{kind}, {call} {settings or ''}", found


# -- all of it -------------------------------------------------------------------------


def of_fits():
    for name, p, r, new in fits():
        yield name, of_fit(r.fit(p), p, new)


def of_watching():
    for name, monitor in watched():
        yield name, of_monitor(monitor)
    for k, follower in enumerate(followed()):
        said = [follower.log_stretch, follower.missed, follower.n_units]
        given = follower.radius(NEW["vectors"]) if k == 0 else None
        if given is None:
            given = follower.interval(NEW["plain"])
        yield f"follower {k}", condensed([*said, given])


PARTS = {"fits": of_fits, "watching": of_watching, "scores": scores}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.filterwarnings("ignore")
def test_numbers_of_drawn_sets_are_what_they_were(part):
    golden = json.loads(PATH.read_text(encoding="utf-8"))
    is_same_sklearn = golden["sklearn"] == SKLEARN
    remaining = dict(golden["numbers"][part])
    for name, found in PARTS[part]():
        wanted = flat(remaining.pop(name))
        if is_same_sklearn or not any(word in name for word in OF_TREES):
            assert flat(found) == pytest.approx(wanted, rel=1e-7, abs=1e-9), name
    assert not remaining


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    made = {"sklearn": SKLEARN, "numpy": np.__version__}
    made["numbers"] = {part: dict(numbers()) for part, numbers in PARTS.items()}
    text = json.dumps(made).replace('], "', '],\n"')  # a line for each set
    PATH.write_text(text + "\n", encoding="utf-8")
