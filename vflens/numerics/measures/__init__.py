"""How well an estimate does: scores of one run, means and intervals over several."""
