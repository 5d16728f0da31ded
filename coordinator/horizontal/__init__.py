"""The server of a horizontal run: rounds of updates, their mean, and its attacks."""
