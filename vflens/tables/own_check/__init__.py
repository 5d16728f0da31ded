"""*Your table first*: what is to be mended in a party's own file."""
