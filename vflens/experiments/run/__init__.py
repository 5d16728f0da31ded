"""From an experiment file to run folders."""
