"""The data parties as plain objects: passive (features) and active (labels, adversary)."""
