"""Boosted trees: saved ones, and what the messages of their training say."""
