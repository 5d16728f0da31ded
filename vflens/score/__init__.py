"""The scoring services of targets: what a submission was worth, told to nobody but its target."""
