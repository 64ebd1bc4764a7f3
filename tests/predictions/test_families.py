"""Members, limits, quantiles and variances are offered for what they are, or not."""

import re
import shlex

import pytest

from sigmascale.cli.options import parse
from sigmascale.exceptions import ColumnError
from sigmascale.predictions.schema import Choice, find

TEXT = {"smiles", "SMILES", "ds", "unique_id", "split", "formula", "id", "station"}
# The header of a table whose uncertainty is no single column, and what is to be typed.
OFFERED = """
y,pred_0,pred_1,pred_2,pred_3 | --members 'pred_*'
y,pred_mean,pred_0,pred_1,pred_2 | --members 'pred_*'
smiles,Tb,Tb_model_0,Tb_model_1,Tb_model_2 | --members 'Tb_model_*'
target,member_1,member_2,member_3,member_4 | --members 'member_*'
E_dft,ens0,ens1,ens2,ens3 | --members 'ens*'
y_true,tree1,tree2,tree3,tree4,mass | --members 'tree*'
energy_ref,energy_pred_1,energy_pred_2,energy_pred_3 | --members 'energy_pred_*'
y,seed_0_pred,seed_1_pred,seed_2_pred | --members 'seed_*_pred'
gap_true,gap_seed1,gap_seed7,gap_seed42 | --members 'gap_seed*'
actual,y_pred1,y_pred2,y_pred3 | --members 'y_pred*'
obs,model1,model2,model3,model4,model5,model6 | --members 'model*'
actual,forecast,lo95,hi95 | --interval lo95 --interval hi95 0.95
ds,y,MQ-median,MQ-lo-90.0,MQ-hi-90.0 | --interval MQ-lo-90.0 --interval MQ-hi-90.0 0.9
y,yhat,yhat_lower,yhat_upper | --interval yhat_lower --interval yhat_upper SHARE
unique_id,ds,y,CES,CES-lo-95,CES-hi-95 | --interval CES-lo-95 --interval CES-hi-95 0.95
ds,y,NHITS,NHITS-lo-80,NHITS-lo-95,NHITS-hi-80,NHITS-hi-95 | --interval NHITS-lo-95 0.95
y,pred,lower_bound,upper_bound | --interval lower_bound --interval upper_bound SHARE
y,fit,lwr,upr | --interval lwr --interval upr SHARE
y_true,y_pred,lower_90,upper_90 | --interval lower_90 --interval upper_90 0.9
y,pred,ci_low,ci_high | --interval ci_low --interval ci_high SHARE
obs,pred,pi_lower_0.9,pi_upper_0.9 | --interval pi_lower_0.9 --interval pi_upper_0.9 0.9
t2m_obs,t2m_fc,t2m_low,t2m_high | --interval t2m_low --interval t2m_high SHARE
true,pred,lb,ub | --interval lb --interval ub SHARE
y,mean,mean_se,mean_ci_lower,mean_ci_upper,obs_ci_lower,obs_ci_upper | obs_ci_lower
y,q05,q50,q95 | --quantile-columns q05=0.05 --quantile-columns q50=0.5 q95=0.95
Y,tau=0.05,tau=0.5,tau=0.95 | --quantile-columns tau=0.05=0.05 tau=0.95=0.95
y,0.1,0.5,0.9 | --quantile-columns 0.1=0.1 --quantile-columns 0.9=0.9
obs,p10,p50,p90 | --quantile-columns p10=0.1 --quantile-columns p90=0.9
y,pred_q025,pred_q500,pred_q975 | pred_q025=0.025 pred_q500=0.5 pred_q975=0.975
y,Estimate,Est.Error,Q2.5,Q97.5 | --quantile-columns Q2.5=0.025 Q97.5=0.975
y_true,quantile_0.05,quantile_0.5,quantile_0.95 | quantile_0.05=0.05 quantile_0.95=0.95
y,median_pred,5 %,95 % | --quantile-columns '5 %=0.05' --quantile-columns '95 %=0.95'
smiles,lipo,lipo_pred,lipo_pred_uncal_var | --variance lipo_pred_uncal_var
smiles,logS_true,logS,logS_unc | --variance logS_unc
"""
# Others: what is proposed for the uncertainty, if anything.
OTHERS = """
MedHouseVal,prediction,prediction_std,MedInc | prediction_std
station,ensmean,enssd,obs | enssd
standard_value,pred_value,pred_std | pred_std
z_spec,z_phot,z_phot_err,mag_i | z_phot_err
E_true,E_reco,E_reco_sigma,zenith | E_reco_sigma
y,loc,scale | scale
medv,.pred,.std_error,crim,rm | .std_error
sm_insitu,sm_sat,sm_uncertainty,lai | sm_uncertainty
obs,model,error_low,error_high |
y,pred,err_q05,err_q95 |
y,pred,abs_error,relative_error |
y,pred,residual,mse |
y,pred,2sigma |
y,pred,phase,function,barrier,terrain |
y,pred,half_width,PI_width |
mass_true,mass_pred,mass_err_low,mass_err_up |
y_true,y_pred,rmsd,msd |
E,E1,E2,E3,E4 |
y,E[y],Var[y] | Var[y]
value,estimate,se | se
u10,v10,t2m,t2m_fc,t2m_err | t2m_err
logS_exp,pred,std | std
gap_true,mu,gap_std | gap_std
x,y,yerr | yerr
y,mu,log_sigma |
label,pred_mean,pred_logvar |
y,yhat_upper |
y,pred,q95 |
y,pred,feature_1,feature_2,feature_3 |
y,pred,T_min,T_max,width |
y,pred,x1,x2,x3 |
y,pred,conc_0.1,conc_0.9 |
y_true_1,y_true_2,y_true_3,y_pred_1,y_pred_2,y_pred_3 |
mu_1,mu_2,mu_3,sigma_1,sigma_2,sigma_3,y | sigma_1,sigma_2,sigma_3
force_dft,force_nequip,force_nequip_std | force_nequip_std
E_DFT,E_GAP,E_GAP_std | E_GAP_std
pred,true |
y,pred,pm10,pm25 |
energy_error,std | std
exp,dft,ml,ml_std | ml_std
"""


