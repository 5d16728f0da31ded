"""Which party says what to which, and what a message must be."""
