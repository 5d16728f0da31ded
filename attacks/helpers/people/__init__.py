"""Who trained, and means of populations."""
