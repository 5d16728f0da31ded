"""Horizontal experiments: their file, how rows are dealt, and what is checked of them before the start."""
