"""The messages between parties, and the checks of a message."""
