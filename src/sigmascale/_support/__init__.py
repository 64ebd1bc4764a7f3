"""What every room uses: checks of input, rows, files, progress, results as text."""
