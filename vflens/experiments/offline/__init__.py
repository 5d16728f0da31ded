"""Attacks and scores while no party runs: on recorded folders, and on arrays of other frameworks."""
