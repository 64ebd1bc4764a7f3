"""Which column is what: guessed from names, said by options, or known to a file."""

import json

import polars as pl
import pytest

import sigmascale as ss

N = 40
FRAME = pl.DataFrame(
    {
        "formula": ["CH4", "H2O", "NH3", "CO2"] * 10,
        "E": [f"{i % 7 - 3}.5" for i in range(N)],
        "u": [f" {i % 9 + 1}e-1" for i in range(N)],
        "mass": [f"{i * 7 % 11 + 1}.5" for i in range(N)],  # no count of rows
        "label": list("aabb") * 10,
    }
)
COLUMN = FRAME["mass"]


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def fit(sigmascale):
    def run(frame, *options):
        frame.write_csv("a.csv")
        fit = ("fit", "a.csv", "--method", "temperature", "-o", "s.json", "--json")
        return sigmascale(*fit, *options)

    return run


@pytest.fixture
def roles(fit):
    """Return which column of a table was taken as what."""

    def find(frame=FRAME, *options):
        done = fit(frame, *options)
        assert done.code == 0, done.err
        return json.loads(done.out)["data"]

    return find


@pytest.fixture
def refusal(fit):
    """Return the end of a command that refuses what was said of the columns."""

    def refuse(frame, *options):
        done = fit(frame, *options)
        assert (done.code, done.out) == (2, "")
        return done

    return refuse


def columns(*names):
    return pl.DataFrame(dict.fromkeys(names, COLUMN))


# --- errors and uncertainties


@pytest.mark.parametrize("name", ["E", "e", "Error", " error "])
def test_the_error_is_guessed_from_its_name(name, roles):
    assert roles(columns(name, "u"))["error"] == [name]


def test_an_error_is_preferred_to_its_parts(roles):
    assert roles(columns("R", "V", "E", "u"))["error"] == ["E"]
    assert roles(columns("V", "R", "u"))["error"] == ["R", "V"]
    found = roles(columns("x", "pred", "u"), "--reference", "x")
    assert found["error"] == ["x", "pred"]


@pytest.mark.parametrize(
    ("name", "is_variance"),
    [
        *[("u", False), ("uncertainty", False), ("Sigma", False), ("std", False)],
        *[("y_std", False), ("variance", True), ("var", True)],
    ],
)
def test_every_name_that_leaves_no_doubt_is_guessed(name, is_variance, roles):
    found = roles(columns("E", name, "x"))
    assert (found["uncertainty"], found["is_variance"]) == (name, is_variance)


def test_an_uncertainty_goes_before_a_variance(roles):
    found = roles(columns("E", "var", "u"))
    assert (found["uncertainty"], found["is_variance"]) == ("u", False)


def test_what_is_named_goes_before_what_is_guessed(roles):
    frame = columns("E", "u", "x", "y")
    assert roles(frame, "--error", "x")["error"] == ["x"]
    parts = ("--reference", "x", "--prediction", "y")
    assert roles(frame, *parts)["error"] == ["x", "y"]
    found = roles(frame, "--variance", "y")
    assert (found["uncertainty"], found["is_variance"]) == ("y", True)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Mass", "mass"),
        ("masss", "mass"),
        ("uncertanty", "uncertainty"),
        ("MAS", "mass"),
    ],
)
def test_the_nearest_name_is_suggested(name, near, refusal):
    done = refusal(columns("E", "uncertainty", "mass"), "--feature", name)
    assert done.says(f"'{name}'.* mean '{near}'")


def test_a_name_that_is_far_from_all_gets_no_suggestion(refusal):
    done = refusal(columns("E", "u"), "--feature", "qqq")
    assert done.says("--feature .*'qqq'")
    assert not done.says("mean '")


# --- features


def test_true_values_and_errors_beside_predictions_are_features_only_if_named(roles):
    frame = columns("E", "u", "mass", "R", "V")
    every = roles(frame, "--all-features")
    assert (every["numbers"], every["left_out"]) == (["mass", "V"], ["R"])
    parts = ("--reference", "R", "--prediction", "V")
    every = roles(frame, "--all-features", *parts)
    assert (every["numbers"], every["left_out"]) == (["mass"], ["E"])
    assert roles(frame.drop("V"), "--all-features")["numbers"] == ["mass", "R"]
    named = roles(frame, "--all-features", "--feature", "R")
    assert named["numbers"] == ["R", "mass", "V"]


def test_the_prediction_can_be_a_feature_but_the_reference_and_the_error_cannot(
    roles, refusal
):
    frame = columns("u", "mass", "E", "R", "V")
    parts = ("--reference", "R", "--prediction", "V")
    found = roles(frame, *parts, "--feature", "V")
    assert (found["numbers"], found["error"]) == (["V"], ["R", "V"])
    assert found["prediction"] == "V"
    every = roles(frame, *parts, "--feature", "V", "--all-features")
    assert every["numbers"] == ["V", "mass"]
    for options in ((*parts, "--feature", "R"), ("--feature", "E")):
        assert refusal(frame, *options).says(f"'{options[-1]}' .*part already")


def test_all_other_columns_of_numbers_are_features(roles):
    found = roles(FRAME, "--all-features")
    assert (found["numbers"], found["labels"]) == (["mass"], [])
    found = roles(FRAME, "--all-features", "--label", "mass")
    assert (found["numbers"], found["labels"]) == ([], ["mass"])


