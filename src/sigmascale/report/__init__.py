"""The report: results, pictures, scores and cautions as one HTML page.

Everything in it was computed elsewhere: figures come from :mod:`sigmascale.plots`, and
numbers from results.
"""

from .card import card_of, read_card, rows_sha256, verify_card, write_card
from .page import report_html, write_report

__all__ = [
    "card_of",
    "read_card",
    "report_html",
    "rows_sha256",
    "verify_card",
    "write_card",
    "write_report",
]
