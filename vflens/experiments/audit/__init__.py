"""``vflens audit``: what a passive party's columns would give away, from the party's own table alone."""
