"""The report: verdicts, pictures, scores and cautions as one HTML page.

Everything in it was computed elsewhere: figures come from :mod:`sigmascale.plots`, and
numbers from results.
"""

from .page import report_html, write_report

__all__ = ["report_html", "write_report"]
