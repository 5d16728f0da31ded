"""Closed forms and bounds of the papers."""
