"""Scores, intervals, references and verdicts."""
