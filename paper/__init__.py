"""The study: every table and figure of the paper, computed and compared.

P. Pernot, "Can bin-wise scaling improve consistency and adaptivity of prediction
uncertainty for machine learning regression?", arXiv:2310.11978 (2023).
"""
