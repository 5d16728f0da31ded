"""What is vertical at a data party: all hold the same rows, in one aligned order, with other columns."""
