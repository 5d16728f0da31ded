"""The ``vflens`` command."""
