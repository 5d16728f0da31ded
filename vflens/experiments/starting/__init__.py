"""Files to begin with: copies of the examples, plug-ins of one's own, a party's configuration."""
