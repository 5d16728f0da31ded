"""``vflens audit``: what a passive party's columns would reveal, from the party's own table alone."""
