"""Of a vertical run."""
