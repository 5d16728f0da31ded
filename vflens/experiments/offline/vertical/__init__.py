"""Attacks on records of a vertical run."""
