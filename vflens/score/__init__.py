"""The scoring services of targets: only the target learns the errors of a submission."""
