"""From run folders to figures and words."""
