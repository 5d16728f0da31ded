"""The families of models that a federation can train, one per file."""
