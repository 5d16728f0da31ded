"""Whether recorded logs are what was received, and what was received is what was released."""
