"""Watch a stream of errors and uncertainties for drift, for as long as one likes."""
