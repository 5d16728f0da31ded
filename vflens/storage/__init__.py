"""What is on disk: arrays, journals, transcripts, metrics, logs."""
