"""Records of a vertical run."""
