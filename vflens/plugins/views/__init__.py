"""What an adversary may read, by the setting of its run."""
