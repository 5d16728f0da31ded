"""Vertical experiments: their file, and what is checked of them before the start."""
