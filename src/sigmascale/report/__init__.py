"""A report in one HTML file: verdicts, scores, pictures, methods, and cautions.

The file needs no network and no JavaScript, and can be read on a phone and on paper.
What it shows is computed in :mod:`~sigmascale.report.results`; the other modules turn
it into pictures, words and HTML, and compute no statistics.
"""

from .page import report_html, write_report

__all__ = ["report_html", "write_report"]
