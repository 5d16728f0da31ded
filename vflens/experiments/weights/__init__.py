"""Models that another framework trained, read from files without their code."""
