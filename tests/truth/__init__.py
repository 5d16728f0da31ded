"""Tables of known leak, and what is said of them: make truth."""
