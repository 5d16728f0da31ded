"""Records of a horizontal run."""
