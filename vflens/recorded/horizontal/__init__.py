"""Of a horizontal run."""
