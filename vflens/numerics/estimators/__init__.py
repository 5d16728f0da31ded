"""Estimators of unknown columns from linear equations."""
