"""Recordings of other frameworks as run folders, for reports and attacks."""
