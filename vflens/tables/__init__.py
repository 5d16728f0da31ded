"""From a party's own file to a scaled table."""
