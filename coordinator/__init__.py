"""The round logic: alignment, training, disclosure, prediction, score release."""
