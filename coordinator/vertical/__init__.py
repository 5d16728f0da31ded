"""The coordinator of a vertical run: alignment, training, disclosure, prediction, score release."""
