"""Pure functions on batches: NumPy and SciPy only."""
