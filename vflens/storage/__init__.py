"""Data on disk: arrays, journals, transcripts, metrics, logs."""
