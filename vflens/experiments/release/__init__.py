"""``vflens release``: a table under noise, streamed from file to file, with its certificate."""