def test_columns_can_be_excluded_from_all_features_only(roles, refusal):
    frame = FRAME.with_columns(a="mass", b="mass")
    excluded = ("--exclude", "a", "--exclude", "mass")
    found = roles(frame, "--all-features", *excluded)
    assert (found["numbers"], found["left_out"]) == (["b"], [])
    done = refusal(frame, "--feature", "a", "--exclude", "b")
    assert done.says("--exclude .*--all-features")
    done = refusal(frame, "--all-features", "--exclude", "c")
    assert done.says("--exclude .*'c'")


def test_uncertainties_are_features_only_if_named(roles):
    made = ["u_recalibrated", "u_recalibrated_low", "mass_recalibrated"]
    others = [*made, "Sigma", "var"]
    frame = FRAME.with_columns(**dict.fromkeys(others, pl.col("u")))
    every = roles(frame, "--all-features", "--uncertainty", "u")
    assert (every["numbers"], every["left_out"]) == (["mass"], others)
    named = ("--feature", "u_recalibrated", "--uncertainty", "u")
    named = roles(frame, "--all-features", *named)
    assert named["numbers"] == ["u_recalibrated", "mass"]
    judged = roles(frame, "--uncertainty", "u_recalibrated", "--all-features")
    assert judged["numbers"] == ["mass"]
    assert judged["left_out"] == ["u", *others[1:]]


def test_what_was_recalibrated_is_no_feature_whatever_its_name(roles):
    frame = FRAME.with_columns(mine_recalibrated="u", mine="u").drop("u")
    found = roles(frame, "--uncertainty", "mine_recalibrated", "--all-features")
    assert (found["numbers"], found["left_out"]) == (["mass"], ["mine"])


def test_features_are_used_once_and_text_is_labels(roles):
    features = ("--feature", "label", "--feature", "mass", "--feature", "mass")
    by = ("--method", "binwise", "--bins", "2", "--by", "mass", "--by", "u")
    found = roles(FRAME, *features, "--label", "label", *by)
    assert (found["numbers"], found["labels"]) == (["mass"], ["label"])


def test_a_formula_gives_features_that_can_be_binned_by(roles, refusal):
    by = ("--method", "category", "--by", "OxNy")
    found = roles(FRAME, "--formula", "formula", *by)
    assert (found["formula"], found["numbers"], found["labels"]) == ("formula", [], [])
    assert "4 categories" in ss.load("s.json").describe()
    # a column and a derived feature cannot share a name
    assert refusal(FRAME, "--formula", "formula", "--label", "mass").says("'mass'")


# --- another table


def test_another_table_must_have_what_the_first_one_had(roles, sigmascale):
    roles(FRAME, "--all-features", "--label", "label")
    FRAME.rename({"u": "v"}).drop("E").write_csv("b.csv")
    apply = ("apply", "s.json", "b.csv", "-o", "new.csv")
    done = sigmascale(*apply)
    assert done.code == 2
    assert done.says("needs .*'u'")
    for option in ("--uncertainty", "--variance"):
        assert sigmascale(*apply, option, "v").code == 0
        assert pl.read_csv("new.csv").columns[-1] == "v_recalibrated"


def test_new_columns_must_have_new_names(roles, sigmascale):
    roles(FRAME, "--conformal-share", "0.5")
    FRAME.with_columns(better_low="u").write_csv("b.csv")
    apply = ("apply", "s.json", "b.csv", "-o", "new.csv", "--name", "better")
    assert sigmascale(*apply).code == 0
    assert pl.read_csv("new.csv").columns[-1] == "better"
    done = sigmascale(*apply, "--coverage", "0.8")
    assert done.code == 2
    assert done.says("'better_low' already.*--name")
    assert sigmascale(*apply[:2], "a.csv", *apply[3:], "--coverage", "0.8").code == 0
    names = ["better", "better_low", "better_high"]
    assert pl.read_csv("new.csv").columns[-3:] == names


def test_roles_that_are_damaged_are_refused(roles, sigmascale):
    roles(FRAME, "--all-features", "--label", "label", "--formula", "formula")
    good = json.loads(sigmascale("show", "s.json", "--json").out)["roles"]
    scaler = ss.load("s.json")
    apply = ("apply", "s.json", "a.csv", "-o", "new.csv")
    ss.save(scaler, "s.json", source=good)
    assert sigmascale(*apply).code == 0
    for change in (
        {"uncertainty": 1},
        {"uncertainty": None},
        {"is_variance": "yes"},
        {"numbers": "ab"},
        {"labels": [1]},
        {"formula": []},
        {"error": "E"},
        {"prediction": 1},
        {"more": 1},
    ):
        ss.save(scaler, "s.json", source=good | change)
        done = sigmascale(*apply)
        assert done.code == 2
        assert done.says("s.json: .*damaged"), change
    ss.save(scaler, "s.json", source={"uncertainty": "u"})
    assert sigmascale(*apply).says("s.json: .*damaged")


def test_no_column_is_looked_for_among_all_others(roles, monkeypatch):
    """What is done once a column must not take longer the more columns there are."""
    made = []
    schema = pl.DataFrame.schema

    def count(frame):
        made.append(frame.width)
        return schema.fget(frame)

    monkeypatch.setattr(pl.DataFrame, "schema", property(count))
    looks = []
    for width in (50, 100):
        frame = FRAME.with_columns(**{f"x{i}": pl.col("mass") for i in range(width)})
        made.clear()
        assert len(roles(frame, "--all-features")["numbers"]) == width + 1
        looks.append(len(made))
    assert looks[0] == looks[1]