def tables(text):
    for line in text.strip().splitlines():
        header, told = line.split(" |")
        yield header.split(","), told.strip()


def refusal(names):
    """Return what is said of a table by the command line, and its numbers."""
    numeric = [x for x in names if x not in TEXT]
    with pytest.raises(ColumnError, match="plainly") as problem:
        find(Choice(options=True), names, numeric)
    return problem.value, numeric


def proposed(problem, numeric):
    """Return the options of the first proposal, as a choice of columns."""
    line = str(problem).partition("pass ")[2] or str(problem).partition("example: ")[2]
    line = re.split(r"\. (?:The columns|')", line)[0].replace("SHARE", "0.9")
    free = [name for name in numeric if name not in line]
    typed = shlex.split(line.replace("COLUMN", free[0]) if "COLUMN" in line else line)
    return Choice.of_command(parse(["check", "a.csv", *typed]))


def test_what_says_an_uncertainty_together_is_offered_and_can_be_typed():
    n = 0
    for names, told in tables(OFFERED):
        problem, numeric = refusal(names)
        for word in shlex.split(told):
            assert word in str(problem).replace("'", ""), (names, str(problem))
        choice = proposed(problem, numeric)
        assert choice.uncertainty is None, names
        schema = find(choice, names, numeric)
        assert schema.error, names
        n += 1
    assert n >= 30


def test_of_other_tables_no_member_limit_or_quantile_is_proposed():
    n = 0
    for names, told in tables(OTHERS):
        problem, _ = refusal(names)
        sets = problem.fields.get("sets", [])
        proposals = {x.get("uncertainty", x.get("variance")) for x in sets} - {None}
        assert proposals <= set(told.split(",")), (names, str(problem))
        assert "--members" not in str(problem), names
        assert "--interval" not in str(problem), names
        assert "--quantile" not in str(problem), names
        n += 1
    assert n >= 30


def test_what_any_of_several_columns_may_be_is_left_blank():
    members = ["obs", "pred_a", "pred_b", "pred_c"]
    problem, _ = refusal(members)
    assert "--reference obs --prediction COLUMN" in str(problem)
    problem, _ = refusal(["age", "temp", "demand", "p10", "p50", "p90"])
    assert "--reference COLUMN" in str(problem)


def test_a_prediction_beside_limits_is_not_the_true_value():
    for names in (
        ["load", "forecast", "Lower 95%", "Upper 95%"],
        ["forecast", "Lower 95%", "Upper 95%"],
    ):
        problem, _ = refusal(names)
        assert "--reference forecast" not in str(problem)
        assert "--interval 'Lower 95%'" in str(problem)
