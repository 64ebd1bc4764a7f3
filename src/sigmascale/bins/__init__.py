"""Rows into bins, bins into sums: the path to nearly every statistic."""
