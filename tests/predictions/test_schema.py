"""Columns find their role by name, as one set, or the message lists the sets."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import (
    ColumnError,
    DamagedFileError,
    IndexColumnWarning,
    InvalidInputError,
    TextColumnWarning,
)
from sigmascale.predictions.schema import Choice, Schema, find, guess, remembered

TEXT = {"smiles", "formula", "id", "kind", "name", "station"}
# The header of a table, and what it tells: reference (or error), prediction and u.
TOLD = """
y_true,y_pred,error_bar | y_true,y_pred,error_bar
y,pred,error,err_bar | y,pred,err_bar
y,mu,sigma_sq | y,mu,sigma_sq
y,yhat,sigma,x1 | y,yhat,sigma
energy_ref,energy_pred,energy_std,mass | energy_ref,energy_pred,energy_std
DFT (eV),GP prediction (eV),GP std. dev. | DFT (eV),GP prediction (eV),GP std. dev.
E_true,E_model,u | E_true,E_model,u
R,V,u,X1 | R,V,u
E,u,mass | E,u
E,E_pred,u_E | E,E_pred,u_E
error,uncertainty,mass | error,uncertainty
REF_energy,MACE_energy,MACE_energy_var | REF_energy,MACE_energy,MACE_energy_var
smiles,logS,logS_pred,logS_std | logS,logS_pred,logS_std
id,y_true,y_pred,y_std,age | y_true,y_pred,y_std
y_test,y_pred,y_std | y_test,y_pred,y_std
y_test,mu,sigma | y_test,mu,sigma
target,mean,var | target,mean,var
station,obs,fcst,sd | obs,fcst,sd
temp_obs,temp_fc,u,v,temp_std | temp_obs,temp_fc,temp_std
observed,forecast,std | observed,forecast,std
measured,predicted,uncertainty,T_K | measured,predicted,uncertainty
pIC50_exp,pIC50_pred,pIC50_sd | pIC50_exp,pIC50_pred,pIC50_sd
exp,pred,pred_std | exp,pred,pred_std
true,pred,total_unc,aleatoric_unc,epistemic_unc | true,pred,total_unc
y,y_mean,y_var | y,y_mean,y_var
actual,predicted,Standard Deviation | actual,predicted,Standard Deviation
residual,sigma | residual,sigma
y_true,y_pred,error,y_std | y_true,y_pred,y_std
x,y,z,true,pred,std | true,pred,std
gap,gap_pred,gap_std | gap,gap_pred,gap_std
T_true [K],T_pred [K],T_sigma [K],P [bar] | T_true [K],T_pred [K],T_sigma [K]
dft,ml,ml_std | dft,ml,ml_std
HOMO_DFT,HOMO_ML,HOMO_uncertainty | HOMO_DFT,HOMO_ML,HOMO_uncertainty
u,v,wind,wind_pred,wind_std | wind,wind_pred,wind_std
E,u,u_recalibrated | E,u
t2m_obs,t2m_ens_mean,t2m_ens_std | t2m_obs,t2m_ens_mean,t2m_ens_std
y_test,y_mean,y_std | y_test,y_mean,y_std
Y,mean,variance | Y,mean,variance
Y_true,Y_pred_mean,Y_pred_var | Y_true,Y_pred_mean,Y_pred_var
energy_REF,energy_MACE,energy_var_MACE | energy_REF,energy_MACE,energy_var_MACE
obs,ens_mean,ens_std | obs,ens_mean,ens_std
pChEMBL,pred_pChEMBL,pred_std | pChEMBL,pred_pChEMBL,pred_std
predictions,predictions_std,y | y,predictions,predictions_std
band_gap,band_gap_pred,band_gap_pred_std | band_gap,band_gap_pred,band_gap_pred_std
true_value,pred_value,pred_uncertainty | true_value,pred_value,pred_uncertainty
Actual (MPa),Predicted (MPa),Std (MPa) | Actual (MPa),Predicted (MPa),Std (MPa)
gt,pred,unc | gt,pred,unc
obs_temp,model_temp,model_std | obs_temp,model_temp,model_std
fold,true,oof_pred,oof_std | true,oof_pred,oof_std
sigma_x,sigma_y,y_true,y_pred | y_true,y_pred,sigma_y
exp_dG,calc_dG,sem | exp_dG,calc_dG,sem
E_ads_dft,E_ads_ml,E_ads_ml_unc | E_ads_dft,E_ads_ml,E_ads_ml_unc
prediction error,predicted std | prediction error,predicted std
Q_obs,Q_sim,Q_std | Q_obs,Q_sim,Q_std
dipole,dipole_nn,dipole_nn_std | dipole,dipole_nn,dipole_nn_std
Ground Truth,Prediction,Uncertainty | Ground Truth,Prediction,Uncertainty
logP_exp,logP_calc,logP_std | logP_exp,logP_calc,logP_std
Experimental,Calculated,Uncertainty | Experimental,Calculated,Uncertainty
reference_value,ml_value,ml_uncertainty | reference_value,ml_value,ml_uncertainty
error (kcal/mol),u (kcal/mol) | error (kcal/mol),u (kcal/mol)
Err,Sigma,Mass | Err,Sigma
smiles,logS_true,logS,logS_std | logS_true,logS,logS_std
Y,Ymean,Yvar,X | Y,Ymean,Yvar
y,f_mean,f_var | y,f_mean,f_var
lead_time,t2m_obs,t2m_mean,t2m_spread | t2m_obs,t2m_mean,t2m_spread
Q(mm/d)_obs,Q(mm/d)_sim,Q(mm/d)_std | Q(mm/d)_obs,Q(mm/d)_sim,Q(mm/d)_std
qobs,qsim,qsim_sd,prcp,tmean | qobs,qsim,qsim_sd
e_form_true,e_form_pred_ens,e_form_std_ens | e_form_true,e_form_pred_ens,e_form_std_ens
name,Exp DG (kcal/mol),DG(MLE),uncertainty | Exp DG (kcal/mol),DG(MLE),uncertainty
y,mean,mean_se,mean_ci_lower,mean_ci_upper,obs_ci_lower | y,mean,mean_se
y,fit,se.fit,x1 | y,fit,se.fit
x,y,observed,var1.pred,var1.var,residual,zscore,fold | observed,var1.pred,var1.var
obs,mean,sd,0.025quant,0.5quant,0.975quant,mode,kld | obs,mean,sd
mu,alpha,homo,lumo,gap_true,gap,gap_std | gap_true,gap,gap_std
"""
ASKED = """
energy_ref,energy_pred,energy_std,force_ref,force_pred,force_std | reference
y_true,y_pred,std,sigma | uncertainty
exp,dft,ml,ml_std | reference
actual,predicted,standard deviation,standard error | uncertainty
formula,E_,prediction,uncertainty_total | reference
abs_error,u | error
energy_ref,force_pred,energy_std | prediction
dG_exp,dG_calc,dG_err | uncertainty
u,v,T | reference
mass,charge | uncertainty
"""

# What does not tell, and the set that the message shows first.
SHOWN = """
smiles,lipo,lipo_pred,lipo_pred_uncal_var | lipo,lipo_pred,lipo_pred_uncal_var
MedHouseVal,prediction,prediction_std,MedInc | COLUMN,prediction,prediction_std
station,ensmean,enssd,obs | obs,ensmean,enssd
standard_value,pred_value,pred_std | COLUMN,pred_value,pred_std
force_dft,force_nequip,force_nequip_std | force_dft,COLUMN,force_nequip_std
E_DFT,E_GAP,E_GAP_std | E_DFT,COLUMN,E_GAP_std
e_target,e_pred_n0,e_ale_std_n0,e_epi_std_n0 | e_target,e_pred_n0,e_ale_std_n0
z_spec,z_phot,z_phot_err,mag_i | COLUMN,COLUMN,z_phot_err
E_true,E_reco,E_reco_sigma,zenith | E_true,COLUMN,E_reco_sigma
y,loc,scale | y,COLUMN,scale
medv,.pred,.std_error,crim,rm | COLUMN,.pred,.std_error
sm_insitu,sm_sat,sm_uncertainty,lai | COLUMN,COLUMN,sm_uncertainty
value,estimate,se | COLUMN,estimate,se
u10,v10,t2m,t2m_fc,t2m_err | t2m,t2m_fc,t2m_err
y,mean_temp,std | y,mean_temp,std
logS_exp,pred,std | logS_exp,pred,std
gap_true,mu,gap_std | gap_true,mu,gap_std
"""
ALSO_ASKED = """
DV,PRED,IPRED,RES,WRES
label,pred_mean,pred_logvar
y,mu,log_sigma
target,pred_0,pred_1,pred_2,std
x,y,yerr
V,E
energy_error,std
E,pred,u
target_id,pred,std
true,pred,std,true_b,pred_b,std_b
y_true_1,y_pred_1,y_std_1,y_true_2,y_pred_2,y_std_2
"""


def lines(text):
    for line in text.strip().splitlines():
        header, told = line.split(" | ")
        names = header.split(",")
        yield names, [x for x in names if x not in TEXT], told


def test_everyday_names_are_told():
    for names, numeric, told in lines(TOLD):
        found = find(Choice(), names, numeric)
        assert [*found.error, found.uncertainty] == told.split(","), names
        assert set(found.guessed) == set(told.split(","))
        assert found.is_variance is any(x in found.uncertainty for x in ("var", "_sq"))


def test_names_that_do_not_tell_are_asked_for_with_candidates():
    for names, numeric, lacking in lines(ASKED):
        with pytest.raises(ColumnError, match="column") as found:
            find(Choice(options=True), names, numeric)
        assert found.value.role == lacking, names
        assert f"--{lacking}" in str(found.value)
    for names in (line.split(",") for line in ALSO_ASKED.split()):
        with pytest.raises(ColumnError, match="column"):
            find(Choice(), names, names)
    for names, numeric, first in lines(SHOWN):
        told = [name for name in first.split(",") if name != "COLUMN"]
        with pytest.raises(ColumnError, match="plainly") as found:
            find(Choice(options=True), names, numeric)
        assert [*found.value.fields["sets"][0].values()] == told, names
        for part, name in found.value.fields["sets"][0].items():
            assert f"--{part} {name}" in str(found.value)
    names, numeric, _ = next(lines(ASKED))
    with pytest.raises(ColumnError, match="plainly") as found:
        find(Choice(), names, numeric)
    sets = found.value.fields["sets"]
    assert [each["prediction"] for each in sets] == ["energy_pred", "force_pred"]
    assert 'y_true="energy_ref"' in str(found.value)
    assert found.value.columns == ("energy_ref", "force_ref")
    choice = Choice(**{k: v for k, v in sets[1].items()})
    assert find(choice, names, numeric).uncertainty == "force_std"
    one = find(Choice(reference="force_ref"), names, numeric)
    assert (one.prediction, one.uncertainty) == ("force_pred", "force_std")


def test_the_guess_of_each_column_is_shown():
    names = ["Unnamed: 0", "y_true", "y_pred", "y_std", "mass", "kind", "row"]
    parts, problem = guess(names, set(names) - {"kind"}, counting=["row"])
    assert parts == dict.fromkeys(names, "") | {
        "y_true": "reference",
        "y_pred": "prediction",
        "y_std": "uncertainty",
        "mass": "feature",
    }
    assert problem is None
    names = ["y_true", "y_pred", "std", "sigma"]
    parts, problem = guess(names, names)
    assert list(parts.values()) == ["reference", "prediction", "", ""]
    assert problem is not None


def test_what_is_named_is_taken_and_what_is_not_there_is_told_with_the_nearest():
    names = ["R", "V", "width", "u*", "m,1", "q=05", "mass"]
    choice = Choice(reference="R", prediction="V", variance="u*", features=("m,1",))
    found = find(choice, names, names)
    assert (found.uncertainty, found.is_variance) == ("u*", True)
    assert found.numbers == ("m,1",)
    assert found.guessed == ()
    with pytest.raises(ColumnError, match="Did you mean 'mass'") as error:
        find(Choice(features=("Mas",)), names, names)
    assert error.value.role == "unknown"
    assert error.value.fields["near"] == ["mass"]
    endless = [f"column {i} {'x' * 200}" for i in range(1000)]
    with pytest.raises(ColumnError, match="there is none") as error:
        find(Choice(error="y" * 500), endless, endless)
    assert len(str(error.value)) < 2000
    for wrong in (
        Choice(error="R", reference="V"),
        Choice(uncertainty="width", variance="u*"),
        Choice(error="R", uncertainty="R"),
        Choice(error="R", uncertainty="width", features=("width",)),
        Choice(error="R", uncertainty="width", exclude=("mass",)),
        Choice(error="R", interval=("V", "mass")),
    ):
        with pytest.raises(InvalidInputError, match=r"both|plain|role|cover|needs"):
            find(wrong, names, names)


def test_members_quantiles_and_intervals_are_chosen_by_name_or_pattern():
    names = ["y", "m1", "m2", "m10", "q05", "q=50", "q[95]", "low", "high", "x*"]

    def made(**choice):
        return find(Choice(reference="y", **choice), names, names)

    found = made(members=("m*",))
    assert found.made_of == ("m1", "m2", "m10")
    assert found.made == ("members_mean", "members_std")
    assert found.error == ("y", "members_mean")
    assert found.columns == ("m1", "m2", "m10", "y")
    found = made(quantile_columns=("q[95]=0.95", "q05=0.05", "q=50=.5"))
    assert found.made_of == ("q05", "q=50", "q[95]")
    assert found.levels == (0.05, 0.5, 0.95)
    found = made(interval=("low", "high"), interval_coverage=0.9)
    np.testing.assert_allclose(found.levels, (0.05, 0.95))
    assert made(members=("x*", "m1")).made_of == ("x*", "m1")
    for wrong in (
        {"members": ("m1",)},
        {"members": ("k*",)},
        {"quantile_columns": ("low", "high")},
        {"quantile_columns": ("low=0.05", "high=0.9")},
        {"interval_coverage": 0.9},
        {"interval": ("low", "high", "m1"), "interval_coverage": 0.9},
        {"interval": ("low", "high")},
    ):
        with pytest.raises(InvalidInputError, match=r"(?i)column|symmetric|coverage"):
            made(**wrong)


def test_all_features_are_numbers_without_another_part():
    names = ["index", "y_true", "y_pred", "y_std", "y_var", "err", "mass", "kind"]
    names += ["row", "charge", "group", "y_std_recalibrated", "y_std_recalibrated_low"]
    numeric = set(names) - {"kind"}
    choice = Choice(all_features=True, exclude=("charge",), groups="group")
    found = find(choice, names, numeric, counting=["row"])
    assert found.features == ("mass",)
    assert "row" in found.left_out
    assert "err" in found.left_out
    named = Choice(features=("kind", "mass"), labels=("charge",))
    found = find(named, names, numeric)
    assert (found.numbers, found.labels) == (("mass",), ("kind", "charge"))


def test_a_schema_is_kept_beside_a_recalibrator_and_read_strictly():
    whole = Schema(
        uncertainty="quantiles_std",
        numbers=("mass",),
        labels=("kind",),
        error=("y", "quantiles_middle"),
        prediction="quantiles_middle",
        groups="sample",
        made_of=("q05", "q95"),
        levels=(0.05, 0.95),
        min_std=0.1,
    )
    kept = whole.to_dict()
    assert Schema.from_dict(kept) == whole
    assert "2 quantiles: q05, q95" in str(whole)
    assert "features: mass, kind" in str(whole)
    for name in set(kept) - {"levels", "min_std"}:  # which are refused where used
        for value in (7, [7], {"a": 1}, [[None]]):
            with pytest.raises(DamagedFileError, match="damaged"):
                Schema.from_dict(kept | {name: value})
    for wrong in (None, [], {}, kept | {"more": 1}):
        with pytest.raises(DamagedFileError, match="damaged"):
            Schema.from_dict(wrong)


def test_columns_of_a_fit_are_remembered_and_may_be_replaced():
    was = Schema(
        "y_std", numbers=("mass",), error=("y_true", "y_pred"), prediction="y_pred"
    )
    new = ["mass", "y_pred", "y_std", "other_std", "y_true", "w"]
    found = remembered(was, Choice(weight="w"), new, errors=True)
    assert (found.error, found.weight, found.guessed) == (("y_true", "y_pred"), "w", ())
    found = remembered(was, Choice(uncertainty="other_std"), new[:4], errors=False)
    assert (found.uncertainty, found.prediction, found.error) == (
        *("other_std", "y_pred"),
        (),
    )
    found = remembered(was, Choice(), ["mass", "y_std"], errors=False)
    assert found.prediction is None
    with pytest.raises(ColumnError, match=r"'mass'.*there is none"):
        remembered(was, Choice(), ["y_std", "Mass"], errors=False)
    with pytest.raises(ColumnError, match=r"Features are those.*mass"):
        remembered(was, Choice(features=("x",)), new, errors=True)


# -- data frames -----------------------------------------------------------------------

TABLE = pl.DataFrame(
    {
        "y_true": [1.1, 1.8, 3.0, 4.4],
        "y_pred": [1.0, 2.0, 3.0, 4.0],
        "y_std": [0.1, 0.2, 0.3, 0.4],
        "y_var": [0.01, 0.04, 0.09, 0.16],
        "mass": [1.5, 2.5, None, 4.5],
        "kind": ["gas", "alloy", None, "gas"],
        "code": [7, 8, 7, 9],
        "day": pl.Series(["2024-05-01"] * 2 + ["2024-05-02"] * 2).str.to_date(),
        "sample": ["a", "a", "b", "b"],
        "w": [1.0, 2.0, 0.0, 1.0],
    }
)


def test_a_table_with_plain_names_needs_no_more():
    for frame in (TABLE, TABLE.to_pandas(), TABLE.to_arrow()):
        p = ss.Predictions.from_frame(frame)
        np.testing.assert_allclose(p.z, [1, -1, 0, 1])
        assert p.names == ("u",)
        q = ss.Predictions.from_frame(
            frame,
            features=["mass", "kind"],
            labels=["code", "day"],
            groups="sample",
            weights="w",
            time="day",
            variance="y_var",
        )
        assert q.names == ("u", "mass", "kind", "code", "day")
        assert q.features["code"].tolist() == ["7", "8", "9"]
        assert q.features["day"].tolist() == ["2024-05-01"] * 2 + ["2024-05-02"]
        assert q.features["kind"].tolist() == ["gas", "alloy", "gas"]
        assert q.groups.tolist() == [0, 0, 1]
        assert q.places.tolist() == [0, 1, 3]
        np.testing.assert_allclose(q.y_std, [0.1, 0.2, 0.4])
    new = ss.Predictions.from_frame(TABLE.drop("y_true"))
    assert new.error is None
    np.testing.assert_array_equal(new.y_pred, TABLE["y_pred"])


def test_a_column_that_counts_rows_is_an_index_and_no_feature():
    table = TABLE.select("y_true", "y_pred", "y_std", "mass").with_row_index("number")
    with pytest.warns(IndexColumnWarning, match="'number'"):
        p = ss.Predictions.from_frame(table, features="all")
    assert p.names == ("u", "mass")
    p = ss.Predictions.from_frame(table, features=["number"])
    assert p.names == ("u", "number")


def test_members_of_a_table_are_read():
    table = pl.DataFrame({"y": [1.0, 2.0], **{f"m{i}": [i, 2 * i] for i in range(12)}})
    found = find(Choice(members=("m*",)), table.columns, table.columns)
    p = found.read(table)
    np.testing.assert_allclose(p.y_pred, [5.5, 11.0])
    assert p.y_true.tolist() == [1.0, 2.0]


def test_text_is_a_feature_among_all_if_it_has_few_labels():
    n = 300
    table = pl.DataFrame({"y": np.arange(n) % 7, "pred": np.ones(n), "std": np.ones(n)})
    table = table.with_columns(
        phase=pl.Series([f"phase {i % 30}" for i in range(n)]),
        code=pl.Series([f"code {i % 31}" for i in range(n)]),
        smiles=pl.Series([f"C{i}" for i in range(n)]),
        one=pl.lit("gas"),
        flag=pl.Series(np.arange(n) % 2 == 0),
    )
    for frame in (table, table.to_pandas(), table.to_arrow()):
        with pytest.warns(TextColumnWarning, match="'code', 'smiles', 'one': left out"):
            p = ss.Predictions.from_frame(frame, features="all")
        assert p.names == ("u", "phase", "flag")


def test_data_frames_take_the_forms_of_the_command_line():
    steps = np.linspace(-1, 1, 12)
    table = pl.DataFrame(
        {"y": [1.0, 2.0], "low": [0.0, 1.0], "high": [2.0, 5.0], "pred_mean": [9, 9]}
        | {f"pred_{i}": [x, 2 * x] for i, x in enumerate(steps)}
    )
    p = ss.Predictions.from_frame(table, members="pred_*")
    np.testing.assert_allclose(p.y_std, np.array([1, 2]) * steps.std(ddof=1))
    for how in (
        {"interval": ("low", "high"), "coverage": 0.9},
        {"quantiles": {"high": 0.95, "low": 0.05}},
    ):
        p = ss.Predictions.from_frame(table, **how)
        np.testing.assert_allclose(p.y_pred, [1, 3])
        np.testing.assert_allclose(p.y_std, [1 / 1.6448536, 2 / 1.6448536])
    with pytest.raises(ColumnError, match=r'pass y_true="y", members=\["pred_\*"\]'):
        ss.Predictions.from_frame(table.drop("low", "high", "pred_mean"))
    with pytest.raises(InvalidInputError, match="`coverage` must lie"):
        ss.Predictions.from_frame(table, interval=("low", "high"))


def test_what_is_no_table_or_has_bad_cells_is_refused():
    for wrong, match in [
        ([1.0], "`frame` must be a data frame"),
        (TABLE.lazy(), "lazy frame.*sigmascale.frames"),
        (pd.DataFrame([[1.0, 2.0]], columns=["u", "u"]), "different names"),
        (TABLE.with_columns(y_std=-pl.col("y_std")), "`y_std` must be positive.*row 0"),
        (TABLE.clear(), "at least 1 row"),
    ]:
        with pytest.raises(InvalidInputError, match=match):
            ss.Predictions.from_frame(wrong)
    negative = TABLE.with_columns(y_var=-pl.col("y_var"))
    with pytest.raises(InvalidInputError, match=r"`y_var` must be at least 0.*row 0"):
        ss.Predictions.from_frame(negative, variance="y_var")


def test_names_that_are_no_text_are_refused_with_a_line_that_renames_them():
    pairs = [("y", 0.9, "lower"), ("y", 0.9, "upper")]  # as skpro and sktime have them
    table = pd.DataFrame(np.ones((5, 2)), columns=pd.MultiIndex.from_tuples(pairs))
    for frame in (table, pd.DataFrame(np.ones((5, 2)))):
        with pytest.raises(InvalidInputError, match="names of text") as problem:
            ss.Predictions.from_frame(frame)
        line = str(problem.value).partition("for example: ")[2].rstrip(".")
        exec(line, {"frame": frame, "np": np})
        assert all(isinstance(name, str) for name in frame.columns)
    assert [*table.columns] == ["y_0.9_lower", "y_0.9_upper"]
