"""What is horizontal at a client: rows of its own, a whole model, rounds."""
