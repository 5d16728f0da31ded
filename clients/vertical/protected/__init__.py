"""A data party's side of protected training: what it shares, how the two computing parties take a step."""
