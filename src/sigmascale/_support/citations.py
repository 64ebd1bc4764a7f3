"""References, each written down once: recalibrators and reports cite them."""

SCORES = (
    "P. Pernot, Can bin-wise scaling improve consistency and adaptivity of prediction "
    "uncertainty for machine learning regression? arXiv:2310.11978 (2023)."
)
LOCAL = (
    "P. Pernot, Calibration in machine learning uncertainty quantification: beyond "
    "consistency to target adaptivity. arXiv:2309.06240 (2023)."
)
BCA = (
    "B. Efron, Better bootstrap confidence intervals. J. Am. Stat. Assoc. 82, 171–185 "
    "(1987). doi:10.1080/01621459.1987.10478410"
)
ABC = (
    "T. DiCiccio and B. Efron, More accurate confidence intervals in exponential "
    "families. Biometrika 79, 231–245 (1992). doi:10.1093/biomet/79.2.231"
)
WILSON = (
    "E. B. Wilson, Probable inference, the law of succession, and statistical "
    "inference. J. Am. Stat. Assoc. 22, 209–212 (1927). "
    "doi:10.1080/01621459.1927.10502953"
)
NEWCOMBE = (
    "R. G. Newcombe, Two-sided confidence intervals for the single proportion: "
    "comparison of seven methods. Stat. Med. 17, 857–872 (1998). "
    "doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E"
)
STEP_DOWN = (
    "P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing: Examples and "
    "Methods for p-Value Adjustment. Wiley (1993)."
)
CURVE = (
    "P. Pernot, Confidence curves for UQ validation: probabilistic reference vs. "
    "oracle. arXiv:2206.15272 (2022)."
)
LEVI = (
    "D. Levi, L. Gispan, N. Giladi and E. Fetaya, Evaluating and calibrating "
    "uncertainty prediction in regression tasks. Sensors 22, 5540 (2022). "
    "doi:10.3390/s22155540"
)
FRENKEL = (
    "L. Frenkel and J. Goldberger, Calibration of a regression network based on the "
    "predictive variance with applications to medical images. ISBI (2023). "
    "doi:10.1109/ISBI53787.2023.10230543"
)
BUSK = (
    "J. Busk et al., Calibrated uncertainty for molecular property prediction using "
    "ensembles of message passing neural networks. Mach. Learn.: Sci. Technol. 3, "
    "015012 (2022). doi:10.1088/2632-2153/ac3eb3"
)
RAKING = (
    "W. E. Deming and F. F. Stephan, On a least squares adjustment of a sampled "
    "frequency table when the expected marginal totals are known. Ann. Math. Statist. "
    "11, 427–444 (1940). doi:10.1214/aoms/1177731829"
)
BOOSTING = (
    "J. H. Friedman, Greedy function approximation: a gradient boosting machine. Ann. "
    "Statist. 29, 1189–1232 (2001). doi:10.1214/aos/1013203451"
)
SMIRNOV = (
    "N. Smirnov, Table for estimating the goodness of fit of empirical distributions. "
    "Ann. Math. Statist. 19, 279–281 (1948). doi:10.1214/aoms/1177730256"
)
TAILS = (
    "P. Pernot, Negative impact of heavy-tailed uncertainty and error distributions on "
    "the reliability of calibration statistics for machine learning regression tasks. "
    "arXiv:2402.10043 (2024)."
)
WITHIN = (
    "P. Pernot, On the good reliability of an interval-based metric to validate "
    "prediction uncertainty for machine learning regression tasks. arXiv:2408.13089 "
    "(2024)."
)
MARTINGALES = (
    "V. Vovk, Testing randomness online. Statist. Sci. 36, 595–611 (2021). "
    "doi:10.1214/20-STS817"
)
SKEWNESS = (
    "R. A. Groeneveld and G. Meeden, Measuring skewness and kurtosis. The Statistician "
    "33, 391–399 (1984). doi:10.2307/2987742"
)
