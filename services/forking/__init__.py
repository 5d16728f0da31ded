"""Processes forked from one that has loaded VFLens, instead of Pythons that each load it."""
