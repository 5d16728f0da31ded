"""What a build and a data protection officer decide by: thresholds and documents."""
